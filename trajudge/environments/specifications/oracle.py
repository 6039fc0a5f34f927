"""The oracle's walk through a case, without a browser: what it sends, and what it may answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

from trajudge.environments.apps import load_app
from trajudge.environments.checks.profiles import replayable_state
from trajudge.environments.checks.walk import Walk
from trajudge.environments.model.axes import instance, ui
from trajudge.environments.model.binding import bind, parameters
from trajudge.environments.model.config import Config
from trajudge.environments.model.page import Form, Input, Page
from trajudge.environments.model.site import CONFIRMED, Redirect, Site
from trajudge.environments.model.spec import (
    AnswerSpec,
    Bound,
    FormSubmission,
    Rejected,
    Scenario,
    Success,
)
from trajudge.environments.model.state import AppState, Change, difference
from trajudge.environments.verify.frame import report_changes
from trajudge.environments.verify.truth import ResolvedAnswer, query_answer


class SentForm(NamedTuple):
    """A form that changed the state. ``fields`` are what was sent, ``inputs`` the kinds of the
    form's own controls, ``chosen`` the fields that the oracle filled in or that the page fixed;
    ``changed`` are the tables of which a row was changed, and ``repeatable`` says whether the
    site would carry out the same form once more."""

    operation: str
    fields: Mapping[str, str]
    inputs: Mapping[str, Input]
    chosen: frozenset[str]
    changed: frozenset[str] = frozenset()
    repeatable: bool = False


class OracleRun(NamedTuple):
    """What the oracle's walk comes to. An answer's values are those after the walk; an operation
    code's are empty, since no code is known before a run."""

    scenario: Scenario
    bound: Bound
    start: str
    forms: tuple[SentForm, ...]
    changes: tuple[Change, ...]
    answers: tuple[ResolvedAnswer, ...]


class _ListeningSite(Site):
    """Notes what became of the last operation, and what it changed."""

    outcome: Redirect | Rejected | Page | None = None
    sent: Mapping[str, str] = MappingProxyType({})
    changed: frozenset[str] = frozenset()

    def post(self, operation: str, form: Mapping[str, str]) -> Redirect | Rejected | Page:
        before = self.state.dump()
        self.outcome = super().post(operation, form)
        self.sent = dict(form)
        changes = difference(before, self.state.dump())
        self.changed = frozenset(one.table for one in changes if one.kind == "changed")
        return self.outcome

    def repeatable(self, operation: str) -> bool:
        """Tell whether the last form would be carried out once more; nothing is changed."""
        known, again = self.app.operations[operation], FormSubmission(self.state, self.sent)
        outcome = self.state.attempt(lambda: known.run(again), lambda _: False)
        return isinstance(outcome, Success)


@dataclass
class _ListeningWalk(Walk):
    """Notes the forms that changed the state."""

    forms: list[SentForm] = field(default_factory=list)
    _filled: Form | None = None
    _chosen: frozenset[str] = frozenset()

    def _submit(self, form: Form) -> None:
        if CONFIRMED not in form.hidden:  # a question only repeats the form that it asks about
            self._filled, self._chosen = form, frozenset({*form.hidden, *self._entered})
        super()._submit(form)
        site = self.site
        if not form.operation or not isinstance(site, _ListeningSite) or self._filled is None:
            return
        if isinstance(site.outcome, Redirect):
            inputs = {entry.name: entry.input for entry in self._filled.fields}
            chosen = self._chosen | {CONFIRMED}
            again = site.repeatable(form.operation)
            sent = SentForm(form.operation, site.sent, inputs, chosen, site.changed, again)
            self.forms.append(sent)


def oracle_run(config: Config) -> OracleRun:
    """Walk the plan of a case's configuration; the state is left as it was.

    Raises Infeasible and ControlNotFound for a configuration that is no case.
    """
    app = load_app(config.app)
    scenario = app.scenario(config.scenario)
    places = instance(app.id, scenario.id, tuple(scenario.slots), config.instance, config.seed)
    state = replayable_state(app, config.profile, config.seed)
    interface = ui(app, config.ui, config.seed)
    with state.rollback():
        bound = bind(scenario, places, state)
        early = _answers(scenario, "before", state, bound)
        walk = _ListeningWalk(_ListeningSite(app, state, interface))
        walk.open(interface.start, {})
        for step in scenario.plan(bound):
            walk.do(step)
        changes = state.changes()
        late = _answers(scenario, "after", state, report_changes(scenario, bound, changes).bound)
    answers = tuple((early | late)[answer] for answer in scenario.answers)
    return OracleRun(scenario, bound, interface.start, tuple(walk.forms), tuple(changes), answers)


def _answers(
    scenario: Scenario, when: str, state: AppState, bound: Bound
) -> dict[AnswerSpec, ResolvedAnswer]:
    """Return the answers that are asked of the state as it is now; those without values are
    operation codes."""
    values = parameters(bound)
    return {
        answer: ResolvedAnswer("code", ())
        if answer.kind == "code"
        else query_answer(answer, state, values)
        for answer in scenario.answers
        if answer.when == when
    }
