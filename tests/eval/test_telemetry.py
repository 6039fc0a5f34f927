"""``trajudge judges train``: trains, scores on held-out tasks, writes a model."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from tests.commands import command, score, select
from tests.judges.runs import mug_run
from tests.tables import mistakes
from trajudge.annotations import Label
from trajudge.annotations.store import write as write_annotations
from trajudge.eval.judge import main as judge
from trajudge.judges.telemetry import read_model
from trajudge.trajectories.model import Step, Trajectory, TrajectoryKey
from trajudge.trajectories.store import write

main = command("judges train")


@pytest.fixture(scope="module")
def shop_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """60 runs on 30 tasks: who ran out of steps failed, who said something mostly succeeded."""
    folder = tmp_path_factory.mktemp("runs")
    rng = np.random.default_rng(0)
    runs, labels = [], []
    for number in range(60):
        success = bool(number % 2)
        key = TrajectoryKey(benchmark="shop", agent=f"a{number % 2}", task_id=f"shop.{number // 2}")
        spoke = success != (rng.random() < 0.1)
        runs.append(_run(key, spoke))
        split = "dev" if number < 30 else "test"
        labels.append(
            Label(key=key, raw_task_id=key.task_id, annotator="e", success=success, split=split)
        )
    write(folder, runs)
    write_annotations(folder / "labels.jsonl", labels)
    return folder


def _run(key: TrajectoryKey, spoke: bool) -> Trajectory:
    last = "send_msg_to_user('Done.')" if spoke else "click('1')"
    actions = ["click('1')", "fill('2', 'mug')", last]
    steps = tuple(Step(index=index, action=action) for index, action in enumerate(actions))
    return mug_run(key=key, raw_task_id=key.task_id, steps=steps, truncated=not spoke)


def test_scores_on_held_out_tasks_and_writes_a_model(
    shop_runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "model.json"
    words = ["--data", f"trajudge:{shop_runs}", "--target-precision", "0.8", "--save", str(out)]
    assert main(words) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("telemetry-cross-fitted on 60 trajectories of shop")
    precision = re.search(r"runs that it accepts ([\d.]+) %", shown)
    assert precision is not None and float(precision[1]) > 80
    assert read_model(out).trained_on == 60
    assert main([*words, "--split", "dev", "--folds", "3"]) == 0
    assert "on 30 trajectories" in capsys.readouterr().out
    assert len(read_model(out).training_keys) == 30


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the device that is always full")
def test_the_evaluation_is_not_lost_to_a_model_that_cannot_be_written(
    shop_runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--data", f"trajudge:{shop_runs}", "--folds", "3"]
    assert main([*words, "--save", "/dev/full"]) == 2
    shown = capsys.readouterr()
    assert "precision" in shown.out
    assert shown.err.startswith("error: /dev/full: cannot be written (No space left")


@pytest.mark.slow
def test_scores_on_its_own_training_runs_are_left_out_and_counted(
    shop_runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Trained on dev, judged on everything: only the test half may be scored."""
    model, data = tmp_path / "model.json", f"trajudge:{shop_runs}"
    words = ["--data", data, "--folds", "3", "--save", str(model)]
    assert main([*words, "--split", "dev"]) == 0
    assert len(read_model(model).training_keys) == 30
    run = tmp_path / "run"
    judging = ["--judge", "telemetry", "--judge-option", f"model={model}", "--data", data]
    assert judge([*judging, "--split", "all", "--out", str(run)]) == 0
    shown = capsys.readouterr().out
    assert "training set 30 (left out)" in shown
    assert "telemetry: 30 trajectories left out, because it was trained on them" in shown
    found = json.loads((run / "results.json").read_text())
    (overall,) = [
        c for c in found["coverage"] if c["benchmark"] == "overall" and c["agent"] == "all"
    ]
    assert (overall["judged"], overall["training"], overall["unjudged"]) == (30, 30, 0)
    assert {row["n"] for row in found["scores"] if row["benchmark"] == "overall"} == {30}

    assert score([str(run), "--json"]) == 0
    assert {row["n"] for row in json.loads(capsys.readouterr().out)["scores"]} == {30}
    assert score([str(run), "--training-set", "include", "--json"]) == 0
    captured = capsys.readouterr()
    assert {row["n"] for row in json.loads(captured.out)["scores"]} == {60}
    assert "was trained on 30 of the trajectories that it is scored on" in captured.err


def trained(runs: Path, folder: Path) -> tuple[Path, str]:
    """A model of the runs, and the runs as ``--data`` names them."""
    model, data = folder / "model.json", f"trajudge:{runs}"
    assert main(["--data", data, "--save", str(model)]) == 0
    return model, data


@pytest.mark.slow
def test_a_judge_scored_on_its_training_set_alone_has_no_metrics(
    shop_runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, data = trained(shop_runs, tmp_path)
    judging = ["--judge", "telemetry", "--judge-option", f"model={model}", "--data", data]
    panel = [
        "--judge",
        "panel",
        "--members",
        "telemetry,heuristic",
        "--judge-option",
        f"model={model}",
    ]
    for name, words in (("alone", judging), ("panel", [*panel, "--data", data])):
        run = tmp_path / name
        assert judge([*words, "--split", "all", "--out", str(run)]) == 0
        found = json.loads((run / "results.json").read_text())
        assert found["scores"] == []
        assert {row["training"] for row in found["coverage"]} == {60}
    shown = capsys.readouterr().out
    assert "training set 60 (left out)" in shown
    assert "All 60 trajectories are the training set of telemetry" in shown
    assert "No expert labels" not in shown
    words = [str(tmp_path / "alone"), "--target-precision", "0.7", "--out", str(tmp_path / "s")]
    assert select(words) == 2
    assert "trained on them" in capsys.readouterr().err


@pytest.mark.slow
def test_cross_fitted_verdicts_are_a_run_in_which_no_model_saw_the_task(
    shop_runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "fitted"
    words = ["--data", f"trajudge:{shop_runs}", "--target-precision", "0.8"]
    assert main([*words, "--cross-fit", str(out)]) == 0
    shown = capsys.readouterr().out
    assert score([str(out), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["scores"]
    (row,) = [r for r in rows if r["benchmark"] == "overall" and not r["baseline"]]
    assert row["judge"] == "telemetry-cross-fitted"
    assert row["n"] == 60
    assert f"accepts {100 * row['precision']:.1f} % (" in " ".join(shown.split())
    assert main([*words, "--cross-fit", str(out)]) == 2
    assert "holds judgments already" in capsys.readouterr().err


@mistakes(
    """
    --without colour => no such feature; there are steps
    --folds 1 => --folds 1: must be at least 2
    --folds 20 => too few to train on
    """
)
def test_mistakes_are_said(
    shop_runs: Path, words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--data", f"trajudge:{shop_runs}", *words]) == 2
    assert sentence in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.real_data
def test_real_runs_keep_the_precision_across_tasks(
    real_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = f"agentrewardbench-text:{real_data / 'agentrewardbench'}"
    assert main(["--data", data, "--cross-fit", str(tmp_path / "run")]) == 0
    capsys.readouterr()
    assert score([str(tmp_path / "run"), "--json", "--baselines", "off"]) == 0
    rows = json.loads(capsys.readouterr().out)["scores"]
    (row,) = [r for r in rows if r["benchmark"] == "overall" and not r["baseline"]]
    assert (row["n"], row["positives"]) == (925, 245)
    assert 0.7 < row["precision"] < 0.95
