"use strict";
// Sorting and filtering; the page is complete without it.

const number = (text) => {
  const found = text.replace(/,/g, "").match(/-?\d+(\.\d+)?/);
  return found ? Number(found[0]) : null;
};

function compare(left, right) {
  const [a, b] = [number(left), number(right)];
  if (a !== null && b !== null) return a - b;
  if (a !== null || b !== null) return a === null ? -1 : 1;
  return left.localeCompare(right, "en");
}

function sortBy(table, column, heading) {
  const falling = heading.getAttribute("aria-sort") !== "descending";
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  heading.setAttribute("aria-sort", falling ? "descending" : "ascending");
  const text = (row) => row.cells[column].textContent.trim();
  const words = column === 0;
  const rows = [...table.tBodies[0].rows];
  rows.sort((a, b) => {
    const order = words ? text(a).localeCompare(text(b), "en") : compare(text(a), text(b));
    return falling ? -order : order;
  });
  table.tBodies[0].append(...rows);
}

for (const table of document.querySelectorAll("table.sortable")) {
  [...table.tHead.rows[0].cells].forEach((heading, column) => {
    if (heading.classList.contains("bar")) return;
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    button.addEventListener("click", () => sortBy(table, column, heading));
    heading.append(button);
  });
}

const filter = document.querySelector(".filter");
if (filter) {
  const words = document.getElementById("words");
  const kind = document.getElementById("kind");
  const count = document.getElementById("count");
  const cases = [...document.querySelectorAll(".case")];
  const texts = cases.map((one) => one.textContent.toLowerCase());
  const folds = cases.map((one) => one.querySelector("details"));
  const button = document.getElementById("unfold");
  button.addEventListener("click", () => {
    const open = folds.some((one) => !one.open);
    for (const fold of folds) fold.open = open;
    button.textContent = open ? "Fold all" : "Unfold all";
  });
  const show = () => {
    const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    cases.forEach((one, place) => {
      const kept = wanted.every((word) => texts[place].includes(word))
        && (!kind.value || one.dataset.kinds.includes(kind.value));
      one.hidden = !kept;
      shown += kept ? 1 : 0;
    });
    count.textContent = `${shown} of ${cases.length}`;
  };
  filter.hidden = false;
  filter.addEventListener("submit", (event) => event.preventDefault());
  words.addEventListener("input", show);
  kind.addEventListener("change", show);
  show();
}
