"""``trajudge label QUEUE``: label trajectories in a browser, served on this machine."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from trajudge.app.inspect import check_extra
from trajudge.app.server.options import server_options
from trajudge.util.commands import OK, TextParser, command, read_settings

_DESCRIPTION = """\
Label the trajectories of a queue in a browser: the evidence and a form beside it, without any
verdict. Whoever opens the address that is printed chooses their name; with --auth each person signs
in with a token of their own, which  trajudge label people  printed.

  trajudge label QUEUE
  trajudge label serve QUEUE --auth --host 0.0.0.0
  trajudge label serve QUEUE --data agentrewardbench:PATH --port 8000
"""


def parser() -> TextParser:
    """Make the command's parser."""
    options = TextParser(prog="trajudge label serve", description=_DESCRIPTION)
    options.add_argument("queue", type=Path, metavar="QUEUE", help="folder of a queue")
    options.add_argument(
        "--data",
        action="append",
        metavar="KIND:PATH",
        help="trajectories (default: those that the queue was built with); may be repeated",
    )
    options.add_argument(
        "--tasks", type=Path, metavar="FILE", help="the task file, for the audit's text of rules"
    )
    listens = options.add_argument_group("where it listens")
    listens.add_argument(
        "--auth",
        action="store_true",
        help="ask each person for their own token, which trajudge label people printed",
    )
    server_options(listens)
    return options


@command(parser)
def main(options: argparse.Namespace) -> int:
    """Serve the queue that the command line names until Ctrl-C; the exit code."""
    check_extra("trajudge label")
    from trajudge.annotations.queue import LabelQueue  # noqa: PLC0415 - --help needs none of these
    from trajudge.app.labelling.audit import read_rule_texts  # noqa: PLC0415
    from trajudge.app.labelling.routes import label_room  # noqa: PLC0415
    from trajudge.app.server.inputs import check_data  # noqa: PLC0415
    from trajudge.app.server.serve import serve  # noqa: PLC0415
    from trajudge.app.server.settings import ServerConfig  # noqa: PLC0415
    from trajudge.app.server.workspace import Workspace  # noqa: PLC0415
    from trajudge.util.errors import UserError  # noqa: PLC0415

    if options.auth and options.no_token:
        raise UserError("--auth and --no-token exclude each other: give one of them")
    check_data(options.data or ())
    rules = read_rule_texts(options.tasks) if options.tasks else {}
    queue = LabelQueue(options.queue)
    if options.auth and not queue.people():
        raise UserError(
            f"{options.queue}: nobody could sign in: add people with"
            f"  trajudge label people {options.queue} --add NAME"
        )

    def name_of(token: str) -> str | None:
        person = queue.person_by_token(token)
        return None if person is None else person.name

    workspace = Workspace({}, tuple(options.data or queue.settings.data))
    config = read_settings(ServerConfig, options)
    serve(workspace, [label_room(queue, rules)], config, name_of if options.auth else None)
    queue.close()
    return OK


if __name__ == "__main__":
    sys.exit(main())
