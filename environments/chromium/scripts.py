"""What a tab's pages run on our behalf."""

from __future__ import annotations

# One tab: what would open a window opens here. The caret blinks, pictures must not.
ONE_TAB = """(() => {
  window.open = (url) => { if (url) location.assign(url); return null; };
  const here = (element) => element?.hasAttribute("target") && (element.target = "_self");
  addEventListener("click", (event) => {
    for (const element of event.composedPath())
      if (element.matches?.("a, area")) here(element);
  }, true);
  addEventListener("submit", (event) => {
    here(event.target);
    event.submitter?.removeAttribute("formtarget");
  }, true);
  const sheet = new CSSStyleSheet();
  sheet.replaceSync("* { caret-color: transparent !important }");
  document.adoptedStyleSheets = [sheet];
})()"""


FORGET = "() => { sessionStorage.clear(); localStorage.clear(); window.name = ''; }"
