"""Options of ``trajudge score`` that commands with a parser of their own share."""

from __future__ import annotations

from typing import Any

from trajudge.eval.settings import ScoreConfig
from trajudge.util.settings import add_option, options_of

_SCORED = (
    *("judgments", "no_index", "annotations", "labels_by", "split", "task_id", "question"),
    *("missing", "protocol", "training_set", "baselines"),
)


def scored_options(group: Any) -> None:
    """Add the options that say what is scored, and how, to a group of them."""
    for one in options_of(ScoreConfig):
        if one.name in _SCORED:
            add_option(group, one, default=False if one.is_switch else None)


def add_format(group: Any, shown: str) -> None:
    """Add the option that says how tables are written."""
    group.add_argument(
        "--format",
        choices=("table", "csv", "markdown", "latex"),
        default="table",
        help=f"of the {shown} (default: table)",
    )
