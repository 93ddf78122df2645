(() => {
  const gallery = document.getElementById("gallery");
  if (!gallery) return;
  const cards = [...gallery.querySelectorAll(".card")];
  const control = (name) => gallery.querySelector(`[data-control="${name}"]`);
  const first = Number(gallery.dataset.first || 6);
  let limit = first;
  let asked = null; // the card that the page's address names is shown beside the first ones

  const show = (card, index) => {
    for (const layer of card.querySelectorAll("[data-map]")) layer.toggleAttribute("hidden", layer.dataset.map !== index);
  };
  for (const card of cards) {
    for (const choice of card.querySelectorAll(".choose input")) {
      choice.addEventListener("change", () => show(card, choice.value));
    }
  }
  control("method")?.addEventListener("change", (event) => {
    for (const card of cards) {
      const choice = [...card.querySelectorAll(".choose input")].find((c) => c.dataset.method === event.target.value);
      if (choice) { choice.checked = true; show(card, choice.value); }
    }
  });

  control("film")?.addEventListener("change", (event) => {
    for (const film of gallery.querySelectorAll("[data-film]")) {
      film.hidden = event.target.value !== "" && film.dataset.film !== event.target.value && film.dataset.film !== "Image";
    }
  });
  for (const film of gallery.querySelectorAll(".films.many figure")) {
    film.addEventListener("click", () => film.classList.toggle("large"));
  }
  control("trial")?.addEventListener("change", (event) => {
    gallery.classList.toggle("single", event.target.value !== "");
    for (const trial of gallery.querySelectorAll("[data-trial]")) {
      trial.hidden = event.target.value !== "" && trial.dataset.trial !== event.target.value;
    }
  });
  for (const slider of gallery.querySelectorAll("[data-slices]")) {
    const numbers = slider.dataset.slices.split(" ");
    slider.addEventListener("input", () => {
      slider.closest(".card").style.setProperty("--slice", slider.value);
      slider.parentElement.querySelector("output").textContent = numbers[slider.value];
      slider.setAttribute("aria-valuetext", `slice ${numbers[slider.value]}`);
    });
  }

  const filter = () => {
    const finding = control("finding").value;
    const why = control("why")?.value;
    const has = (list, wanted) => !wanted || (list || "").split("|").includes(wanted);
    const fitting = cards.filter((c) => has(c.dataset.finding, finding) && has(c.dataset.why, why));
    for (const card of cards) card.hidden = true;
    const visible = fitting.filter((card, place) => place < limit || card === asked);
    for (const card of visible) card.hidden = false;
    const shown = visible.length;
    control("count").textContent = `${shown} of ${fitting.length} ${fitting.length === 1 ? "case" : "cases"} shown.`;
    control("more").hidden = shown === fitting.length;
    control("more").textContent = `Show all ${fitting.length}`;
  };
  for (const name of ["finding", "why"]) {
    control(name)?.addEventListener("change", () => { limit = first; asked = null; filter(); });
  }
  control("more").addEventListener("click", () => { limit = Infinity; filter(); });
  document.addEventListener("reveal", (event) => {
    asked = event.target.closest(".card");
    if (!asked || !gallery.contains(asked) || !asked.hidden) return;
    for (const name of ["finding", "why"]) if (control(name)) control(name).value = "";
    filter();
  });
  let before = limit;
  addEventListener("beforeprint", () => { before = limit; limit = first; filter(); });
  addEventListener("afterprint", () => { limit = before; filter(); });

  control("opacity").addEventListener("input", (event) => {
    gallery.style.setProperty("--heat", event.target.value / 100);
    event.target.setAttribute("aria-valuetext", `${event.target.value} percent`);
  });
  for (const box of gallery.querySelectorAll("[data-layer]")) {
    box.addEventListener("change", () => gallery.classList.toggle(`no-${box.dataset.layer}`, !box.checked));
  }
  filter();
})();
