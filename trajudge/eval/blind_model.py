"""``trajudge rules blind-model``: score a model that sees nothing but the tasks' words.

    trajudge rules blind-model --tasks test.raw.json --model gpt-4o
    trajudge rules blind-model --tasks webarena-verified.json --model m --base-url http://127.0.0.1:8000/v1

The model answers every task without a browser. Its answers are kept (``answers.json``, which
``trajudge rules blind --answers`` reads) and scored by the tasks' own rules, beside the scripted
blind agents. Replies are kept in the cache: an interrupted run resumes.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

from trajudge.judges.calls.options import call_options
from trajudge.util.commands import INTERRUPTED, OK, OptionAdder, command, read_settings


def parser() -> argparse.ArgumentParser:
    """Make the command's parser."""
    from trajudge.rules.options import add_task_options, rules_parser  # noqa: PLC0415

    made = rules_parser(
        "blind-model",
        __doc__,
        "0 done, 1 some answers were not obtained, 2 a mistake in the call or "
        "its files, 130 interrupted (the same command goes on from there)",
    )
    add_task_options(made)
    add = OptionAdder(made)
    add.value("--model", "NAME", "the model to ask", required=True)
    add.number("--limit", "at most N tasks")
    add.output_folder("--out", "the run's folder (default: runs/naive-MODEL)")
    call_options(made.add_argument_group("the calls"))
    first = "tasks dialect model base-url limit concurrency max-cost dry-run yes out"
    return made.show_first(*first.split())


@command(parser)
def main(options: argparse.Namespace) -> int:
    """Ask the model, score its answers and return the exit code."""
    import asyncio  # noqa: PLC0415

    from trajudge.eval.analysis.blind_model import ask_and_score, predict  # noqa: PLC0415
    from trajudge.eval.runs.pricing import confirm, described  # noqa: PLC0415
    from trajudge.judges.calls.handle import single_model  # noqa: PLC0415
    from trajudge.judges.calls.settings import CallConfig  # noqa: PLC0415
    from trajudge.rules.audit.suites import open_tasks  # noqa: PLC0415

    tasks = open_tasks(options.tasks, options.dialect, options.mode)
    tasks = tasks._replace(tasks=tasks.tasks[: options.limit])
    handle = single_model(options.model, read_settings(CallConfig, options))
    if options.dry_run:
        found = asyncio.run(predict(tasks, handle))
        sys.stdout.write(
            described(f"model:{handle.model}", found, "tasks", model=handle.model) + "\n"
        )
        return OK
    if not (options.yes or options.max_cost is not None):
        cost = asyncio.run(predict(tasks, handle)).cost
        if not confirm(cost):
            sys.stderr.write("cancelled; no model calls were made\n")
            return INTERRUPTED
    return ask_and_score(tasks, handle, options.out or _folder(handle.model))


def _folder(model: str) -> Path:
    return Path("runs") / ("naive-" + re.sub(r"[^\w.-]+", "-", model))


if __name__ == "__main__":
    sys.exit(main())
