"""From what an agent means to do to an action on the page as it is, one view at a time.

The agent finds controls by role and accessible name, as a reader of the accessibility tree does:
it closes what covers the page, opens what a control is folded into, turns the pages of long lists,
sends a form again after a passing error, and gives up when a control cannot be found.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from trajudge.environments.agents.habits import idle
from trajudge.environments.agents.script import Behaviour, Fumble, Intent, Raw, Return, Say, Wander
from trajudge.environments.checks.walk import NEXT_PAGE
from trajudge.environments.chromium.action_syntax import write
from trajudge.environments.kit.theme import name_of
from trajudge.environments.model.page import Label
from trajudge.environments.model.plan import PlanStep

if TYPE_CHECKING:
    from trajudge.environments.chromium import AgentObservation, Element

RETRIES = 3
RESENDS = 2  # of forms with an error message, in a run
MISSING = 5000  # from here on no page has a bid
PATIENCE = 5  # tries of an agent that does not see what covers the page
_TEXT = ("textbox", "searchbox", "spinbutton", "Date")
_ROLES = {
    "follow": ("link", "menuitem", "treeitem"),
    "press": ("button", "menuitem"),
    "tick": ("checkbox", "switch"),
    "enter": _TEXT,
}
# A line of the tree that begins an error message.
_ALERT = re.compile(r"^\t*(?:\[\w+\] )?alert ", re.MULTILINE)
_ASIDE = ("dismiss", "accept_cookies")
_FOLDED = ("DisclosureTriangle", "DisclosureTriangleGrouped", "tab", "button")
# A line of the tree with a list that is typed into.
_SUGGESTS = re.compile(r"^\t*\[(\w+)\] combobox .*, autocomplete=", re.MULTILINE)

Around = Callable[[PlanStep, str], Sequence[Label]]
"""What the control of a step is folded into on the page at an address: the titles, outermost
first."""


class Act(NamedTuple):
    """The next action as text and why it is done."""

    text: str
    why: str


class Policy:
    """An agent's head. ``closes`` tells whether it closes what covers the page; ``stuck`` says
    what it could not find, if it gave up."""

    def __init__(
        self,
        intents: Sequence[Intent],
        words: Mapping[str, str],
        rng: np.random.Generator | None = None,
        around: Around = lambda *_: (),
        *,
        closes: bool = True,
        patience: int = PATIENCE,
        fails: int = PATIENCE,
    ) -> None:
        self.intents = list(intents)
        self.words = words
        self.around = around
        self.rng = rng or np.random.default_rng(0)
        self.closes = closes
        self.patience, self.fails = patience, fails
        self.stuck = ""
        self._left = ""  # the address that it wandered away from
        self._back = False  # whether it went back already
        self._at = 0
        self._form_begins = 0  # the first intent on the page that is open
        self._page_began = 0  # the same of the page before
        self._moved_on = False  # whether the last action was an intent that leads to a page
        self._sent: tuple[int, int] | None = None  # that form's intents, if it was just sent
        self._opened = ("", "")  # what was opened last, and where
        self._failures = self._resent = 0
        self._blocks = 0
        self._last = ""

    def next(self, view: AgentObservation) -> Act | Say:
        """Return what to do about this view; the run ends with a Say."""
        if (cover := self._cover(view)) is not None:
            return cover if self.closes else self._blocked()
        self.look_back(view)
        self._moved_on = False
        while self._at < len(self.intents):
            intent = self.intents[self._at]
            act = self._act(intent, view)
            if isinstance(act, Act):
                self._last = act.text
            if act is not None:
                return act
            self._at += 1
        return Say(Behaviour.STOPS_EARLY)

    def begin_page_again(self, *, undone: bool) -> None:
        """Do what the open page is for from its start: it was loaded afresh, and what was entered
        is gone. ``undone``: the last move, which should have led to it, had no effect."""
        begins = self._page_began if undone and self._moved_on else self._form_begins
        self._at = self._form_begins = min(self._at, begins)
        self._sent, self._failures, self._moved_on = None, 0, False

    def _blocked(self) -> Act | Say:
        """Go on as if nothing covered the page, until it is time to give up."""
        self._blocks += 1
        if self._blocks > self.patience:
            return Say(Behaviour.STOPS_EARLY)
        steps = [intent for intent in self.intents if isinstance(intent, PlanStep)]
        why = steps[min(self._blocks, len(steps)) - 1].why if steps else "go on with the page"
        if self._blocks % 2 and self._blocks < 2 * self.fails:
            return Act(self._last or write("click", "12"), why)
        return Act(idle(self.rng), why)

    def _cover(self, view: AgentObservation) -> Act | None:
        for word in _ASIDE:
            control = _find(view, ("button",), self.words[word])
            if control is not None and (control.in_dialog or word != "dismiss"):
                return Act(write("click", control.bid), "close what covers the page")
        return None

    def look_back(self, view: AgentObservation) -> None:
        """Take the last move again if it failed; the whole form if the page says so."""
        last = self.intents[self._at - 1] if self._at else None
        if view.observation.page_error is not None and isinstance(last, PlanStep):
            self._failures += 1
            if self._failures < RETRIES:
                self._at -= 1
                if self._sent is not None:  # it was not sent: its form is still the same
                    self._form_begins, self._sent = self._sent[0], None
            return
        self._failures = 0
        if self._sent is not None:
            begins, ends = self._sent
            self._sent = None
            meant = isinstance(last, PlanStep) and last.refused
            alert = _ALERT.search(view.observation.axtree or "")
            if alert and not meant and self._resent < RESENDS:
                self._resent += 1
                self.intents[ends:ends] = self.intents[begins:ends]
                self._form_begins = self._at = ends

    def _act(self, intent: Intent, view: AgentObservation) -> Act | Say | None:
        """Return the action for an intent; None if there is nothing (more) to do for it."""
        if isinstance(intent, Say):
            return intent
        if isinstance(intent, Raw):
            self._at += 1
            if intent.text.startswith("goto("):
                self._left = self._left or view.observation.url or ""
            return Act(intent.text, intent.why)
        if isinstance(intent, Return):
            return self._return(view)
        if isinstance(intent, Fumble):
            return self._fumble(intent, view)
        return (
            self._wander(intent, view) if isinstance(intent, Wander) else self._step(intent, view)
        )

    def _step(self, intent: PlanStep, view: AgentObservation) -> Act | Say | None:
        if intent.do == "scan":
            onward = _find(view, ("link", "button"), self._said(intent.label))
            return onward and Act(write("click", onward.bid), intent.why)
        self._left = ""
        act = self._on_control(intent, view)
        if act is None:
            return self._seek(intent, view)
        self._advance(intent)
        return act

    def _fumble(self, fumble: Fumble, view: AgentObservation) -> Act:
        """Fill in a field where the step fills in one, that of the step if the page has it; else
        follow some link."""
        self._at += 1
        step = fumble.step
        if fumble.fails:
            bid = str(MISSING + int(self.rng.integers(999)))
            entry = {"enter": "fill", "choose": "select_option"}.get(step.do)
            text = (self._said(step.text),) if entry else ()
            return Act(write(entry or "click", bid, *text), step.why)
        self._form_begins = self._at
        if step.do in ("enter", "choose", "tick"):
            act = self._on_control(step, view)
            if act is not None:
                return act
        roles = _TEXT[:2] if step.do == "enter" else ()
        fields = [e for e in view.elements if e.role in roles]
        if fields:
            field = fields[int(self.rng.integers(len(fields)))]
            return Act(write("fill", field.bid, self._said(step.text)), step.why)
        links = [e for e in view.elements if e.role == "link"]
        if not links:
            return Act(write("scroll", 0, 300), step.why)
        return Act(write("click", links[int(self.rng.integers(len(links)))].bid), step.why)

    def _wander(self, intent: Wander, view: AgentObservation) -> Act | None:
        """Follow a link and remember the page that it is on; None where there is none."""
        links = sorted((e for e in view.elements if e.role == "link"), key=lambda e: e.name)
        if intent.label is None:
            link = links[int(self.rng.integers(len(links)))] if links else None
        else:
            link = _find(view, _ROLES["follow"], self._said(intent.label))
        if link is None and intent.label is not None:
            opened = self._unfold(PlanStep("follow", intent.label, why=intent.why), view)
            if opened is not None:
                return opened
        if link is None:
            return None
        self._left = self._left or view.observation.url or ""
        self._at += 1
        self._form_begins = self._at
        return Act(write("click", link.bid), intent.why)

    def _return(self, view: AgentObservation) -> Act | None:
        """Go back by the browser's history, by the address where that leads elsewhere; None once it
        is there."""
        left, back = self._left, self._back
        self._back, self._opened = True, ("", "")  # what was open there is closed again
        if not left or view.observation.url == left:
            self._left, self._back = "", False
            return None
        if back:
            self._at += 1
            self._left, self._back = "", False
            return Act(write("goto", left), "go back to the page before")
        return Act(write("go_back"), "go back to the page before")

    def _advance(self, move: PlanStep) -> None:
        self._at += 1
        if move.do == "press":
            self._sent = (self._form_begins, self._at)
        if move.do in ("press", "follow"):
            self._page_began, self._form_begins = self._form_begins, self._at
            self._moved_on = True

    def _on_control(self, move: PlanStep, view: AgentObservation) -> Act | None:
        name, text = self._said(move.label), self._said(move.text)
        if move.do == "choose":
            control = _find(view, ("combobox", "listbox"), name)
            if control is not None:
                if control.bid in _SUGGESTS.findall(view.observation.axtree or ""):
                    return Act(write("fill", control.bid, text), move.why)
                return Act(write("select_option", control.bid, text), move.why)
            control = _find(view, ("radio",), text, group=name)
            return control and Act(write("click", control.bid), move.why)
        control = _find(view, _ROLES[move.do], name)
        if move.do != "enter":
            return control and Act(write("click", control.bid), move.why)
        does = "fill"
        if control is None:
            control, does = _find(view, ("button",), name), "upload_file"
        return control and Act(write(does, control.bid, text), move.why)

    def _seek(self, move: PlanStep, view: AgentObservation) -> Act | Say:
        if (opened := self._unfold(move, view)) is not None:
            return opened
        if (onward := _find(view, ("link", "button"), self._said(NEXT_PAGE))) is not None:
            self._form_begins = self._at
            return Act(write("click", onward.bid), move.why)
        self.stuck = f"{move.do} {self._said(move.label)!r}: not on {view.observation.url}"
        return Say(Behaviour.STOPS_EARLY)

    def _unfold(self, move: PlanStep, view: AgentObservation) -> Act | None:
        """Open the innermost thing in view that the control of a step is folded into; None where
        there is none, or that was open already."""
        url = view.observation.url or ""
        for title in reversed(self.around(move, url)):
            fold = _find(view, _FOLDED, self._said(title))
            if fold is not None and self._opened != (url, fold.bid):
                self._opened = (url, fold.bid)
                return Act(write("click", fold.bid), move.why)
        return None

    def _said(self, label: Label) -> str:
        return name_of(label, self.words)


def _find(
    view: AgentObservation, roles: Sequence[str], name: str, group: str = ""
) -> Element | None:
    for element in view.elements:
        if element.role in roles and element.name == name and group in ("", element.group):
            return element
    return None
