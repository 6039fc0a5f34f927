"""Retention as a picture: a point with its interval for each fault, agents beside each other."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from trajudge.eval.reporting.plots import write_plot
from trajudge.eval.resilience.measures import ArmMeasures, IntervalEstimate
from trajudge.trajectories.util.atomic import make_folder
from trajudge.trajectories.util.errors import UserError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BESIDE = 0.12  # of a category's width, between two agents


def plot_retention(rows: Sequence[ArmMeasures], folder: Path) -> list[Path]:
    """Write ``retention.png`` and ``.svg``. Raises MissingExtra without matplotlib, UserError if
    the folder cannot be written."""
    known = [row for row in rows if row.retention[0] is not None]
    try:
        make_folder(folder, "--plots")
        return write_plot(folder / "retention", lambda axes: draw_retention(axes, known))
    except OSError as error:
        raise UserError(f"--plots {folder}: cannot be written ({error.strerror})") from error


def draw_retention(axes: Axes, rows: Sequence[ArmMeasures]) -> bool:
    """Retention with its interval under every fault, agents beside each other."""
    if not rows:
        return False
    arms = list(dict.fromkeys(row.arm for row in rows))
    agents = list(dict.fromkeys(row.agent for row in rows))
    for number, agent in enumerate(agents):
        mine = [row for row in rows if row.agent == agent]
        places = [arms.index(row.arm) + (number - (len(agents) - 1) / 2) * _BESIDE for row in mine]
        ends = [_percentages(row.retention) for row in mine]
        values = [value for value, _, _ in ends]
        limits = [
            [value - low for value, low, _ in ends],
            [high - value for value, _, high in ends],
        ]
        axes.errorbar(places, values, limits, fmt="o", capsize=3, label=agent or "all agents")
    axes.axhline(100, color="0.6", linewidth=0.8)
    axes.set_xticks(range(len(arms)), arms)
    axes.set_ylabel("success retained (%)")
    axes.set_ylim(bottom=0)
    axes.legend()
    return True


def _percentages(retention: IntervalEstimate) -> tuple[float, float, float]:
    """Return the estimate and its limits; the estimate itself for a limit that is not known."""
    value = 100 * (retention[0] or 0.0)
    low, high = (value if end is None else 100 * end for end in retention[1:])
    return value, min(low, value), max(high, value)
