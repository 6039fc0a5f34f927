"""The success rate of injections by carrier and technique: a matrix as CSV and SVG."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from html import escape
from io import StringIO
from pathlib import Path

from trajudge.robustness.catalogue.injections import CARRIERS
from trajudge.robustness.changing.techniques import TECHNIQUES
from trajudge.robustness.measures.rates import PerturbationRates, RobustnessRate
from trajudge.robustness.measures.report import JudgeRobustness
from trajudge.util.files import save_bytes

_NAME = re.compile(r"inject-(?P<carrier>[\w-]+)\.success\.(?P<technique>[\w-]+)")
_CELL, _ROW, _LEFT, _TOP = 34, 18, 150, 130  # pixels
_STYLE = "font: 11px sans-serif"


def cells(rates: Sequence[PerturbationRates]) -> dict[tuple[str, str], RobustnessRate]:
    """Return the attack success of every injection that asks for a success, by carrier and
    technique."""
    found = {}
    for one in rates:
        match = _NAME.fullmatch(one.name)
        if match and one.attack_success.trials:
            found[match["carrier"], match["technique"]] = one.attack_success
    return found


def write_matrix(judges: Sequence[JudgeRobustness], folder: Path) -> tuple[Path, ...]:
    """Write ``matrix.csv`` of all judges and ``matrix.svg``, one below the other; nothing where no
    instruction was tried. Raises UserError."""
    known = {judge.judge: cells(judge.rates) for judge in judges}
    known = {judge: found for judge, found in known.items() if found}
    if not known:
        return ()
    table, picture = folder / "matrix.csv", folder / "matrix.svg"
    rows = StringIO(newline="")
    writer = csv.writer(rows)
    writer.writerow(("judge", "carrier", "technique", "hits", "trials", "estimate", "low", "high"))
    for judge, found in known.items():
        for (carrier, technique), rate in sorted(found.items()):
            writer.writerow((judge, carrier, technique, *rate))
    save_bytes(table, rows.getvalue().encode())
    save_bytes(picture, matrix_svg(known).encode())
    return table, picture


def matrix_svg(known: Mapping[str, Mapping[tuple[str, str], RobustnessRate]]) -> str:
    """Draw a cell per carrier and technique: the share in per cent, redder where it is larger;
    what was not tried stays empty."""
    tried = {cell for found in known.values() for cell in found}
    carriers = [one for one in CARRIERS if any(one == carrier for carrier, _ in tried)]
    techniques = [one for one in TECHNIQUES if any(one == technique for _, technique in tried)]
    height = _TOP + _ROW * len(carriers) + 30
    drawn = [
        f'<g transform="translate(0 {number * height})">'
        f"{_one(judge, found, carriers, techniques)}</g>"
        for number, (judge, found) in enumerate(known.items())
    ]
    width = _LEFT + _CELL * len(techniques) + 60
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height * len(known)}">\n'
        + "\n".join(drawn)
        + "\n</svg>\n"
    )


def _one(
    judge: str,
    found: Mapping[tuple[str, str], RobustnessRate],
    carriers: Sequence[str],
    techniques: Sequence[str],
) -> str:
    """Draw one judge's matrix with its names."""
    parts = [_words(6, 16, judge, "; font-weight: bold")]
    for column, technique in enumerate(techniques):
        x = _LEFT + column * _CELL + _CELL // 2
        turned = f"translate({x} {_TOP - 6}) rotate(-60)"
        parts.append(f'<text transform="{turned}" style="{_STYLE}">{technique}</text>')
    for row, carrier in enumerate(carriers):
        y = _TOP + row * _ROW
        parts.append(_words(6, y + 13, carrier))
        parts += [
            _cell(_LEFT + column * _CELL, y, found[carrier, technique])
            for column, technique in enumerate(techniques)
            if (carrier, technique) in found
        ]
    return "\n".join(parts)


def _words(x: int, y: int, text: str, style: str = "") -> str:
    return f'<text x="{x}" y="{y}" style="{_STYLE}{style}">{escape(text)}</text>'


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
