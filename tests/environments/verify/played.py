"""A run of an application's own operations, played on its pages without a browser."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from trajudge.environments.apps import load_app
from trajudge.environments.checks.walk import Walk
from trajudge.environments.model.axes import instance, open_state, ui
from trajudge.environments.model.binding import Infeasible, bind, filled
from trajudge.environments.model.config import PROFILES, Config
from trajudge.environments.model.operation_codes import operation_code
from trajudge.environments.model.plan import PlanStep
from trajudge.environments.model.site import Site
from trajudge.environments.model.spec import App, Bound, Scenario
from trajudge.environments.model.state import AppState, Dump, difference
from trajudge.environments.model.wording import declared_line
from trajudge.environments.verify import (
    ExecutedAction,
    Labels,
    RunEvidence,
    VerificationResult,
    verify,
)
from trajudge.environments.verify.frame import report_changes
from trajudge.environments.verify.truth import reply
from trajudge.environments.verify.verifying import right_answers


class Played(NamedTuple):
    """A scenario with its slots bound, the state before and now, and who walks the pages."""

    scenario: Scenario
    bound: Bound
    state: AppState
    before: Dump
    walk: Walk

    def code(self, table: str, key: str) -> str:
        return operation_code(b"", self.scenario.id, table, dict(self.state.row(table, key)))

    def do(self, moves: Sequence[PlanStep]) -> None:
        for move in moves:
            self.walk.do(move)

    def plan(self, bound: Bound | None = None) -> list[PlanStep]:
        return list(self.scenario.plan(bound or self.bound))

    def evidence(self, **more: Any) -> RunEvidence:
        goal = filled(self.scenario.goals[0], self.bound)
        state = (self.scenario, self.bound, self.before, self.state)
        return RunEvidence(*state, self.code, **{"goal": goal, **more})

    def reply(self) -> str:
        changes = difference(self.before, self.state.dump())
        reading = report_changes(self.scenario, self.bound, changes)
        right = right_answers(self.evidence(), reading)
        values = [value for answer in right for value in answer.values]
        said = reply(self.scenario.replies[0], self.bound, right)
        return f"{said}\n{declared_line(values)}" if values else said

    def found(
        self, answer: str | None, actions: Sequence[ExecutedAction] = ()
    ) -> VerificationResult:
        return verify(self.evidence(answer=answer, actions=actions, shortest=9))

    def labels(self, answer: str | None = None, last: str = "") -> Labels:
        actions = [ExecutedAction("/", last, "a", "b")]
        return verify(self.evidence(answer=answer or self.reply(), actions=actions)).labels

    def row_added(self, table: str) -> str:
        """Return the key of the one row that the run added."""
        (key,) = set(self.state.dump()[table]) - set(self.before[table])
        return key


@contextmanager
def played(app_id: str, name: str) -> Iterator[Played]:
    """Open the scenario on its first feasible instance, on the application's home page."""
    app = load_app(app_id)
    scenario = app.scenario(name)
    state, bound = _bound(app, scenario)
    walk = Walk(Site(app, state, ui(app, 0, 0)))
    walk.open("home", {})
    yield Played(scenario, bound, state, state.dump(), walk)
    state.close()


def _bound(app: App, scenario: Scenario) -> tuple[AppState, Bound]:
    for index in range(240):
        config = Config(app=app.id, scenario=scenario.id, profile=(3 + index // 20) % PROFILES)
        state = open_state(app, config)
        try:
            slots = instance(app.id, scenario.id, tuple(scenario.slots), 1 + index % 20, 0)
            return state, bind(scenario, slots, state)
        except Infeasible:
            state.close()
    raise AssertionError("no feasible instance")
