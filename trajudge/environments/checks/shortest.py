"""The shortest way to do a task, found by search over the pages' model.

A way is a sequence of browser actions, as ``walk.Walk`` counts them: a link followed, a field
filled, a button pressed, one step back in the history after a look at a page. It does the task if
the state is then as the task wants it with no side effect, if whatever must be read off the final
state was shown, if every page was asked for that reckons with numbers which the oracle enters
(nobody has to work out interest by head), and if every alternative in which the task comes to
something else was ruled out (``alternatives``). The search is by cost and looks for a way shorter
than the oracle's; where it runs out of its budget, the oracle's is a bound and nothing is proved.

What is searched: every link; filters with at most two entries, of a choice any option, of a
text what the oracle enters or the goal names; forms that change the state with what the oracle
enters or what stands there; changes that the oracle's walk has in it too (any other would be a side
effect, or would have to be undone).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import NamedTuple

from trajudge.environments.apps import load_app
from trajudge.environments.checks.alternatives import alternatives, is_different
from trajudge.environments.checks.form_entries import filled_forms
from trajudge.environments.checks.rehearsal import Spot, rehearse, signature, spot
from trajudge.environments.checks.walk import navigation
from trajudge.environments.kit.reading import controls, texts
from trajudge.environments.model.axes import instance, open_state, ui
from trajudge.environments.model.binding import bind, parameters
from trajudge.environments.model.case import Case
from trajudge.environments.model.operation_codes import operation_code
from trajudge.environments.model.page import Form, Link, Page
from trajudge.environments.model.site import Redirect, Site
from trajudge.environments.model.spec import Bound, Rejected, Scenario
from trajudge.environments.model.state import AppState, Dump, difference
from trajudge.environments.verify.frame import ChangeReport, report_changes
from trajudge.environments.verify.truth import expected_answers, query_answer

STATES = 1500  # that are looked at for one case
_VERBATIM = ("money", "text", "texts", "date", "duration")


class Shortest(NamedTuple):
    """The actions of the shortest way, its last message included; those of the oracle's where the
    search did not come to its end (not ``proved``)."""

    actions: int
    proved: bool


def shortest(case: Case, budget: int = STATES) -> Shortest:
    """Search for the shortest way to do a case, within so many states."""
    with closing(_Search(case)) as search:
        return search.run(budget)


class _Node(NamedTuple):
    """Where a way has led: the state, the page, what was seen (bits). ``asked`` is the operation
    whose question is shown in the page's stead."""

    version: str
    place: Spot
    asked: str
    seen: int


class _Way(NamedTuple):
    """What can be done on a page: the actions that it takes, where it leads, what is seen there."""

    cost: int
    version: str
    place: Spot
    asked: str = ""
    seen: int = 0


@dataclass
class _Version:
    """A state that was reached, and what must still be read off it."""

    state: AppState
    site: Site
    report: ChangeReport
    wanted: tuple[str, ...] = ()
    pages: dict[object, Page] = field(default_factory=dict)

    @property
    def done(self) -> bool:
        return self.report.holds and self.report.no_side_effect


