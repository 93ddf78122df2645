(() => {
  const root = document.documentElement;
  root.classList.add("js");

  const remembered = () => { try { return localStorage.getItem("heatcheck-theme"); } catch { return null; } };
  const remember = (theme) => { try { localStorage.setItem("heatcheck-theme", theme); } catch { /* private window */ } };
  const toggle = document.getElementById("theme");
  const dark = () => (root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  const label = () => { toggle.textContent = dark() ? "Light page" : "Dark page"; };
  const asked = new URLSearchParams(location.search).get("theme") || remembered();
  if (asked === "dark" || asked === "light") root.dataset.theme = asked;
  label();
  toggle.addEventListener("click", () => {
    root.dataset.theme = dark() ? "light" : "dark";
    remember(root.dataset.theme);
    label();
  });

  // Some browsers refuse long data links; a blob of the same bytes has no such limit.
  for (const link of document.querySelectorAll("a[download]")) {
    link.addEventListener("click", (event) => {
      const bytes = Uint8Array.from(atob(link.getAttribute("href").split(",")[1]), (c) => c.charCodeAt(0));
      const url = URL.createObjectURL(new Blob([bytes], { type: "text/csv;charset=utf-8" }));
      const other = Object.assign(document.createElement("a"), { href: url, download: link.download });
      other.click();
      setTimeout(() => URL.revokeObjectURL(url), 10000);
      event.preventDefault();
    });
  }

  const links = new Map([...document.querySelectorAll(".topbar a")].map((a) => [a.hash.slice(1), a]));
  const watcher = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      for (const [anchor, link] of links) {
        if (anchor === entry.target.id) link.setAttribute("aria-current", "true");
        else link.removeAttribute("aria-current");
      }
    }
  }, { rootMargin: "-20% 0px -75% 0px" });
  for (const section of document.querySelectorAll("main > section")) watcher.observe(section);

  // An address such as #floors opens what is folded around it.
  const opened = () => {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    const inside = target.querySelector(":scope > details.part");
    if (inside) inside.open = true;
    for (let around = target.closest("details"); around; around = around.parentElement.closest("details")) around.open = true;
    target.dispatchEvent(new CustomEvent("reveal", { bubbles: true }));
    target.scrollIntoView();
  };
  addEventListener("hashchange", opened);
  for (const link of document.querySelectorAll('a[href^="#"]')) {
    link.addEventListener("click", () => { if (link.hash === location.hash) opened(); });
  }
  opened();

  // Paper shows the parts that are marked for it, and what was open on the screen.
  const closed = [];
  addEventListener("beforeprint", () => {
    closed.push(...document.querySelectorAll("details[data-printed]:not([open]), details.verdict:not([open]), details.cautions:not([open])"));
    for (const each of closed) each.open = true;
  });
  addEventListener("afterprint", () => { for (const each of closed.splice(0)) each.open = false; });
})();
