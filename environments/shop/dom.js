// Elements from data. Text only ever becomes a text node, so nothing a user typed can turn into markup.

export function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value != null) node.setAttribute(name, value);
  }
  node.append(...children.flat().filter((child) => child != null));
  return node;
}

export function field(text, control) {
  return el("label", {}, text, el("br"), control);
}

export function choice(name, options, selected) {
  return el("select", { name },
    options.map(([value, text]) => el("option", { value, selected: value === selected }, text)));
}

export function radios(legend, name, options, selected) {
  return el("fieldset", {}, el("legend", {}, legend), options.map(([value, text]) =>
    el("label", { class: "inline" },
      el("input", { type: "radio", name, value, checked: value === selected }), text)));
}

export function form(attributes, submit, ...children) {
  const send = (event) => {
    event.preventDefault();
    submit(Object.fromEntries(new FormData(event.target)), event.target);
  };
  return el("form", { ...attributes, onsubmit: send }, ...children);
}

export function say(id, text, alert = false) {
  const status = document.getElementById(id);
  status.textContent = text;
  status.classList.toggle("alert", alert);
}

export const status = (id) => el("p", { id, class: "status", role: "status" });

export function table(caption, headings, rows) {
  return el("table", { "aria-label": caption },
    el("thead", {}, el("tr", {}, headings.map((text) => el("th", { scope: "col" }, text)))),
    el("tbody", {}, rows.map((cells) => el("tr", {}, cells.map((cell) => el("td", {}, cell))))));
}
