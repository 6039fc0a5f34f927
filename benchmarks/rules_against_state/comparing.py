"""Verdicts of rules on recorded runs, and the labels from the state."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from benchmarks.rules_against_state.responses import response_text
from trajudge.environments.agents.script import AGENTS, behaviour_of
from trajudge.environments.apps import load_app
from trajudge.environments.model.case import Case
from trajudge.environments.model.config import Config
from trajudge.environments.model.operation_codes import operation_code
from trajudge.environments.recheck import ReverifiedRun, rechecked
from trajudge.environments.specification import (
    PROBE,
    SITE,
    ExpectedRows,
    OracleRun,
    oracle_run,
    written_task,
)
from trajudge.rules.values import Mode
from trajudge.rules.verdict import Outcome
from trajudge.rules.verified.evaluator import VerifiedEvaluator
from trajudge.rules.verified.network import Hosts, Trace, find, load_trace, origin
from trajudge.rules.verified.state import State
from trajudge.rules.verified.tasks import AnswerCheck, BackendCheck, NetworkCheck, Task, placeholder
from trajudge.trajectories.model import Trajectory, TrajectoryKey
from trajudge.util.errors import UserError


class CheckFamily(NamedTuple):
    """The checks of a family of rules. ``last``: every check of a request applies to the last
    one, whatever else was sent, as in the published tasks; ``beforehand``: as written before the
    run, when its codes are unknown."""

    checks: tuple[type, ...]
    last: bool = False
    beforehand: bool = False


WHOLE = "answer + network + state"
# From the narrowest to the widest. Answers with a code, which the run itself makes, are counted
# apart: by what is known beforehand, and by a specification that is filled in from the record.
KINDS: Mapping[str, CheckFamily] = {
    "answer": CheckFamily((AnswerCheck,)),
    "answer, shape of a code": CheckFamily((AnswerCheck,), beforehand=True),
    "answer with a code": CheckFamily((AnswerCheck,)),
    "network": CheckFamily((NetworkCheck,)),
    "network, last only": CheckFamily((NetworkCheck,), last=True),
    "state": CheckFamily((BackendCheck,)),
    "answer + network": CheckFamily((AnswerCheck, NetworkCheck)),
    WHOLE: CheckFamily((AnswerCheck, NetworkCheck, BackendCheck)),
}
_OF_ANSWERS = ("answer", "answer, shape of a code", "answer with a code")
_OF_CHANGES = ("network", "network, last only", "state")
MODES: Sequence[Mode] = (Mode.SOUND, Mode.RELEASE)


class RecordedRun(NamedTuple):
    """A recorded run with the labels and facts of a new verification; ``changed``: success or
    side effect differ from the recording."""

    key: TrajectoryKey
    case: Case
    success: bool | None
    side_effect: bool | None
    facts: Mapping[str, Any]
    message: str | None
    trace: Path
    changed: bool

    @property
    def unreported(self) -> bool:
        """Whether it succeeded and ended without a message, such as when its steps were used up.
        The protocol requires a response from every agent and rightly fails this one; the label
        follows from the state, which does not include a response. So the two cannot be compared."""
        return bool(self.success) and not (self.message or "").strip()


class RunComparison(NamedTuple):
    """One run, one kind of check, one mode: the rule's outcome, the truth by the state (None:
    debatable), and the rule's reasons."""

    run: RecordedRun
    kind: str
    mode: Mode
    outcome: Outcome
    truth: bool | None
    reasons: tuple[str, ...]

    @property
    def differs(self) -> bool:
        """Whether the rule decided, and differs from the state."""
        decided = {Outcome.PASS: True, Outcome.FAIL: False}.get(self.outcome)
        return None not in (decided, self.truth) and decided is not self.truth


def recorded_runs(folder: Path, cases: Iterable[Case]) -> Iterator[RecordedRun]:
    """Yield the runs of a recorded folder, verified again, so that a change of the rules or of
    the reader of messages needs no new recording. Raises UserError for another folder, a run of
    an unknown case and a run without its trace."""
    known: dict[str, Case] = {}
    for case in cases:  # a run whose noise was added belongs to the case as generated
        known[case.id] = known[_quiet(case.config)] = case
    for run in rechecked(folder):
        task = run.trajectory.raw_task_id
        config = Config.model_validate(run.facts["config"]) if run.facts else None
        made_of = known.get(task) or (known.get(_quiet(config)) if config else None)
        if made_of is None:
            raise UserError(
                f"{folder}: no case is called {task}: name the cases that the runs were made of"
            )
        yield _recorded_run(run, made_of)


def _quiet(config: Config) -> str:
    """Return the name of a configuration without its noise."""
    return config.model_copy(update={"noise": 0}).id


def _recorded_run(run: ReverifiedRun, case: Case) -> RecordedRun:
    if run.recorded is None or run.found is None or run.facts is None:
        raise UserError(f"{run.folder}: {run.trajectory.key} {run.differences[0]}: record it again")
    success, side_effect, *_ = run.found.labels
    return RecordedRun(
        run.trajectory.key,
        case,
        success,
        side_effect,
        {**run.facts, **run.found.facts},
        run.trajectory.answer,
        _trace_file(run.folder, run.trajectory),
        (run.recorded.success, run.recorded.side_effect) != (success, side_effect),
    )


