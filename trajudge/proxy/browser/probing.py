"""Who listens at the debugging port that ``--cdp`` names, and what is said where no browser does.

A browser that uses the proxy starts after it, so that nobody listens at the start of a run is no
mistake yet; that nobody did until its end is one.
"""

from __future__ import annotations

import json
from http.client import HTTPConnection, HTTPException

from trajudge.util.errors import UserError

HOST = "127.0.0.1"
_PATIENCE = 5.0  # seconds that a busy browser has to answer
_LARGEST = 2**20  # bytes of an answer


def browser_listens(port: int) -> bool:
    """Tell whether a browser listens at its debugging port; False where nobody does.

    Raises UserError for another program, which would keep the browser from that port.
    """
    connection = HTTPConnection(HOST, port, timeout=_PATIENCE)
    try:
        connection.request("GET", "/json/version")
        if json.loads(connection.getresponse().read(_LARGEST))["webSocketDebuggerUrl"]:
            return True
    except ConnectionRefusedError:
        return False
    except (OSError, HTTPException, ValueError, TypeError, KeyError):
        pass
    finally:
        connection.close()
    raise UserError(
        f"--cdp {port}: what listens at {HOST}:{port} is no Chromium: name the port that the "
        "agent's browser is started with as --remote-debugging-port"
    )


def not_yet(port: int) -> str:
    """Say at the start that a browser is awaited."""
    return (
        f"--cdp {port}: nobody listens at {HOST}:{port} yet: let the agent start its Chromium "
        f"with --remote-debugging-port={port}"
    )


def never(port: int) -> str:
    """Say at the end that no browser came, and what that means for the figures."""
    return (
        f"--cdp {port}: no browser listened at {HOST}:{port} during the run, so none said what "
        f"a page is: let the agent start its Chromium with --remote-debugging-port={port}, or "
        "leave --cdp out"
    )
