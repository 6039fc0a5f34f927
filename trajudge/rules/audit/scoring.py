"""Score blind agents: what an agent wins that never sees a page, the rules give away."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from trajudge.rules.audit.agents import AuditedTask, BlindAgent, NoAnswer
from trajudge.rules.audit.suites import TaskSet
from trajudge.rules.output import first, write_csv, write_json
from trajudge.rules.verdict import Evaluator, Outcome
from trajudge.util.tables import Table, first_screen
from trajudge.util.terminal import progress_bar

TaskT = TypeVar("TaskT", bound=AuditedTask)
Progress = Callable[[str, int, int], None]


class BlindScore(msgspec.Struct, frozen=True, kw_only=True):
    """The tasks that one agent passed, and how many could not be judged."""

    agent: str
    tasks: int
    passed: tuple[int | str, ...]
    unknown: int

    @property
    def rate(self) -> float:
        """Divide the passed tasks by all tasks; an unknown is no success."""
        return len(self.passed) / self.tasks if self.tasks else 0.0


def blind_scores(
    tasks: Sequence[TaskT],
    evaluator: Evaluator[TaskT, Any],
    agents: Iterable[BlindAgent],
    trace_of: Callable[[TaskT], Any] = lambda task: None,
    *,
    progress: Progress = lambda agent, done, of: None,
    start_trace_of: Callable[[TaskT], Any] = lambda task: None,
) -> tuple[BlindScore, ...]:
    """Score each agent on all tasks, in the agents' order.

    ``trace_of`` gives the trace of a run of that task that did nothing, ``start_trace_of`` of one
    that opened the start page; each is asked for once a task. An agent is asked only for the tasks
    given; ``progress`` is told after each task.
    """
    traces: dict[bool, list[Any]] = {}
    made = []
    for agent in agents:
        opens = agent.opens_start_page
        if opens not in traces:
            traces[opens] = [(start_trace_of if opens else trace_of)(task) for task in tasks]
        made.append(_score(tasks, evaluator, agent, traces[opens], progress))
    return tuple(made)


def _score(
    tasks: Sequence[TaskT],
    evaluator: Evaluator[TaskT, Any],
    agent: BlindAgent,
    traces: Sequence[Any],
    progress: Progress,
) -> BlindScore:
    passed: list[int | str] = []
    unknown = 0
    for done, (task, trace) in enumerate(zip(tasks, traces, strict=True), start=1):
        outcome = _outcome(task, evaluator, agent, trace)
        if outcome is Outcome.PASS:
            passed.append(task.task_id)
        unknown += outcome is Outcome.UNKNOWN
        progress(agent.name, done, len(tasks))
    return BlindScore(agent=agent.name, tasks=len(tasks), passed=tuple(passed), unknown=unknown)


def _outcome(
    task: TaskT,
    evaluator: Evaluator[TaskT, Any],
    agent: BlindAgent,
    trace: Any,
) -> Outcome:
    try:
        answer = agent.answer(task)
    except NoAnswer:
        return Outcome.UNKNOWN
    return evaluator.evaluate(task, answer, trace).outcome


def union(all_scores: Sequence[BlindScore]) -> BlindScore:
    """Score the agents together: a task counts once. ``unknown`` is the smallest of theirs."""
    passed = dict.fromkeys(task_id for score in all_scores for task_id in score.passed)
    return BlindScore(
        agent="union",
        tasks=max((score.tasks for score in all_scores), default=0),
        passed=tuple(sorted(passed, key=_by_number)),
        unknown=min((score.unknown for score in all_scores), default=0),
    )


def _by_number(task_id: int | str) -> tuple[bool, int, str]:
    return (isinstance(task_id, str), 0 if isinstance(task_id, str) else task_id, str(task_id))


def compare(
    tasks: TaskSet, others: Sequence[BlindAgent], out: Path | None
) -> tuple[BlindScore, ...]:
    """Score and show the scripted agents of the tasks' dialect, ``others``, and the union.

    The scores are then written into the folder ``out`` where there is one. Raises UserError.
    """
    rules = tasks.suite
    agents = [*rules.agents, *others]
    evaluator = rules.evaluator(tasks.mode)
    with progress_bar() as show:
        made = blind_scores(
            tasks.tasks,
            evaluator,
            agents,
            rules.idle_trace,
            progress=show,
            start_trace_of=rules.start_trace,
        )
    listed = [*made, union(made)]
    sys.stdout.write(blind_screen(tasks.path, tasks.mode, listed, out))
    if out:
        _write(out, rules.dialect, tasks.mode, listed)
    return tuple(listed)


def blind_screen(
    path: Path, mode: str, listed: Sequence[BlindScore], out: Path | None, width: int | None = None
) -> str:
    """Lay out the scores in at most 40 lines; the union, last in ``listed``, stands first."""
    together = listed[-1]
    least = "at least " if together.unknown else ""
    finding = (
        f"{path.name}, {mode} rules: agents that never see a page pass {least}"
        f"{len(together.passed)} of "
        f"{together.tasks} tasks ({100 * together.rate:.1f} %)"
    )
    rows = [
        (
            score.agent,
            first(score.passed),
            str(len(score.passed)),
            f"{100 * score.rate:.1f}",
            str(score.unknown),
        )
        for score in [together, *listed[:-1]]
    ]
    table = Table("", ("agent", "tasks passed", "passed", "%", "unknown"), rows)
    rest = f"All tasks: {out / 'naive.json'} and naive.csv" if out else "All tasks: --out DIR"
    return first_screen([finding], [table], rest=rest, more="--out DIR", width=width)


def _write(out: Path, dialect: str, mode: str, listed: Sequence[BlindScore]) -> None:
    agents = [
        {**msgspec.structs.asdict(score), "rate": score.rate, "passed": list(score.passed)}
        for score in listed
    ]
    write_json(out / "naive.json", {"dialect": dialect, "mode": mode, "agents": agents})
    rows = [(score.agent, task_id) for score in listed for task_id in score.passed]
    write_csv(out / "naive.csv", ("agent", "task_id"), rows)
