"""Failed attempts that a provider may charge for."""

from __future__ import annotations

import socket

from trajudge.judges.adapters.errors import BadReply, CallFailed, Unreachable, causes

# Nothing was sent: the connection was never made. By name, for none of these libraries is
# imported before its first use (aiohttp, httpx).
_NO_CONNECTION = {
    "ClientConnectorError",
    "ClientConnectorDNSError",
    "ClientConnectorCertificateError",
    "ClientConnectorSSLError",
    "ConnectionTimeoutError",
    "ConnectError",
    "ConnectTimeout",
}


def may_be_billed(error: BaseException) -> bool:
    """Tell whether the model may have answered although no usage was read.

    True of an answer that is cut or malformed, of silence or a dropped connection after the request
    went out, and of an attempt that was cancelled on its way. A status of 4xx or 5xx is not billed,
    and neither is a connection that was never made.
    """
    if isinstance(error, BadReply):
        return True
    if isinstance(error, Unreachable):
        return not any(_no_connection(cause) for cause in causes(error))
    return not isinstance(error, CallFailed)


def _no_connection(error: BaseException) -> bool:
    if isinstance(error, ConnectionRefusedError | socket.gaierror):
        return True
    return any(kind.__name__ in _NO_CONNECTION for kind in type(error).__mro__)
