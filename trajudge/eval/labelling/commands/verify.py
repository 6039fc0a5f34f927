"""``trajudge label verify``: whether the log of a queue is whole and unchanged."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from trajudge.eval.labelling.options import queue_parser
from trajudge.trajectories.util.exits import FAILURES, OK, command

_DESCRIPTION = """\
Recompute the hash of every event of a queue. Prints the number of events and the last hash: keep
it, or an export's events.jsonl, elsewhere; with --events the log must begin with that export's
events, which also finds what was cut off at the end.

  trajudge label verify QUEUE
  trajudge label verify QUEUE --events backup/events.jsonl
"""


def parser() -> argparse.ArgumentParser:
    """Build the command's options."""
    options = queue_parser("verify", _DESCRIPTION)
    options.add_argument(
        "--events",
        type=Path,
        metavar="FILE",
        help="events.jsonl of an earlier export, with which the log must begin",
    )
    return options


@command(parser)
def main(options: argparse.Namespace) -> int:
    """Check the log that the command line names and return the exit code: 1 if it was changed."""
    from trajudge.annotations.labelling.chain import check_chain, read_events  # noqa: PLC0415 - --help needs none of these
    from trajudge.annotations.labelling.database import LabelStore  # noqa: PLC0415
    from trajudge.annotations.labelling.transfer import read_event_file  # noqa: PLC0415

    store = LabelStore(options.queue)
    events = list(read_events(store.reading()))
    store.close()
    check = check_chain(events)
    if check.broken_at is not None:
        sys.stdout.write(f"event {check.broken_at}: {check.reason}\n")
        return FAILURES
    if options.events is not None:
        earlier = read_event_file(options.events)
        for place, event in enumerate(earlier):
            if place >= len(events) or events[place] != event:
                missing = "is missing" if place >= len(events) else "is another"
                sys.stdout.write(f"event {event.id} of {options.events} {missing} in the queue\n")
                return FAILURES
        sys.stdout.write(f"begins with the {len(earlier):,} events of {options.events}\n")
    sys.stdout.write(f"{check.events:,} events, whole and unchanged; last hash\n{check.head}\n")
    return OK


if __name__ == "__main__":
    sys.exit(main())
