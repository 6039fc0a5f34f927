"""Precision against recall of judges without a defence, and where their defences lie: one that
only makes the judge stricter lies on the curve."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from html import escape
from io import StringIO
from pathlib import Path
from typing import NamedTuple

from trajudge.robustness.measures.operating_points import OperatingPoints, precision_at_recall
from trajudge.util.files import save_bytes

_SIZE, _LEFT, _TOP, _LEGEND = 300, 50, 40, 18  # pixels
_STEPS = 100
_STYLE = "font: 11px sans-serif"
_COLOURS = ("#000000", "#d55e00", "#0072b2", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")


class DefencePoint(NamedTuple):
    """What a defence (empty: none) leaves of precision and recall on the runs as they were."""

    defences: str
    precision: float
    recall: float


class DefenceCurve(NamedTuple):
    """A judge, its points without a defence, and the points of its verdicts with each."""

    judge: str
    points: OperatingPoints
    defended: tuple[DefencePoint, ...]


def write_curves(curves: Sequence[DefenceCurve], folder: Path) -> tuple[Path, ...]:
    """Write ``curve.csv`` and ``curve.svg``, a picture for each judge; nothing where there is no
    judge. Raises UserError."""
    if not curves:
        return ()
    table, picture = folder / "curve.csv", folder / "curve.svg"
    rows = StringIO(newline="")
    writer = csv.writer(rows)
    writer.writerow(("judge", "point", "threshold", "recall", "precision", "successes", "failures"))
    for curve in curves:
        writer.writerows(_rows(curve))
    save_bytes(table, rows.getvalue().encode())
    save_bytes(picture, curves_svg(curves).encode())
    return table, picture


def _rows(curve: DefenceCurve) -> Iterator[tuple[object, ...]]:
    points = curve.points
    for one in (*points.by_score, points.verdict):
        name = "verdict" if one.threshold is None else "score"
        if one.true + one.false:
            recall, precision = (
                one.true / max(points.successes, 1),
                one.true / (one.true + one.false),
            )
            yield curve.judge, name, one.threshold, recall, precision, one.true, one.false
    for point in curve.defended:
        if point.defences:
            yield curve.judge, point.defences, "", point.recall, point.precision, "", ""


def curves_svg(curves: Sequence[DefenceCurve]) -> str:
    """Draw a square for each judge, recall to the right and precision upwards, its curve as a line
    and a dot for each defence."""
    heights = [_TOP + _SIZE + 45 + _LEGEND * (len(one.defended) + 1) for one in curves]
    drawn, y = [], 0
    for curve, height in zip(curves, heights, strict=True):
        drawn.append(f'<g transform="translate(0 {y})">{_one(curve)}</g>')
        y += height
    width = _LEFT + _SIZE + 320
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{y}">'
    return "\n".join([head, *drawn, "</svg>\n"])


def _one(curve: DefenceCurve) -> str:
    parts = [_words(6, 16, curve.judge, "; font-weight: bold"), *_axes()]
    recalls = [step / _STEPS for step in range(1, _STEPS + 1)]
    known = [(recall, precision_at_recall(curve.points, recall)) for recall in recalls]
    line = " ".join("{:.1f},{:.1f}".format(*_at(r, p)) for r, p in known if p is not None)
    if line:
        parts.append(f'<polyline points="{line}" fill="none" stroke="#777" stroke-width="1.5"/>')
    for number, point in enumerate(curve.defended):
        colour = _COLOURS[number % len(_COLOURS)]
        x, y = _at(point.recall, point.precision)
        name = point.defences or "no defence"
        below = _TOP + _SIZE + 45 + _LEGEND * number
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="{colour}"/>')
        parts.append(f'<circle cx="{_LEFT + 5}" cy="{below - 4}" r="5" fill="{colour}"/>')
        figures = f"precision {100 * point.precision:.1f} %, recall {100 * point.recall:.1f} %"
        parts.append(_words(_LEFT + 16, below, f"{name}: {figures}"))
    return "\n".join(parts)


def _axes() -> Iterator[str]:
    yield (
        f'<rect x="{_LEFT}" y="{_TOP}" width="{_SIZE}" height="{_SIZE}" fill="none" stroke="#999"/>'
    )
    for share in (0.0, 0.5, 1.0):
        x, y = _at(share, share)
        yield _words(x - 8, _TOP + _SIZE + 14, f"{100 * share:.0f}")
        yield _words(_LEFT - 26, y + 4, f"{100 * share:.0f}")
    yield _words(_LEFT + _SIZE / 2 - 25, _TOP + _SIZE + 26, "recall, %")
    yield _words(_LEFT, _TOP - 6, "precision, %")


def _at(recall: float, precision: float) -> tuple[float, float]:
    return _LEFT + _SIZE * recall, _TOP + _SIZE * (1 - precision)


def _words(x: float, y: float, text: str, style: str = "") -> str:
    return f'<text x="{x:g}" y="{y:g}" style="{_STYLE}{style}">{escape(text)}</text>'
