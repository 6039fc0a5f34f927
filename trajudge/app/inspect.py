"""``trajudge inspect RUN…``: runs and trajectories in a browser, served on this machine."""

from __future__ import annotations

import argparse
import sys
from importlib.util import find_spec
from pathlib import Path

from trajudge.app.server.options import server_options, shown_options
from trajudge.util.commands import OK, TextParser, command, read_settings

_DESCRIPTION = """\
Look at runs in a browser: what judges scored, every judgment in a table that filters and sorts,
and the trajectories behind them. Pages are served on this machine alone, to whoever has the address
that is printed, which holds a token; the runs are not changed.

  trajudge inspect runs/*
  trajudge inspect RUN --data agentrewardbench:PATH --port 8000
"""


def parser() -> TextParser:
    """Make the command's parser."""
    options = TextParser(prog="trajudge inspect", description=_DESCRIPTION)
    shown_options(options)
    server_options(options.add_argument_group("where it listens"))
    return options


def check_extra(command: str) -> None:
    """Refuse to go on without the extra. Raises MissingExtra."""
    for package in ("starlette", "uvicorn"):
        if find_spec(package) is None:
            from trajudge.util.errors import MissingExtra  # noqa: PLC0415

            raise MissingExtra(package, "app", command)


@command(parser)
def main(options: argparse.Namespace) -> int:
    """Serve the runs that the command line names until Ctrl-C; the exit code."""
    from trajudge.util.errors import UserError  # noqa: PLC0415 - --help needs none of these

    if not options.runs:
        raise UserError("nothing to look at: give the folder of a run")
    check_extra("trajudge inspect")
    from trajudge.annotations import labels_by  # noqa: PLC0415
    from trajudge.app.rooms import inspect_rooms  # noqa: PLC0415
    from trajudge.app.server.inputs import check_annotations, check_data, check_queues  # noqa: PLC0415
    from trajudge.app.server.serve import serve  # noqa: PLC0415
    from trajudge.app.server.settings import ServerConfig  # noqa: PLC0415
    from trajudge.app.server.workspace import open_workspace  # noqa: PLC0415

    check_data(data := options.data or ())
    annotations = labels_by(options.annotations, options.labels_by)
    if annotations is not None:
        check_annotations(annotations)
    if options.queues is not None:
        check_queues(options.queues)
    queues = options.queues or Path("queues")
    workspace = open_workspace(options.runs, data, annotations, queues)
    serve(workspace, inspect_rooms(), read_settings(ServerConfig, options))
    return OK


if __name__ == "__main__":
    sys.exit(main())
