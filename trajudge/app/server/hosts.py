"""Who may reach the application: hosts and names."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Sequence

from trajudge.app.settings import ServerConfig
from trajudge.util.errors import UserError
from trajudge.util.machine import is_loopback, own_addresses, own_names

LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")


def check_server(config: ServerConfig) -> None:
    """Refuse an application that others would reach without a token. Raises UserError."""
    if config.no_token and not is_loopback(config.host):
        raise UserError(
            f"--host {config.host}: others could read and change what is served: leave --no-token "
            "out, or listen on this machine alone and let a proxy sign people in"
        )


def own_hosts(config: ServerConfig) -> Sequence[str]:
    """List the hosts by which others reach the application, as addresses of pages hold them; none
    where it listens on loopback."""
    if is_loopback(config.host):
        return ()
    hosts = [config.host, *own_names()]
    if _is_any(config.host):
        family = socket.AF_INET6 if ":" in config.host else socket.AF_INET
        hosts = [*own_names(), *own_addresses(family)]
    return list(dict.fromkeys(bracketed(host) for host in hosts))


def allowed_hosts(config: ServerConfig, port: int) -> frozenset[str]:
    """Return the values of a request's ``Host`` that are answered: loopback, the names and
    addresses of this machine where others reach it, and the names that the user allows, with the
    port or, as a proxy sends them, without."""
    names = [*LOOPBACK_NAMES, bracketed(config.host), *own_hosts(config)]
    hosts = {f"{name}:{port}" for name in names}
    if port == 80:
        hosts.update(names)
    for name in config.allow_host:
        hosts |= {name, f"{name}:{port}"}
    return frozenset(name.lower() for name in hosts)


def bracketed(host: str) -> str:
    """Return a host as addresses of pages hold it: IPv6 in brackets."""
    return f"[{host}]" if ":" in host else host


def _is_any(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False
