"""The paper's arithmetic, against its published result files digit by digit."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.eval.scoring.published_counts import AGENTS, BENCHMARK_IDS, JUDGES, arrays, percent
from trajudge.annotations import Labels, open_annotations, primary_labels
from trajudge.annotations.agentrewardbench import benchmark_of
from trajudge.eval.scoring.metrics import (
    agentrewardbench_mean,
    agentrewardbench_rates,
    count_cells,
)
from trajudge.eval.store.published import read_published


def test_a_missing_judgment_leaves_recall_and_stays_in_accuracy() -> None:
    cells = count_cells([1, 1, 1, 0, 0, 0], [1, 0, -1, 1, 0, -1])
    assert cells.tolist() == [1, 1, 1, 1, 1, 1]
    rates = agentrewardbench_rates(cells)
    assert (rates["precision"], rates["recall"]) == (0.5, 0.5)
    assert (rates["accuracy"], rates["npv"]) == (0.3333, 0.5)
    assert rates["tnr"] == pytest.approx(1 / 3)


def test_f1_follows_from_the_rounded_precision_and_recall() -> None:
    rates = agentrewardbench_rates(count_cells([1] * 3 + [0] * 4, [1, 0, 0, 1, 1, 0, 0]))
    assert rates["precision"] == rates["recall"] == 1 / 3
    assert rates["f1"] == pytest.approx(0.3333, abs=1e-12)


def test_zero_denominators_give_zero() -> None:
    assert set(agentrewardbench_rates(count_cells([], [])).values()) == {0.0}
    assert agentrewardbench_mean([]) == 0


def success_rows(folder: Path) -> Iterator[tuple[dict[str, str], list[int], list[int]]]:
    """(row of metrics_test.csv, labels, verdicts); Llama never ran on VisualWebArena."""
    results = arrays(folder)
    with (folder / "metrics_test.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            if (row["judge"], row["category"]) == ("WebJudge", "Success"):
                cell = results[BENCHMARK_IDS[row["benchmark"]]][AGENTS[row["agent"]]]
                success = cell["trajectory_success"]
                if success["y_human"]:
                    yield row, success["y_human"], success["y_judge"]


@pytest.mark.real_data
@pytest.mark.parametrize("judge", JUDGES)
def test_all_203_published_success_cells(arb: Path, judge: str) -> None:
    folder = arb / "published" / judge
    cells = 0
    for row, labels, verdicts in success_rows(folder):
        for name, value in agentrewardbench_rates(count_cells(labels, verdicts)).items():
            assert percent(value) == float(row[name]), (row, name)
        assert len(labels) == int(row["total"])
        cells += 7
    assert cells == 203


@pytest.mark.real_data
def test_the_overall_counts(arb: Path) -> None:
    expected = {
        "webjudge-7b": [171, 55, 124, 756],
        "webjudge-gpt-4o": [210, 75, 85, 736],
    }
    for judge, counts in expected.items():
        results = arrays(arb / "published" / judge)
        success = results["all"]["all"]["trajectory_success"]
        cells = count_cells(success["y_human"], success["y_judge"])
        assert cells[:4].tolist() == counts


def expert_rate(labels: Labels, benchmark: str, agent: str) -> float:
    return agentrewardbench_mean(
        [
            label.success
            for key, label in labels.items()
            if label.split == "test"
            and label.success is not None
            and benchmark in ("all", benchmark_of(key))
            and agent in ("all", key.agent)
        ]
    )


@pytest.mark.real_data
@pytest.mark.parametrize("judge", JUDGES)
def test_published_success_rates_of_expert_and_judge(arb: Path, judge: str) -> None:
    folder = arb / "published" / judge
    labels = primary_labels(open_annotations(f"agentrewardbench:{folder.parents[1]}"))
    results = arrays(folder)

    rows = 0
    with (folder / "success_rates_test.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            if row["judge"] != "webjudge":
                continue
            agent = AGENTS[row["agent"]]
            success = results[row["benchmark"]][agent]["trajectory_success"]
            assert agentrewardbench_mean(success["y_judge"]) == float(row["judge_sr"]), row
            assert agentrewardbench_mean(success["y_human"]) == float(row["human_sr"]), row
            assert expert_rate(labels, row["benchmark"], agent) == float(row["human_sr"]), row
            assert len(success["y_human"]) == int(row["count"])
            rows += 1
    assert rows == 30


@pytest.mark.real_data
def test_published_rule_based_rates_agree_with_the_stored_rewards(arb: Path) -> None:
    """Exact where every reward is stored; elsewhere between what the others could make of it."""
    labels = primary_labels(open_annotations(f"agentrewardbench:{arb}"))
    rewards = {p.key: p.official_reward for p in read_published(arb)}
    complete = cells = 0
    with (arb / "published" / "webjudge-7b" / "success_rates_test.csv").open() as file:
        for row in csv.DictReader(file):
            if row["judge"] != "webjudge" or row["count"] == "0":
                continue
            agent = AGENTS[row["agent"]]
            keys = [
                key
                for key, label in labels.items()
                if label.split == "test"
                and label.success is not None
                and row["benchmark"] in ("all", benchmark_of(key))
                and agent in ("all", key.agent)
            ]
            stored = [reward for key in keys if (reward := rewards.get(key)) is not None]
            unknown = len(keys) - len(stored)
            lowest = agentrewardbench_mean([*stored, *[0] * unknown])
            highest = agentrewardbench_mean([*stored, *[1] * unknown])
            assert lowest <= float(row["function_sr"]) <= highest, row
            cells += 1
            complete += not unknown
    assert (cells, complete) == (29, 1)
