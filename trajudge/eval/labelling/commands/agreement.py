"""``trajudge label agreement``: how far the people of a queue agree."""

from __future__ import annotations

import argparse
import sys

from trajudge.eval.labelling.options import add_stage, queue_parser
from trajudge.eval.score import add_format
from trajudge.util.commands import OK, OptionAdder, command

_DESCRIPTION = """\
Measure how far the annotators of a queue agree: the share of equal labels, Cohen's kappa and
Krippendorff's alpha, each with 95 % limits over tasks, by label and benchmark.

  trajudge label agreement QUEUE
"""


def parser() -> argparse.ArgumentParser:
    """Build the command's options."""
    options = queue_parser("agreement", _DESCRIPTION)
    add_stage(options)
    OptionAdder(options).task_id()
    add_format(options, "table")
    return options


@command(parser)
def main(options: argparse.Namespace) -> int:
    """Measure what the command line names and return the exit code."""
    from trajudge.annotations.labelling.database import LabelStore  # noqa: PLC0415 - --help needs none of these
    from trajudge.annotations.labelling.transfer import queue_annotations  # noqa: PLC0415
    from trajudge.eval.analysis.agreement import (  # noqa: PLC0415
        agreement_tables,
        measure_agreement,
    )
    from trajudge.eval.store.task_goals import read_goals  # noqa: PLC0415
    from trajudge.util.errors import UserError  # noqa: PLC0415
    from trajudge.util.tables import render  # noqa: PLC0415
    from trajudge.util.terminal import one_line  # noqa: PLC0415

    store = LabelStore(options.queue)
    labels = queue_annotations(store, options.stage)
    agreements, note = measure_agreement(labels, read_goals(store.folder), options.task_id)
    store.close()
    if not agreements:
        raise UserError(
            f"{options.queue}: no trajectory has two {options.stage} labels: agreement needs a "
            "second opinion (trajudge label build --double)"
        )
    if note:
        sys.stderr.write(one_line(note) + "\n")
    sys.stdout.write(render(agreement_tables(agreements), options.format))
    return OK


if __name__ == "__main__":
    sys.exit(main())
