(() => {
  const texts = (row) => [...row.cells].map((cell) => cell.textContent.trim());
  const numeric = (text) => (text === "–" || text === "" ? NaN : Number(text.replace("−", "-")));

  // Undefined scores stay at the end, whichever way the others are sorted.
  const order = (column, isNumber, down) => (one, other) => {
    const [a, b] = [texts(one)[column], texts(other)[column]];
    if (!isNumber) return (a === "") - (b === "") || (down ? -1 : 1) * a.localeCompare(b, "en", { numeric: true });
    const [left, right] = [numeric(a), numeric(b)];
    return Number.isNaN(left) - Number.isNaN(right) || (down ? right - left : left - right) || 0;
  };

  for (const frame of document.querySelectorAll(".cases-frame")) {
    const table = frame.querySelector("table");
    const body = table.tBodies[0];
    const rows = [...body.rows];
    const heads = [...table.tHead.rows[0].cells];
    const control = (name) => frame.querySelector(`[data-control="${name}"]`);

    heads.forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const isNumber = head.classList.contains("number");
        const down = head.hasAttribute("aria-sort") ? head.getAttribute("aria-sort") === "ascending" : head.dataset.worst === "high";
        for (const other of heads) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        body.append(...[...rows].sort(order(column, isNumber, down)));
      });
    });

    const filter = () => {
      const wanted = control("case").value.trim().toLowerCase();
      const group = control("group")?.value ?? "";
      const missing = control("missing").checked;
      for (const row of rows) {
        row.hidden = !row.cells[0].textContent.toLowerCase().includes(wanted)
          || (group !== "" && row.dataset.group !== group) || (missing && !row.hasAttribute("data-missing"));
      }
      const shown = rows.filter((row) => !row.hidden).length;
      control("shown").textContent = `${shown} of ${rows.length} ${rows.length === 1 ? "row" : "rows"} shown.`;
    };
    for (const name of ["case", "group", "missing"]) control(name)?.addEventListener("input", filter);
    filter();
  }
})();
