// Sorting and filtering, for where there is a script: without one the report is whole, in the order of the run.
(() => {
  const units = { ns: 1, "µs": 1e3, ms: 1e6, s: 1e9, B: 1, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30 };
  const value = (text) => {
    const [, number, unit] = /^([-+]?[\d.,]+)\s?(\S*)/.exec(text) || [];
    return number === undefined ? text.toLowerCase() : parseFloat(number.replaceAll(",", "")) * (units[unit] || 1);
  };
  const compare = (a, b) => (typeof a === typeof b ? (a < b ? -1 : a > b ? 1 : 0) : typeof a === "number" ? -1 : 1);

  document.querySelectorAll("table.results").forEach((table) => {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      const button = document.createElement("button");
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const up = head.getAttribute("aria-sort") !== "ascending";
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", up ? "ascending" : "descending");
        const text = (body) => body.rows[0].cells[column].textContent.trim();
        const bodies = [...table.tBodies];
        const empty = bodies.filter((body) => !text(body));
        const full = bodies.filter(text).sort((a, b) => compare(value(text(a)), value(text(b))) * (up ? 1 : -1));
        table.append(...full, ...empty); // what has no value stands last, whichever way
      });
    });
  });

  const controls = document.querySelector(".controls");
  const targets = document.querySelectorAll("article[data-search]");
  controls.hidden = targets.length < 2;
  controls.querySelector("input").addEventListener("input", (event) => {
    const words = event.target.value.toLowerCase().split(/\s+/).filter(Boolean);
    document.querySelectorAll("[data-search]").forEach((each) => {
      each.hidden = !words.every((word) => each.dataset.search.includes(word));
    });
    const left = [...targets].filter((each) => !each.hidden).length;
    controls.querySelector("output").textContent = words.length ? `${left} of ${targets.length} targets` : "";
  });

  const folded = document.querySelectorAll("details:not([open])"); // paper has nothing to click on
  window.addEventListener("beforeprint", () => folded.forEach((each) => (each.open = true)));
  window.addEventListener("afterprint", () => folded.forEach((each) => (each.open = false)));
})();
