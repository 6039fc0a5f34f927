"""Record agents in the environments: ``trajudge env record --cases CASES --out DIR``.

Every agent does every case (``trajudge env generate`` makes them) in real Chromium: scripted agents
with known behaviour, or with ``--model`` any model. DIR gets ``trajectories.jsonl.gz`` with
``images/`` (``--data trajudge:DIR``), ``labels.jsonl`` (annotations that follow from the final
state), ``facts.jsonl`` (what they rest on), ``traces/`` (HAR files). The same command continues a
recording that was killed, without repeating a model's call, and repeats runs that failed (exit
code 1). With ``--faults`` every run is recorded once more for each fault of the plan, behind a
proxy that injects it; ``trajudge proxy results`` compares the folders. The same seed gives the same
text except for operation codes, whose key is drawn for the recording; pictures may differ between
versions of Chromium.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from trajudge.environments.options import (
    add_cases,
    add_conditions,
    add_model_agent,
    add_seed,
)
from trajudge.util.commands import (
    FAILURES,
    OK,
    OptionAdder,
    Parser,
    command,
    read_settings,
    workers,
)


def parser() -> argparse.ArgumentParser:
    """Make the command's parser."""
    made = Parser(
        prog="trajudge env record",
        description=__doc__,
    )
    add = OptionAdder(made)
    add_cases(made)
    add.output_folder("--out", "folder to write", default=Path("recorded"))
    add(
        "--agent",
        nargs="+",
        action="extend",
        metavar="NAME",
        help="a scripted agent by name or behaviour, or all; may be repeated (default: all, none "
        "with --model)",
    )
    add_conditions(made)
    add_seed(made)
    add.number("--workers", "browsers at once (default: 1)", workers, default=1)
    add_model_agent(made)
    first = "cases out agent model base-url attempts representation max-cost workers seed"
    return made.show_first(*first.split())


@command(parser)
def main(options: argparse.Namespace) -> int:
    """Record the agents; return 1 if a run failed."""
    from trajudge.environments.agents.protocol import Halted  # noqa: PLC0415 - --help needs none
    from trajudge.environments.recording.screens import failure_lines, recorded  # noqa: PLC0415
    from trajudge.environments.recording.settings import RecordConfig  # noqa: PLC0415
    from trajudge.util.terminal import one_line  # noqa: PLC0415

    config = read_settings(RecordConfig, options)
    try:
        screen, failed = recorded(config)
    except Halted as halted:
        sys.stderr.write(f"stopped: {one_line(str(halted))}; the same command resumes\n")
        return FAILURES
    sys.stdout.write(screen)
    sys.stderr.writelines(f"{line}\n" for line in failure_lines(failed))
    return FAILURES if failed else OK


if __name__ == "__main__":
    sys.exit(main())
