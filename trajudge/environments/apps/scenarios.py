"""The scenarios of an application, from its ``scenarios.toml``: what is asked, the way to it, what
must and may change, and what is right to answer.

``docs/guides/application.md`` describes the file. A plan is a list of steps, a line each:

    follow LABEL | press LABEL | tick LABEL | scan | confirm
    enter LABEL = TEXT | choose LABEL = TEXT
    open PAGE = TEXT            the link TEXT of a page
    search PAGE = TEXT          the same of a list with a search above it
    list PAGE: FILTER = TEXT; FILTER = TEXT     all that the filters leave of a list
    fill BUTTON: FIELD = TEXT; FIELD ~ OPTION   a form, texts with "=" and choices with "~"
    ROUTE: NAME = TEXT          the steps of ``[routes]`` of that name, ``{NAME}`` replaced
    try STEP                    a step that the site refuses, stating why

``{slot}`` and ``{slot[column]}`` stand for bound values. A label in small letters is a word of the
application, anything else is shown as it stands; ``remove({slot})`` is a word with what it applies
to. Behind `` | `` stands why the step is taken (it ends "Next I ..."), behind a second one why the
last step of several is. A step that begins with ``each {slot}:`` is taken for every part of the
value between "|", which is ``{each}``.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.resources import files
from typing import Any, Literal, TypeVar

from pydantic import Field, ValidationError, field_validator

from trajudge.environments.model.binding import filled, placeholders
from trajudge.environments.model.page import Label, Word
from trajudge.environments.model.plan import PlanStep, choose, enter, follow, press, scan, tick
from trajudge.environments.model.spec import (
    AllowedChange,
    AnswerSpec,
    Bound,
    ChoiceSlot,
    Derive,
    Expect,
    Family,
    Number,
    Pick,
    Scenario,
    Slot,
)
from trajudge.trajectories.model import Record
from trajudge.util.errors import UserError
from trajudge.util.validation import first_error

R = TypeVar("R", bound=Record)
_WORD = re.compile(r"([a-z][a-z0-9_]*)(?:\((.+)\))?")
_EACH = re.compile(r"each (\{\w+(?:\[\w+\])?\}): (.+)", re.DOTALL)
_TABLE = re.compile(r"(\w+)(?: WHERE (.+))?", re.DOTALL)
_ITEM = "each"  # the placeholder of a step that is taken for every part of a value


class _Derived(Record):
    derive: str


class _Free(Record):
    no_decoy: str | tuple[int, int] | tuple[str, ...]


_Slot = str | tuple[int, int] | tuple[str, ...] | _Derived | _Free


class _Change(Record):
    """A change: its table under its kind, then what ``Expect`` or ``AllowedChange`` take."""

    added: str = ""
    removed: str = ""
    changed: str = ""
    values: dict[str, str | int] = Field(default_factory=dict)

    @property
    def change(self) -> tuple[Literal["added", "removed", "changed"], str]:
        if self.added:
            return "added", self.added
        return ("removed", self.removed) if self.removed else ("changed", self.changed)


class _Expected(_Change):
    key: str = ""
    count: int = 1
    within: dict[str, str | int] = Field(default_factory=dict)
    undone: dict[str, str | int] = Field(default_factory=dict)

    def expect(self) -> Expect:
        kind, table = self.change
        more = {"within": self.within, "undone": self.undone}
        return Expect(kind, table, self.values, self.key, self.count, **more)


class _Allowed(_Change):
    columns: tuple[str, ...] = ()
    on_the_way: bool = False

    def allow(self) -> AllowedChange:
        return AllowedChange(*self.change, self.columns, self.values, self.on_the_way)


class _Entry(Record):
    """A scenario as the file says it. ``code`` names the table whose changed row's operation code
    is part of the answer, before ``answers``. A scenario that is ``like`` another has all that it
    does not say itself from it: a twin, in which one fact is another."""

    goals: tuple[str, ...] = Field(min_length=1)
    family: Family = "lookup"
    demand: int = Field(default=1, ge=1, le=3)
    slots: dict[str, _Slot] = Field(default_factory=dict)
    plan: tuple[str, ...]
    reply: str
    code: str = ""
    answers: tuple[AnswerSpec, ...] = ()
    expect: tuple[_Expected, ...] = ()
    may: tuple[_Allowed, ...] = ()
    distractor: tuple[str, ...] = ()
    charts: int = Field(default=0, ge=0)


class _File(Record):
    """``distractor`` is that of every scenario without one, ``slots`` are named by ``$NAME``."""

    distractor: tuple[str, ...] = ()
    slots: dict[str, _Slot] = Field(default_factory=dict)
    routes: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    scenarios: dict[str, _Entry]

    @field_validator("scenarios", mode="before")
    @classmethod
    def _twins(cls, scenarios: dict[str, Any]) -> dict[str, Any]:
        return {name: _whole(entry, scenarios) for name, entry in scenarios.items()}


def _whole(entry: Any, scenarios: Mapping[str, Any]) -> Any:
    """Return the entry with what it has from the one that it is like."""
    if not isinstance(entry, dict) or "like" not in entry:
        return entry
    other = scenarios.get(entry["like"])
    if not isinstance(other, dict) or "like" in other:
        raise ValueError(f"like = {entry['like']!r} names no scenario that is whole")
    slots = {**other.get("slots", {}), **entry.get("slots", {})}
    own = {key: value for key, value in entry.items() if key != "like"}
    return {**other, **own, "slots": slots}


def read_toml(package: str, name: str, record: type[R]) -> R:
    """Read a file of an application's package as a record. Raises UserError, naming the file."""
    file = files(package) / name
    if not file.is_file():
        raise UserError(f"the package {package} holds no {name}: write one")
    try:
        return record.model_validate(tomllib.loads(file.read_text(encoding="utf-8")))
    except ValidationError as error:
        raise UserError(f"{file}: {first_error(error, 'the file')}") from error
    except ValueError as error:  # TOML, or the encoding
        raise UserError(f"{file}: cannot be read: {error}") from error


