"""Precision where a share of the failures attacks is that of counts."""

from __future__ import annotations

import csv
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from tests.worlds.robustness import simulated
from trajudge.robustness.figures import SHARES, precision_at, write_contamination
from trajudge.robustness.rates import AttackedPrecision, WorstCase, worst_case
from trajudge.robustness.report import JudgeRobustness


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
