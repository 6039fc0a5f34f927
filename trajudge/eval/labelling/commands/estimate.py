"""``trajudge label estimate``: the judges' precision from the labels of a queue."""

from __future__ import annotations

import argparse
import sys

from trajudge.eval.labelling.options import queue_parser
from trajudge.eval.score import add_format
from trajudge.util.commands import OK, command

_DESCRIPTION = """\
Estimate every judge's precision over all trajectories that a queue was drawn from, with 95 %
limits: from the labels and what the judges say of the rest ("corrected"), and from the labels
alone. Both weight a label by one over its inclusion probability, so that it does not matter what
the queue preferred. The limits hold for these trajectories, not for other tasks.

  trajudge label estimate QUEUE
"""


def parser() -> argparse.ArgumentParser:
    """Build the command's options."""
    options = queue_parser("estimate", _DESCRIPTION)
    add_format(options, "table")
    return options


@command(parser)
def main(options: argparse.Namespace) -> int:
    """Estimate from the queue that the command line names and return the exit code."""
    from trajudge.annotations.labelling.database import LabelStore  # noqa: PLC0415 - --help needs none of these
    from trajudge.eval.labelling.results import estimates_table, queue_estimates  # noqa: PLC0415
    from trajudge.util.tables import render  # noqa: PLC0415

    store = LabelStore(options.queue)
    estimates = queue_estimates(store)
    store.close()
    sys.stdout.write(render([estimates_table(estimates)], options.format))
    return OK


if __name__ == "__main__":
    sys.exit(main())