def read_scenarios(package: str) -> tuple[Scenario, ...]:
    """Read the scenarios of an application. Raises UserError, naming the file and what is wrong."""
    content = read_toml(package, "scenarios.toml", _File)
    scenarios = []
    for name, entry in content.scenarios.items():
        try:
            scenarios.append(_scenario(name, entry, content))
        except ValueError as error:
            raise UserError(f"{package}: scenarios.toml: scenario {name}: {error}") from error
    return tuple(scenarios)


def _scenario(name: str, entry: _Entry, content: _File) -> Scenario:
    slots = {key: _slot(value, content) for key, value in entry.slots.items()}
    answers = (*([AnswerSpec("code", entry.code)] if entry.code else []), *entry.answers)
    detour = entry.distractor or content.distractor
    return Scenario(
        id=name,
        goals=entry.goals,
        slots=slots,
        plan=_plan(entry.plan, content, slots),
        replies=(entry.reply, _alone(answers)),
        answers=answers,
        expect=tuple(expected.expect() for expected in entry.expect),
        may=tuple(allowed.allow() for allowed in entry.may),
        distractor=_plan(detour, content, slots) if detour else None,
        charts=entry.charts,
        family=entry.family,
        demand=entry.demand,
    )


def _alone(answers: Sequence[AnswerSpec]) -> str:
    """Return the last message that says nothing but what is asked for."""
    kinds = {"{code}" if answer.kind == "code" else "{answer}" for answer in answers}
    return ", ".join(sorted(kinds, reverse=True)) or "Done."


def _slot(value: _Slot, content: _File) -> Slot:
    """Return a slot: ``$name`` of the file's slots, a query, a table with a condition (its rows by
    their keys), two numbers (both included), some texts, or what a query derives. ``no_decoy`` are
    numbers or texts of which another would ask for the same."""
    if isinstance(value, str) and value.startswith("$"):
        if value[1:] not in content.slots:
            raise ValueError(f"[slots] holds no {value[1:]!r}: write one of {list(content.slots)}")
        return _slot(content.slots[value[1:]], content)
    if isinstance(value, _Derived):
        return Derive(value.derive)
    if isinstance(value, _Free):
        slot = _slot(value.no_decoy, content)
        if isinstance(slot, Derive):
            raise ValueError("a derived slot has no decoy anyway: write it without no_decoy")
        return replace(slot, decoy=False)
    if not isinstance(value, str):
        low, *_ = value
        return Number(*value) if isinstance(low, int) else ChoiceSlot(tuple(map(str, value)))
    if rows := _TABLE.fullmatch(value):
        where = f" WHERE {rows[2]}" if rows[2] else ""
        return Pick(f"SELECT * FROM {rows[1]}{where} ORDER BY id")  # noqa: S608 - the file's own
    return Pick(value)


# --- plans ---------------------------------------------------------------------------------------


def _plan(
    lines: Sequence[str], content: _File, slots: Iterable[str]
) -> Callable[[Bound], Sequence[PlanStep]]:
    """Return the plan that these lines describe. Raises ValueError for a line that is no step, and
    for a placeholder that names no slot."""
    groups = [_group(line, content.routes) for line in lines]
    for line, (each, steps) in zip(lines, groups, strict=True):
        texts = [each, *(text for step in steps for text in _texts(step))]
        unknown = {name for text in texts for name in placeholders(text)} - {*slots, _ITEM}
        if unknown:
            raise ValueError(f"the step {line!r} names {min(unknown)!r}, which is no slot")

    def plan(bound: Bound) -> list[PlanStep]:
        return [
            _at(step, bound if item is None else {**bound, _ITEM: item})
            for each, steps in groups
            for item in (filled(each, bound).split("|") if each else [None])
            for step in steps
        ]

    return plan


