"""The arithmetic of the paper, and what the command writes under it, against published files."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from tests.commands import score as main
from tests.eval.published_counts import AGENTS, BENCHMARK_IDS, JUDGES, arrays, percent
from trajudge.annotations import Label
from trajudge.eval.scoring.metrics import agentrewardbench_mean, agentrewardbench_rates, count_cells
from trajudge.eval.store.run_folder import (
    JUDGMENTS,
    judgment_line,
    write_labels,
    write_manifest,
    write_rewards,
)
from trajudge.judges.model import Judgment, Status
from trajudge.trajectories.model import TrajectoryKey


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


RATES = ("accuracy", "precision", "recall", "f1", "npv", "tnr")


def run_of(results: dict[str, Any], folder: Path) -> Path:
    """A run with the published arrays: a made-up task id for each place in them."""
    folder.mkdir()
    judgments, labels = [], []
    for benchmark, agents in results.items():
        for agent, cell in agents.items():
            if "all" in (benchmark, agent):
                continue
            success = cell["trajectory_success"]
            for place, (truth, said) in enumerate(
                zip(success["y_human"], success["y_judge"], strict=True)
            ):
                level = "l2." if benchmark == "workarena++" else "task."
                key = TrajectoryKey(
                    benchmark=benchmark.removesuffix("++"), agent=agent, task_id=f"{level}{place}"
                )
                ended = {"status": Status.PROVIDER_ERROR} if said < 0 else {"status": Status.OK}
                verdict = None if said < 0 else bool(said)
                judgments.append(Judgment(key=key, judge="webjudge", success=verdict, **ended))
                labels.append(
                    Label(key=key, raw_task_id=key.task_id, annotator="A", success=bool(truth))
                )
    (folder / JUDGMENTS).write_bytes(b"".join(map(judgment_line, judgments)))
    write_labels(folder, labels)
    write_rewards(folder, {})
    write_manifest(folder, {"protocol": "agentrewardbench"})
    return folder


@pytest.mark.real_data
@pytest.mark.parametrize("judge", JUDGES)
def test_all_203_success_cells_and_all_success_rates_come_out_of_the_command(
    arb: Path, judge: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    published = arb / "published" / judge
    run = run_of(arrays(published), tmp_path / "run")
    assert main([str(run), "--by", "agent", "--json"]) == 0
    written = json.loads(capsys.readouterr().out)
    place = {"overall": "all"}
    scores = {
        (place.get(s["benchmark"], s["benchmark"]), s["agent"]): s
        for s in written["scores"]
        if not s["baseline"]
    }
    cells = 0
    with (published / "metrics_test.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            where = (BENCHMARK_IDS[row["benchmark"]], AGENTS[row["agent"]])
            if (row["judge"], row["category"]) != ("WebJudge", "Success") or where not in scores:
                continue
            for rate in RATES:
                assert percent(scores[where][rate]) == float(row[rate]), (row, rate)
            assert scores[where]["n"] == int(row["total"])
            cells += len(RATES) + 1
    assert cells == 203

    rates = {
        (place.get(r["benchmark"], r["benchmark"]), r["agent"]): r for r in written["success_rates"]
    }
    rows = 0
    with (published / "success_rates_test.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            where = (row["benchmark"], AGENTS[row["agent"]])
            if row["judge"] != "webjudge" or where not in rates:
                continue
            assert rates[where]["expert"] == float(row["human_sr"]), row
            assert rates[where]["judge_rate"] == float(row["judge_sr"]), row
            assert rates[where]["n"] == int(row["count"])
            rows += 1
    assert rows == 29


@pytest.mark.slow
@pytest.mark.real_data
def test_the_expert_and_rule_based_rates_where_all_trajectories_are_stored(
    arb: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of the cells of success_rates_test.csv one has every trajectory among the stored texts."""
    words = ["--judgments", str(arb), "--split", "test", "--protocol", "agentrewardbench"]
    assert main([*words, "--compare", "none", "--json"]) == 0
    found = {
        (r["benchmark"], r["agent"]): r
        for r in json.loads(capsys.readouterr().out)["success_rates"]
        if r["judge"] == "webjudge-7b"
    }
    complete = 0
    with (arb / "published" / "webjudge-7b" / "success_rates_test.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            rate = found.get((row["benchmark"], AGENTS[row["agent"]]))
            if row["judge"] != "webjudge" or rate is None or rate["n"] != int(row["count"]):
                continue
            assert rate["rule_based"] == float(row["function_sr"]), row
            assert rate["expert"] == float(row["human_sr"]), row
            assert rate["judge_rate"] == float(row["judge_sr"]), row
            complete += 1
    assert complete == 1
