"""``trajudge run telemetry``: trains, evaluates on held-out tasks, writes a model."""

from __future__ import annotations

import json
import re
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from tests.commands import command, score, select
from tests.judges.runs import mug_run
from tests.tables import mistakes
from trajudge.annotations import Annotation
from trajudge.annotations.store import write as write_annotations
from trajudge.eval.judge import main as judge
from trajudge.judges.methods.telemetry import read_model
from trajudge.trajectories.model import Step, Trajectory, TrajectoryKey
from trajudge.trajectories.store import write

train = command("run telemetry")


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
            Annotation(
                key=key, raw_task_id=key.task_id, annotator="e", success=success, split=split
            )
        )
    write(folder, runs)
    write_annotations(folder / "labels.jsonl", labels)
    return folder


def _run(key: TrajectoryKey, spoke: bool) -> Trajectory:
    last = "send_msg_to_user('Done.')" if spoke else "click('1')"
    actions = ["click('1')", "fill('2', 'mug')", last]
    steps = tuple(Step(index=index, action=action) for index, action in enumerate(actions))
    return mug_run(key=key, raw_task_id=key.task_id, steps=steps, truncated=not spoke)


@pytest.mark.slow
def test_cross_validates_and_writes_a_model(
    shop_runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "model.json"
    words = ["--data", f"trajudge:{shop_runs}", "--seeds", "2", "--save", str(out)]
    assert train([*words, "--target-precision", "0.8"]) == 0
    lines = capsys.readouterr().out.splitlines()
    overall = next(line for line in lines if line.startswith("Overall"))
    precision = float(overall.split()[1])
    assert precision > 80
    assert overall.split()[-2:] == ["60", "30"]
    assert read_model(out).trained_on == 60


def _interval(cell: str) -> tuple[float, ...]:
    return tuple(map(float, re.findall(r"[0-9.]+", cell)))


def test_limits_are_exact_where_tasks_have_one_run_and_never_of_width_zero(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every run that spoke succeeded, so every accepted run is right: 15 tasks of 1 run each."""
    keys = [TrajectoryKey(benchmark="shop", agent="a", task_id=f"shop.{n}") for n in range(60)]
    write(tmp_path, [_run(key, bool(n % 2)) for n, key in enumerate(keys)])
    labels = [
        Annotation(
            key=key,
            raw_task_id=key.task_id,
            annotator="e",
            success=bool(n % 2),
            split="dev" if n < 30 else "test",
        )
        for n, key in enumerate(keys)
    ]
    write_annotations(tmp_path / "labels.jsonl", labels)
    words = ["--data", f"trajudge:{tmp_path}", "--seeds", "2", "--folds", "3"]
    assert train([*words, "--train-split", "dev", "--eval-split", "test"]) == 0
    overall = next(ln for ln in capsys.readouterr().out.splitlines() if ln.startswith("Overall"))
    low = 100 * 0.025 ** (1 / 15)  # the exact lower end at 15 of 15: one run a task
    precision = _interval(" ".join(overall.split()[1:4]))
    assert precision == pytest.approx((100.0, low, 100.0), abs=0.05)


def test_trains_on_one_split_and_applies_to_the_other(
    shop_runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--data", f"trajudge:{shop_runs}", "--seeds", "2", "--folds", "3"]
    assert train([*words, "--train-split", "dev", "--eval-split", "test"]) == 0
    overall = next(ln for ln in capsys.readouterr().out.splitlines() if ln.startswith("Overall"))
    assert overall.split()[-2:] == ["30", "15"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the device that is always full")
def test_the_evaluation_is_not_lost_to_a_model_that_cannot_be_written(
    shop_runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--data", f"trajudge:{shop_runs}", "--seeds", "1", "--folds", "3"]
    splits = ["--train-split", "dev", "--eval-split", "test"]
    assert train([*words, *splits, "--save", "/dev/full"]) == 2
    shown = capsys.readouterr()
    assert "\nOverall" in shown.out
    assert shown.err.startswith("error: /dev/full: cannot be written (No space left")


@pytest.mark.slow
def test_scores_on_its_own_training_runs_are_left_out_and_counted(
    shop_runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Trained on dev, judged on everything: only the test half may be scored."""
    model, data = tmp_path / "model.json", f"trajudge:{shop_runs}"
    words = ["--data", data, "--seeds", "1", "--folds", "3", "--save", str(model)]
    assert train([*words, "--train-split", "dev", "--eval-split", "test"]) == 0
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
    assert train(["--data", data, "--seeds", "1", "--save", str(model)]) == 0
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
def test_a_model_file_of_an_earlier_version_keeps_its_hash_and_is_warned_of(
    shop_runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, data = trained(shop_runs, tmp_path)
    content = json.loads(model.read_text())
    del content["training_keys"]
    model.write_text(json.dumps(content))
    old = sha256(json.dumps(content, separators=(",", ":")).encode()).hexdigest()
    run = tmp_path / "run"
    judging = ["--judge", "telemetry", "--judge-option", f"model={model}", "--data", data]
    assert judge([*judging, "--split", "all", "--out", str(run)]) == 0
    assert "trained on trajectories that its file does not name" in capsys.readouterr().err
    assert json.loads((run / "manifest.json").read_text())["prompt_hash"] == old


@pytest.mark.slow
def test_cross_fitted_verdicts_are_a_run_in_which_no_model_saw_the_task(
    shop_runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "fitted"
    words = ["--data", f"trajudge:{shop_runs}", "--seeds", "1", "--target-precision", "0.8"]
    assert train([*words, "--cross-fit", str(out)]) == 0
    overall = next(ln for ln in capsys.readouterr().out.splitlines() if ln.startswith("Overall"))
    assert score([str(out), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["scores"]
    (row,) = [r for r in rows if r["benchmark"] == "overall" and not r["baseline"]]
    assert row["judge"] == "telemetry-cross-fitted"
    assert row["n"] == 60
    assert f"{100 * row['precision']:.1f}" == overall.split()[1]
    assert train([*words, "--cross-fit", str(out)]) == 2
    assert "holds judgments already" in capsys.readouterr().err


@mistakes(
    """
    --without colour => no such feature; there are steps
    --train-split dev => --train-split goes with --eval-split
    --train-split dev --eval-split dev => name two splits
    --folds 1 => --folds 1: must be at least 2
    --folds 20 => too few to train on
    """
)
def test_mistakes_are_said(
    shop_runs: Path, words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train(["--data", f"trajudge:{shop_runs}", *words]) == 2
    assert sentence in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.real_data
def test_real_runs_keep_the_precision_across_tasks(
    real_data: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    data = f"agentrewardbench-text:{real_data / 'agentrewardbench'}"
    assert train(["--data", data, "--seeds", "2"]) == 0
    overall = next(ln for ln in capsys.readouterr().out.splitlines() if ln.startswith("Overall"))
    assert overall.split()[-2:] == ["925", "245"]
    assert 70 < float(overall.split()[1]) < 95
