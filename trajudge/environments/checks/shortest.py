"""The shortest way to do a task, found by search over the pages' model.

A way is a sequence of browser actions, as ``walk.Walk`` counts them: a link followed, a field
filled, a button pressed, one step back in the history after a look at a page. It does the task if
the state is then as the task wants it with no side effect, if whatever must be read off the final
state was shown, if every page was asked for that reckons with numbers which the oracle enters
(nobody has to work out interest by head), and if every alternative in which the task comes to
something else was ruled out (``alternatives``). The search is by cost and looks for a way shorter
than the oracle's; where it runs out of its budget, the oracle's is a bound and nothing is proved.

What is searched: links, sort orders among them; filters with at most two entries, of a choice any
option, of a text what the oracle enters or the goal names; forms that change the state with what
the oracle enters or what stands there; changes that the oracle's walk has in it too (any other
would be a side effect, or would have to be undone). All of it only where the page's arguments are
about the task: values of its slots, literals of its queries, what the oracle enters or comes past,
rows that it changes or that an alternative changes (``_vocabulary``). A short cut over a thing that
has nothing to do with the task is luck, and no agent can know of it beforehand; leaving those out
takes the pages that are made for one case from some hundreds to some dozens.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property
from heapq import heappop, heappush
from itertools import combinations, product
from typing import NamedTuple

from trajudge.environments.apps import load_app
from trajudge.environments.checks.alternatives import Alternatives, Place
from trajudge.environments.checks.profiles import ReplayableState, replayable_state, tables_read
from trajudge.environments.checks.walk import Walk, navigation
from trajudge.environments.kit.listing import PART, SORT
from trajudge.environments.kit.reading import PlacedControl, controls, texts
from trajudge.environments.model.axes import instance, ui
from trajudge.environments.model.binding import bind, parameters
from trajudge.environments.model.case import Case
from trajudge.environments.model.config import Ui
from trajudge.environments.model.operation_codes import operation_code
from trajudge.environments.model.page import Field, Form, Label, Link, Page
from trajudge.environments.model.plan import PlanStep
from trajudge.environments.model.site import Site
from trajudge.environments.model.spec import App, Bound, Rejected, Scenario
from trajudge.environments.model.state import Change, difference
from trajudge.environments.verify.frame import ChangeReport, report_changes
from trajudge.environments.verify.truth import expected_answers, query_answer
from trajudge.util.machine import collection_paused

STATES = 1500  # that are looked at for one case
FILTERS = 2  # entries of a form that asks for a page
ENTRIES = 64  # ways to fill in one form
_NEVER = 1_000_000  # actions that are ahead where no way leads on
_VERBATIM = ("money", "text", "texts", "date", "duration")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_LITERAL = re.compile(r"'([^']*)'")

Signature = tuple[object, ...]  # what a change comes to
Spot = tuple[str, tuple[tuple[str, str], ...]]  # a page and its arguments, sorted


class Shortest(NamedTuple):
    """The actions of the shortest way, its last message included; those of the oracle's where the
    search did not come to its end (not ``proved``)."""

    actions: int
    proved: bool


def shortest(case: Case, budget: int = STATES) -> Shortest:
    """Search for the shortest way to do a case, within so many states."""
    with collection_paused(), closing(_Search(case)) as search:
        return search.run(budget)


# --- the oracle's walk ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Rehearsal:
    """What the oracle's walk was: browser ``actions``, ``changes`` of the state, what was
    ``entered`` by label of the field, the pages come to ``early``, before anything changed, the
    ``arguments`` of all pages and the texts ``shown`` on them, and whether the site ``asks`` before
    each operation that was carried out."""

    actions: int
    changes: frozenset[Signature]
    entered: Mapping[Label, set[Label]]
    early: Sequence[Place]
    arguments: frozenset[str]
    shown: str
    asks: bool

    @property
    def reckoned(self) -> list[Spot]:
        """List the early pages that were asked for with numbers which the oracle enters."""
        entered: set[Label] = set().union(*self.entered.values())
        numbers = {text for text in entered if _NUMBER.fullmatch(str(text))}
        return [spot(*place) for place in self.early if numbers & set(place[1].values())]


def rehearse(
    app: App, state: ReplayableState, interface: Ui, plan: Sequence[PlanStep]
) -> Rehearsal:
    """Walk the oracle's ``plan`` and undo what it did."""
    early: list[Place] = []
    changes: set[Signature] = set()
    entered: dict[Label, set[Label]] = {}
    with state.rollback():
        walk = Walk(Site(app, state, interface))
        walk.open(interface.start, {})
        for step in plan:
            walk.do(step)
            changed = state.changes()
            changes |= {signature(change) for change in changed}
            if not changed:
                early = [(visit.name, visit.args) for visit in walk.visits]
            if step.do in ("enter", "choose", "tick"):
                entered.setdefault(step.label, set()).add(step.text)
    arguments = frozenset(value for visit in walk.visits for value in visit.args.values())
    shown = " | ".join(text for visit in walk.visits for text in texts(visit.page))
    asks = all(app.operations[name].confirm for name in walk.posted)
    return Rehearsal(walk.moved, frozenset(changes), entered, early, arguments, shown, asks)


