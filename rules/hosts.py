"""The options that say where the sites were, for the commands that judge runs."""

from __future__ import annotations

import argparse
from pathlib import Path

from trajudge.rules.verified.network.sites import Hosts, load_hosts, parse_host


def add_host_options(parser: argparse.ArgumentParser) -> None:
    """``--config`` and ``--site``."""
    parser.add_argument(
        "--config", type=Path, metavar="FILE", help="the sites' addresses, as the package has them"
    )
    parser.add_argument(
        "--site",
        action="append",
        default=[],
        metavar="SITE=URL",
        help="one site's address (default: the page's on the benchmark's own port for the site)",
    )


def hosts_of(options: argparse.Namespace) -> Hosts:
    """What these options say. Raises UserError."""
    hosts = load_hosts(options.config) if options.config else {}
    for text in options.site:
        name, url = parse_host(text)
        hosts[name] = (*hosts.get(name, ()), url)
    return hosts
