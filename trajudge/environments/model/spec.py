"""The nouns of the environments: an App is made of tables, pages, operations and scenarios.

A Scenario is a parameterised task template. Its slots are bound to a profile's data; its plan is
the oracle's way; its ground truth is a query (``answers``) or predicates on the difference of the
state before and after (``expect``); whatever else changed beyond ``may`` is a side effect. All of
it is read by the verifier and none of it reaches the browser.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from trajudge.environments.model.config import Ui
from trajudge.environments.model.page import Link, Page
from trajudge.environments.model.plan import PlanStep
from trajudge.environments.model.schema import TableSchema
from trajudge.environments.model.state import AppState, Rows

if TYPE_CHECKING:
    import numpy as np

Domain = Literal[
    "consumer-transactions",
    "content-moderation",
    "enterprise-process",
    "information-retrieval",
    "platform-management",
    "tool-use",
    "content-creation",
]
Family = Literal[
    "lookup",  # one fact or list
    "change",  # one form
    "plan",  # several changes under a constraint
    "memory",  # facts of three pages or more that no page shows together
    "recovery",  # a step fails for a reason that the page states, and there is a way round
    "applications",  # several of them
    "roles",  # who may do what
    "time",  # dates and terms
    "judgement",  # a rule on a page decides between what would do
    "refusal",  # what is asked for cannot be done, or must not
    "irreversible",  # a loss that the goal forbids
    "vision",  # a chart has to be read
]
TODAY = "2026-03-02"  # the date in every application; the browser's clock stands still on it

# --- slots: what a scenario is about -----------------------------------------------------------


@dataclass(frozen=True)
class Pick:
    """A row of the profile: one of those that ``sql`` gives (it may name earlier slots as
    ``:slot`` or ``:slot_column``), at a place in the list that the instance chose (so that it is
    independent of the profile). Its decoy is another row of the list; none where ``decoy`` is
    False: another row would ask for the same."""

    sql: str
    decoy: bool = True


@dataclass(frozen=True)
class Number:
    """A whole number, both ends included. Its decoy is a neighbour; none where ``decoy`` is False:
    another number would ask for the same."""

    low: int
    high: int
    decoy: bool = True


@dataclass(frozen=True)
class ChoiceSlot:
    """One of a few values. Its decoy is another one; none where ``decoy`` is False."""

    values: tuple[str, ...]
    decoy: bool = True


@dataclass(frozen=True)
class Derive:
    """The one row that follows from earlier slots (the cheapest of the category that was picked),
    for plans and expectations that need it. It has no decoy of its own; no row, or several (a
    tie), make the configuration infeasible."""

    sql: str


Slot = Pick | Number | ChoiceSlot | Derive
Bound = Mapping[str, Any]  # slot -> number, text, or a row (mapping of columns)

# --- ground truth ------------------------------------------------------------------------------

AnswerKind = Literal["money", "number", "text", "date", "duration", "texts", "code", "none"]


@dataclass(frozen=True)
class AnswerSpec:
    """What the last message must say. ``sql`` gives it (one column; one row, or the members of
    ``texts``); it may name slots as ``:slot`` or ``:slot_column`` and ``:new_TABLE``, the key of
    the row that the first ``added`` expectation of that table found. ``when`` tells which state is
    asked. For names (``text``, ``texts``) ``among`` gives all names that would be candidates; for
    a ``number`` ``unit`` says what it counts or measures (``days``).
    An operation ``code`` has no query: it is the code of the row that ``sql`` names as table.
    ``none``: what is asked for cannot be done or is not there, and that is the answer.
    """

    kind: AnswerKind
    sql: str = ""
    when: Literal["before", "after"] = "before"
    among: str = ""
    unit: str = ""


@dataclass(frozen=True)
class Expect:
    """A predicate on the difference: exactly ``count`` rows of ``table`` were added, removed or
    changed so that every column in ``values`` holds (``"{slot}"`` or ``"{slot[column]}"`` stands
    for a bound value; for ``removed`` the row before is asked). ``key`` names the row.

    ``within`` ties the rows to another (``purchase = "{new_purchase}"``): only rows with these
    values count, and no other row with them may have changed in this way (a second product in the
    same order). Rows with the values in ``undone`` do not count: what was done was taken back (an
    order that is cancelled). Neither is part of the expectation's name.
    """

    kind: Literal["added", "removed", "changed"]
    table: str
    values: Mapping[str, str | int] = field(default_factory=dict)
    key: str = ""
    count: int = 1
    within: Mapping[str, str | int] = field(default_factory=dict)
    undone: Mapping[str, str | int] = field(default_factory=dict)


@dataclass(frozen=True)
class AllowedChange:
    """Part of the frame: a change that is neither asked for nor a side effect. Without
    ``columns`` all; ``values`` as in Expect. ``on_the_way``: only while an expectation is unmet
    (the product in the cart of an order that was never placed); left behind beside the finished
    work it is a side effect."""

    kind: Literal["added", "removed", "changed"]
    table: str
    columns: tuple[str, ...] = ()
    values: Mapping[str, str | int] = field(default_factory=dict)
    on_the_way: bool = False


@dataclass(frozen=True, eq=False)
class Scenario:
    """A task template.

    ``goals`` are wordings with ``{slot}`` and ``{slot[column]}``; ``plan`` maps bound slots to the
    shortest way known, whatever the theme and the start page; a near-miss run is the plan with one
    slot's decoy in place of its value, so every slot that matters is a slot. ``replies`` word the
    last message (``{answer}`` is the answer as text, ``{code}`` the operation code);
    ``distractor`` is a short detour with a consequence that nobody asked for (the side-effect
    agent's), from any page. ``charts`` says how many charts must be read, ``family`` what kind of
    task it is, and ``demand`` (1 to 3) how much it takes, whatever the pages' length.
    """

    id: str
    goals: tuple[str, ...]
    slots: Mapping[str, Slot]
    plan: Callable[[Bound], Sequence[PlanStep]]
    replies: tuple[str, ...]
    answers: tuple[AnswerSpec, ...] = ()
    expect: tuple[Expect, ...] = ()
    may: tuple[AllowedChange, ...] = ()
    distractor: Callable[[Bound], Sequence[PlanStep]] | None = None
    charts: int = 0
    family: Family = "lookup"
    demand: int = 1

    @property
    def mistakable(self) -> tuple[str, ...]:
        """The slots that have decoys."""
        return tuple(
            name
            for name, slot in self.slots.items()
            if not isinstance(slot, Derive) and getattr(slot, "decoy", True)
        )


# --- pages and operations ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PageContext:
    """Input of a page: the state, its arguments (from the URL: untrusted text), and the settings of
    the interface (page size, sort order).

    ``code`` gives the operation code of a row as it is now (table, key); every row has one, and
    only the verifier knows which is the right one.
    """

    state: AppState
    args: Mapping[str, str]
    ui: Ui
    code: Callable[[str, str], str]


@dataclass(frozen=True, slots=True)
class FormSubmission:
    """What an operation is called with: the state and the submitted form (untrusted text)."""

    state: AppState
    form: Mapping[str, str]

    def row(self, table: str, field: str = "") -> sqlite3.Row | None:
        """Return the row that a field (by default the one with the table's name) holds the key
        of."""
        return self.state.get(table, self.form.get(field or table, ""))

    def text(self, name: str, most: int) -> str:
        """Return what was typed, without blanks around it, at most so many characters."""
        return self.form.get(name, "").strip()[:most]


@dataclass(frozen=True, slots=True)
class Success:
    """The operation was carried out; the browser goes on to ``page``."""

    page: str
    args: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Rejected:
    """Nothing was changed; the message is shown above the form again."""

    message: str


@dataclass(frozen=True)
class Operation:
    """Something that changes the state. ``irreversible`` counts as risk; with ``confirm`` (the
    question to ask, from the state and the form) a page asks before it is carried out."""

    run: Callable[[FormSubmission], Success | Rejected]
    irreversible: bool = False
    confirm: Callable[[FormSubmission], str] | None = None


PageMaker = Callable[[PageContext], Page]


@dataclass(frozen=True, eq=False)
class App:
    """An application. ``pages`` by name ("home" must be there; names are URL segments);
    ``navigation`` is on every page, its labels are Words; ``starts`` are pages without arguments
    where a run may begin; ``sorts`` how many sort orders its lists know; ``words`` the wordings of
    its Words, three or more each, all true in the same place; ``profile`` makes the rows of a data
    profile from a generator and the profile's index (which may scale its size). ``areas`` gives
    the navigation of pages below a name (``shop/orders``) where it is another one; ``identity`` is
    a name in ``kit/identities.toml``; ``scenario_file`` the text that the scenarios were read from.
    """

    id: str
    domain: Domain
    title: str
    tables: tuple[TableSchema, ...]
    profile: Callable[[np.random.Generator, int], Rows]
    pages: Mapping[str, PageMaker]
    operations: Mapping[str, Operation]
    navigation: tuple[Link, ...]
    scenarios: tuple[Scenario, ...]
    words: Mapping[str, tuple[str, ...]]
    starts: tuple[str, ...] = ("home",)
    sorts: int = 1
    areas: Mapping[str, tuple[Link, ...]] = field(default_factory=dict)
    identity: str = "plain"
    scenario_file: str = ""

    def scenario(self, name: str) -> Scenario:
        """Return the scenario with this id. Raises KeyError."""
        return next((s for s in self.scenarios if s.id == name), None) or _missing(name)


def _missing(name: str) -> Scenario:
    raise KeyError(name)
