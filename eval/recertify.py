"""``trajudge run recertify``: certify a choice again for other agents, with few labels."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from trajudge.trajectories.util.exits import FAILURES, OK, Parser, user_errors
from trajudge.trajectories.util.options import count, read_settings, whole

_DESCRIPTION = """\
A decision of trajudge select holds for the agents whose runs were labelled for it. For others draw
a sample of the runs that trajudge accept took, label them in order, and test after every label:

  trajudge run recertify --decision selections/0a1b2c3d --accepted accepted --out again
  trajudge run recertify --sample again --annotations trajudge:labels.jsonl

The first call writes sample.jsonl: tasks in random order, one accepted run of each, with its
inclusion probability and weight. The second reads labels in that order, up to the first run
without one, and once the target is shown, or shown to be missed, writes decision.json for these
agents alone. It may be repeated as labels come: the error is at most 1 - confidence however often
one looks. Assumed is that the tasks are independent draws from those the judge will be used on;
runs of one task may depend on each other in any way, for only one of each is labelled.
"""
_EPILOG = (
    "exit codes: 0 the sample was drawn, or the target is shown; 1 it is not (yet); 2 a mistake"
)


def parser() -> argparse.ArgumentParser:
    """Make the command's parser."""
    made = Parser(
        prog="trajudge run recertify",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = made.add_argument
    add("--decision", type=Path, metavar="DIR", help="what trajudge select wrote")
    add("--accepted", type=Path, metavar="DIR", help="what trajudge accept wrote")
    add(
        "--agent",
        action="append",
        metavar="NAME",
        help="certify for this agent; may be repeated (default: those the decision does not know)",
    )
    add("--size", type=count, metavar="N", help="runs to label (default: planned, power 0.8)")
    add("--seed", type=whole, default=0, metavar="N", help="seed of the sample (default: 0)")
    add("--out", type=Path, metavar="DIR", help="a new folder for the sample")
    add("--sample", type=Path, metavar="DIR", help="test this sample with --annotations")
    add("--annotations", metavar="KIND:PATH", help="labels of the sampled runs")
    return made


@user_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Draw the sample, or test it; return the exit code."""
    options = parser().parse_args(arguments)
    from trajudge.eval.acceptance.recertification import SAMPLE  # noqa: PLC0415
    from trajudge.eval.acceptance.recertifying import (  # noqa: PLC0415 - --help needs none of these
        draw_sample,
        outcome_text,
        recertify,
        sample_text,
    )
    from trajudge.eval.acceptance.settings import SampleConfig  # noqa: PLC0415
    from trajudge.trajectories.util.errors import UserError  # noqa: PLC0415

    drawing = (options.decision, options.accepted, options.out)
    if options.sample is None:
        if not all(drawing) or options.annotations is not None:
            raise UserError(
                "draw a sample with --decision DIR --accepted DIR --out DIR, or test one with "
                "--sample DIR --annotations KIND:PATH"
            )
        config = read_settings(SampleConfig, options)
        sys.stdout.write(sample_text(draw_sample(config), config.out, config.out / SAMPLE))
        return OK
    if any(drawing) or options.annotations is None:
        raise UserError("--sample DIR takes --annotations KIND:PATH, and nothing else")
    made, found = recertify(options.sample, options.annotations)
    sys.stdout.write(outcome_text(made, found))
    if found.verdict != "undecided":
        sys.stdout.write(f"the decision for these agents is in {options.sample}\n")
    return OK if found.verdict == "certified" else FAILURES


if __name__ == "__main__":
    sys.exit(main())
