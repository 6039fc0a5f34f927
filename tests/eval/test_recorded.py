"""Runs, selections and caches that earlier versions wrote are read for ever."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.commands import score
from tests.llm_server import LlmServer
from trajudge.eval.accept import main as accept
from trajudge.eval.judge import main as judge
from trajudge.eval.reparse import main as reparse
from trajudge.eval.select.__main__ import main as select
from trajudge.eval.select.output import read_decision
from trajudge.eval.store.run_folder import read_judgments
from trajudge.judges.model import Judgment, Status

RECORDED = Path(__file__).parents[1] / "recorded"
VERSIONS = sorted(path.name for path in RECORDED.iterdir() if path.is_dir())
MODELS = ["aer-c-agentrewardbench", "insta", "logprob-axtree", "nnetnav", "rubric-screenshot"]
MODELS += ["aer-v-agentrewardbench", "simplified-axtree", "webjudge-general", "webvoyager"]
POINTS = ("n", "precision", "recall", "f1", "accuracy", "kappa", "mcc")


@pytest.fixture(params=VERSIONS)
def recorded(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """A copy of what a version recorded; the manifests name their data relative to it."""
    folder = tmp_path / "recorded"
    shutil.copytree(RECORDED / request.param, folder)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("TRAJUDGE_CACHE", str(tmp_path / "replies.sqlite"))
    return folder


def points(scores: Iterable[dict[str, object]]) -> dict[tuple[object, ...], list[object]]:
    names = ("judge", "benchmark", "agent", "label", "baseline")
    return {
        tuple(row[name] for name in names): [row.get(point) for point in POINTS] for row in scores
    }


def verdict(judgment: Judgment) -> dict[str, object]:
    """What is compared: the words of ``detail`` may change."""
    return judgment.model_dump(exclude={"calls", "detail"})


@pytest.mark.slow
@pytest.mark.parametrize("name", [*MODELS, "failures", "heuristic"])
def test_a_recorded_run_has_the_same_points(
    recorded: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = recorded / "runs" / name
    before = points(json.loads((folder / "results.json").read_text())["scores"])
    assert score([str(folder), "--json"]) == 0
    assert points(json.loads(capsys.readouterr().out)["scores"]) == before


@pytest.mark.slow
@pytest.mark.parametrize("name", [*MODELS, "failures"])
def test_a_recorded_run_is_read_again_to_the_same_verdicts(
    recorded: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, again = recorded / "runs" / name, recorded / "again"
    assert reparse([str(folder), "--out", str(again), "--cache", "replies.sqlite"]) == 0
    said = capsys.readouterr().out
    assert "7 of 7 judgments read again, 0 with another verdict" in said
    assert list(map(verdict, read_judgments(again))) == list(map(verdict, read_judgments(folder)))
    assert score([str(again)]) == 0


def test_the_failures_are_of_every_kind(recorded: Path) -> None:
    statuses = {judgment.status for judgment in read_judgments(recorded / "runs" / "failures")}
    assert statuses == {Status.UNPARSABLE, Status.TRUNCATED, Status.REFUSED}


def test_a_reply_that_was_changed_is_read_as_it_stands(
    recorded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The verdicts come from the replies, not from the recorded verdicts."""
    folder = recorded / "runs" / "simplified-axtree"
    lines = [json.loads(line) for line in (folder / "judgments.jsonl").open()]
    was = lines[0]["success"]
    text = lines[0]["calls"][0]["text"]
    for word in ("Unsuccessful", "Successful"):
        text = text.replace(f"<success>{word}<", "<success>_<")
    new = "Unsuccessful" if was else "Successful"
    lines[0]["calls"][0]["text"] = text.replace("<success>_<", f"<success>{new}<")
    (folder / "judgments.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert reparse([str(folder), "--out", "again"]) == 0
    assert "7 of 7 judgments read again, 1 with another verdict" in capsys.readouterr().out
    assert read_judgments(recorded / "again")[0].success is (not was)


def test_of_judgments_that_come_more_than_once_the_last_is_read_again(
    recorded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """All of them were, and the new folder held each again."""
    folder = recorded / "runs" / "simplified-axtree"
    lines = (folder / "judgments.jsonl").read_bytes()
    before = read_judgments(folder)
    (folder / "judgments.jsonl").write_bytes(lines.splitlines(keepends=True)[0] + lines)
    assert reparse([str(folder), "--out", "again"]) == 0
    said = capsys.readouterr().out
    assert "7 of 7 judgments read again, 0 with another verdict" in said
    assert "holds 1 judgment more than once, 0 of them with another verdict" in said
    assert list(map(verdict, read_judgments(recorded / "again"))) == list(map(verdict, before))


def test_a_reply_without_its_probabilities_is_kept_as_recorded(
    recorded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = recorded / "runs" / "logprob-axtree"
    assert reparse([str(folder), "--out", "again"]) == 0
    assert "0 of 7 judgments read again" in capsys.readouterr().out
    assert read_judgments(recorded / "again") == read_judgments(folder)


def test_a_resume_goes_on_or_says_why_not(
    recorded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = recorded / "runs" / "simplified-axtree"
    manifest = json.loads((folder / "manifest.json").read_text())
    before = (folder / "judgments.jsonl").read_bytes()
    with LlmServer() as server:
        words = ["--model", "gpt-4o", "--base-url", manifest["endpoint"], "--data", "trajudge:data"]
        words += ["--annotations", "trajudge:data/labels.jsonl", "--out", str(folder)]
        code = judge([*words, "--yes"])
        assert server.stats.requests == 0
    assert (folder / "judgments.jsonl").read_bytes() == before
    if code:
        said = capsys.readouterr().err
        assert code == 2
        assert "the prompts have changed since" in said
        assert "trajudge run reparse" in said


@pytest.mark.slow
def test_a_recorded_selection_is_read_and_made_again(recorded: Path) -> None:
    decision = read_decision(recorded / "selection")
    assert decision.chosen is not None
    plan = recorded / "selection" / "candidates.json"
    words = [str(recorded / "runs" / "heuristic"), "--candidates", str(plan), "--out", "again"]
    assert select(words) in (0, 1)
    again = read_decision(recorded / "again")
    assert again.plan == decision.plan
    for old, new in zip(decision.findings, again.findings, strict=True):
        assert (old.name, old.rate.hits, old.rate.trials) == (
            new.name,
            new.rate.hits,
            new.rate.trials,
        )


def test_a_recorded_decision_is_applied_or_says_what_it_lacks(
    recorded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--decision", "selection", "--run", "runs/heuristic", "--data", "trajudge:data"]
    code = accept([*words, "--out", "accepted"])
    assert code in (0, 2)
    assert code == 0 or "selection" in capsys.readouterr().err