class _Search:
    """One search; ``close`` frees its states."""

    def __init__(self, case: Case) -> None:
        config = case.config
        self.config, self.app = config, load_app(config.app)
        self.scenario: Scenario = self.app.scenario(config.scenario)
        self.ui = ui(self.app, config.ui, config.seed)
        state = open_state(self.app, config)
        slots = tuple(self.scenario.slots)
        places = instance(self.app.id, self.scenario.id, slots, config.instance, config.seed)
        self.bound: Bound = bind(self.scenario, places, state)
        self.before: Dump = state.dump()
        self.versions: dict[str, _Version] = {}
        self.first = self._known(state)
        self.plain = Site(self.app, state, self.ui)  # a code is no news of the rows
        plan = self.scenario.plan(self.bound)
        self.oracle = rehearse(self.app, config, self.ui, plan, self.before)
        self.answers, self.reckoned = self._verbatim(), self.oracle.reckoned
        self.named = {str(v) for v in parameters(self.bound).values() if isinstance(v, str)}
        early = self.oracle.early
        self.others = alternatives(self.app, config, self.bound, self.ui, early)
        self.bits: dict[tuple[str, Spot], int] = {}
        self.ways: dict[tuple[str, Spot, str], list[_Way]] = {}

    def close(self) -> None:
        for site in (*self.others, *(version.site for version in self.versions.values())):
            site.state.close()

    def _verbatim(self) -> tuple[str, ...]:
        """Return the answers that the oracle reads off a page as they are."""
        known = self.versions[self.first].state
        early = [a for a in self.scenario.answers if a.kind in _VERBATIM and a.when == "before"]
        values = parameters(self.bound)
        wanted = [v for a in early for v in query_answer(a, known, values).values]
        return tuple(value for value in wanted if value in self.oracle.shown)

    # --- states and pages ---

    def _known(self, state: AppState) -> str:
        """Return the name of a state; one that is known already is closed."""
        name = state.version
        if name in self.versions:
            state.close()
            return name
        changes = difference(self.before, state.dump())
        report = report_changes(self.scenario, self.bound, changes)

        def code(table: str, key: str) -> str:
            return operation_code(b"", self.scenario.id, table, dict(state.row(table, key)))

        late = [a for a in self.scenario.answers if a.kind == "code" or a.when == "after"]
        wanted: tuple[str, ...] = ()
        if late and report.holds and report.no_side_effect:
            answers = expected_answers(
                self.scenario, report.bound, report.rows, before=state, after=state, code=code
            )
            pairs = zip(answers, self.scenario.answers, strict=True)
            wanted = tuple(
                v for answer, resolved in pairs if resolved in late for v in answer.values
            )
        site = Site(self.app, state, self.ui, code)
        self.versions[name] = _Version(state, site, report, wanted)
        return name

    def _page(self, node: _Node) -> Page:
        version = self.versions[node.version]
        key = (node.place, node.asked)
        if key not in version.pages:
            version.pages[key] = version.site.get(node.place[0], dict(node.place[1]))
        return version.pages[key]

    def _seen(self, version: str, place: Spot) -> int:
        """Return the bits of what a page shows: alternatives ruled out, late answers."""
        known = (version, place)
        if known not in self.bits:
            page = self._page(_Node(version, place, "", 0))
            facts = [False] * len(self.others)
            if version == self.first:
                where = (place[0], dict(place[1]))
                plain = self.plain.get(*where)
                facts = [is_different(site, where, plain) for site in self.others]
            shown = " | ".join(texts(page))
            facts += [place == reckoned for reckoned in self.reckoned]
            facts += [t in shown for t in (*self.answers, *self.versions[version].wanted)]
            self.bits[known] = sum(bit << n for n, bit in enumerate(facts))
        return self.bits[known]

    def _ended(self, node: _Node) -> bool:
        version = self.versions[node.version]
        early = len(self.others) + len(self.reckoned) + len(self.answers)
        needed = (1 << (early + len(version.wanted))) - 1
        return version.done and node.seen & needed == needed

    # --- the search ---

    def run(self, budget: int) -> Shortest:
        start = _Node(self.first, (self.ui.start, ()), "", 0)
        start = start._replace(seen=self._seen(self.first, start.place))
        costs, oracle = {start: 0}, self.oracle.actions
        waiting = [(0, 0, start)]
        pushed = looked = 0
        while waiting:
            cost, _, node = heappop(waiting)
            if cost > costs[node]:
                continue
            if self._ended(node):
                return Shortest(cost + 1, proved=True)
            looked += 1
            if looked > budget:
                return Shortest(oracle + 1, proved=False)
            for more, reached in self._ways(node, oracle - cost):
                total = cost + more
                # A way as long as the oracle's is of no use, nor one that cannot end sooner.
                if total >= costs.get(reached, oracle):
                    continue
                if total + 1 < oracle or self._ended(reached):
                    costs[reached] = total
                    pushed += 1
                    heappush(waiting, (total, pushed, reached))
        return Shortest(oracle + 1, proved=True)

    def _ways(self, node: _Node, left: int) -> Iterator[tuple[int, _Node]]:
        """Yield what can be done on a page in fewer actions than are ``left``, what it takes, and
        where it leads; after a look at a page that says something new, one step leads back. The
        first time that a page is come to, most are left: what is too long then is so always."""
        page = (node.version, node.place, node.asked)
        if page not in self.ways:
            ways = (way for way in self._leads(node, left) if self._of_use(way, left))
            self.ways[page] = [self._looked(way) for way in ways]
        for way in self.ways[page]:
            seen = node.seen | way.seen
            yield way.cost, _Node(way.version, way.place, way.asked, seen)
            if seen != node.seen and way.version == node.version and not node.asked:
                yield way.cost + 1, _Node(node.version, node.place, "", seen)

    def _of_use(self, way: _Way, left: int) -> bool:
        """Tell whether a way leaves room for another action, or may itself be the last."""
        return way.cost + 1 < left or (way.cost < left and self.versions[way.version].done)

    def _looked(self, way: _Way) -> _Way:
        """Return the way with what is seen at its end; a question says nothing."""
        return way if way.asked else way._replace(seen=self._seen(way.version, way.place))

    def _leads(self, node: _Node, left: int) -> Iterator[_Way]:
        page = self._page(node)
        site = self.versions[node.version].site
        for control, _, folds in (*navigation(site), *controls(page)):
            opening = sum(not fold.open for fold in folds)
            if isinstance(control, Link):
                yield _Way(1 + opening, node.version, spot(control.page, control.args))
                continue
            form = control
            for entering, sent in filled_forms(form, self.oracle.entered, self.named):
                cost = entering + opening
                if form.page:
                    yield _Way(cost, node.version, spot(form.page, sent))
                elif cost < left and (way := self._sent(node, cost, form, sent)):
                    yield way

    def _sent(self, node: _Node, cost: int, form: Form, sent: Mapping[str, str]) -> _Way | None:
        """Return where a form leads that changes the state, None where it is of no use."""
        before = self.versions[node.version]
        with ExitStack() as unused:
            state = unused.enter_context(closing(before.state.copy()))
            outcome = Site(self.app, state, self.ui).post(form.operation, sent)
            if isinstance(outcome, Rejected):
                return None
            if not isinstance(outcome, Redirect):  # a question: the form that answers it is on it
                submission = f"{form.operation} {sorted(sent.items())}"
                before.pages[node.place, submission] = outcome
                return _Way(cost, node.version, node.place, submission)
            changes = difference(self.before, state.dump())
            if not {signature(change) for change in changes} <= self.oracle.changes:
                return None
            unused.pop_all()
        return _Way(cost, self._known(state), spot(outcome.page, outcome.args))