def spot(name: str, args: Mapping[str, str]) -> Spot:
    """Return a page and its arguments as a key."""
    return name, tuple(sorted(args.items()) if len(args) > 1 else args.items())


def signature(change: Change) -> Signature:
    """Return what a change comes to; the key of a row that was added is drawn and left out."""
    row = change.before if change.kind == "removed" else change.after
    cells = list(row.items())
    return (change.kind, change.table, *(cells[1:] if change.kind == "added" else cells))


# --- the search ----------------------------------------------------------------------------------


class _Node(NamedTuple):
    """Where a way has led: the state's number, the page, what was seen (bits). ``asked`` is the
    operation whose question is shown in the page's stead."""

    version: int
    spot: Spot
    asked: str
    seen: int


class _Way(NamedTuple):
    """What can be done on a page: the actions that it takes and where it leads."""

    cost: int
    version: int
    spot: Spot
    asked: str = ""


@dataclass
class _Version:
    """A state that was reached, and what must still be read off it."""

    state: ReplayableState
    site: Site
    report: ChangeReport
    changed: frozenset[str]
    late: tuple[str, ...] = ()
    pages: dict[object, Page] = field(default_factory=dict)
    outcomes: dict[object, tuple[int, Spot] | Page | None] = field(default_factory=dict)

    @cached_property
    def done(self) -> bool:
        return self.report.holds and self.report.no_side_effect


