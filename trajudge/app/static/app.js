"use strict";
// Keys and lists; every page is complete without it. The scripts of pages use keysOff, writesText and
// meant.

const OFF = "trajudge-keys-off";
const help = document.getElementById("help");
// From a key to the one that takes its place, which "trajudge … --keys FILE" names.
const others = JSON.parse(document.querySelector("meta[name=keys]").content);
const placed = (key) => others[key] || key;
const given = Object.fromEntries(Object.entries(others).map(([key, other]) => [other, key]));
const meant = (pressed) => given[pressed] || (others[pressed] ? "" : pressed);
let begun = "";

const keysOff = () => localStorage.getItem(OFF) === "yes";
const writesText = (element) =>
  element.isContentEditable ||
  element.matches("textarea, select, input:not([type=checkbox]):not([type=radio]):not([type=range])");
const keyed = () => [...document.querySelectorAll("[data-key]")];
const shown = (element) => element.getClientRects().length > 0;
// What a field holds is no name of it; its label is.
const words = (element) => (writesText(element) ? element.labels?.[0] : element)?.textContent.trim();
const named = (element) => element.getAttribute("aria-label") || words(element) || element.title;

function press(element) {
  if (element.matches("a, button, summary, input[type=checkbox], input[type=radio]")) element.click();
  else element.focus();
}

// Rows of a list: j and k walk, Enter opens, x selects.
const rows = () => [...document.querySelectorAll("table[data-rows] > tbody > tr")];

function walk(by) {
  const all = rows();
  if (!all.length) return;
  const at = all.findIndex((row) => row.classList.contains("here"));
  const next = all[Math.min(Math.max(at + by, 0), all.length - 1)];
  for (const row of all) row.classList.toggle("here", row === next);
  const link = next.querySelector("a[href]");
  if (link) link.focus({ preventScroll: true });
  next.scrollIntoView({ block: "nearest" });
}

function inRow(selector, act) {
  const row = document.querySelector("table[data-rows] tr.here");
  const element = row && row.querySelector(selector);
  if (element) act(element);
  return Boolean(element);
}

const LIST_KEYS = {
  j: ["next row", () => walk(1)],
  k: ["previous row", () => walk(-1)],
  x: ["select the row", () => inRow("input[type=checkbox]", (box) => box.click())],
};

function openHelp() {
  const list = document.getElementById("help-list");
  const lines = keyed().map((element) => [placed(element.dataset.key), named(element)]);
  if (rows().length) {
    lines.push(...Object.entries(LIST_KEYS).map(([key, [does]]) => [placed(key), does]), ["Enter", "open the row"]);
  }
  list.replaceChildren(
    ...lines.flatMap(([key, does]) => {
      const [term, text] = [document.createElement("dt"), document.createElement("dd")];
      const shownKey = document.createElement("kbd");
      shownKey.textContent = key;
      term.append(shownKey);
      text.textContent = does;
      return [term, text];
    }),
  );
  document.getElementById("keys-switch").textContent = keysOff() ? "Turn keys on" : "Turn keys off";
  help.showModal();
  // Browsers focus the first button, which stands below the keys: a long list would open at its end.
  document.getElementById("help-title").focus();
  help.scrollTop = 0;
}

function act(event) {
  if (event.ctrlKey || event.altKey || event.metaKey || event.defaultPrevented) return;
  if (writesText(event.target)) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  if (help.open) return;
  const whole = begun ? `${begun} ${event.key}` : event.key;
  const pressed = meant(whole);
  if (pressed === "?") return void openHelp();
  if (keysOff()) return;
  begun = "";
  const found = pressed && keyed().find((element) => element.dataset.key === pressed && shown(element));
  if (found) {
    event.preventDefault();
    press(found);
  } else if (pressed in LIST_KEYS && rows().length) {
    event.preventDefault();
    LIST_KEYS[pressed][1]();
  } else if (keyed().some((element) => placed(element.dataset.key).startsWith(`${whole} `))) {
    begun = whole;
  } else if (pressed === "Enter" && event.target === document.body && inRow("a[href]", (link) => link.click())) {
    event.preventDefault();
  }
}

document.addEventListener("keydown", act);
function placeKeys(within) {
  for (const shownKey of within.querySelectorAll("kbd")) shownKey.textContent = placed(shownKey.textContent);
}
placeKeys(document);
document.addEventListener("trajudge:shown", () => placeKeys(document.getElementById("main")));
const button = document.getElementById("help-button");
button.hidden = false;
button.addEventListener("click", openHelp);
document.getElementById("help-close").addEventListener("click", () => help.close());
document.getElementById("keys-switch").addEventListener("click", () => {
  localStorage.setItem(OFF, keysOff() ? "no" : "yes");
  help.close();
});

// The keys of the selected rows, a line each.
document.addEventListener("click", (event) => {
  if (event.target.id !== "copy-keys") return;
  const keys = [...document.querySelectorAll("input[data-copy]:checked")].map((box) => box.dataset.copy);
  const say = (text) => (document.getElementById("live").textContent = text);
  navigator.clipboard.writeText(keys.join("\n")).then(() => say(`${keys.length} keys copied`), () => say("not copied"));
});
const showCopy = () => document.getElementById("copy-keys")?.removeAttribute("hidden");
document.addEventListener("htmx:afterSettle", showCopy);
showCopy();
