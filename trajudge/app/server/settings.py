"""Where the application listens, and who may reach it."""

from __future__ import annotations

from pathlib import Path

from trajudge.trajectories.model import Record
from trajudge.trajectories.util.errors import UserError
from trajudge.trajectories.util.local.addresses import is_loopback

LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")


class ServerConfig(Record):
    """``port`` 0 is any free one. ``auth``: whoever comes needs a token. ``allow_host`` are names
    under which a proxy forwards requests. ``i_know_it_is_open``: no token although others reach
    it. ``keys`` is a file of ``app.server.keys``."""

    host: str = "127.0.0.1"
    port: int = 0
    auth: bool = False
    i_know_it_is_open: bool = False
    allow_host: tuple[str, ...] = ()
    keys: Path | None = None


def check_server(config: ServerConfig) -> None:
    """Refuse an application that others would reach without a token. Raises UserError."""
    if is_loopback(config.host) or config.auth or config.i_know_it_is_open:
        return
    raise UserError(
        f"--host {config.host}: others could read the runs: add --auth, which asks for a token, or "
        "--i-know-it-is-open"
    )


def allowed_hosts(config: ServerConfig, port: int) -> frozenset[str]:
    """Return the values of a request's ``Host`` that are answered: loopback, the address that is
    listened on and the names that the user allows; names may come without the port, as a proxy
    sends them."""
    host = f"[{config.host}]" if ":" in config.host else config.host
    names = [*LOOPBACK_NAMES, host]
    ports = {f"{name}:{port}" for name in names}
    if port == 80:
        ports.update(names)
    ports.update(config.allow_host)
    return frozenset(name.lower() for name in ports)