class _Search:
    """One search; ``close`` frees its states. The first version is the state that all checks of
    the profile share, and stays as it is."""

    def __init__(self, case: Case) -> None:
        config = case.config
        self.app = load_app(config.app)
        self.scenario: Scenario = self.app.scenario(config.scenario)
        self.ui = ui(self.app, config.ui, config.seed)
        self.state = replayable_state(self.app, config.profile, config.seed)
        slots = tuple(self.scenario.slots)
        drawn = instance(self.app.id, self.scenario.id, slots, config.instance, config.seed)
        self.bound: Bound = bind(self.scenario, drawn, self.state)
        self.versions: list[_Version] = []
        self.first = self._version(self.state, [])
        self.numbers: dict[tuple[Signature, ...], int] = {(): self.first}
        plan = self.scenario.plan(self.bound)
        self.oracle = rehearse(self.app, self.state, self.ui, plan)
        self.answers, self.reckoned = self._verbatim(), self.oracle.reckoned
        self.named = {str(v) for v in parameters(self.bound).values() if isinstance(v, str)}
        site = Site(self.app, self.state, self.ui)  # a code is no news of the rows
        self.others = Alternatives(self.scenario, self.bound, site, self.state, self.oracle.early)
        self.words = self._vocabulary()
        self.bits: dict[tuple[int, Spot], int] = {}
        self.ways: dict[tuple[int, Spot, str], tuple[int, list[tuple[int, _Way]]]] = {}
        self.read: dict[Spot, frozenset[str]] = {}  # the tables that pages of the first state read
        self.bars: dict[str, list[PlacedControl]] = {}  # links on every page of an area
        self.leads: dict[object, Spot | None] = {}  # of links, None for what is not about the task
        self.searches: dict[tuple[object, ...], list[tuple[int, Spot]]] = {}

    def close(self) -> None:
        for version in self.versions[1:]:
            version.state.close()
        self.versions.clear()  # their sites refer to each other

    def _verbatim(self) -> tuple[str, ...]:
        """Return the answers that the oracle reads off a page as they are."""
        early = [a for a in self.scenario.answers if a.kind in _VERBATIM and a.when == "before"]
        values = parameters(self.bound)
        answers = [v for a in early for v in query_answer(a, self.state, values).values]
        return tuple(value for value in answers if value in self.oracle.shown)

    def _vocabulary(self) -> frozenset[str]:
        """Return the values that a page's arguments may have to be about the task."""
        words: set[object] = {"", *parameters(self.bound).values(), *self.oracle.arguments}
        for resolved in (*self.scenario.answers, *self.scenario.slots.values()):
            if hasattr(resolved, "sql"):
                words |= set(_LITERAL.findall(resolved.sql))
        words |= {text for texts_ in self.oracle.entered.values() for text in texts_}
        words |= {cell[1] for change in self.oracle.changes for cell in change[2:]}  # type: ignore[index]
        for cell in self.others.cells:
            words |= {cell.value, *self.state.row(cell.table, str(cell.key))}
        return frozenset(map(str, words))

    def _about(self, arguments: Mapping[str, str]) -> bool:
        return self.words.issuperset(arguments.values()) or all(
            value in self.words or name in (PART, SORT) for name, value in arguments.items()
        )

    # --- states and pages ---

    def _version(self, state: ReplayableState, changes: Sequence[Change]) -> int:
        """Return the number of a new state, in which there are these ``changes``."""
        report = report_changes(self.scenario, self.bound, changes)

        def code(table: str, key: str) -> str:
            return operation_code(b"", self.scenario.id, table, dict(state.row(table, key)))

        late = [a for a in self.scenario.answers if a.kind == "code" or a.when == "after"]
        shown: tuple[str, ...] = ()
        if late and report.holds and report.no_side_effect:
            answers = expected_answers(
                self.scenario, report.bound, report.rows, before=state, after=state, code=code
            )
            pairs = zip(answers, self.scenario.answers, strict=True)
            shown = tuple(v for answer, spec in pairs if spec in late for v in answer.values)
        site = Site(self.app, state, self.ui, code)
        changed = frozenset(change.table for change in changes)
        self.versions.append(_Version(state, site, report, changed, shown))
        return len(self.versions) - 1

    def _page(self, number: int, where: Spot, question: str = "") -> Page:
        pages = self.versions[number].pages
        if (where, question) not in pages:
            pages[where, question] = self._made(number, where)
        return pages[where, question]

    def _made(self, number: int, where: Spot) -> Page:
        """Make a page; one that reads nothing that is different in a later state is as in the
        first, but for its codes."""
        version, first = self.versions[number], self.versions[self.first]
        if number == self.first:
            with self.state.noted() as reads:
                page = version.site.get(where[0], dict(where[1]))
            self.read[where] = tables_read(reads)
            return page
        if not version.late and self.read.get(where, version.changed).isdisjoint(version.changed):
            return first.pages[where, ""]
        return version.site.get(where[0], dict(where[1]))

    def _seen(self, number: int, where: Spot) -> int:
        """Return the bits of what a page shows: alternatives ruled out, late answers."""
        known = (number, where)
        if known in self.bits:
            return self.bits[known]
        late = self.versions[number].late
        if self.others.cells or self.reckoned or self.answers or late:
            if number == self.first:
                page, reads, facts = self.others.ruled_out((where[0], dict(where[1])))
                if not late:  # else its codes are read
                    self.versions[number].pages[where, ""] = page
                    self.read[where] = tables_read(reads)
            else:
                facts = [False] * len(self.others.cells)
            shown = " | ".join(texts(self._page(number, where)))
            facts += [where == reckoned for reckoned in self.reckoned]
            facts += [t in shown for t in (*self.answers, *late)]
            self.bits[known] = sum(bit << n for n, bit in enumerate(facts))
        else:
            self.bits[known] = 0
        return self.bits[known]

    def _missing(self, node: _Node) -> int:
        """Return the bits that have not been seen yet; late answers count where the state is
        right."""
        version = self.versions[node.version]
        early = len(self.others.cells) + len(self.reckoned) + len(self.answers)
        return (1 << (early + len(version.late))) - 1 & ~node.seen

    # --- the search ---

    def run(self, budget: int) -> Shortest:
        """Search by the actions that were taken and those that are ahead at least (A*)."""
        home = (self.ui.start, ())
        start = _Node(self.first, home, "", self._seen(self.first, home))
        ahead = self._ahead(start)
        best, looked, pushed = self.oracle.actions if ahead else 0, 0, 0
        costs, waiting = {start: 0}, [(ahead, 0, start)]
        while waiting:
            least, _, node = heappop(waiting)
            cost = costs[node]
            if least >= best or least > cost + self._ahead(node):
                continue
            looked += 1
            if looked > budget:
                return Shortest(self.oracle.actions + 1, proved=False)
            for more, reached in self._ways(node, best - cost):
                total = cost + more
                # A way as long as the best one is of no use, nor one that cannot end sooner.
                if total >= costs.get(reached, best):
                    continue
                ahead = self._ahead(reached)
                if total + ahead >= best:
                    continue
                costs[reached] = total
                if not ahead:
                    best = total
                    continue
                pushed += 1
                heappush(waiting, (total + ahead, -pushed, reached))
        return Shortest(best + 1, proved=True)

    def _ways(self, node: _Node, left: int) -> Iterator[tuple[int, _Node]]:
        """Yield what can be done on a page in fewer actions than are ``left``, what it takes, and
        where it leads; after a look at a page that says something new, one step leads back. What
        is too long when most are left is so always."""
        page = (node.version, node.spot, node.asked)
        known, ways = self.ways.get(page, (0, []))
        if left > known:
            leads = dict.fromkeys(self._leads(node, left))
            # What a way takes at least with what is ahead of it; the last one may be as long.
            least = ((way.cost + self._posts(way), way) for way in leads)
            ways = [(actions, way) for actions, way in least if actions < left]
            self.ways[page] = left, ways
        for actions, way in ways:
            if actions >= left:
                continue
            seen = node.seen if way.asked else node.seen | self._seen(way.version, way.spot)
            yield way.cost, _Node(way.version, way.spot, way.asked, seen)
            if seen != node.seen and way.version == node.version and not node.asked:
                yield way.cost + 1, _Node(node.version, node.spot, "", seen)

    def _posts(self, at: _Way | _Node) -> int:
        """Return how many actions at least go into changing the state as it should be."""
        if self.versions[at.version].done:
            return 0
        return 2 if self.oracle.asks and not at.asked else 1

    def _ahead(self, node: _Node) -> int:
        """Return how many actions at least are ahead of a way, 0 at its end. Alternatives are
        ruled out before anything is changed, and each page that reckons is one to come to."""
        posts, missing = self._posts(node), self._missing(node)
        cells = len(self.others.cells)
        if missing & ((1 << cells) - 1):
            return posts + 1 if node.version == self.first else _NEVER
        reckoned = missing >> cells & ((1 << len(self.reckoned)) - 1)
        return max(posts, reckoned.bit_count(), missing > 0)

    def _leads(self, node: _Node, left: int) -> Iterator[_Way]:
        page = self._page(node.version, node.spot, node.asked)
        site = self.versions[node.version].site
        version, area = node.version, node.spot[0].partition("/")[0]
        if area not in self.bars:
            self.bars[area] = [*navigation(site, node.spot[0])]
        for control, _, folds in (*self.bars[area], *controls(page)):
            opening = sum(not fold.open for fold in folds) if folds else 0
            if isinstance(control, Link):
                link = (control.page, *control.args.items())
                if link not in self.leads:
                    about = self._about(control.args)
                    self.leads[link] = spot(control.page, control.args) if about else None
                if where := self.leads[link]:
                    yield _Way(1 + opening, version, where)
                continue
            if control.page:
                for entering, there in self._searched(control, left - opening):
                    yield _Way(entering + opening, version, there)
                continue
            for entering, sent in self._filled(control, left - opening):
                if way := self._sent(node, entering + opening, control, sent):
                    yield way

    def _searched(self, form: Form, left: int) -> Sequence[tuple[int, Spot]]:
        """Return the pages that a form asks for in fewer actions than are ``left``, with the
        actions that it takes. The parts and orders of a list have the same form."""
        key = (form.page, form.fields, *form.hidden.items(), min(left - 2, FILTERS))
        if key not in self.searches:
            self.searches[key] = [
                (entering, spot(form.page, sent))
                for entering, sent in self._filled(form, left)
                if self._about(sent)
            ]
        return self.searches[key]

    def _sent(self, node: _Node, cost: int, form: Form, sent: Mapping[str, str]) -> _Way | None:
        """Return where a form leads that changes the state, None where it is of no use."""
        version = self.versions[node.version]
        submission = (form.operation, *sorted(sent.items()))
        if submission not in version.outcomes:
            version.outcomes[submission] = self._outcome(version.state, form.operation, sent)
        outcome = version.outcomes[submission]
        if outcome is None:
            return None
        if isinstance(outcome, Page):  # a question: the form that answers it is on its page
            question = str(submission)
            version.pages[node.spot, question] = outcome
            return _Way(cost, node.version, node.spot, question)
        return _Way(cost, *outcome)

    def _outcome(
        self, state: ReplayableState, operation: str, sent: Mapping[str, str]
    ) -> tuple[int, Spot] | Page | None:
        """Carry out an operation and undo it. Returns the version and the page that it leads to,
        or its question; None where it is refused, or changes what the oracle does not."""
        with state.rollback():
            outcome = Site(self.app, state, self.ui).post(operation, sent)
            if isinstance(outcome, Rejected):
                return None
            if isinstance(outcome, Page):
                return outcome
            changes = difference(self.state.dumped, state.dump())
            if not {signature(change) for change in changes} <= self.oracle.changes:
                return None
        key = tuple((*signature(change), change.key) for change in changes)
        if key not in self.numbers:
            with closing(state.copy()) as copied:
                Site(self.app, copied, self.ui).post(operation, sent)
                reached = ReplayableState(self.app.tables, copied.snapshot(), copied.dump())
            self.numbers[key] = self._version(reached, changes)
        return self.numbers[key], spot(outcome.page, outcome.args)

    # --- forms ---

    def _filled(self, form: Form, left: int) -> Iterator[tuple[int, dict[str, str]]]:
        """Yield ways to fill a form in and send it in fewer actions than are ``left``: the actions
        that it takes, and what is sent."""
        options = {entry.name: self._entries(entry, asks=bool(form.page)) for entry in form.fields}
        plain = {entry.name: entry.value for entry in form.fields}
        ticks = {entry.name for entry in form.fields if entry.input == "tick"}
        filled = [name for name, values in options.items() if values]
        most = min(FILTERS if form.page else len(filled), left - 2)
        count = 0
        for size in range(most + 1):
            for names in combinations(filled, size):
                for values in product(*(options[name] for name in names)):
                    count += 1
                    if count > ENTRIES:
                        return
                    chosen = {**plain, **dict(zip(names, values, strict=True))}
                    sent = {n: v for n, v in chosen.items() if n not in ticks or v == "on"}
                    yield size + 1, {**form.hidden, **sent}

    def _entries(self, entry: Field, *, asks: bool) -> Sequence[str]:
        """Return what may be entered in a field beside what stands there."""
        used = self.oracle.entered.get(entry.label, set())
        if entry.input == "tick":
            return ["" if entry.value == "on" else "on"] if used or asks else []
        if entry.input == "choice":
            values = [
                option.value
                for option in entry.options
                if option.label in used or (asks and option.value in self.words)
            ]
            return [value for value in values if value != entry.value]
        entered = {str(text) for text in used}
        entered |= self.named if asks and entry.input == "search" else set()
        return sorted(entered - {entry.value})
