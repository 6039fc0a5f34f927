"""Where the application listens, and who may reach it."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import Field

from trajudge.eval.settings import LabelsBy, Runs
from trajudge.util.errors import UserError
from trajudge.util.machine import is_loopback, own_addresses, own_names
from trajudge.util.settings import Argument, Option, Settings

LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")


class ServerConfig(Settings):
    """Where the application listens, and who may reach it."""

    port: Annotated[
        int, Field(ge=0, le=65_535), Option("port to listen on (default: any free)", "N")
    ] = 0
    host: Annotated[
        str,
        Option("address to listen on (this machine alone; 0.0.0.0: all addresses)", "ADDRESS"),
    ] = "127.0.0.1"
    no_token: Annotated[
        bool, Option("ask for no token (only with an address that others cannot reach)")
    ] = False
    keys: Annotated[Path | None, Option("TOML file that gives pages other keys", "FILE")] = None
    allow_host: Annotated[
        tuple[str, ...],
        Option(
            "answer requests for this host name, too (of a proxy in front, or a name that this "
            "machine does not know); may be repeated",
            "NAME",
        ),
    ] = ()


class InspectConfig(Settings):
    """Look at runs in a browser: what judges scored, every judgment in a table that filters and
    sorts, and the trajectories behind them. Pages are served on this machine alone, to whoever has
    the address that is printed, which holds a token; the runs are not changed.

      trajudge inspect runs/*
      trajudge inspect RUN --data agentrewardbench:PATH --port 8000
    """

    sections: ClassVar[Mapping[str, str]] = {"server": "where it listens"}

    runs: Runs = ()
    data: Annotated[
        tuple[str, ...],
        Option("trajectories (default: those of the runs); may be repeated", "KIND:PATH"),
    ] = ()
    annotations: Annotated[
        str | None, Option("expert labels (default: those of the runs)", "KIND:PATH")
    ] = None
    labels_by: Annotated[
        LabelsBy | None,
        Option(
            "primary, majority, unanimous or any: of several annotators' labels (default: refuse "
            "those that differ)",
            "POLICY",
        ),
    ] = None
    queues: Annotated[
        Path,
        Option("where queues to label are written that are made from ticked rows", "DIR"),
    ] = Path("queues")
    server: ServerConfig = ServerConfig()


class ServeQueueConfig(Settings):
    """Label the trajectories of a queue in a browser: the evidence and a form beside it, without
    any verdict. Whoever opens the address that is printed chooses their name; with --auth each
    person signs in with a token of their own, which  trajudge label people  printed.

      trajudge label QUEUE
      trajudge label serve QUEUE --auth --host 0.0.0.0
      trajudge label serve QUEUE --data agentrewardbench:PATH --port 8000
    """

    sections: ClassVar[Mapping[str, str]] = {"auth": "where it listens"}

    queue: Annotated[Path, Argument("QUEUE", "folder of a queue")]
    data: Annotated[
        tuple[str, ...],
        Option(
            "trajectories (default: those that the queue was built with); may be repeated",
            "KIND:PATH",
        ),
    ] = ()
    tasks: Annotated[
        Path | None, Option("the task file, for the audit's text of rules", "FILE")
    ] = None
    auth: Annotated[
        bool,
        Option("ask each person for their own token, which trajudge label people printed"),
    ] = False
    server: ServerConfig = ServerConfig()


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