def _trace_file(folder: Path, run: Trajectory) -> Path:
    """Return the run's network trace. The file of a near miss with another slot is named after
    another agent."""
    agent, attempt = run.key.agent, run.key.attempt
    if agent not in AGENTS and behaviour_of(agent) is not None:
        bare = agent.rstrip("0123456789")
        agent, attempt = bare, int(agent.removeprefix(bare)) - 1
    agent = re.sub(r"[^\w.-]", "-", agent)  # a model's name may hold more than file names do
    path = folder / "traces" / f"{run.raw_task_id}.{agent}.{attempt}.har"
    if not path.is_file():
        raise UserError(f"{path}: no such file: the run's network trace is missing")
    return path


def compare(runs: Iterable[RecordedRun]) -> Iterator[RunComparison]:
    """Yield every run's comparisons: each kind of check that its task has, in both modes."""
    walks: dict[str, tuple[OracleRun, Task]] = {}
    for run in runs:
        if run.case.id not in walks:
            walk = oracle_run(run.case.config)
            walks[run.case.id] = walk, written_task(run.case, walk)
        yield from _compared(run, *walks[run.case.id])


def _compared(run: RecordedRun, walk: OracleRun, beforehand: Task) -> Iterator[RunComparison]:
    codes = known_codes(walk, run.facts)
    task = written_task(run.case, walk, codes) if codes else beforehand
    trace = load_trace(run.trace)
    states = {PROBE: State(after=changed_rows(run.facts["changes"]), before={})}
    answer = response_text(task, run.message)
    hosts = site_of(trace)
    for kind, made_of in KINDS.items():
        if not _asked(task, run, kind):
            continue
        part = only(beforehand if made_of.beforehand else task, made_of)
        for mode in MODES:
            if BackendCheck in made_of.checks and mode is Mode.RELEASE:
                continue  # the released package knows no such check
            verdict = VerifiedEvaluator(mode, hosts).evaluate(part, answer, trace, states)
            yield RunComparison(
                run, kind, mode, verdict.outcome, _truth(run, kind), verdict.reasons
            )


def site_of(trace: Trace) -> Hosts:
    """Return the address of the run's site: the origin of its first page."""
    pages = trace.documents or trace.relevant
    return {placeholder(SITE): (origin(pages[0].url),)} if pages else {}


def only(task: Task, family: CheckFamily) -> Task:
    """Return the task with only the checks of a family."""
    kept = tuple(
        msgspec.structs.replace(check, last_event_only=True, changing_urls=())
        if family.last and isinstance(check, NetworkCheck)
        else check
        for check in task.eval
        if isinstance(check, family.checks)
    )
    return msgspec.structs.replace(task, eval=kept)


def _asked(task: Task, run: RecordedRun, kind: str) -> bool:
    """Return True if a kind of check applies to the task."""
    if kind in _OF_ANSWERS:
        kinds = {fact["kind"] for fact in run.facts["answers"]}
        return bool(kinds) and ("code" in kinds) is kind.endswith("code")
    if kind in _OF_CHANGES:
        return bool(task.backend_checks)  # whoever only signs in changes nothing of the task
    return True


def _truth(run: RecordedRun, kind: str) -> bool | None:
    if kind in _OF_ANSWERS:
        rights = [fact["right"] for fact in run.facts["answers"]]
        return False if False in rights else None if None in rights else True
    if kind in _OF_CHANGES:
        return all(predicate["holds"] for predicate in run.facts["predicates"])
    return None if run.unreported else run.success


def known_codes(walk: OracleRun, facts: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the operation codes that a recorded run may report, empty for a task without a code.

    A code is a keyed hash of a row, with a key drawn at the run's setup. Two rows count. The first
    is the row that the oracle would create under this key. The other is in the record: a row that
    the run created as the task requires, with any additional fields (a note, another number). The
    checks of the state determine which row that is, not the verifier that labels the run.
    """
    tables = [answer.sql for answer in walk.scenario.answers if answer.kind == "code"]
    if not tables:
        return ()
    key, (table,) = bytes.fromhex(facts["code_key"]), tables
    paths = ExpectedRows(load_app(facts["app"]), walk).paths(table)
    oracle = [change._asdict() for change in walk.changes]
    rows = [*_rows_at(paths, oracle), *_rows_at(paths, facts["changes"])]
    return tuple(dict.fromkeys(operation_code(key, walk.scenario.id, table, row) for row in rows))


def _rows_at(paths: Iterable[str], changes: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows at the first path with any, without nested rows of other tables."""
    reply = changed_rows(changes)
    rows: list[Any] = next(filter(None, (find(path, reply) for path in paths)), [])
    return [
        {name: cell for name, cell in row.items() if not isinstance(cell, list)} for row in rows
    ]


def changed_rows(changes: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, list[Any]]]:
    """Return the probe's reply for a run, from the changes among its facts."""
    reply: dict[str, dict[str, list[Any]]] = {}
    named: dict[tuple[str, str], dict[str, Any]] = {}
    for change in changes:
        kind, table = str(change["kind"]), str(change["table"])
        row = dict(change["before" if kind == "removed" else "after"])
        reply.setdefault(table, {}).setdefault(kind, []).append(row)
        named[kind, str(change["key"])] = row
    for table, kinds in reply.items():
        for kind, rows in kinds.items():
            for row in rows:
                _nest(table, row, [named.get((kind, str(cell))) for cell in row.values()])
    return reply


def _nest(table: str, row: dict[str, Any], owners: Iterable[dict[str, Any] | None]) -> None:
    """Put a copy of the row into the rows that it names."""
    copy = {column: cell for column, cell in row.items() if not isinstance(cell, list)}
    for owner in owners:
        if owner is not None and owner is not row:
            rows = owner.setdefault(table, [])
            if isinstance(rows, list):  # not a column that has the table's name
                rows.append(copy)
