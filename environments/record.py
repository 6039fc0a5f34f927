"""Record agents in the environments: ``trajudge env record --cases CASES --out DIR``.

Every agent does every case (``trajudge env generate`` makes them) in real Chromium: scripted agents
with known behaviour, or with ``--model`` any model. What is written: ``trajectories.jsonl.gz`` with
``images/`` (``--data trajudge:DIR``), ``labels.jsonl`` (annotations that follow from the final
state), ``facts.jsonl`` (what they rest on), ``traces/`` (HAR files). A recording that was killed
goes on where it was, and asks a model nothing twice; runs that failed are told (exit code 1) and
tried again by the same command. The same seed gives the same text but for operation codes, whose
key is drawn for the recording; pictures may differ between versions of Chromium.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from trajudge.environments.options import OLD, add_cases, add_model_agent, add_seed
from trajudge.trajectories.util.exits import FAILURES, OK, Parser, user_errors
from trajudge.trajectories.util.options import count, read_settings


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
    add_model_agent(made)
    first = "cases out agent model base-url attempts representation max-cost workers seed"
    return made.show_first(*first.split())


@user_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Record the agents; return 1 if a run failed."""
    options = parser().parse_args(arguments)
    from trajudge.environments.agents.protocol import Halted  # noqa: PLC0415 - --help needs none
    from trajudge.environments.recording.campaign import record, table  # noqa: PLC0415
    from trajudge.environments.recording.recorder import run_name  # noqa: PLC0415
    from trajudge.environments.recording.settings import RecordConfig, plan_of  # noqa: PLC0415
    from trajudge.trajectories.util import tables  # noqa: PLC0415
    from trajudge.trajectories.util.terminal import one_line  # noqa: PLC0415

    config = read_settings(RecordConfig, options)
    try:
        counts, failed = record(plan_of(config), config.out, config.workers)
    except Halted as halted:
        sys.stderr.write(f"stopped: {one_line(str(halted))}; the same command resumes\n")
        return FAILURES
    runs = sum(row["runs"] for row in counts.values())
    rest = f"judge them with  trajudge judge --data trajudge:{config.out}"
    again = f"{len(failed)} runs failed: the same command tries them again"
    found = [f"{runs} runs recorded by {len(counts)} agents", *([again] if failed else [])]
    sys.stdout.write(tables.first_screen(found, [table(counts)], rest=rest, more="labels.jsonl"))
    reasons = [f"failed: {run_name(job)}: {reason}" for job, reason in failed]
    told = tables.first_warnings(
        reasons, tables.screen_width(), rest="the same command tries all again"
    )
    sys.stderr.writelines(f"{line}\n" for line in told)
    return FAILURES if failed else OK


if __name__ == "__main__":
    sys.exit(main())
