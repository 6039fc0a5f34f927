"""Precision where a share of the failures attacks is that of counts."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from tests.worlds.robustness import simulated
from trajudge.robustness.figures import (
    SHARES,
    DefenceCurve,
    DefencePoint,
    cells,
    contamination_curves,
    contamination_svg,
    curves_svg,
    matrix_svg,
    precision_at,
    write_contamination,
)
from trajudge.robustness.rates import (
    NO_RATE,
    AttackedPrecision,
    OperatingPoint,
    OperatingPoints,
    PerturbationRates,
    RobustnessRate,
    WorstCase,
    worst_case,
)
from trajudge.robustness.report import JudgeRobustness

SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("share", SHARES)
def test_it_is_the_share_of_successes_among_the_accepted(share: float) -> None:
    """40 successes accepted; of 100 failures 5 are accepted, and under the attack 30."""
    false = (1 - share) * 5 + share * 30
    (found,) = precision_at(40 / 45, 40 / 70, [share])
    assert found == pytest.approx(40 / (40 + false), abs=1e-12)


def test_an_attack_that_leaves_nothing() -> None:
    assert precision_at(0.9, 0.0, [0.0, 0.01, 1.0]).tolist() == [0.9, 0.0, 0.0]


def test_what_was_attacked_for_real_is_on_the_curve() -> None:
    """Half of the failures attack in the simulated runs: what is counted there."""
    rng = np.random.default_rng(3)
    made = simulated(rng)
    base = made[0]._replace(perturbed=made[0].clean)
    attack = next(one for one in made if one.name == "attack-0")
    worst = worst_case([attack], base, rng)
    assert worst.precision is not None
    half = precision_at(worst.precision, worst.attacks[0].precision, [0.5])[0]
    fails = np.flatnonzero(attack.truth == 0)
    counted = []
    for _ in range(2_000):
        attacking = rng.permutation(fails)[: len(fails) // 2]
        verdict = np.where(np.isin(np.arange(len(attack.truth)), attacking), attack.perturbed, 0)
        verdict = np.maximum(verdict, attack.clean)
        counted.append(attack.truth[verdict == 1].mean())
    assert half == pytest.approx(np.mean(counted), abs=0.005)


def rates_of(name: str, *attack_success: Any) -> PerturbationRates:
    share = RobustnessRate(*attack_success)
    return PerturbationRates(name, 4, NO_RATE, share, NO_RATE, None, None, NO_RATE, NO_RATE)


def test_a_cell_is_an_injection_that_was_tried() -> None:
    rates = [
        rates_of("inject-tree.success.plain", 1, 4, 0.25, 0.1, 0.6),
        rates_of("inject-tree.success.base64", 0, 0),
        rates_of("inject-tree.failure.plain", 1, 4, 0.25),
        rates_of("claim-confident", 1, 4, 0.25),
    ]
    some = cells(rates)
    assert some == {("tree", "plain"): RobustnessRate(1, 4, 0.25, 0.1, 0.6)}
    root = ElementTree.fromstring(matrix_svg({"a&b": some}))
    assert [one.text for one in root.iter(f"{SVG}text")] == ["a&b", "plain", "tree", "25"]
    assert [one.text for one in root.iter(f"{SVG}title")] == ["1 of 4 [10, 60]"]


WORST = {"agent": WorstCase(0.9, 0.8, (AttackedPrecision("claim", 0.6, 0.5),), 0.5)}
PICTURES = {
    "matrix": matrix_svg({"a": cells([rates_of("inject-tree.success.plain", 1, 4, 0.25)])}),
    "contamination": contamination_svg({"a": contamination_curves(WORST)}),
    "curve": curves_svg(
        [
            DefenceCurve(
                "a",
                OperatingPoints(2, 2, OperatingPoint(None, 1, 1), ()),
                (DefencePoint("", 0.5, 0.5), DefencePoint("hide", 1.0, 0.5)),
            )
        ]
    ),
}


@pytest.mark.parametrize("picture", PICTURES.values(), ids=PICTURES)
def test_what_is_drawn_lies_in_the_picture(picture: str) -> None:
    """Whole cells, and the starts of words: with six pixels for each letter their ends too."""
    root = ElementTree.fromstring(picture)
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    corners = []
    for one in root.iter():
        x, y = (float(one.attrib.get(name, 0)) for name in "xy")
        if one.tag == f"{SVG}text":
            corners.append((x + 6 * len(one.text or ""), y + 1))
        corners.append((x, y))
        if one.tag == f"{SVG}rect":
            corners.append((x + float(one.attrib["width"]), y + float(one.attrib["height"])))
    assert all(0 <= x <= width and 0 <= y <= height for x, y in corners)
    assert max(y for _, y in corners) > height / 2


def test_files_name_judge_threat_and_attack(tmp_path: Path) -> None:
    worst = {
        "agent": WorstCase(0.9, 0.8, (AttackedPrecision("claim <short>", 0.6, 0.5),), 0.5),
        "page": WorstCase(0.9, 0.8, (AttackedPrecision("not-tried", float("nan"), None),)),
        "agent and page": WorstCase(None, None, ()),
    }
    table, picture = write_contamination([JudgeRobustness("a&b", (), worst)], tmp_path)
    rows = list(csv.DictReader(table.open()))
    assert {(row["judge"], row["threat"], row["attack"]) for row in rows} == {
        ("a&b", "agent", "claim <short>")
    }
    assert [float(row["share"]) for row in rows] == list(SHARES)
    assert (float(rows[0]["precision"]), float(rows[-1]["precision"])) == pytest.approx((0.9, 0.6))
    assert [row["low"] for row in rows] == [*[""] * (len(SHARES) - 1), "0.5"]
    drawn = ElementTree.fromstring(picture.read_text())
    assert sum(one.tag.endswith("polyline") for one in drawn.iter()) == 1
    assert write_contamination([JudgeRobustness("none", (), {})], tmp_path / "none") == ()
