"""What the command writes beside its tables: submission, wrong verdicts, their kinds, plots."""

from __future__ import annotations

import json
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.commands import score as main
from trajudge.eval.analysis.explain import KINDS, read_explanation
from trajudge.eval.judge import main as judge_main
from trajudge.eval.store.run_folder import JUDGMENTS


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A judge without a model, on the bundled sample."""
    monkeypatch.setenv("TRAJUDGE_CACHE", str(tmp_path / "replies.sqlite"))
    folder = tmp_path / "run"
    assert judge_main(["--data", "sample", "--judge", "heuristic", "--out", str(folder)]) == 0
    return folder


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def results(run: Path, capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    capsys.readouterr()
    assert main([str(run), "--json", *words]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def overall(run: Path, capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    """The score of success over all benchmarks."""
    scores: list[dict[str, Any]] = results(run, capsys, *words)["scores"]
    return next(s for s in scores if s["benchmark"] == "overall" and s["label"] == "success")


@pytest.mark.slow
def test_the_submission_holds_the_leaderboards_fields_and_what_they_come_from(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "submission.json"
    whole = overall(run, capsys, "--submission", str(file))
    written = json.loads(file.read_text())
    (line,) = written["leaderboard"]
    fields = ["Judge", "Overall", "Recall", "F1", "AB", "VWA", "WA", "Work", "Work++"]
    assert list(line) == fields
    assert line["Overall"] == pytest.approx(100 * whole["precision"], abs=0.05)
    arrays = written["results"]["heuristic"]["all"]["all"]["trajectory_success"]
    pairs = Counter(zip(arrays["y_human"], arrays["y_judge"], strict=True))
    assert pairs[1, 1] == whole["counts"]["tp"]
    assert pairs[0, 1] == whole["counts"]["fp"]

    before = written["computed_from"]
    assert len(before["trajectories"]["heuristic"]) == whole["n"]
    verdicts = (run / JUDGMENTS).read_bytes()
    (run / JUDGMENTS).write_bytes(verdicts.replace(b'"success":true', b'"success":false', 1))
    results(run, capsys, "--submission", str(file))
    after = json.loads(file.read_text())["computed_from"]
    assert after["labels_sha256"] == before["labels_sha256"]
    assert after["judgments_sha256"] != before["judgments_sha256"]


@pytest.mark.slow
def test_wrong_verdicts_are_written_with_what_one_needs_to_see_why(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "wrong.jsonl"
    whole = overall(run, capsys, "--mismatches", str(file))
    cases = lines(file)
    errors = Counter(case["error"] for case in cases)
    assert errors["false positive"] == whole["counts"]["fp"]
    assert errors["false negative"] == whole["counts"]["fn"]
    assert cases
    for case in cases:
        assert case["goal"]
        assert 0 < len(case["steps"]) <= 3
        assert case["verdict"] != case["expert"]["success"]


def refused(capsys: pytest.CaptureFixture[str], needed: str, run: Path, *words: str) -> None:
    """Score with these words: a mistake, which says what is needed."""
    assert main([str(run), *words]) == 2
    assert needed in capsys.readouterr().err


@pytest.mark.slow
def test_wrong_verdicts_need_the_data(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [str(run), "--mismatches", "wrong.jsonl", "--data", "agentrewardbench:absent"]
    assert main(words) == 2
    assert capsys.readouterr().err.splitlines()[-1].startswith("error: ")
    manifest = json.loads((run / "manifest.json").read_text())
    del manifest["data"]
    (run / "manifest.json").write_text(json.dumps(manifest))
    refused(capsys, "--data KIND:PATH", run, "--mismatches", "wrong.jsonl")


@pytest.mark.slow
def test_a_script_sorts_them_by_kind_and_another_script_has_its_own_replies(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script, file = tmp_path / "script.jsonl", tmp_path / "wrong.jsonl"
    reply = "<reasoning>It believed a claim.</reasoning>\n<kind>misleading_reasoning</kind>"
    script.write_text(json.dumps({"text": reply}) + "\n")
    words = [str(run), "--mismatches", str(file), "--explain", "any", "--script", str(script)]
    assert main(words) == 0
    assert "Wrong verdicts by kind" in capsys.readouterr().out
    assert {case["explanation"]["kind"] for case in lines(file)} == {KINDS["misleading_reasoning"]}
    assert lines(file)[0]["explanation"]["reason"] == "It believed a claim."

    script.write_text(json.dumps({"text": "<kind>grounding_mismatch</kind>"}) + "\n")
    assert main(words) == 0  # cached replies are those of what a script says, not of its name
    assert {case["explanation"]["kind"] for case in lines(file)} == {KINDS["grounding_mismatch"]}


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("<kind>other</kind>", "other"),
        ("<kind> Missed instruction </kind>", KINDS["missed_instruction"]),
        ("<kind>other</kind> no: <kind>grounding_mismatch</kind>", KINDS["grounding_mismatch"]),
        ("<kind>bad luck</kind>", None),
        ("I cannot tell.", None),
    ],
)
def test_the_kind_is_read_or_left_open(text: str, kind: str | None) -> None:
    found = read_explanation(text, "model")
    assert found.kind == kind
    if kind is None:
        assert "no kind" in found.reason


@pytest.mark.slow
def test_explain_without_a_file_is_a_mistake(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    refused(capsys, "--mismatches FILE", run, "--explain", "gpt-4o")


@pytest.mark.slow
def test_what_is_said_of_a_model_needs_explain(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No model is asked without it."""
    refused(capsys, "--base-url is for the model of --explain", run, "--base-url", "http://here")


@pytest.mark.slow
def test_plots_are_png_and_svg_or_the_extra_is_named(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "plots"
    code = main([str(run), "--plots", str(folder)])
    if find_spec("matplotlib") is None:
        assert code == 2
        assert "trajudge[plots]" in capsys.readouterr().err
        return
    assert code == 0
    names = {path.name for path in folder.iterdir()}
    assert {"precision.png", "precision.svg", "success_rate.svg", "precision_recall.png"} <= names
    assert "performance_profile.svg" in names
    first = (folder / "precision.svg").read_bytes()
    assert main([str(run), "--plots", str(folder)]) == 0
    assert (folder / "precision.svg").read_bytes() == first


@pytest.mark.slow
def test_tables_of_the_paper_in_any_format(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main([str(run), "--table", "6", "--format", "csv"]) == 0
    shown = capsys.readouterr()
    assert shown.out.startswith("benchmark,agent,judge,by expert,by expert low")
    assert "warning" in shown.err
    assert main([str(run), "--table", "1", "--table", "7", "--format", "latex"]) == 0
    assert capsys.readouterr().out.count(r"\begin{tabular}") == 2
