"""Rules' verdicts on recorded runs beside the labels that follow from the state."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from trajudge.annotations import store as annotation_store
from trajudge.environments.agents.script import AGENTS, behaviour_of
from trajudge.environments.model.case import Case
from trajudge.environments.recheck.facts import FACTS, RESTORE, read_facts
from trajudge.environments.specifications.codes import known_codes
from trajudge.environments.specifications.oracle import OracleRun, oracle_run
from trajudge.environments.specifications.requests import SITE
from trajudge.environments.specifications.responses import response_text
from trajudge.environments.specifications.states import PROBE, changed_rows
from trajudge.environments.specifications.tasks import written_task
from trajudge.environments.specifications.verifying_again import verified_again
from trajudge.rules.values import Mode
from trajudge.rules.verdict import Outcome
from trajudge.rules.verified.evaluator import VerifiedEvaluator
from trajudge.rules.verified.network import Hosts, Trace, load_trace, origin
from trajudge.rules.verified.state import State
from trajudge.rules.verified.tasks import AnswerCheck, BackendCheck, NetworkCheck, Task, placeholder
from trajudge.trajectories import store
from trajudge.trajectories.model import Trajectory, TrajectoryKey
from trajudge.util.errors import UserError


class CheckFamily(NamedTuple):
    """What a family of rules is made of. ``last``: every check of a request is about the last one,
    whatever else was sent, as in the published tasks; ``beforehand``: as written before the run,
    where nobody knows its codes."""

    checks: tuple[type, ...]
    last: bool = False
    beforehand: bool = False


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
    "answer + network + state": CheckFamily((AnswerCheck, NetworkCheck, BackendCheck)),
}
_OF_ANSWERS = ("answer", "answer, shape of a code", "answer with a code")
_OF_CHANGES = ("network", "network, last only", "state")
_NEEDED = ("app", "changes", "answers", "predicates")
MODES: Sequence[Mode] = (Mode.SOUND, Mode.RELEASE)


class RecordedRun(NamedTuple):
    """A recorded run: its case, label, facts, goal, actions, last message, and network trace."""

    key: TrajectoryKey
    case: Case
    success: bool | None
    side_effect: bool | None
    facts: Mapping[str, Any]
    goal: str
    actions: tuple[str, ...]
    message: str | None
    trace: Path

    @property
    def unreported(self) -> bool:
        """Whether it succeeded and ended without a message, as when its steps were used up. The
        protocol asks every agent for a response and rightly fails this one; the label follows from
        the state, which no response is part of. So the two cannot be compared."""
        return bool(self.success) and not (self.message or "").strip()


class RunComparison(NamedTuple):
    """One run, one kind of check, one reading of the rules: what the rule said, what the state
    says (None: open to argument), and the rule's reasons."""

    run: RecordedRun
    kind: str
    mode: Mode
    outcome: Outcome
    truth: bool | None
    reasons: tuple[str, ...]

    @property
    def differs(self) -> bool:
        """Whether the rule decided, and otherwise than the state."""
        decided = {Outcome.PASS: True, Outcome.FAIL: False}.get(self.outcome)
        return None not in (decided, self.truth) and decided is not self.truth


def recorded_runs(folders: Iterable[Path], cases: Mapping[str, Case]) -> Iterator[RecordedRun]:
    """Yield the runs of recorded folders. Raises UserError for a folder that is none, a run of an
    unknown case and a run without its trace."""
    for folder in folders:
        labels = {one.key: one for one in annotation_store.load(folder / "labels.jsonl")}
        facts = read_facts(folder)
        for entry in store.read(folder):
            if not isinstance(entry, Trajectory):
                raise UserError(f"{entry.source}: {entry.reason}")
            label = labels.get(entry.key)
            if label is None or entry.key not in facts:
                raise UserError(f"{folder}: {entry.key} has no label or no facts: record it again")
            if missing := [name for name in _NEEDED if name not in facts[entry.key]]:
                raise UserError(
                    f"{folder / FACTS}: {entry.key} has no {missing[0]!r}, which rules are held "
                    f"to: {RESTORE}"
                )
            yield RecordedRun(
                entry.key,
                case_of(folder, entry.raw_task_id, cases),
                label.success,
                label.side_effect,
                facts[entry.key],
                entry.goal,
                tuple(step.action for step in entry.steps if step.action),
                entry.answer,
                _trace_file(folder, entry),
            )


def labelled_again(run: RecordedRun) -> RecordedRun:
    """Return the run with the labels and facts that verification gives it today."""
    made = verified_again(run.facts, run.goal, run.message, run.actions)
    labels = made.labels
    facts = {**run.facts, **made.facts}
    return run._replace(success=labels.success, side_effect=labels.side_effect, facts=facts)


def case_of(folder: Path, task: str, cases: Mapping[str, Case]) -> Case:
    """Return the case of a run; one whose noise was added belongs to the case as generated. Raises
    UserError."""
    bare, _, seed = task.rpartition(".")
    stem = bare.rpartition(".")[0]
    case = cases.get(task) or cases.get(f"{stem}.{seed}")
    if case is None:
        raise UserError(
            f"{folder}: no case is called {task}: give the --cases that the runs were recorded with"
        )
    return case


def by_configuration(cases: Iterable[Case]) -> dict[str, Case]:
    """Return cases by their id and, once more, by their id without the noise."""
    known: dict[str, Case] = {}
    for case in cases:
        bare, _, seed = case.id.rpartition(".")
        known[case.id] = known[f"{bare.rpartition('.')[0]}.{seed}"] = case
    return known


def _trace_file(folder: Path, entry: Trajectory) -> Path:
    """Return the run's network trace. A near miss of another slot goes by another name than the
    agent that its file is named by."""
    agent, attempt = entry.key.agent, entry.key.attempt
    if agent not in AGENTS and behaviour_of(agent) is not None:
        bare = agent.rstrip("0123456789")
        agent, attempt = bare, int(agent.removeprefix(bare)) - 1
    agent = re.sub(r"[^\w.-]", "-", agent)  # a model's name may hold more than file names do
    path = folder / "traces" / f"{entry.raw_task_id}.{agent}.{attempt}.har"
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
    """Return where the run's site was: the origin of its first page."""
    pages = trace.documents or trace.relevant
    return {placeholder(SITE): (origin(pages[0].url),)} if pages else {}


def only(task: Task, family: CheckFamily) -> Task:
    """Return the task with the checks that a family is made of."""
    kept = tuple(
        msgspec.structs.replace(check, last_event_only=True, changing_urls=())
        if family.last and isinstance(check, NetworkCheck)
        else check
        for check in task.eval
        if isinstance(check, family.checks)
    )
    return msgspec.structs.replace(task, eval=kept)


def _asked(task: Task, run: RecordedRun, kind: str) -> bool:
    """Tell whether a kind of check says something of its own about the task."""
    if kind in _OF_ANSWERS:
        kinds = {fact["kind"] for fact in run.facts["answers"]}
        return bool(kinds) and ("code" in kinds) is kind.endswith("code")
    if kind in _OF_CHANGES:
        return bool(task.network_checks)
    return True


def _truth(run: RecordedRun, kind: str) -> bool | None:
    if kind in _OF_ANSWERS:
        rights = [fact["right"] for fact in run.facts["answers"]]
        return False if False in rights else None if None in rights else True
    if kind in _OF_CHANGES:
        return all(predicate["holds"] for predicate in run.facts["predicates"])
    return None if run.unreported else run.success
