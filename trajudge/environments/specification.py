"""A case's task in WebArena Verified's form: the answer, the requests and the state it asks for.

All of it comes from the oracle's walk through the case, without a browser.

Answer: a task that asks for one thing wants a list of values, one that asks for several an object
with a key for each kind ("text2" for a second name). An operation code is made by the run: a
specification that is written before asks for its shape and says so (``shape_only``), one that is
written for a recorded run knows its values.

Requests: those with which the walk changed the state. As in the published tasks, a check names
method, address and the fields that matter. Fields that the form carries without anybody's doing are
left out (an agent may leave a note), unless the state is expected to hold them. The published tasks
hold the last such request to a check. Here that is so where a later one would overwrite what the
task asks for; where each request does something of its own (one more order, another ticket closed)
any of them may meet the check. What a further request did no check of requests can tell: a run that
changed something else besides is left open (``changing_urls``), unless the state is asked.

State: checks of a probe's reply, which is asked for the rows that differ between the state before
and after: ``{TABLE: {"added": [ROW...], "changed": [ROW...], "removed": [ROW...]}}``, a row that
changed as it is afterwards, and in each row, by table, the rows of that kind that name its key (the
lines of an order).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import orjson

from trajudge.environments.apps import load_app
from trajudge.environments.checks.profiles import replayable_state
from trajudge.environments.checks.walk import Walk
from trajudge.environments.model.axes import instance, ui
from trajudge.environments.model.binding import bind, parameters, typed
from trajudge.environments.model.case import Case
from trajudge.environments.model.config import Config
from trajudge.environments.model.operation_codes import LENGTH
from trajudge.environments.model.page import Form, Input, Page
from trajudge.environments.model.site import CONFIRMED, Redirect, Site
from trajudge.environments.model.spec import (
    AnswerSpec,
    App,
    Bound,
    Expect,
    FormSubmission,
    Rejected,
    Scenario,
    Success,
)
from trajudge.environments.model.state import AppState, Change, difference
from trajudge.environments.verify.frame import report_changes
from trajudge.environments.verify.truth import ResolvedAnswer, query_answer
from trajudge.rules.values import normalise
from trajudge.rules.verified.tasks import (
    AnswerCheck,
    BackendCheck,
    Check,
    ExpectedAnswer,
    ExpectedEvent,
    NetworkCheck,
    Schema,
    Task,
    placeholder,
    published_record,
    task_record,
)
from trajudge.util.files import save_bytes

SITE = "homepage"
"""The name under which an application goes: the released package knows seven names of sites, and
this is the one to which it gives no meaning of its own."""

PROBE = "changed-rows"
NOT_POSSIBLE = "ACTION_NOT_ALLOWED_ERROR"  # the status of a task that is declared so
DONE = 303  # what the server answers to a form that it has carried out
CODE = f"^[A-Z2-7]{{{LENGTH}}}$"
_SCHEMAS: dict[str, Schema] = {
    "money": {"type": "number", "format": "currency"},
    "number": {"type": "number"},
    "date": {"type": "string", "format": "date"},
    "duration": {"type": "string", "format": "duration"},
    "code": {"type": "string", "pattern": CODE},
}
_CHANGES = f"^{placeholder(SITE)}/do/.+$"  # every operation; a banner is dismissed elsewhere
_PARENT = re.compile(r"\{new_(\w+)\}")


def specification(case: Case) -> Task:
    """Return the task of a case: the answer, the requests and the state that it asks for."""
    return written_task(case, oracle_run(case.config))


def written_task(case: Case, run: OracleRun, codes: Sequence[str] = ()) -> Task:
    """Return the task of a case from its oracle's walk. ``codes`` are the operation codes that a
    run may report; without them their shape is asked for."""
    config = case.config
    checks: list[Check] = [_answer_check(run, codes)]
    checks += [_network_check(run, form) for form in run.forms]
    checks += ExpectedRows(load_app(config.app), run).checks()
    return Task(
        task_id=_task_number(config.id),
        intent_template_id=_task_number(f"{config.app} {config.scenario}"),
        sites=(SITE,),
        start_urls=(f"{placeholder(SITE)}/{run.start}",),
        intent=case.goal,
        intent_template=run.scenario.goals[0],
        instantiation_dict={"case": config.id, **_slots(run)},
        eval=tuple(checks),
    )


def _task_number(name: str) -> int:
    """Return a whole number below 2^31 for a name, the same in every process."""
    return int.from_bytes(sha256(name.encode()).digest()[:4], "big") >> 1


def _slots(run: OracleRun) -> Bound:
    """Return the slots as values of JSON: of a row its key."""
    return {
        name: next(iter(value.values())) if isinstance(value, dict) else value
        for name, value in run.bound.items()
    }


def write_tasks(path: Path, cases: Iterable[Case], *, published: bool = False) -> None:
    """Write the tasks of cases as one JSON list. They hold the answers: keep them from the agents.
    Raises UserError if the file cannot be written."""
    form = published_record if published else task_record
    records = [form(specification(case)) for case in cases]
    save_bytes(path, orjson.dumps(records, option=orjson.OPT_INDENT_2) + b"\n")


# --- the oracle's walk ---


class SentForm(NamedTuple):
    """A form that changed the state. ``fields`` are what was sent, ``inputs`` the kinds of the
    form's own controls, ``chosen`` the fields that the oracle filled in or that the page fixed;
    ``changed`` are the tables of which a row was changed, and ``repeatable`` says whether the
    site would carry out the same form once more."""

    operation: str
    fields: Mapping[str, str]
    inputs: Mapping[str, Input]
    chosen: frozenset[str]
    changed: frozenset[str]
    repeatable: bool


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


# --- the answer ---


def _answer_check(run: OracleRun, codes: Sequence[str] = ()) -> AnswerCheck:
    """Return the check of the response: its data for a task that asks for something, else that it
    reports a change. ``codes`` are the right operation codes, where they are known."""
    possible = all(answer.kind != "none" for answer in run.answers)
    if not run.answers or not possible:
        status = "SUCCESS" if possible else NOT_POSSIBLE
        expected = ExpectedAnswer(task_type="mutate", status=status, retrieved_data=None)
        return AnswerCheck(expected=expected, results_schema={"type": "null"})
    schema, wanted = _asked(run.answers, codes or (CODE,))
    return AnswerCheck(
        expected=ExpectedAnswer(task_type="retrieve", status="SUCCESS", retrieved_data=wanted),
        results_schema={"type": "array", "items": schema},
        shape_only=not codes and any(answer.kind == "code" for answer in run.answers),
    )


def _asked(answers: Sequence[ResolvedAnswer], codes: Sequence[str]) -> tuple[Schema, list[Any]]:
    if len(answers) == 1:
        return _schema(answers[0]), _values(answers[0], codes)
    kinds = [answer.kind for answer in answers]
    alike = [one for one in answers if kinds.count(one.kind) > 1]
    names = [name for answer in alike for name in set(answer.among) or {""}]
    if "texts" in kinds or len(set(names)) != len(names) or "" in names:
        raise ValueError(f"an object cannot tell these answers apart: {', '.join(kinds)}")
    before = [kinds[:n].count(kind) for n, kind in enumerate(kinds)]
    keys = [f"{kind}{n + 1}" if n else kind for n, kind in zip(before, kinds, strict=True)]
    properties = {key: _schema(answer) for key, answer in zip(keys, answers, strict=True)}
    values = {key: _values(answer, codes)[0] for key, answer in zip(keys, answers, strict=True)}
    return {"type": "object", "properties": properties}, [values]


def _schema(answer: ResolvedAnswer) -> Schema:
    """Return the schema of one value. The names that a task chooses from are part of it."""
    known = _SCHEMAS.get(answer.kind, {"type": "string"})
    return {**known, "enum": list(answer.among)} if answer.among else known


def _values(answer: ResolvedAnswer, codes: Sequence[str]) -> list[Any]:
    """Return the right values as JSON has them: amounts and numbers bare, everything else text;
    several codes are alternatives."""
    if answer.kind == "code":
        return [codes[0] if len(codes) == 1 else list(codes)]
    if answer.kind == "money":
        return [_number(value.replace("$", "")) for value in answer.values]
    if answer.kind == "number":
        return [_number(value) for value in answer.values]
    return list(answer.values)


def _number(text: str) -> int | float:
    value = float(str(normalise("number", text)))
    return int(value) if value.is_integer() else value


# --- the requests ---


def _network_check(run: OracleRun, form: SentForm) -> NetworkCheck:
    """Return the check of a form that changed the state."""
    wanted = {column for expect in run.scenario.expect for column in expect.values}
    fields: dict[str, Any] = {
        name: value
        for name, value in form.fields.items()
        if name in form.chosen or (name in wanted and value)
    }
    types = {
        name: _SCHEMAS[form.inputs[name]]
        for name in fields
        if form.inputs.get(name) in ("number", "date")
    }
    schema = {"type": "object", "properties": types} if types else None
    event = ExpectedEvent(
        url=f"{placeholder(SITE)}/do/{form.operation}",
        http_method="POST",
        response_status=DONE,
        post_data=fields or None,
    )
    expected = {one.table for one in run.scenario.expect if one.kind == "changed"}
    return NetworkCheck(
        expected=event,
        # A later form of the same operation may overwrite what this one did.
        last_event_only=form.repeatable and bool(form.changed & expected),
        post_data_schema=schema,
        changing_urls=(_CHANGES,),
    )


# --- the state ---


class ExpectedRows:
    """The rows that a scenario expects in the probe's reply, with the values that the oracle's walk
    gave them."""

    def __init__(self, app: App, run: OracleRun) -> None:
        self._run = run
        self._bound = report_changes(run.scenario, run.bound, run.changes).bound
        self._keys = {table.name: table.key for table in app.tables}

    def checks(self) -> list[BackendCheck]:
        """Return one check for every expectation, in their order."""
        expected = map(self._expected, self._run.scenario.expect)
        return [BackendCheck(probe=PROBE, expected=cells) for cells in expected]

    def paths(self, table: str) -> tuple[str, str]:
        """Return the paths of the rows of a table that the first expectation of them asks for: with
        what has to stand in them, and, for a run that made no such row, by their own values."""
        expect = next(one for one in self._run.scenario.expect if one.table == table)
        return _path(expect, self._whole_cells(expect)), _path(expect, self._cells(expect))

    def _expected(self, expect: Expect) -> dict[str, Any]:
        """Ask for exactly one row that has all the values: of several, the path gives a list. Rows
        that are tied to another stand in that one, and are all of theirs there."""
        cells = self._cells(expect)
        if parent := _parent(expect):
            owner = next(one for one in self._run.scenario.expect if one.table == parent)
            rows = f"{_path(owner, self._whole_cells(owner))}.{expect.table}[*]"
            return {f"{rows}.{column}": cell for column, cell in cells.items()}
        column, cell = next(iter(cells.items()))
        return {f"{_path(expect, self._whole_cells(expect))}.{column}": cell}

    def _whole_cells(self, expect: Expect) -> dict[str, Any]:
        """Return the values of a row and, by their place in it, those of the first row that is tied
        to it: an order with other lines is another order."""
        cells = self._cells(expect)
        for one in self._run.scenario.expect:
            if _parent(one) == expect.table:
                tied = self._cells(one)
                cells |= {f"{one.table}[0].{column}": cell for column, cell in tied.items()}
        return cells

    def _cells(self, expect: Expect) -> dict[str, Any]:
        """Return the values that the row must have, as the state holds them: a number that was
        typed in is a number in the row that the walk added, changed or removed."""
        values = {column: typed(value, self._bound) for column, value in expect.values.items()}
        if expect.key:
            values = {self._keys[expect.table]: typed(expect.key, self._bound), **values}
        for change in self._run.changes:
            row = change.before if expect.kind == "removed" else change.after
            if (change.kind, change.table) == (expect.kind, expect.table) and all(
                str(row[column]) == str(value) for column, value in values.items()
            ):
                return {column: row[column] for column in values}
        raise ValueError(f"the oracle's walk leaves no {expect.table} {expect.kind} as expected")


def _parent(expect: Expect) -> str:
    """Return the table of the row that an expected row is tied to; empty for none."""
    parent = next(map(_PARENT.fullmatch, map(str, expect.within.values())), None)
    return parent[1] if parent else ""


def _path(expect: Expect, cells: Mapping[str, Any]) -> str:
    """Return the path of the rows that have the values and were not undone."""
    tests = [f"@.{column} == {_literal(cell)}" for column, cell in cells.items()]
    tests += [f"@.{column} != {_literal(cell)}" for column, cell in expect.undone.items()]
    return f"$.{expect.table}.{expect.kind}[?({' && '.join(tests)})]"


def _literal(value: Any) -> str:
    if isinstance(value, int | float):
        return str(value)
    quote = '"' if "'" in str(value) else "'"
    return f"{quote}{value}{quote}"
