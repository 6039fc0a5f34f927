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


# Until the page did what was due (a form is sent by a task, not by the click itself) and, where it
# says so, is idle: the scripts of a page that has <html data-idle="no"> wait for something.
SETTLED = """new Promise((done) => setTimeout(() => {
  const root = document.documentElement;
  if (root?.dataset.idle !== "no") return done();
  const watch = new MutationObserver(() => root.dataset.idle === "no" || end());
  const end = () => { watch.disconnect(); done(); };
  watch.observe(root, {attributeFilter: ["data-idle"]});
  setTimeout(end, 2000);
}, 0))"""

FORGET = "() => { sessionStorage.clear(); localStorage.clear(); window.name = ''; }"

# What follows is called on an element. Anything out of the ordinary is left to Playwright.
_PLAIN = """
  const plain = this.nodeType === 1 && this.isConnected && this.ownerDocument === document
    && document.readyState === "complete" && !document.getAnimations().length
    && this.checkVisibility({visibilityProperty: true}) && !this.matches(":disabled, option")
    && !this.closest("[aria-disabled=true], fieldset[disabled], [inert], svg");
"""

READY = f"""function() {{{_PLAIN}
  if (!plain) return null;
  const inner = this.matches("input, textarea, select")
    ? this
    : this.closest("a, button, label, [role=link], [role=button], [role=checkbox], [role=radio]");
  if (inner && inner !== this || this.matches("label")) return null;
  const box = this.getBoundingClientRect();
  return box.width && box.height ? [innerWidth, innerHeight] : null;
}}"""

_GUARD_KEY = "trajudge-guard"

# Whether the point is on the element; if so, a click that will hit another one after all (what the
# mouse passes may open something above it) is kept from the page.
GUARD = f"""function(x, y) {{
  const hits = (x, y) => {{
    let over = document.elementsFromPoint(x, y)[0];
    while (over && over !== this)
      over = over.assignedSlot ?? over.parentElement ?? over.getRootNode().host;
    return over === this;
  }};
  if (!hits(x, y)) return false;
  let hit;
  const guard = (event) => {{
    if (!event.isTrusted) return;
    hit ??= hits(event.clientX, event.clientY);
    if (hit) return;
    event.preventDefault();
    event.stopImmediatePropagation();
  }};
  const kinds = ["pointerdown", "mousedown", "pointerup", "mouseup", "click"];
  for (const kind of kinds) window.addEventListener(kind, guard, true);
  this[Symbol.for("{_GUARD_KEY}")] = () => {{
    for (const kind of kinds) window.removeEventListener(kind, guard, true);
  }};
  return true;
}}"""

UNGUARD = f"""function() {{
  this[Symbol.for("{_GUARD_KEY}")]?.();
  delete this[Symbol.for("{_GUARD_KEY}")];
}}"""

# Only inputs whose text is typed; a number's may be no number.
SELECT_TEXT = f"""function(text) {{{_PLAIN}
  const typed = this.matches("textarea, input:not([type])")
    || ["text", "search", "email", "url", "tel", "password"].includes(this.type)
    || this.type === "number" && text.trim() !== "" && !isNaN(Number(text));
  const box = plain && typed && this.matches("input, textarea") && !this.readOnly
    && !this.closest("[aria-readonly=true]") && this.getBoundingClientRect();
  if (!box || !box.width || !box.height) return false;
  this.select();
  this.focus();
  return document.activeElement === this;
}}"""
