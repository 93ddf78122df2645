(() => {
  const save = (name, content, kind) => {
    const url = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type: `${kind};charset=utf-8` }));
    Object.assign(document.createElement("a"), { href: url, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(url), 10000);
  };
  // A file is named after its section and its caption: several sections have a figure of the same metric.
  const file = (from, title, ending) => {
    const words = `${from.closest("section[id]")?.id || ""} ${title}`.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-+|-+$/g, "");
    return `${words.slice(0, 70) || "heatcheck"}.${ending}`;
  };
  const offer = (after, title, choices) => {
    const group = Object.assign(document.createElement("div"), { className: "take" });
    for (const [name, act] of Object.entries(choices)) {
      const button = Object.assign(document.createElement("button"), { type: "button", textContent: name });
      button.setAttribute("aria-label", `${name}: ${title}`);
      button.addEventListener("click", () => act(button));
      group.append(button);
    }
    after.after(group);
  };

  // Tables: a cell has a text, small print below it (an interval or words), and the marks of footnotes.
  const tidy = (text) => text.replace(/\u00a0/g, " ").replace(/\u2212/g, "-").replace(/\s+/g, " ").trim();
  const INTERVAL = /^([-+]?[\d.,]+)(?:–| to )([-+]?[\d.,]+)(?: ?(?:%|pp|m?s))?$/;
  const NUMBER = /^([-+]?\d[\d,]*\.?\d*)(?: ?(%|pp|m?s))?$/;
  const cellOf = (cell) => {
    const copy = cell.cloneNode(true);
    const taken = (selector) => [...copy.querySelectorAll(selector)].map((part) => { part.remove(); return tidy(part.textContent); });
    const small = taken("small").filter((text) => text && text !== "–");
    const marks = taken("sup");
    const found = small.map((text) => text.match(INTERVAL)).find(Boolean);
    return {
      text: tidy(copy.textContent), marks, strong: Boolean(copy.querySelector("strong")),
      interval: found ? found[0] : "", low: found ? found[1] : "", high: found ? found[2] : "",
      words: small.filter((text) => !INTERVAL.test(text)),
    };
  };
  const nextNotes = (frame) => {
    for (let next = frame.nextElementSibling; next && !next.matches(".scroll"); next = next.nextElementSibling) {
      if (next.matches("ol.notes")) return [...next.children].map((note) => tidy(note.textContent));
    }
    return [];
  };
  const read = (table) => {
    const frame = table.closest(".scroll") || table;
    const rows = [];
    let group = "";
    for (const row of [...table.tBodies].flatMap((body) => [...body.rows])) {
      if (row.classList.contains("kind")) group = tidy(row.cells[0].textContent);
      else rows.push({ group, cells: [...row.cells].map(cellOf) });
    }
    const heads = table.tHead ? [...[...table.tHead.rows].at(-1).cells].map(cellOf) : [];
    return { title: tidy(table.caption?.textContent || ""), heads, rows, notes: nextNotes(frame) };
  };
  const named = (head) => [head.text, ...head.words].filter(Boolean).join(", ");

  const csv = (table) => {
    const quoted = (text) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
    const bare = (text) => (NUMBER.test(text) ? text.match(NUMBER)[1] : text).replaceAll(",", "").replace(/^\+/, "");
    const grouped = table.rows.some((row) => row.group);
    const columns = table.heads.map((head, place) => {
      const cells = table.rows.map((row) => row.cells[place]).filter(Boolean);
      const filled = cells.map((cell) => cell.text).filter((text) => text && text !== "–");
      const units = new Set(filled.map((text) => (NUMBER.test(text) ? text.match(NUMBER)[2] || "" : null)));
      const isNumber = filled.length > 0 && units.size === 1 && !units.has(null);
      return {
        isNumber, name: named(head) + (isNumber && [...units][0] ? ` (${[...units][0]})` : ""),
        bounded: cells.some((cell) => cell.interval), remarked: cells.some((cell) => cell.words.length || cell.marks.length),
      };
    });
    const spread = (column) => [column.name, ...(column.bounded ? [`${column.name}, low`, `${column.name}, high`] : []),
      ...(column.remarked ? [`${column.name}, remark`] : [])];
    const fields = (cell, column) => {
      const text = cell.text === "–" ? "" : column.isNumber ? bare(cell.text) : cell.text;
      const remark = [...cell.words, ...cell.marks.map((mark) => table.notes[mark - 1] || mark)].join("; ");
      return [text, ...(column.bounded ? [bare(cell.low), bare(cell.high)] : []), ...(column.remarked ? [remark] : [])];
    };
    const lines = [[...(grouped ? ["group"] : []), ...columns.flatMap(spread)]];
    for (const row of table.rows) {
      lines.push([...(grouped ? [row.group] : []), ...columns.flatMap((column, place) => fields(row.cells[place] || cellOf(document.createElement("td")), column))]);
    }
    return `${lines.map((line) => line.map(quoted).join(",")).join("\n")}\n`;
  };

  const SIGNS = {
    "\\": "\\textbackslash{}", "{": "\\{", "}": "\\}", "$": "\\$", "&": "\\&", "#": "\\#", "%": "\\%", "_": "\\_", "^": "\\^{}", "~": "\\~{}",
    "<": "$<$", ">": "$>$", "–": "--", "…": "\\ldots{}", "“": "``", "”": "''", "‘": "`", "’": "'", "×": "$\\times$", "≥": "$\\geq$", "≤": "$\\leq$",
    "±": "$\\pm$", "²": "$^2$", "φ": "$\\varphi$", "χ": "$\\chi$", "Δ": "$\\Delta$", "ρ": "$\\rho$", "σ": "$\\sigma$", "→": "$\\to$", "·": "$\\cdot$",
    "✓": "", "✕": "", "◐": "",
  };
  const escaped = (text) => [...text].map((sign) => SIGNS[sign] ?? sign).join("").replace(/(^|[\s(])-(?=\d)/g, "$1$-$").replace(/ +/g, " ").trim();
  const latex = (table) => {
    const written = (cell) => {
      const text = cell.strong ? `\\textbf{${escaped(cell.text)}}` : escaped(cell.text);
      const marks = cell.marks.map((mark) => `$^{${escaped(mark)}}$`).join("");
      const beside = [cell.interval, ...cell.words].filter(Boolean).map(escaped).join("; ");
      return text + marks + (beside ? ` (${beside})` : "");
    };
    const numeric = (place) => table.rows.some((row) => row.cells[place] && NUMBER.test(row.cells[place].text));
    const letters = table.heads.map((_, place) => (place && numeric(place) ? "r" : "l")).join("");
    const body = [];
    let group = "";
    for (const row of table.rows) {
      if (row.group !== group) body.push("\\midrule", `\\multicolumn{${table.heads.length}}{l}{\\emph{${escaped(row.group)}}} \\\\`);
      group = row.group;
      body.push(`${row.cells.map(written).join(" & ")} \\\\`);
    }
    const notes = table.notes.map((note, place) => `$^{${place + 1}}$ ${escaped(note)} \\\\`);
    return [
      "% \\usepackage{booktabs}", "\\begin{table}", "\\centering", `\\caption{${escaped(table.title)}}`, `\\begin{tabular}{${letters}}`, "\\toprule",
      `${table.heads.map((head) => escaped(named(head))).join(" & ")} \\\\`, ...(body[0] === "\\midrule" ? [] : ["\\midrule"]), ...body, "\\bottomrule",
      "\\end{tabular}", ...(notes.length ? ["\\par\\smallskip\\raggedright\\footnotesize", ...notes] : []), "\\end{table}", "",
    ].join("\n");
  };
  for (const table of document.querySelectorAll("main table")) {
    const title = tidy(table.caption?.textContent || "") || "Table";
    offer(table.closest(".scroll") || table, title, {
      CSV: () => save(file(table, title, "csv"), csv(read(table)), "text/csv"),
      LaTeX: () => save(file(table, title, "tex"), latex(read(table)), "text/x-tex"),
    });
  }

  // Figures: a drawing of their own, which needs no style sheet and looks as on the light page.
  const SVG = document.createRange().createContextualFragment("<svg></svg>").firstChild.namespaceURI; // pages hold no address
  const INHERITED = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-opacity", "stroke-dasharray", "stroke-linecap", "stroke-linejoin",
    "paint-order", "font-family", "font-size", "font-weight", "font-style", "text-anchor", "visibility"];
  const OWN = { opacity: "1", "vector-effect": "none", display: "inline", "dominant-baseline": "auto" };
  const element = (name, facts, ...inside) => {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(facts)) made.setAttribute(key, value);
    made.append(...inside);
    return made;
  };
  const styled = (original, above = null) => {
    const copy = original.cloneNode(false);
    if (original.nodeType !== Node.ELEMENT_NODE) return copy;
    const style = getComputedStyle(original);
    for (const name of ["class", "style", "role", "tabindex"]) copy.removeAttribute(name);
    for (const name of INHERITED) if (!above || style.getPropertyValue(name) !== above.getPropertyValue(name)) copy.setAttribute(name, style.getPropertyValue(name));
    for (const [name, usual] of Object.entries(OWN)) if (above && style.getPropertyValue(name) !== usual) copy.setAttribute(name, style.getPropertyValue(name));
    copy.append(...[...original.childNodes].map((each) => styled(each, style)));
    return copy;
  };
  const onLightPage = (act) => {
    const root = document.documentElement;
    const theme = root.dataset.theme;
    root.dataset.theme = "light";
    try { return act(); } finally { if (theme === undefined) delete root.dataset.theme; else root.dataset.theme = theme; }
  };
  const placed = (svg, x, y, width, height) => {
    const copy = styled(svg);
    for (const [key, value] of Object.entries({ x, y, width, height })) copy.setAttribute(key, value);
    return copy;
  };
  const line = (text, x, y, size, fill = "#1b1f24") => element("text", { x, y, "font-size": size, fill, "font-family": "system-ui, 'Liberation Sans', sans-serif" }, text);
  const sheet = (width, height, ...inside) => {
    const white = element("rect", { width, height, fill: "#fff" });
    return new XMLSerializer().serializeToString(element("svg", { width, height, viewBox: `0 0 ${width} ${height}` }, white, ...inside));
  };
  const plot = (svg, legend) => {
    const { width, height } = svg.viewBox.baseVal;
    const keys = legend ? [...legend.children] : [];
    const drawn = keys.flatMap((key, place) => {
      const y = height + 12 + 20 * place;
      return [...(key.querySelector("svg") ? [placed(key.querySelector("svg"), 4, y, 38, 16)] : []), line(tidy(key.textContent), 48, y + 12, 12)];
    });
    const needed = Math.max(width, ...keys.map((key) => 60 + 6.6 * tidy(key.textContent).length));
    return sheet(Math.ceil(needed) + 8, Math.ceil(height + 16 + 20 * keys.length), placed(svg, 4, 4, width, height), ...drawn);
  };
  const films = (strip) => {
    const figures = [...strip.querySelectorAll(".films figure")].filter((figure) => !figure.hidden && figure.querySelector("svg.film"));
    const across = Math.min(4, figures.length);
    const side = 240;
    const { width, height } = figures[0].querySelector("svg.film").viewBox.baseVal;
    const [tall, step] = [side * height / width, side * height / width + 46];
    const held = new Set([...strip.querySelectorAll("svg.film use")].map((use) => use.getAttribute("href").slice(1)));
    const stored = element("defs", {}, ...[...held].map((id) => styled(document.getElementById(id))));
    const drawn = figures.flatMap((figure, place) => {
      const [x, y] = [8 + (place % across) * (side + 8), 8 + Math.floor(place / across) * step];
      const words = cellOf(figure.querySelector("figcaption"));
      const beside = [...words.words, words.interval].filter(Boolean).join(" ");
      return [placed(figure.querySelector("svg.film"), x, y, side, tall), line(words.text, x, y + tall + 16, 13), line(beside, x, y + tall + 32, 11, "#55606b")];
    });
    return sheet(8 + across * (side + 8), Math.ceil(8 + Math.ceil(figures.length / across) * step), stored, ...drawn);
  };
  const picture = (text, done) => {
    const image = new Image();
    image.onload = () => {
      const canvas = Object.assign(document.createElement("canvas"), { width: 2 * image.width, height: 2 * image.height });
      canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
      canvas.toBlob(done, "image/png");
    };
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  };
  const offerDrawing = (after, title, draw) => offer(after, title, {
    SVG: () => save(file(after, title, "svg"), onLightPage(draw), "image/svg+xml"),
    PNG: () => picture(onLightPage(draw), (blob) => save(file(after, title, "png"), blob)),
  });
  for (const svg of document.querySelectorAll("main svg.plot[role=img]")) {
    const figure = svg.closest("figure");
    const before = svg.closest(".panels")?.previousElementSibling;
    const legend = figure?.querySelector(".legend") || (before?.matches(".legend") ? before : null);
    const title = tidy(figure?.querySelector("h2, h3, h4, h5, .plot-title")?.textContent || svg.querySelector("title")?.textContent || "Figure");
    offerDrawing(figure ? figure.lastElementChild : svg, title, () => plot(svg, legend));
  }
  for (const strip of document.querySelectorAll("main .strip-of-films")) {
    const frame = strip.querySelector(".films");
    if (!frame?.querySelector("svg.film")) continue;
    const title = tidy(strip.querySelector("h3, h4")?.textContent || "Maps of one case");
    offerDrawing(frame, title, () => films(strip));
  }

  // Texts to pass on.
  for (const text of document.querySelectorAll("pre[data-file]")) {
    offer(text, text.dataset.file, {
      Save: () => save(text.dataset.file, text.textContent, "text/plain"),
      Copy: async (button) => {
        try { await navigator.clipboard.writeText(text.textContent); button.textContent = "Copied"; } catch { getSelection().selectAllChildren(text); }
      },
    });
  }
})();
