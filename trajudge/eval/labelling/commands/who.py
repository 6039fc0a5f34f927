"""``trajudge label people``: who labels in a queue, and the tokens that they sign in with."""

from __future__ import annotations

import argparse
import sys

from trajudge.eval.labelling.options import queue_parser
from trajudge.util.commands import OK, OptionAdder, command

_ROLES = ("annotator", "adjudicator", "viewer")  # as PersonRole, which is slow to import
_DESCRIPTION = """\
List the people of a queue, or add one. A token is shown once, when a person is added; the queue
keeps its hash.

  trajudge label people QUEUE --add Ann
  trajudge label people QUEUE --add Joe --role adjudicator
"""


def parser() -> argparse.ArgumentParser:
    """Build the command's options."""
    options = queue_parser("people", _DESCRIPTION)
    add = OptionAdder(options)
    add.value("--add", "NAME", "a new person")
    add.choice("--role", _ROLES, "of the new person (default: annotator)", default="annotator")
    return options


@command(parser)
def main(options: argparse.Namespace) -> int:
    """Do what the command line names and return the exit code."""
    from trajudge.annotations.labelling.database import LabelStore  # noqa: PLC0415 - --help needs none of these
    from trajudge.annotations.labelling.offers import own_progress  # noqa: PLC0415
    from trajudge.annotations.labelling.people import add_person, people  # noqa: PLC0415

    store = LabelStore(options.queue)
    if options.add is not None:
        admission = add_person(store, options.add, options.role)
        sys.stdout.write(f"{admission.person.name}: token {admission.token}\n")
    else:
        for person in people(store):
            own = own_progress(store, person.id)
            counts = f"{own.own_submitted:,} labelled, {own.own_skipped:,} skipped"
            sys.stdout.write(f"{person.name} ({person.role}): {counts}\n")
    store.close()
    return OK


if __name__ == "__main__":
    sys.exit(main())
