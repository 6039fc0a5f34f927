"""An option that commands with a parser of their own share."""

from __future__ import annotations

from typing import Any


def add_format(group: Any, shown: str) -> None:
    """Add the option that says how tables are written."""
    group.add_argument(
        "--format",
        choices=("table", "csv", "markdown", "latex"),
        default="table",
        help=f"of the {shown} (default: table)",
    )
