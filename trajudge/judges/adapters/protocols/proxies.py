"""Proxies of the environment (``HTTPS_PROXY``, ``NO_PROXY``, ...), and what they refuse."""

from __future__ import annotations

import os
import re
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from trajudge.judges.adapters.errors import CallFailed, NoAccess, Unreachable, causes

_CREDENTIALS = re.compile(r"(?<=//)[^/@\s'\"]+@")
_TUNNEL = re.compile(r"Tunnel connection failed: (\d{3})")


def proxy_for(url: str) -> str | None:
    """Return the proxy that the environment names for ``url``.

    Called once: aiohttp would read the environment again for every request.
    """
    parts = urlsplit(url)
    if proxy_bypass(parts.hostname or ""):
        return None
    proxies = getproxies()
    return proxies.get(parts.scheme)


def through_proxy(url: str) -> str:
    """Return `` through the proxy HOST:PORT (VARIABLE)`` where requests to ``url`` go through one,
    else "". Its user and password are left out."""
    proxy = proxy_for(url)
    if not proxy:
        return ""
    scheme = urlsplit(url).scheme
    names = (f"{scheme}_proxy", f"{scheme}_proxy".upper())
    variable = next((name for name in names if os.environ.get(name)), "of this system")
    return f" through the proxy {urlsplit(proxy).netloc.rpartition('@')[2]} ({variable})"


def without_credentials(text: str) -> str:
    """Return ``text`` without users and passwords in its URLs."""
    return _CREDENTIALS.sub("", text)


def refused_tunnel(error: BaseException, where: str) -> CallFailed | None:
    """Return the error for a proxy that lets no connection through to ``where`` (host and port);
    None if that is not the reason."""
    status = next(filter(None, map(_tunnel_status, causes(error))), None)
    if status is None:
        return None
    way = through_proxy(f"https://{where}") or " through a proxy"
    if status == 407:
        return NoAccess(f"cannot reach {where}{way}: it asks for a user and a password (407)")
    if status == 403:
        return NoAccess(
            f"cannot reach {where}{way}: it refuses the host (403): allow it there, or name it in "
            "NO_PROXY"
        )
    return Unreachable(f"cannot reach {where}{way}: it answered {status}")


def _tunnel_status(cause: BaseException) -> int | None:
    """Return the status with which a proxy refused to connect, by aiohttp's error or urllib's
    words."""
    if any(kind.__name__ == "ClientHttpProxyError" for kind in type(cause).__mro__):
        status = getattr(cause, "status", None)
        return status if isinstance(status, int) else None
    said = _TUNNEL.search(str(cause))
    return int(said[1]) if said else None
