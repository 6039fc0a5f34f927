"""The options that the proxy's commands share."""

from __future__ import annotations

import argparse
from pathlib import Path

from trajudge.trajectories.util.options import whole


def add_faults(parser: argparse.ArgumentParser, *, required: bool = False) -> None:
    """Add ``--faults``: the fault plan."""
    note = "" if required else " (default: none, only measure)"
    parser.add_argument(
        "--faults",
        type=Path,
        required=required,
        metavar="FILE",
        help=f"the fault plan, as JSON{note}",
    )


def add_task(parser: argparse.ArgumentParser) -> None:
    """Add ``--task``: the name that a task's faults are drawn from."""
    parser.add_argument(
        "--task", default="task", metavar="ID", help="name of the task (default: task)"
    )


def add_seed(parser: argparse.ArgumentParser) -> None:
    """Add ``--seed``; None stands for the plan's own."""
    parser.add_argument(
        "--seed", type=whole, metavar="N", help="seed of the run (default: the plan's)"
    )
