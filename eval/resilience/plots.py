"""Retention as a picture: a point with its interval for each fault, agents beside each other."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from trajudge.eval.resilience.measures import ArmMeasures
from trajudge.trajectories.util.errors import MissingExtra, UserError

_BESIDE = 0.12  # of a category's width, between two agents


def plot_retention(rows: Sequence[ArmMeasures], folder: Path) -> list[Path]:
    """Write ``retention.png`` and ``.svg``. Raises MissingExtra without matplotlib."""
    try:
        import matplotlib as mpl  # noqa: PLC0415 - an extra
        from matplotlib.figure import Figure  # noqa: PLC0415
    except ImportError as error:
        raise MissingExtra("matplotlib", "plots", "--plots") from error
    known = [row for row in rows if row.retention[0] is not None]
    arms = list(dict.fromkeys(row.arm for row in known))
    agents = list(dict.fromkeys(row.agent for row in known))
    with mpl.rc_context({"svg.hashsalt": "trajudge", "svg.fonttype": "none"}):
        figure = Figure(figsize=(8, 4.5), layout="constrained")
        axes = figure.add_subplot()
        for number, agent in enumerate(agents):
            mine = [row for row in known if row.agent == agent]
            places = [
                arms.index(row.arm) + (number - (len(agents) - 1) / 2) * _BESIDE for row in mine
            ]
            values = [100 * (row.retention[0] or 0.0) for row in mine]
            limits = [
                [100 * abs((row.retention[end] or 0.0) - (row.retention[0] or 0.0)) for row in mine]
                if all(row.retention[end] is not None for row in mine)
                else [0.0] * len(mine)
                for end in (1, 2)
            ]
            axes.errorbar(places, values, limits, fmt="o", capsize=3, label=agent or "all agents")
        axes.axhline(100, color="0.6", linewidth=0.8)
        axes.set_xticks(range(len(arms)), arms)
        axes.set_ylabel("success retained (%)")
        axes.set_ylim(bottom=0)
        axes.legend()
        paths = [folder / f"retention.{ending}" for ending in ("svg", "png")]
        try:
            folder.mkdir(parents=True, exist_ok=True)
            figure.savefig(paths[0], metadata={"Date": None})
            figure.savefig(paths[1], dpi=150)
        except OSError as error:
            raise UserError(f"--plots {folder}: cannot be written ({error.strerror})") from error
    return paths
