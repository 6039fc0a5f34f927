"""The address that the server listens on, taken before anything slow is imported.

A server that was killed and is started again then refuses nobody for longer than Python needs to
start: who asks meanwhile waits for the answer. OpenRLHF's client gives up after five refusals, a
second apart.
"""

from __future__ import annotations

import socket

from trajudge.util.errors import UserError
from trajudge.util.machine import is_loopback

_WAITING = 1_024  # connections


def listen(host: str, port: int, *, has_token: bool) -> socket.socket:
    """Listen on an address. Raises UserError for one that is taken, or that others reach and no
    token guards."""
    if not has_token and not is_loopback(host):
        raise UserError(
            f"--host {host} can be reached by others, who could spend your money: give "
            "--token-file FILE"
        )
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=_WAITING)
    except OSError as error:
        why = error.strerror or str(error)
        raise UserError(f"--port {port}: {host} cannot be listened on ({why})") from error
