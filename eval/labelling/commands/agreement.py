"""``trajudge label agreement``: how far the people of a queue agree."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from trajudge.eval.reporting.score_options import add_format
from trajudge.trajectories.util.exits import OK, TextParser, command

_DESCRIPTION = """\
Measure how far the annotators of a queue agree: the share of equal labels, Cohen's kappa and
Krippendorff's alpha, each with 95 % limits over tasks, by label and benchmark.

  trajudge label agreement QUEUE
"""


def parser() -> argparse.ArgumentParser:
    """Build the command's options."""
    options = TextParser(prog="trajudge label agreement", description=_DESCRIPTION)
    options.add_argument("queue", type=Path, metavar="QUEUE", help="folder of a queue")
    options.add_argument(
        "--stage",
        choices=("blind", "informed"),
        default="blind",
        help="the labels before, or after, the verdicts were shown (default: blind)",
    )
    add_format(options, "table")
    return options


@command(parser)
def main(options: argparse.Namespace) -> int:
    """Measure what the command line names and return the exit code."""
    from trajudge.annotations.labelling.database import LabelStore  # noqa: PLC0415 - --help needs none of these
    from trajudge.annotations.labelling.transfer import queue_annotations  # noqa: PLC0415
    from trajudge.eval.analysis.agreement import agreement_tables, label_agreements  # noqa: PLC0415
    from trajudge.trajectories.util.errors import UserError  # noqa: PLC0415
    from trajudge.trajectories.util.tables import render  # noqa: PLC0415

    store = LabelStore(options.queue)
    agreements = label_agreements(queue_annotations(store, options.stage))
    store.close()
    if not agreements:
        raise UserError(
            f"{options.queue}: no trajectory has two {options.stage} labels: agreement needs a "
            "second opinion (trajudge label build --double)"
        )
    sys.stdout.write(render(agreement_tables(agreements), options.format))
    return OK


if __name__ == "__main__":
    sys.exit(main())
