"""The options of the commands that start the application."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from trajudge.trajectories.util.options import whole


def shown_options(parser: Any) -> None:
    """Add the options that say which runs are shown, and with what."""
    add = parser.add_argument
    add("runs", nargs="*", type=Path, metavar="RUN", help="folder of a run")
    add(
        "--data",
        action="append",
        metavar="KIND:PATH",
        help="trajectories (default: those of the runs); may be repeated",
    )
    add("--annotations", metavar="KIND:PATH", help="expert labels (default: those of the runs)")
    add(
        "--queues",
        type=Path,
        default=Path("queues"),
        metavar="DIR",
        help="where queues to label are written that are made from ticked rows (default: queues)",
    )
    add(
        "--search",
        action="store_true",
        help="search the whole reasoning of runs with more than 100,000 judgments, too",
    )


def server_options(group: Any) -> None:
    """Add the options that say where the application listens."""
    add = group.add_argument
    add("--port", type=whole, default=0, metavar="N", help="port to listen on (default: any free)")
    add(
        "--host",
        default="127.0.0.1",
        metavar="ADDRESS",
        help="address to listen on (default: 127.0.0.1, this machine alone)",
    )
    add("--auth", action="store_true", help="ask for a token, which is printed once at the start")
    add(
        "--i-know-it-is-open",
        action="store_true",
        help="listen on an address that others reach without asking for a token",
    )
    add("--keys", type=Path, metavar="FILE", help="TOML file that gives pages other keys")
    add(
        "--allow-host",
        action="append",
        metavar="NAME",
        help="answer requests for this host name, too (of a proxy in front); may be repeated",
    )
