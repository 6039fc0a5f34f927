"""``python -m rules.naive``: what agents that look at nothing score on a set of tasks.

    python -m rules.naive --tasks test.raw.json
    python -m rules.naive --tasks test.raw.json --answers gpt=answers.json --out naive/

Any evaluator of ``rules.verdict`` can be scored from Python: see ``scores``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from trajudge.rules.blind.agents import AuditedTask, NaiveAgent, NoAnswer, recorded
from trajudge.rules.output import first, progress_line, show, write_csv, write_json
from trajudge.rules.reading import decode, read_bytes
from trajudge.rules.suites import Audit, audit_options, opened
from trajudge.rules.verdict import Evaluator, Outcome
from trajudge.trajectories.util.errors import UserError
from trajudge.trajectories.util.exits import DONE, Parser, user_errors
from trajudge.trajectories.util.terminal import one_line

TaskT = TypeVar("TaskT", bound=AuditedTask)
Progress = Callable[[str, int, int], None]


class Score(msgspec.Struct, frozen=True, kw_only=True):
    """What one agent scored: the tasks it passed, and how many could not be judged."""

    agent: str
    tasks: int
    passed: tuple[int | str, ...]
    unknown: int

    @property
    def rate(self) -> float:
        """The share of all tasks passed; an unknown is no success."""
        return len(self.passed) / self.tasks if self.tasks else 0.0


def scores(
    tasks: Sequence[TaskT],
    evaluator: Evaluator[TaskT, Any],
    agents: Iterable[NaiveAgent],
    trace_of: Callable[[TaskT], Any] = lambda task: None,
    progress: Progress = lambda agent, done, of: None,
) -> tuple[Score, ...]:
    """The score of each agent on all tasks, in the agents' order.

    ``trace_of`` gives the trace of a run of that task that did nothing. An agent is asked only
    for the tasks given; ``progress`` is told after each task.
    """
    return tuple(_score(tasks, evaluator, agent, trace_of, progress) for agent in agents)


def _score(
    tasks: Sequence[TaskT],
    evaluator: Evaluator[TaskT, Any],
    agent: NaiveAgent,
    trace_of: Callable[[TaskT], Any],
    progress: Progress,
) -> Score:
    passed: list[int | str] = []
    unknown = 0
    for done, task in enumerate(tasks, start=1):
        outcome = _outcome(task, evaluator, agent, trace_of)
        if outcome is Outcome.PASS:
            passed.append(task.task_id)
        unknown += outcome is Outcome.UNKNOWN
        progress(agent.name, done, len(tasks))
    return Score(agent=agent.name, tasks=len(tasks), passed=tuple(passed), unknown=unknown)


def _outcome(
    task: TaskT,
    evaluator: Evaluator[TaskT, Any],
    agent: NaiveAgent,
    trace_of: Callable[[TaskT], Any],
) -> Outcome:
    try:
        answer = agent.answer(task)
    except NoAnswer:
        return Outcome.UNKNOWN
    return evaluator.evaluate(task, answer, trace_of(task)).outcome


def union(all_scores: Sequence[Score]) -> Score:
    """What the agents pass together: a task counts once. ``unknown`` is the smallest of theirs."""
    passed = dict.fromkeys(task_id for score in all_scores for task_id in score.passed)
    return Score(
        agent="union",
        tasks=max((score.tasks for score in all_scores), default=0),
        passed=tuple(sorted(passed, key=_by_number)),
        unknown=min((score.unknown for score in all_scores), default=0),
    )


def _by_number(task_id: int | str) -> tuple[bool, int, str]:
    return (isinstance(task_id, str), 0 if isinstance(task_id, str) else task_id, str(task_id))


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    made = Parser(
        prog="python -m rules.naive",
        description=__doc__.split("\n\n")[0],
        epilog="exit codes: 0 done, 2 a mistake in the call or its files, 130 interrupted",
        allow_abbrev=False,
    )
    audit_options(made)
    made.add_argument(
        "--answers",
        action="append",
        default=[],
        metavar="NAME=FILE",
        help="one more agent, such as a model without a browser: a JSON object of answers by "
        "task id; may be repeated",
    )
    made.add_argument("--out", type=Path, metavar="DIR", help="write naive.json and naive.csv")
    return made.parse_args(argv)


def _recorded(option: str) -> NaiveAgent:
    name, separator, file = option.partition("=")
    if not (name and separator and file):
        raise UserError(f"--answers {option}: write NAME=FILE, such as gpt=answers.json")
    return recorded(name, decode(read_bytes(Path(file)), dict[str, Any], file))


@user_errors
def main(argv: Sequence[str] | None = None) -> int:
    """Score the naive agents and show, and with ``--out`` write, what they win."""
    options = _options(argv)
    compare(opened(options), [_recorded(option) for option in options.answers], options.out)
    return DONE


def compare(audit: Audit, others: Sequence[NaiveAgent], out: Path | None) -> tuple[Score, ...]:
    """The scores of the scripted agents of the tasks' kind, of ``others``, and of the union; shown,
    and with ``out`` written. Raises UserError."""
    rules = audit.suite
    agents = [*rules.agents, *others]
    evaluator = rules.evaluator(audit.mode)
    made = scores(audit.tasks, evaluator, agents, rules.idle_trace, progress_line())
    listed = [*made, union(made)]
    if out:
        _write(out, rules.kind, audit.mode, listed)
    _show(audit.path, audit.mode, listed)
    if out:
        sys.stdout.write(f"written: {one_line(str(out / 'naive.json'))} and naive.csv\n")
    return tuple(listed)


def _show(path: Path, mode: str, listed: Sequence[Score]) -> None:
    rows = [
        (score.agent, len(score.passed), score.rate, score.unknown, first(score.passed))
        for score in listed
    ]
    title = f"{path.name}: {listed[-1].tasks} tasks, {mode} rules, agents that look at nothing"
    show(title, ("agent", "passed", "rate", "unknown", "tasks"), rows)


def _write(out: Path, kind: str, mode: str, listed: Sequence[Score]) -> None:
    agents = [
        {**msgspec.structs.asdict(score), "rate": score.rate, "passed": list(score.passed)}
        for score in listed
    ]
    write_json(out / "naive.json", {"kind": kind, "mode": mode, "agents": agents})
    rows = [(score.agent, task_id) for score in listed for task_id in score.passed]
    write_csv(out / "naive.csv", ("agent", "task_id"), rows)


if __name__ == "__main__":
    sys.exit(main())
