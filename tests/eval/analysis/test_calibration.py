"""``eval.score --calibration``: fitted on dev, measured on test, kept as JSON."""

from __future__ import annotations

import re
from itertools import cycle
from pathlib import Path
from typing import Literal

import pytest

from tests.commands import score as main
from tests.eval.analysis.scored_run import make_run
from tests.eval.cases import key, label, said
from trajudge.eval.analysis.calibration import Calibrations, read_calibration
from trajudge.eval.store.run_folder import (
    JUDGMENTS,
    judgment_line,
    write_labels,
    write_manifest,
    write_rewards,
)
from trajudge.util.errors import UserError


@pytest.mark.parametrize("method", ["isotonic", "platt"])
def test_the_map_is_fitted_on_dev_and_measured_on_test(
    method: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, out = make_run(tmp_path / "run"), tmp_path / "map.json"
    assert main([str(run), "--calibration", method, "--calibration-out", str(out)]) == 0
    screen = capsys.readouterr().out
    assert screen.count("\n") <= 40
    assert re.search(rf"^judge +{method} +98 .* 101$", screen, re.M)
    assert main([str(run), "--calibration", method, "--full"]) == 0
    text = capsys.readouterr().out
    assert "Calibration of judge on 101 test trajectories, fitted on 98 of dev" in text
    found = Calibrations.model_validate_json(out.read_text()).calibrations[0]
    assert (found.fitted_on, found.left_out) == (98, 1)
    assert found.calibrated.calibration_error < found.raw.calibration_error
    assert read_calibration(out, "judge").map.fitted()(0.5) == pytest.approx(
        found.map.fitted()(0.5)
    )
    with pytest.raises(UserError, match="no calibration of other; there are judge"):
        read_calibration(out, "other")
    out.write_text(out.read_text(), encoding="utf-16")
    with pytest.raises(UserError, match="is UTF-16: save it as UTF-8"):
        read_calibration(out, "judge")


@pytest.mark.parametrize(
    ("scores", "words", "message"),
    [
        (False, ["--calibration", "platt"], "no judge here gives scores"),
        (True, ["--calibration", "platt", "--split", "test"], "judge again with --split all"),
        (True, ["--calibration-out", "x.json"], "needs --calibration"),
    ],
)
def test_what_cannot_be_fitted_is_said(
    *,
    scores: bool,
    words: list[str],
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main([str(make_run(tmp_path / "run", scores=scores)), *words]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("splits", "message"),
    [
        ((None,), "the labels name no split: give each its own"),
        (("dev", "test"), "every task of dev is in test too: split the labels by task"),
    ],
)
def test_labels_without_two_splits_by_task_are_told_apart(
    splits: tuple[Literal["dev", "test"] | None, ...],
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    run = make_run(tmp_path / "run")
    keys = [key(i, agent=agent) for i in range(199) for agent in (key(0).agent, "other")]
    judgments = [said(0, True, score=0.5).model_copy(update={"key": one}) for one in keys]
    given = zip(keys, cycle(splits), strict=False)
    write_labels(run, [label(0, True, split=s).model_copy(update={"key": one}) for one, s in given])
    (run / JUDGMENTS).write_bytes(b"".join(map(judgment_line, judgments)))
    write_rewards(run, {j.key: None for j in judgments})
    assert main([str(run), "--calibration", "auto"]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(("scores", "method"), [(True, "log-odds"), (False, "verdict")])
def test_auto_takes_what_the_judge_and_the_split_allow(
    *, scores: bool, method: str, tmp_path: Path
) -> None:
    run, out = make_run(tmp_path / "run", scores=scores), tmp_path / "map.json"
    assert main([str(run), "--calibration", "auto", "--calibration-out", str(out)]) == 0
    found = read_calibration(out, "judge")
    assert found.map.method == method, "98 trajectories are too few for isotonic regression"
    assert found.calibrated.brier < found.raw.brier


@pytest.mark.parametrize("data", ["--csv", "--json"])
def test_results_as_data_leave_no_calibration_out_in_silence(
    data: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, out = make_run(tmp_path / "run"), tmp_path / "map.json"
    words = [str(run), data, "--calibration", "auto"]
    assert main(words) == 2
    assert "hold no calibration" in capsys.readouterr().err
    assert main([*words, "--calibration-out", str(out)]) == 0
    assert read_calibration(out, "judge").calibrated.n == 101


def test_the_file_says_how_the_judge_was_configured(tmp_path: Path) -> None:
    run, out = make_run(tmp_path / "run"), tmp_path / "map.json"
    write_manifest(run, {"protocol": "default", "judge": "judge", "prompt_hash": "abc"})
    assert main([str(run), "--calibration", "auto", "--calibration-out", str(out)]) == 0
    configuration = read_calibration(out, "judge").configuration
    assert configuration is not None
    assert configuration.facts == {"prompt_hash": "abc"}
