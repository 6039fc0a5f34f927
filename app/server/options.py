"""The options of every command that starts the application."""

from __future__ import annotations

from typing import Any

from trajudge.trajectories.util.options import whole


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
    add(
        "--allow-host",
        action="append",
        metavar="NAME",
        help="answer requests for this host name, too (of a proxy in front); may be repeated",
    )
