"""``trajudge score`` with trivial baselines beside the judges."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pytest

from tests.commands import score as main
from tests.eval.runs_to_score import make_run
from tests.screens import on_one_line, one_screen
from trajudge.eval.judge import main as judge
from trajudge.eval.reporting.sentences import NO_BETTER

SPOKEN = re.compile(r"^\d+\. send_msg_to_user\((.*?)\)\. Reasoning: ", re.DOTALL | re.MULTILINE)
DENIALS = ("not", "n't", "n’t", "unable", "impossible", "unfortunately", "sorry", "no ", "error")
NAMES = ["always-fail", "claim-of-success", "tfidf-answer", "telemetry"]


@pytest.fixture(scope="module")
def sample_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "heuristic"
    assert judge(["--judge", "heuristic", "--data", "sample", "--out", str(folder)]) == 0
    return folder


@pytest.mark.slow
def test_baselines_stand_beside_the_judge_on_one_screen(
    sample_run: Path, width: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(sample_run)]) == 0
    text = capsys.readouterr().out
    lines = one_screen(text, width)
    for name in NAMES[1:]:  # there is no room for the one that accepts nothing
        assert any(f"  {name}  " in line for line in lines), name
    assert NO_BETTER in on_one_line(text)


@pytest.mark.slow
def test_results_hold_the_baselines_and_the_comparison(
    sample_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(sample_run), "--json"]) == 0
    first = capsys.readouterr().out
    report = json.loads(first)
    whole = {s["judge"]: s for s in report["baselines"] if s["benchmark"] == "overall"}
    assert list(whole) == NAMES
    assert whole["always-fail"]["accuracy"] == pytest.approx(
        1 - whole["always-fail"]["positives"] / whole["always-fail"]["n"]
    )
    assert [found["baseline"] for found in report["equal_recall"]] == NAMES[1:]
    assert main([str(sample_run), "--json"]) == 0
    assert capsys.readouterr().out == first
    assert main([str(sample_run), "--csv"]) == 0
    assert ",baseline,overall," in capsys.readouterr().out


def test_baselines_can_be_left_out(sample_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(sample_run), "--baselines", "off", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["baselines"] == []


def test_without_trajectories_a_note_says_so_and_an_explicit_wish_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = make_run(tmp_path / "run")
    assert main([str(run)]) == 0
    assert "note: no trivial baselines: the trajectories are not named" in capsys.readouterr().err
    assert main([str(run), "--baselines", "on"]) == 2
    assert "--data KIND:PATH" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.real_data
def test_published_judgments_hold_the_runs_that_the_baselines_judge(
    arb: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Claims lie between what a second reading of the files says at least and at most."""
    arguments = ["--judgments", str(arb), "--annotations", f"agentrewardbench:{arb}"]
    assert main([*arguments, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    place = ("claim-of-success", "overall")
    claim = next(s for s in report["baselines"] if (s["judge"], s["benchmark"]) == place)
    assert set(claim["intervals"]) >= {"precision", "recall", "f1"}
    least, most = _claims(arb)
    assert 0 < least <= claim["counts"]["tp"] + claim["counts"]["fp"] <= most < claim["n"]


def _claims(folder: Path) -> tuple[int, int]:
    """Count the labelled runs whose last message holds no word of denial, and those that sent
    one."""
    with (folder / "annotations.csv").open(newline="") as table:
        labelled = {
            (row["benchmark"], row["model_name"], _plain(row["task_id"]))
            for row in csv.DictReader(table)
        }
    last = {}
    for file in (folder / "judgments").glob("*/*/*/*.json"):
        key = (file.parts[-4], file.parts[-3], _plain(file.stem))
        spoken = SPOKEN.findall(json.loads(file.read_text()).get("input_text") or "")
        if key in labelled and spoken:
            last[key] = spoken[-1].lower()
    sure = [words for words in last.values() if not any(word in words for word in DENIALS)]
    return len(sure), len(last)


def _plain(task: str) -> str:
    return task.replace(".resized", "").replace(".improved", "")
