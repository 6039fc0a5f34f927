"""The options that the commands on environments share."""

from __future__ import annotations

import argparse
from pathlib import Path

from trajudge.trajectories.util.options import whole

# Spellings of the version before.
OLD = {"--configs": "--cases"}


def add_cases(parser: argparse.ArgumentParser) -> None:
    """Add ``--cases``."""
    parser.add_argument(
        "--cases", type=Path, required=True, metavar="FILE", help="the generated cases"
    )


def add_seed(parser: argparse.ArgumentParser) -> None:
    """Add ``--seed``."""
    parser.add_argument(
        "--seed", type=whole, default=0, metavar="N", help="seed of what is drawn (default: 0)"
    )
