"""The precision-yield plot: what every candidate keeps, how pure it is, and how sure that is."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from trajudge.eval.select.decision import CandidateResult, Decision
from trajudge.util.errors import MissingExtra, UserError

SUFFIXES = (".png", ".svg", ".pdf")


def check_plot(file: Path) -> None:
    """Check the suffix and the library. Raises UserError, before anything is computed, if the plot
    could not be drawn."""
    if file.suffix.lower() not in SUFFIXES:
        raise UserError(f"--plot {file}: no such kind of picture: use {', '.join(SUFFIXES)}")
    _matplotlib()


def plot(decision: Decision, file: Path) -> None:
    """Draw recall (x) against precision (y) with its lower limit; filled: qualifies, ringed:
    chosen. Raises UserError if the file cannot be written."""
    figure = _matplotlib().figure.Figure(figsize=(7, 5), layout="constrained")
    axes = figure.subplots()
    for number, family in enumerate(decision.plan.families):
        mine = [f for f in decision.findings if f.family == family.name and _drawn(f)]
        _draw_family(axes, family.name, mine, f"C{number % 10}")
    if decision.chosen is not None:
        finding = decision.findings[decision.chosen]
        ring = {"s": 220, "facecolors": "none", "edgecolors": "black", "label": "chosen"}
        axes.scatter([finding.recall.estimate], [finding.precision.estimate], **ring)
    target = decision.plan.target
    if target.kind == "precision":
        label = f"target {target.rate:.2f}"
        axes.axhline(target.rate, color="grey", linestyle="--", linewidth=1, label=label)
    axes.set(xlim=(0, 1.02), ylim=(0, 1.02))
    axes.set_xlabel("recall")
    axes.set_ylabel("precision, down to its lower limit")
    if axes.get_legend_handles_labels()[0]:
        axes.legend(loc="lower left", fontsize="small")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        # No date in the file: the same decision gives the same bytes.
        metadata = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
        with _matplotlib().rc_context({"svg.hashsalt": "trajudge"}):
            figure.savefig(file, dpi=150, metadata=metadata.get(file.suffix.lower()))
    except OSError as error:
        raise UserError(f"--plot {file}: cannot be written ({error.strerror})") from error


def _drawn(finding: CandidateResult) -> bool:
    return finding.precision.estimate is not None and finding.recall.estimate is not None


def _draw_family(axes: Any, name: str, findings: list[CandidateResult], colour: str) -> None:
    if not findings:
        return
    x = [f.recall.estimate or 0.0 for f in findings]
    y = [f.precision.estimate or 0.0 for f in findings]
    axes.plot(x, y, color=colour, linewidth=1, alpha=0.6)
    down = [b - (f.precision.low or 0.0) for b, f in zip(y, findings, strict=True)]
    limits = [down, [0.0] * len(down)]
    axes.errorbar(x, y, yerr=limits, fmt="none", color=colour, capsize=3, linewidth=1)
    fill = [colour if f.verdict == "qualifies" else "white" for f in findings]
    axes.scatter(x, y, c=fill, edgecolors=colour, zorder=3, label=name)


def _matplotlib() -> Any:
    try:
        import_module("matplotlib.figure")
        return import_module("matplotlib")
    except ImportError as error:
        raise MissingExtra("matplotlib", "plots", "--plot") from error