def _texts(step: PlanStep) -> tuple[str, ...]:
    label = step.label.of if isinstance(step.label, Word) else step.label
    return label, str(step.text), step.why


def _at(step: PlanStep, bound: Bound) -> PlanStep:
    """Return the step with its placeholders replaced."""
    label, text, why = (filled(text, bound) if "{" in text else text for text in _texts(step))
    shown = Word(step.label.key, label) if isinstance(step.label, Word) else label
    return replace(step, label=shown, text=text, why=why)


def _group(line: str, routes: Mapping[str, Sequence[str]]) -> tuple[str, list[PlanStep]]:
    """Return the value for whose parts a line is taken ("": once), and its steps."""
    each = _EACH.fullmatch(line)
    return (each[1], list(_steps(each[2], routes))) if each else ("", list(_steps(line, routes)))


def _steps(line: str, routes: Mapping[str, Sequence[str]]) -> Iterator[PlanStep]:
    name = line.partition(" ")[0].rstrip(":")
    if name == "try":
        *before, last = _steps(line.removeprefix("try "), routes)
        yield from before
        yield replace(last, refused=True)
    elif name in routes:
        yield from _route(name, line.partition(" ")[2], routes)
    else:
        yield from _own_steps(line)


def _own_steps(line: str) -> Iterator[PlanStep]:
    order, *reasons = line.split(" | ")
    why, aim = (*reasons, "", "")[:2]
    verb, _, rest = order.partition(" ")
    name, _, more = rest.partition(": ")
    label, _, text = rest.partition(" = ")
    if order in _ALONE:
        step = _ALONE[order]
        yield replace(step, why=why or step.why)
    elif verb in _ON_LABEL and rest:
        make, does = _ON_LABEL[verb]
        yield make(_label(rest), why or f"{does} {_shown(rest)}")
    elif verb in _WITH_TEXT and text:
        write, does = _WITH_TEXT[verb]
        yield write(_label(label), text, why or f"{does} {text}")
    elif verb == "open" and text:
        yield follow(Word(label), why or f"open the list of {_shown(label)}")
        yield follow(text, aim or f"open {text}")
    elif verb == "search" and text:
        yield follow(Word(label), why or f"open the list of {_shown(label)}")
        yield enter(Word("words"), text, f"look for {text}")
        yield press(Word("search"), "start the search")
        yield follow(text, aim or f"open {text}")
    elif verb == "list" and rest:
        yield follow(Word(name), why or f"open the list of {_shown(name)}")
        for key, value in _pairs(more):
            yield choose(Word(key), value, f"narrow it down to {value}")
        yield press(Word("search"), "apply the filter")
        yield scan("see the whole list")
    elif verb == "fill" and more:
        for key, value in _pairs(more, " ~ "):
            yield choose(Word(key), value, f"choose {value}")
        for key, value in _pairs(more):
            yield enter(Word(key), value, f"fill in {value}")
        yield press(Word(name), why or "send the form")
    else:
        raise ValueError(f"{line!r} is no step: see the guide for the steps that there are")


_ALONE = {"scan": scan("see all of them"), "confirm": press(Word("confirm"), "confirm it")}
_ON_LABEL = {"follow": (follow, "open"), "press": (press, "press"), "tick": (tick, "tick")}
_WITH_TEXT = {"enter": (enter, "fill in"), "choose": (choose, "choose")}


def _route(name: str, values: str, routes: Mapping[str, Sequence[str]]) -> Iterator[PlanStep]:
    """Yield the steps of a route, in which ``{name}`` of each of the values is replaced."""
    for line in routes[name]:
        for key, value in _pairs(values):
            line = line.replace(f"{{{key}}}", value)  # noqa: PLW2901
        yield from _steps(line, {key: lines for key, lines in routes.items() if key != name})


def _pairs(text: str, sign: str = " = ") -> list[tuple[str, str]]:
    parts = (part.partition(sign) for part in text.split("; "))
    return [(key, value) for key, separator, value in parts if separator]


def _label(text: str) -> Label:
    word = _WORD.fullmatch(text)
    return Word(word[1], word[2] or "") if word else text


def _shown(text: str) -> str:
    word = _WORD.fullmatch(text)
    return (word[2] or word[1]).replace("_", " ") if word else text
