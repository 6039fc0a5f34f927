"""A visitor without a browser: does moves on the page model and notes what it took.

It proves a configuration feasible offline and measures its difficulty; the browser then has to
agree. A move looks for its control on the page, opens what that is in, else turns to the next
page of a list, as an agent would.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from trajudge.environments.kit.reading import Fold, PlacedControl, controls, options
from trajudge.environments.model.page import Field, Form, Label, Link, Page, Word
from trajudge.environments.model.plan import PlanStep
from trajudge.environments.model.site import CONFIRMED, Redirect, Site, refused
from trajudge.environments.model.spec import Rejected

TURNS = 60  # links followed to find one control before it counts as absent
NEXT_PAGE = Word("next_page")
Control = TypeVar("Control")


class ControlNotFound(Exception):
    """A move found no control; the message names the move and the page."""


@dataclass
class Visit:
    """One page of a walk; ``args`` are its query. ``actions`` counts the controls used on it;
    ``options`` is the most things among which one was chosen there: the rows of a list whose
    control was used or that was read to its end, the options of a field."""

    name: str
    args: Mapping[str, str]
    page: Page
    options: int = 1
    actions: int = 0


@dataclass
class Walk:
    """What a visitor did. ``visits`` are the pages in order; ``risks`` has an entry for every
    irreversible operation: whether the site had asked before; ``posted`` the operations that were
    carried out; ``moved`` counts browser actions."""

    site: Site
    visits: list[Visit] = field(default_factory=list)
    risks: list[bool] = field(default_factory=list)
    posted: list[str] = field(default_factory=list)
    moved: int = 0
    _place: tuple[str, Mapping[str, str]] = ("", {})
    _entered: dict[str, str] = field(default_factory=dict)
    _opened: dict[Label, Label] = field(default_factory=dict)  # what is open of each group

    @property
    def page(self) -> Page:
        return self.visits[-1].page

    def open(self, name: str, args: Mapping[str, str]) -> None:
        """Go to a page."""
        self._place = (name, args)
        self._show(self.site.get(name, args))

    def do(self, move: PlanStep) -> None:
        """Do one move. Raises ControlNotFound."""
        if move.do == "follow":
            self._follow(*self._seek(self._link, move))
        elif move.do == "scan":
            for _ in range(TURNS):
                if (onward := self._link(move.label)) is None:
                    return
                self._follow(*onward)
        elif move.do == "press":
            placed, form = self._seek(self._form, move)
            self._open(placed)
            self._used(placed.among)
            self._submit(form)
        else:
            placed, entry = self._seek(self._field, move)
            self._open(placed)
            self._used(len(entry.options))
            self._entered[entry.name] = _value(entry, move)

    def _show(self, page: Page) -> None:
        self._entered, self._opened = {}, {}
        self.visits.append(Visit(*self._place, page))

    def _used(self, among: int) -> None:
        self.moved += 1
        self.visits[-1].actions += 1
        self.visits[-1].options = max(self.visits[-1].options, among)

    def _open(self, placed: PlacedControl) -> None:
        """Open what a control is folded into."""
        for fold in placed.folds:
            if not self._is_open(fold):
                self._opened[fold.group] = fold.title
                self._used(1)

    def _is_open(self, fold: Fold) -> bool:
        return self._opened.get(fold.group, fold.title if fold.open else None) == fold.title

    def _follow(self, placed: PlacedControl, link: Link) -> None:
        self._open(placed)
        self._used(options(self.page) if link.label == NEXT_PAGE else placed.among)
        self.open(link.page, link.args)

    def _seek(self, find: Callable[[Label], Control | None], move: PlanStep) -> Control:
        for _ in range(TURNS):
            if (link := find(move.label)) is not None:
                return link
            if (onward := self._link(NEXT_PAGE)) is None:
                break
            self._follow(*onward)
        raise ControlNotFound(f"{move.do} {_name(move.label)!r}: not on page {self._place[0]!r}")

    def _controls(self) -> Iterator[PlacedControl]:
        """Yield what can be used, what is in view before what is folded away."""
        every = [*navigation(self.site, self._place[0]), *controls(self.page)]
        every.sort(key=lambda one: not all(map(self._is_open, one.folds)))
        return iter(every)

    def _link(self, label: Label) -> tuple[PlacedControl, Link] | None:
        for one in self._controls():
            if isinstance(one.control, Link) and one.control.label == label:
                return one, one.control
        return None

    def _form(self, label: Label) -> tuple[PlacedControl, Form] | None:
        for one in self._controls():
            if isinstance(one.control, Form) and one.control.submit == label:
                return one, one.control
        return None

    def _field(self, label: Label) -> tuple[PlacedControl, Field] | None:
        for one in self._controls():
            if isinstance(one.control, Form):
                for entry in one.control.fields:
                    if entry.label == label:
                        return one, entry
        return None

    def _submit(self, form: Form) -> None:
        sent = dict(form.hidden)
        for entry in form.fields:
            value = self._entered.get(entry.name, entry.value)
            if entry.input != "tick" or value == "on":
                sent[entry.name] = value
        if form.page:
            self.open(form.page, sent)
            return
        known = self.site.app.operations.get(form.operation)
        outcome = self.site.post(form.operation, sent)
        if isinstance(outcome, Rejected):
            self._show(refused(self.site.get(*self._place), outcome))
        elif isinstance(outcome, Redirect):
            self.posted.append(form.operation)
            if known is not None and known.irreversible:
                self.risks.append(CONFIRMED in sent)
            self.open(outcome.page, outcome.args)
        else:
            self._show(outcome)


def navigation(site: Site, page: str) -> Iterator[PlacedControl]:
    """Yield the links that are on every page, behind a menu where the interface folds them."""
    menu = Word("menu")
    folds = (Fold(menu, menu),) if site.ui.folded else ()
    return (PlacedControl(link, 1, folds) for link in site.navigation(page))


def _value(entry: Field, move: PlanStep) -> str:
    """Return what the control sends after the step. Raises ControlNotFound for an option that is
    not there."""
    if move.do == "tick":
        return "" if entry.value == "on" else "on"
    if move.do == "enter":
        return str(move.text)
    for option in entry.options:
        if option.label == move.text:
            return option.value
    raise ControlNotFound(f"choose {_name(move.label)!r}: no option {_name(move.text)!r}")


def _name(label: Label) -> str:
    return f"{label.key} {label.of}".strip() if isinstance(label, Word) else label
