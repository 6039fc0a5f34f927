"""Precision by the share of failures that come with an attack, as CSV and SVG.

A false positive is as frequent as the attack makes it on the share that attacks, and as before on
the rest, therefore 1 / precision is linear in the share. The judge's recall is its own throughout.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from html import escape
from io import StringIO
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trajudge.robustness.measures.report import THREATS, JudgeRobustness
from trajudge.robustness.measures.worst_case import WorstCase
from trajudge.util.files import save_bytes

SHARES = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
_COLUMNS = ("judge", "threat", "attack", "recall", "share", "precision", "low")
_WIDTH, _HEIGHT, _LEFT, _TOP = 420, 220, 46, 34  # pixels of a judge's axes
_COLOURS = dict(zip(THREATS, ("#b2182b", "#2166ac", "#1b7837"), strict=True))
_STYLE = "font: 11px sans-serif"


class ContaminationCurve(NamedTuple):
    """Precision (S,) under the worst attack of a threat, at ``SHARES`` of the failures; ``low`` is
    the lower limit where all attack, None without one."""

    threat: str
    attack: str
    precision: NDArray[np.float64]
    low: float | None


def precision_at(
    clean: float, attacked: float, shares: Sequence[float] = SHARES
) -> NDArray[np.float64]:
    """Return precision (S,) where these shares of the failures attack, from precision without and
    with the attack on all of them; 0 where it is 0 under the attack."""
    alpha = np.asarray(shares, float)
    if attacked <= 0:
        return np.where(alpha == 0, clean, 0.0)
    return np.asarray(1 / ((1 - alpha) / clean + alpha / attacked))


def curves(worst: Mapping[str, WorstCase]) -> list[ContaminationCurve]:
    """Return the curve of each threat under which an attack was tried."""
    made = []
    for threat, case in worst.items():
        tried = [one for one in case.attacks if not np.isnan(one.precision)]
        if case.precision and tried:
            points = precision_at(case.precision, tried[0].precision)
            made.append(ContaminationCurve(threat, tried[0].name, points, case.low))
    return made


def write_contamination(judges: Sequence[JudgeRobustness], folder: Path) -> tuple[Path, ...]:
    """Write ``contamination.csv`` and ``contamination.svg``; nothing where no attack was tried.
    Raises UserError."""
    known = {one.judge: curves(one.worst) for one in judges}
    if not any(known.values()):
        return ()
    rows = StringIO(newline="")
    writer = csv.writer(rows)
    writer.writerow(_COLUMNS)
    for judge in judges:
        for curve in known[judge.judge]:
            recall = judge.worst[curve.threat].recall
            for share, precision in zip(SHARES, curve.precision.tolist(), strict=True):
                low = curve.low if share == 1 else None
                named = (judge.judge, curve.threat, curve.attack, recall)
                writer.writerow((*named, share, precision, low))
    table, picture = folder / "contamination.csv", folder / "contamination.svg"
    save_bytes(table, rows.getvalue().encode())
    save_bytes(picture, contamination_svg(known).encode())
    return table, picture


def contamination_svg(known: Mapping[str, Sequence[ContaminationCurve]]) -> str:
    """Draw each judge's curves below each other, one colour per threat."""
    height = _TOP + _HEIGHT + 46
    drawn = [
        f'<g transform="translate(0 {number * height})">{_axes(judge)}'
        + "".join(_curve(place, curve) for place, curve in enumerate(found))
        + "</g>"
        for number, (judge, found) in enumerate(known.items())
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_LEFT + _WIDTH + 330}" '
        f'height="{height * len(known)}">\n' + "\n".join(drawn) + "\n</svg>\n"
    )


def _at(share: float, precision: float) -> tuple[float, float]:
    return _LEFT + _WIDTH * share, _TOP + _HEIGHT * (1 - precision)


def _axes(judge: str) -> str:
    parts = [_words(6, 16, judge, "; font-weight: bold")]
    for tick in (0.0, 0.25, 0.5, 0.75, 1.0):
        (left, y), (right, _) = _at(0, tick), _at(1, tick)
        parts.append(f'<line x1="{left}" y1="{y}" x2="{right}" y2="{y}" stroke="#ddd"/>')
        parts.append(_words(8, y + 4, f"{100 * tick:.0f} %"))
        parts.append(_words(_at(tick, 0)[0] - 10, _TOP + _HEIGHT + 16, f"{100 * tick:.0f} %"))
    parts.append(_words(_LEFT, _TOP + _HEIGHT + 32, "share of failures that attack"))
    return "".join(parts)


def _curve(place: int, curve: ContaminationCurve) -> str:
    shares = np.linspace(0, 1, 101)
    clean, attacked = float(curve.precision[0]), float(curve.precision[-1])
    points = zip(shares.tolist(), precision_at(clean, attacked, shares.tolist()), strict=True)
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in (_at(*point) for point in points))
    colour, y = _COLOURS[curve.threat], _TOP + 14 + 18 * place
    named = f"{curve.threat}: {curve.attack}"
    return f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>' + _words(
        _LEFT + _WIDTH + 10, y, named, f"; fill: {colour}"
    )


def _words(x: float, y: float, text: str, style: str = "") -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" style="{_STYLE}{style}">{escape(text)}</text>'
