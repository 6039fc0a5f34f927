"""The options of the commands that start the application."""

from __future__ import annotations

from typing import Any

from trajudge.util.commands import OptionAdder, port


def shown_options(parser: Any) -> None:
    """Add the options that say which runs are shown, and with what."""
    add = OptionAdder(parser)
    add.runs()
    add.repeated(
        "--data", "KIND:PATH", "trajectories (default: those of the runs); may be repeated"
    )
    add.labels("expert labels (default: those of the runs)")
    add.folder(
        "--queues",
        "where queues to label are written that are made from ticked rows (default: queues)",
    )


def server_options(group: Any) -> None:
    """Add the options that say where the application listens, and who may reach it."""
    add = OptionAdder(group)
    add.number("--port", "port to listen on (default: any free)", port, default=0)
    add.value(
        "--host",
        "ADDRESS",
        "address to listen on (default: 127.0.0.1, this machine alone; 0.0.0.0: all of them)",
        default="127.0.0.1",
    )
    add.switch(
        "--no-token",
        "ask for no token (only with an address that others cannot reach)",
    )
    add.file("--keys", "TOML file that gives pages other keys")
    add.repeated(
        "--allow-host",
        "NAME",
        "answer requests for this host name, too (of a proxy in front, or a name that this machine "
        "does not know); may be repeated",
    )
