"""Record agents in the environments: ``trajudge env record --cases CASES --out DIR``.

Every agent does every case (``trajudge env generate`` makes them) in real Chromium:
scripted agents with known behaviour, or with ``--model`` any model. What is written:
``trajectories.jsonl.gz`` with ``images/`` (``--data trajudge:DIR``), ``labels.jsonl`` (annotations
that follow from the final state), ``facts.jsonl`` (what they rest on), ``traces/`` (HAR files). A
recording that was killed goes on where it was, and asks a model nothing twice; runs that failed
are told (exit code 1) and tried again by the same command. The same seed gives the same text;
pictures may differ between versions of Chromium.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from trajudge.environments.options import OLD, add_cases, add_seed
from trajudge.eval.runs.options import CALL_OPTIONS, call_options
from trajudge.trajectories.util.exits import FAILURES, OK, Parser, user_errors
from trajudge.trajectories.util.options import count, read_settings

# Those that this command does not take, or takes for its agents as well.
_NOT_HERE = {"seed", "concurrency", "dry-run", "yes"}


def parser() -> argparse.ArgumentParser:
    """Make the command's parser."""
    made = Parser(
        prog="trajudge env record",
        description=__doc__,
        old={**OLD, "--agents": "--agent", "--see": "--representation"},
    )
    add = made.add_argument
    add_cases(made)
    add("--out", type=Path, default=Path("recorded"), metavar="DIR", help="folder to write")
    add(
        "--agent",
        nargs="+",
        action="extend",
        metavar="NAME",
        help="a scripted agent by name or behaviour, or all; may be repeated (default: all, none "
        "with --model)",
    )
    add_seed(made)
    add("--workers", type=count, default=1, metavar="N", help="browsers at once (default: 1)")
    group = made.add_argument_group("a model as agent")
    add = group.add_argument
    add("--model", metavar="NAME", help="e.g. gpt-4o, claude-..., provider/name")
    add(
        "--representation",
        choices=("axtree", "screenshot", "both"),
        default="axtree",
        help="what the model sees of a page (default: axtree)",
    )
    add("--attempts", type=count, default=1, metavar="N", help="runs per case (default: 1)")
    call_options(group, *(name for name in CALL_OPTIONS if name not in _NOT_HERE))
    return made


@user_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Record the agents; return 1 if a run failed."""
    options = parser().parse_args(arguments)
    from trajudge.environments.agents.protocol import Halted  # noqa: PLC0415 - --help needs none
    from trajudge.environments.agents.settings import model_side  # noqa: PLC0415
    from trajudge.environments.recording.campaign import Model, RecordingPlan, record, table  # noqa: PLC0415
    from trajudge.environments.recording.recorder import run_name  # noqa: PLC0415
    from trajudge.environments.recording.settings import (  # noqa: PLC0415
        RecordConfig,
        agents_of,
        model_of,
    )
    from trajudge.trajectories.represent import Representation  # noqa: PLC0415
    from trajudge.trajectories.util.tables import print_tables  # noqa: PLC0415
    from trajudge.trajectories.util.terminal import one_line, terminal_console  # noqa: PLC0415

    config = read_settings(RecordConfig, options)
    settings, seen = model_of(config), Representation(config.representation)
    agents = agents_of(config)
    model = Model(model_side(settings), seen, config.attempts) if settings else None
    try:
        plan = RecordingPlan(config.cases, agents, config.seed, model)
        counts, failed = record(plan, config.out, config.workers)
    except Halted as halted:
        sys.stderr.write(f"stopped: {one_line(str(halted))}; the same command resumes\n")
        return FAILURES
    print_tables([table(counts)])
    for job, reason in failed:
        sys.stderr.write(f"failed: {one_line(f'{run_name(job)}: {reason}')}\n")
    if failed:
        sys.stderr.write(f"{len(failed)} runs failed: the same command tries them again\n")
        return FAILURES
    terminal_console().print(f"judge them with  trajudge judge --data trajudge:{config.out}")
    return OK


if __name__ == "__main__":
    sys.exit(main())
