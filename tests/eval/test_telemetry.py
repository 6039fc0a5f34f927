"""``python -m eval.telemetry``: trains, evaluates on held-out tasks, writes a model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from annotations import Annotation
from annotations.store import write as write_annotations
from eval.telemetry import main
from judges.telemetry import read_model
from tests.judges.runs import mug_run
from trajectories.model import Step, Trajectory, TrajectoryKey
from trajectories.store import write


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


def test_cross_validates_and_writes_a_model(
    shop_runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "model.json"
    words = ["--data", f"trajudge:{shop_runs}", "--seeds", "3", "--out", str(out)]
    assert main([*words, "--target-precision", "0.8"]) == 0
    lines = capsys.readouterr().out.splitlines()
    overall = next(line for line in lines if line.startswith("Overall"))
    precision = float(overall.split()[1])
    assert precision > 80
    assert overall.split()[-2:] == ["60", "30"]
    assert read_model(out).trained_on == 60


def test_trains_on_one_split_and_applies_to_the_other(
    shop_runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--data", f"trajudge:{shop_runs}", "--seeds", "2", "--folds", "3"]
    assert main([*words, "--train", "dev", "--apply", "test"]) == 0
    overall = next(ln for ln in capsys.readouterr().out.splitlines() if ln.startswith("Overall"))
    assert overall.split()[-2:] == ["30", "15"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--without", "colour"], "no such feature; there are steps"),
        (["--train", "dev"], "--train goes with --apply"),
        (["--train", "dev", "--apply", "dev"], "name two splits"),
        (["--folds", "1"], "--folds is at least 2"),
        (["--folds", "20"], "too few to train on"),
    ],
)
def test_mistakes_are_said(
    shop_runs: Path, words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--data", f"trajudge:{shop_runs}", *words]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.real_data
def test_real_runs_keep_the_precision_across_tasks(
    real_data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = f"agentrewardbench-text:{real_data / 'agentrewardbench'}"
    assert main(["--data", data, "--seeds", "2"]) == 0
    overall = next(ln for ln in capsys.readouterr().out.splitlines() if ln.startswith("Overall"))
    assert overall.split()[-2:] == ["925", "245"]
    assert 70 < float(overall.split()[1]) < 95
