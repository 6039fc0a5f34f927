"""``trajudge label import``: labels from a file into a queue."""

from __future__ import annotations

import argparse
import sys

from trajudge.eval.labelling.options import queue_parser
from trajudge.util.commands import OK, command
from trajudge.util.errors import UserError
from trajudge.util.terminal import count_of

_DESCRIPTION = """\
Take labels from a file into a queue, as submissions of the people whom it names. Labels of
trajectories that are not in the queue, or that have all the labels they want, are left out.

  trajudge label import QUEUE --annotations trajudge:labels.jsonl
"""


def parser() -> argparse.ArgumentParser:
    """Build the command's options."""
    options = queue_parser("import", _DESCRIPTION)
    options.add_argument("--annotations", required=True, metavar="KIND:PATH", help="the labels")
    return options


@command(parser)
def main(options: argparse.Namespace) -> int:
    """Import what the command line names and return the exit code."""
    from trajudge.annotations import open_annotations  # noqa: PLC0415 - --help needs none of these
    from trajudge.annotations.labelling.database import LabelStore  # noqa: PLC0415
    from trajudge.annotations.labelling.transfer import import_annotations  # noqa: PLC0415

    annotations = open_annotations(options.annotations)
    if not annotations:
        raise UserError(f"--annotations {options.annotations}: holds no label: name another file")
    store = LabelStore(options.queue)
    taken, left_out = import_annotations(store, annotations)
    store.close()
    sys.stdout.write(f"{count_of(taken, 'label')} taken, {left_out:,} left out\n")
    return OK


if __name__ == "__main__":
    sys.exit(main())
