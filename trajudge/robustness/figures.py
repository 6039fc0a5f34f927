"""Tables (CSV) and plots (SVG): success of injections by carrier and technique, precision by the
share of failures with an attack, and precision against recall."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trajudge.robustness.injections import CARRIERS, TECHNIQUES
from trajudge.robustness.rates import (
    OperatingPoints,
    PerturbationRates,
    RobustnessRate,
    WorstCase,
    precision_at_recall,
)
from trajudge.robustness.report import THREATS, JudgeRobustness, save_csv
from trajudge.util.files import save_bytes

_STYLE = "font: 11px sans-serif"


def _words(x: float, y: float, text: str, style: str = "") -> str:
    return f'<text x="{x:g}" y="{y:g}" style="{_STYLE}{style}">{escape(text)}</text>'


def _judge_name(judge: str) -> str:
    return _words(6, 16, judge, "; font-weight: bold")


def _below_each_other(width: int, pictures: Sequence[tuple[int, str]]) -> str:
    """Stack pictures of given heights into one."""
    drawn, y = [], 0
    for height, picture in pictures:
        drawn.append(f'<g transform="translate(0 {y})">{picture}</g>')
        y += height
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{y}">'
    return "\n".join([head, *drawn, "</svg>\n"])


def _written(
    folder: Path, name: str, head: Sequence[str], rows: Iterable[Sequence[object]], picture: str
) -> tuple[Path, Path]:
    """Write ``NAME.csv`` and ``NAME.svg``. Raises UserError."""
    table, drawing = folder / f"{name}.csv", folder / f"{name}.svg"
    save_csv(table, head, rows)
    save_bytes(drawing, picture.encode())
    return table, drawing


# The success rate of injections by carrier and technique.

_INJECTION = re.compile(r"inject-(?P<carrier>[\w-]+)\.success\.(?P<technique>[\w-]+)")
_CELL, _ROW, _NAMES, _HEADS = 34, 18, 150, 130  # pixels
Cells = Mapping[tuple[str, str], RobustnessRate]


def cells(rates: Sequence[PerturbationRates]) -> Cells:
    """Return the attack success of every injection that requests a success, by carrier and
    technique."""
    rates_by_cell = {}
    for one in rates:
        match = _INJECTION.fullmatch(one.name)
        if match and one.attack_success.trials:
            rates_by_cell[match["carrier"], match["technique"]] = one.attack_success
    return rates_by_cell


def write_matrix(judges: Sequence[JudgeRobustness], folder: Path) -> tuple[Path, ...]:
    """Write ``matrix.csv`` of all judges and ``matrix.svg``, one below the other; nothing
    without injections. Raises UserError."""
    known = {judge.judge: some for judge in judges if (some := cells(judge.rates))}
    if not known:
        return ()
    head = ("judge", "carrier", "technique", "hits", "trials", "estimate", "low", "high")
    rows = (
        (judge, *cell, *rate)
        for judge, some in known.items()
        for cell, rate in sorted(some.items())
    )
    return _written(folder, "matrix", head, rows, matrix_svg(known))


def matrix_svg(known: Mapping[str, Cells]) -> str:
    """Draw a cell per carrier and technique with the share in percent, redder for larger ones;
    untested cells are empty."""
    tried = {cell for some in known.values() for cell in some}
    carriers = [one for one in CARRIERS if any(one == carrier for carrier, _ in tried)]
    techniques = [one for one in TECHNIQUES if any(one == technique for _, technique in tried)]
    height = _HEADS + _ROW * len(carriers) + 30
    return _below_each_other(
        _NAMES + _CELL * len(techniques) + 60,
        [
            (height, "\n".join(_matrix(judge, some, carriers, techniques)))
            for judge, some in known.items()
        ],
    )


def _matrix(
    judge: str, some: Cells, carriers: Sequence[str], techniques: Sequence[str]
) -> Iterator[str]:
    yield _judge_name(judge)
    for column, technique in enumerate(techniques):
        x = _NAMES + column * _CELL + _CELL // 2
        turned = f"translate({x} {_HEADS - 6}) rotate(-60)"
        yield f'<text transform="{turned}" style="{_STYLE}">{technique}</text>'
    for row, carrier in enumerate(carriers):
        y = _HEADS + row * _ROW
        yield _words(6, y + 13, carrier)
        for column, technique in enumerate(techniques):
            if (carrier, technique) in some:
                yield _cell(_NAMES + column * _CELL, y, some[carrier, technique])


def _cell(x: int, y: int, rate: RobustnessRate) -> str:
    share = rate.estimate or 0.0
    light = round(255 - 150 * share)
    limits = ""
    if rate.low is not None and rate.high is not None:
        limits = f" [{100 * rate.low:.0f}, {100 * rate.high:.0f}]"
    return (
        f'<g><title>{rate.hits} of {rate.trials}{limits}</title><rect x="{x}" y="{y}" '
        f'width="{_CELL - 2}" height="{_ROW - 2}" fill="rgb(255,{light},{light})" stroke="#999"/>'
        f'<text x="{x + _CELL // 2 - 1}" y="{y + 12}" text-anchor="middle" style="{_STYLE}">'
        f"{100 * share:.0f}</text></g>"
    )


# Precision by the share of failures with an attack. The false-positive rate is that under attack on
# this share, and the original one on the rest, so that 1 / precision is linear in the share. The
# judge's recall is unchanged.

SHARES = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
_WIDTH, _HEIGHT, _LEFT, _TOP = 420, 220, 46, 34  # pixels of a judge's axes
_THREAT_COLOURS = dict(zip(THREATS, ("#b2182b", "#2166ac", "#1b7837"), strict=True))


class ContaminationCurve(NamedTuple):
    """Precision (S,) under the worst attack of a threat, at ``SHARES`` of the failures; ``low``
    is the lower limit if all failures attack, None without one."""

    threat: str
    attack: str
    precision: NDArray[np.float64]
    low: float | None


def precision_at(
    clean: float, attacked: float, shares: Sequence[float] = SHARES
) -> NDArray[np.float64]:
    """Return precision (S,) if these shares of the failures attack, from precision without and
    with the attack on all failures; 0 if it is 0 under the attack."""
    alpha = np.asarray(shares, float)
    if attacked <= 0:
        return np.where(alpha == 0, clean, 0.0)
    return np.asarray(1 / ((1 - alpha) / clean + alpha / attacked))


def contamination_curves(worst: Mapping[str, WorstCase]) -> list[ContaminationCurve]:
    """Return the curve of each threat with a tested attack."""
    made = []
    for threat, case in worst.items():
        tried = [one for one in case.attacks if not np.isnan(one.precision)]
        if case.precision and tried:
            points = precision_at(case.precision, tried[0].precision)
            made.append(ContaminationCurve(threat, tried[0].name, points, case.low))
    return made


def write_contamination(judges: Sequence[JudgeRobustness], folder: Path) -> tuple[Path, ...]:
    """Write ``contamination.csv`` and ``contamination.svg``; nothing without attacks. Raises
    UserError."""
    known = {one.judge: contamination_curves(one.worst) for one in judges}
    if not any(known.values()):
        return ()
    head = ("judge", "threat", "attack", "recall", "share", "precision", "low")
    rows = (
        (
            *(judge.judge, curve.threat, curve.attack, judge.worst[curve.threat].recall),
            *(share, precision, curve.low if share == 1 else None),
        )
        for judge in judges
        for curve in known[judge.judge]
        for share, precision in zip(SHARES, curve.precision.tolist(), strict=True)
    )
    return _written(folder, "contamination", head, rows, contamination_svg(known))


def contamination_svg(known: Mapping[str, Sequence[ContaminationCurve]]) -> str:
    """Draw the curves of the judges below each other, one colour per threat."""
    height = _TOP + _HEIGHT + 46
    pictures = [
        (
            height,
            "".join([*_contamination_axes(judge), *map(_contamination, range(len(some)), some)]),
        )
        for judge, some in known.items()
    ]
    return _below_each_other(_LEFT + _WIDTH + 330, pictures)


def _at(share: float, precision: float) -> tuple[float, float]:
    return _LEFT + _WIDTH * share, _TOP + _HEIGHT * (1 - precision)


def _contamination_axes(judge: str) -> Iterator[str]:
    yield _judge_name(judge)
    for tick in (0.0, 0.25, 0.5, 0.75, 1.0):
        (left, y), (right, _) = _at(0, tick), _at(1, tick)
        yield f'<line x1="{left}" y1="{y}" x2="{right}" y2="{y}" stroke="#ddd"/>'
        yield _words(8, y + 4, f"{100 * tick:.0f} %")
        yield _words(_at(tick, 0)[0] - 10, _TOP + _HEIGHT + 16, f"{100 * tick:.0f} %")
    yield _words(_LEFT, _TOP + _HEIGHT + 32, "share of failures that attack")


def _contamination(number: int, curve: ContaminationCurve) -> str:
    shares = np.linspace(0, 1, 101).tolist()
    clean, attacked = float(curve.precision[0]), float(curve.precision[-1])
    points = zip(shares, precision_at(clean, attacked, shares).tolist(), strict=True)
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in (_at(*point) for point in points))
    colour, y = _THREAT_COLOURS[curve.threat], _TOP + 14 + 18 * number
    named = f"{curve.threat}: {curve.attack}"
    return f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>' + _words(
        _LEFT + _WIDTH + 10, y, named, f"; fill: {colour}"
    )


# Precision against recall of judges without a defence, and the points of their defences: one that
# only makes the judge stricter is on the curve.

_SIZE, _MARGIN, _ABOVE, _LEGEND = 300, 50, 40, 18  # pixels
_STEPS = 100
_COLOURS = ("#000000", "#d55e00", "#0072b2", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")


class DefencePoint(NamedTuple):
    """Precision and recall with a defence (empty: none) on the unchanged runs."""

    defences: str
    precision: float
    recall: float


class DefenceCurve(NamedTuple):
    """A judge, its points without a defence, and the points of its verdicts with each defence."""

    judge: str
    points: OperatingPoints
    defended: tuple[DefencePoint, ...]


def write_curves(curves: Sequence[DefenceCurve], folder: Path) -> tuple[Path, ...]:
    """Write ``curve.csv`` and ``curve.svg``, a plot per judge; nothing without judges. Raises
    UserError."""
    if not curves:
        return ()
    head = ("judge", "point", "threshold", "recall", "precision", "successes", "failures")
    rows = (row for curve in curves for row in _curve_rows(curve))
    return _written(folder, "curve", head, rows, curves_svg(curves))


def _curve_rows(curve: DefenceCurve) -> Iterator[tuple[object, ...]]:
    points = curve.points
    for one in (*points.by_score, points.verdict):
        name = "verdict" if one.threshold is None else "score"
        if one.true + one.false:
            recall = one.true / max(points.successes, 1)
            precision = one.true / (one.true + one.false)
            yield curve.judge, name, one.threshold, recall, precision, one.true, one.false
    for point in curve.defended:
        if point.defences:
            yield curve.judge, point.defences, "", point.recall, point.precision, "", ""


def curves_svg(curves: Sequence[DefenceCurve]) -> str:
    """Draw a square per judge with recall on the x axis and precision on the y axis: a line for
    its curve and a dot for each defence."""
    pictures = [
        (_ABOVE + _SIZE + 45 + _LEGEND * (len(one.defended) + 1), "\n".join(_curve(one)))
        for one in curves
    ]
    return _below_each_other(_MARGIN + _SIZE + 320, pictures)


def _curve(curve: DefenceCurve) -> Iterator[str]:
    yield _judge_name(curve.judge)
    yield (
        f'<rect x="{_MARGIN}" y="{_ABOVE}" width="{_SIZE}" height="{_SIZE}" fill="none" '
        'stroke="#999"/>'
    )
    for share in (0.0, 0.5, 1.0):
        x, y = _in_square(share, share)
        yield _words(x - 8, _ABOVE + _SIZE + 14, f"{100 * share:.0f}")
        yield _words(_MARGIN - 26, y + 4, f"{100 * share:.0f}")
    yield _words(_MARGIN + _SIZE / 2 - 25, _ABOVE + _SIZE + 26, "recall, %")
    yield _words(_MARGIN, _ABOVE - 6, "precision, %")
    recalls = [step / _STEPS for step in range(1, _STEPS + 1)]
    known = [(recall, precision_at_recall(curve.points, recall)) for recall in recalls]
    line = " ".join("{:.1f},{:.1f}".format(*_in_square(r, p)) for r, p in known if p is not None)
    if line:
        yield f'<polyline points="{line}" fill="none" stroke="#777" stroke-width="1.5"/>'
    for number, point in enumerate(curve.defended):
        colour = _COLOURS[number % len(_COLOURS)]
        x, y = _in_square(point.recall, point.precision)
        below = _ABOVE + _SIZE + 45 + _LEGEND * number
        yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="{colour}"/>'
        yield f'<circle cx="{_MARGIN + 5}" cy="{below - 4}" r="5" fill="{colour}"/>'
        figures = f"precision {100 * point.precision:.1f} %, recall {100 * point.recall:.1f} %"
        yield _words(_MARGIN + 16, below, f"{point.defences or 'no defence'}: {figures}")


def _in_square(recall: float, precision: float) -> tuple[float, float]:
    return _MARGIN + _SIZE * recall, _ABOVE + _SIZE * (1 - precision)
