"""Ask a model that sees no page, and score its answers by the tasks' rules."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from trajudge.eval.analysis.blind_model import ModelAnswers, ask_all
from trajudge.eval.runs.workers import Interrupted, run_interruptible
from trajudge.judges.calls.handle import ModelHandle
from trajudge.rules.audit.scoring import BlindScore, compare
from trajudge.rules.audit.suites import TaskSet
from trajudge.rules.output import write_json
from trajudge.rules.reading import decode, read_bytes
from trajudge.trajectories.util.atomic import check_folder
from trajudge.trajectories.util.exits import FAILURES, INTERRUPTED, OK
from trajudge.trajectories.util.terminal import one_line

SUBSTRING = "response_substring"
_SHOWN = 3


def ask_and_score(tasks: TaskSet, handle: ModelHandle, out: Path) -> int:
    """Ask the model for every task, keep its answers in ``out`` and score them.

    Returns the exit code. Raises UserError for what ends the run as a whole.
    """
    check_folder(out, "--out")
    answers = run_interruptible(ask_all(tasks, handle, _paid(out / "manifest.json")))
    write_json(out / "answers.json", answers.answers)
    write_json(out / "manifest.json", answers.manifest)
    if isinstance(answers.halted, Interrupted):
        sys.stderr.write(
            f"interrupted: {len(answers.answers)} of {len(tasks.tasks)} tasks are answered; the "
            "same command goes on from there\n"
        )
        return INTERRUPTED
    *_, model, _union = compare(tasks, [answers.agent], out)
    _say_vulnerable(tasks, model)
    _say(answers, len(tasks.tasks), out)
    return OK if len(answers.answers) == len(tasks.tasks) else FAILURES


def _paid(manifest: Path) -> float:
    """Read what earlier sessions of this folder paid, in dollars: it counts for ``--max-cost``.
    Raises UserError for a damaged file."""

    if not manifest.exists():
        return 0.0
    earlier = decode(read_bytes(manifest), dict[str, Any], manifest).get("paid")
    return float(earlier) if isinstance(earlier, int | float) else 0.0


def _say_vulnerable(tasks: TaskSet, model: BlindScore) -> None:
    """Print the paper's second rate (Table 2), on tasks that look for a substring in the answer."""
    if SUBSTRING not in tasks.suite.categories:
        return
    guessable = {
        finding.task_id
        for finding in tasks.suite.lint(tasks.tasks)
        if finding.category == SUBSTRING
    }
    if guessable:
        won = len(guessable & set(model.passed))
        sys.stdout.write(
            f"{model.agent} wins {won} of the {len(guessable)} tasks whose answer is searched for "
            f"a substring ({won / len(guessable):.1%})\n"
        )


def _say(replies: ModelAnswers, tasks: int, out: Path) -> None:
    calls = replies.manifest
    cost = "unknown" if calls["paid"] is None else f"${calls['paid']:.4f}"
    sys.stdout.write(
        f"{len(replies.answers)} of {tasks} tasks answered, {calls['cached']} from the cache; paid "
        f"{cost}; answers: {one_line(str(out / 'answers.json'))}\n"
    )
    for task_id, reason in list(replies.failures.items())[:_SHOWN]:
        sys.stderr.write(f"task {task_id}: {one_line(reason)}\n")
    if replies.halted is not None:
        sys.stderr.write(f"{one_line(str(replies.halted))}\n")
    if len(replies.answers) < tasks:
        sys.stderr.write(
            f"{tasks - len(replies.answers)} answers were not obtained and count as unknown: the "
            "same command asks for them again\n"
        )
