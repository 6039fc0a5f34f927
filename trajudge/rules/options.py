"""The options that the commands on rules share."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from trajudge.trajectories.util.errors import UserError
from trajudge.trajectories.util.exits import Parser
from trajudge.trajectories.util.options import OptionAdder

if TYPE_CHECKING:
    from trajudge.rules.verified.network.sites import Hosts

# The kinds of task files, and the module that holds the ``SUITE`` of each.
KINDS: Mapping[str, str] = {
    "webarena": "trajudge.rules.webarena.suite",
    "verified": "trajudge.rules.verified.audit.suite",
}


def rules_parser(name: str, purpose: str, exit_codes: str) -> Parser:
    """Make the parser of ``trajudge rules NAME``; ``purpose`` is shown to its first blank line."""
    first, codes = purpose.split("\n\n", maxsplit=1)[0], f"exit codes: {exit_codes}"
    return Parser(prog=f"trajudge rules {name}", description=first, epilog=codes)


def add_task_options(parser: argparse.ArgumentParser) -> None:
    """Add ``--tasks``, ``--kind`` and ``--mode``."""
    add = OptionAdder(parser)
    add.file("--tasks", "the task file", required=True)
    add.choice("--kind", tuple(KINDS), "kind of the tasks (default: detected)")
    add.value(
        "--mode", "MODE", "Verified: sound, release-1.2.3; WebArena: original (default: the first)"
    )


def add_site_options(parser: argparse.ArgumentParser) -> None:
    """Add ``--sites`` and ``--site``."""
    add = OptionAdder(parser)
    add.file("--sites", "the sites' addresses, as the package has them")
    add.repeated(
        "--site",
        "SITE=URL",
        "one site's address (default: the page's on the benchmark's own port for the site)",
        default=[],
    )


def sites_of(file: Path | None, given: Sequence[str], tasks: Iterable[object]) -> Hosts:
    """Read the addresses of ``--sites`` and ``--site``. Raises UserError, also for a site that
    neither the benchmark nor ``--sites`` nor a task has: its address would be ignored."""
    from trajudge.rules.verified.network.sites import load_hosts, parse_host  # noqa: PLC0415

    hosts = load_hosts(file) if file else {}
    known = {*hosts, *_sites_named(tasks)} if given else set()
    for text in given:
        name, url = parse_host(text)
        if name not in known:
            sites = ", ".join(sorted(one.strip("_").lower() for one in known))
            raise UserError(f"--site {text}: no task has such a site: use one of {sites}")
        hosts[name] = (*hosts.get(name, ()), url)
    return hosts


def _sites_named(tasks: Iterable[object]) -> set[str]:
    """Return the placeholders of the benchmark's sites, and of those that the tasks name."""
    import msgspec  # noqa: PLC0415 - --help needs none of these

    from trajudge.rules.verified.dataset import placeholder, placeholders  # noqa: PLC0415
    from trajudge.rules.verified.network.sites import DEFAULT_PORTS  # noqa: PLC0415

    names = set(DEFAULT_PORTS)
    for task in tasks:
        names.update(map(placeholder, getattr(task, "sites", ())))
        names |= placeholders(msgspec.json.encode(task).decode())
    return names
