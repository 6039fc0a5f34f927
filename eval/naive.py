"""``python -m eval.naive``: what a model wins that sees nothing but the tasks' words.

    python -m eval.naive --tasks test.raw.json --model gpt-4o
    python -m eval.naive --tasks webarena-verified.json --model m --base-url http://127.0.0.1:8000/v1

The model answers every task without a browser. Its answers are kept (``answers.json``, which
``rules.naive --answers`` reads) and scored by the tasks' own rules, beside the scripted agents that
look at nothing. Replies are kept in the cache: a run that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trajudge.eval.runs.options import call_config, call_options
from trajudge.trajectories.util.exits import DONE, FAILURES, INTERRUPTED, Parser, user_errors
from trajudge.trajectories.util.terminal import one_line

if TYPE_CHECKING:
    from trajudge.eval.analysis.naive_model import Asked
    from trajudge.eval.runs.models import ModelHandle
    from trajudge.rules.naive import Score
    from trajudge.rules.suites import Audit

SUBSTRING = "response_substring"
_SHOWN = 3


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    from trajudge.rules.suites import audit_options  # noqa: PLC0415

    made = Parser(
        prog="python -m eval.naive",
        description=__doc__.split("\n\n")[0],
        epilog="exit codes: 0 done, 1 some answers were not obtained, 2 a mistake in the call or "
        "its files, 130 interrupted (the same command goes on from there)",
        allow_abbrev=False,
    )
    audit_options(made)
    made.add_argument("--model", required=True, metavar="NAME", help="the model to ask")
    made.add_argument("--limit", type=int, metavar="N", help="only the first N tasks")
    made.add_argument("--out", type=Path, metavar="DIR", help="default: runs/naive-MODEL")
    call_options(made.add_argument_group("the calls"))
    return made.parse_args(argv)


@user_errors
def main(argv: Sequence[str] | None = None) -> int:
    """Ask the model, score its answers; the exit code (``trajectories.util.exits``)."""
    options = _options(argv)
    from trajudge.eval.analysis.naive_model import predict  # noqa: PLC0415 - --help needs none of these
    from trajudge.eval.runs.models import single_model  # noqa: PLC0415
    from trajudge.eval.runs.pricing import confirm, described  # noqa: PLC0415
    from trajudge.rules.suites import opened  # noqa: PLC0415
    from trajudge.trajectories.util.errors import UserError  # noqa: PLC0415

    if options.limit is not None and options.limit < 1:
        raise UserError(f"--limit {options.limit}: must be at least 1: leave it out for all tasks")
    audit = opened(options)
    audit = audit._replace(tasks=audit.tasks[: options.limit])
    handle = single_model(options.model, call_config(options))
    if options.dry_run:
        found = asyncio.run(predict(audit, handle))
        sys.stdout.write(
            described(f"model:{handle.model}", found, "tasks", model=handle.model) + "\n"
        )
        return DONE
    if not (options.yes or options.max_cost is not None):
        cost = asyncio.run(predict(audit, handle)).cost
        if not confirm(cost):
            sys.stderr.write("not started: nothing was asked\n")
            return INTERRUPTED
    return _ask_and_score(audit, handle, options.out or _folder(handle.model))


def _folder(model: str) -> Path:
    return Path("runs") / ("naive-" + re.sub(r"[^\w.-]+", "-", model))


def _paid(manifest: Path) -> float:
    """What earlier sessions of this folder paid, in dollars: it counts for ``--max-cost``. Raises
    UserError for a damaged file."""
    from trajudge.rules.reading import decode, read_bytes  # noqa: PLC0415

    if not manifest.exists():
        return 0.0
    earlier = decode(read_bytes(manifest), dict[str, Any], manifest).get("paid")
    return float(earlier) if isinstance(earlier, int | float) else 0.0


def _ask_and_score(audit: Audit, handle: ModelHandle, out: Path) -> int:
    from trajudge.eval.analysis.naive_model import ask_all  # noqa: PLC0415
    from trajudge.eval.runs.workers import Interrupted, run_interruptible  # noqa: PLC0415
    from trajudge.rules.naive import compare  # noqa: PLC0415
    from trajudge.rules.output import write_json  # noqa: PLC0415

    asked = run_interruptible(ask_all(audit, handle, _paid(out / "manifest.json")))
    write_json(out / "answers.json", asked.answers)
    write_json(out / "manifest.json", asked.manifest)
    if isinstance(asked.halted, Interrupted):
        sys.stderr.write(
            f"interrupted: {len(asked.answers)} of {len(audit.tasks)} tasks are answered; the same "
            "command goes on from there\n"
        )
        return INTERRUPTED
    *_, model, _union = compare(audit, [asked.agent], out)
    _say_vulnerable(audit, model)
    _say(asked, len(audit.tasks), out)
    return DONE if len(asked.answers) == len(audit.tasks) else FAILURES


def _say_vulnerable(audit: Audit, model: Score) -> None:
    """The paper's second rate (Table 2): on tasks whose answer is searched for a substring."""
    if SUBSTRING not in audit.suite.categories:
        return
    found = {
        finding.task_id
        for finding in audit.suite.lint(audit.tasks)
        if finding.category == SUBSTRING
    }
    if found:
        won = len(found & set(model.passed))
        sys.stdout.write(
            f"{model.agent} wins {won} of the {len(found)} tasks whose answer is searched for a "
            f"substring ({won / len(found):.1%})\n"
        )


def _say(asked: Asked, tasks: int, out: Path) -> None:
    calls = asked.manifest
    cost = "unknown" if calls["paid"] is None else f"${calls['paid']:.4f}"
    sys.stdout.write(
        f"{len(asked.answers)} of {tasks} tasks answered, {calls['cached']} from the cache; paid "
        f"{cost}; answers: {one_line(str(out / 'answers.json'))}\n"
    )
    for task_id, reason in list(asked.failures.items())[:_SHOWN]:
        sys.stderr.write(f"task {task_id}: {one_line(reason)}\n")
    if asked.halted is not None:
        sys.stderr.write(f"{one_line(str(asked.halted))}\n")
    if len(asked.answers) < tasks:
        sys.stderr.write(
            f"{tasks - len(asked.answers)} answers were not obtained and count as unknown: the "
            "same command asks for them again\n"
        )


if __name__ == "__main__":
    sys.exit(main())
