"""``eval.score``: the same tables from the folder alone, without a call."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest

from tests.commands import report
from tests.commands import score as main
from tests.eval.cases import key, label, said
from tests.eval.runs_to_score import LABELS, make_run
from tests.screens import on_one_line
from trajudge.annotations import store
from trajudge.eval.judge import main as judge
from trajudge.eval.store.export import ExportSettings, export
from trajudge.eval.store.run_folder import (
    write_labels,
)
from trajudge.trajectories.model import Trajectory


def overall(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, dict[str, object]]:
    """judge -> its overall success score, as results.json has it."""
    assert main([*map(str, arguments), "--json"]) == 0
    scores = json.loads(capsys.readouterr().out)["scores"]
    return {s["judge"]: s for s in scores if s["benchmark"] == "overall" and not s["baseline"]}


def test_a_run_is_scored_from_its_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = make_run(tmp_path / "run")
    assert main([str(run)]) == 0
    text = capsys.readouterr().out
    assert "50.0 [1.3, 98.7]" in text  # two tasks say next to nothing
    assert "rule-based" in text
    assert main([str(run), "--csv"]) == 0
    assert capsys.readouterr().out.startswith("judge,evaluator,benchmark,agent,label,precision,")
    assert main([str(run), "--csv", "--json"]) == 2
    shown = capsys.readouterr()
    assert "--csv and --json exclude each other" in shown.err
    assert main([str(run), "--json", "--format", "latex"]) == 2
    assert "leave out --table and --format" in capsys.readouterr().err
    assert shown.out == ""


def test_missing_and_protocol_come_from_the_command_line_or_the_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = make_run(tmp_path / "run")
    assert overall(capsys, run)["judge"]["recall"] == 0.5
    assert overall(capsys, run, "--missing", "exclude")["judge"]["n"] == 2
    assert overall(capsys, run, "--protocol", "agentrewardbench")["judge"]["recall"] == 1
    paper = make_run(tmp_path / "paper", protocol="agentrewardbench")
    assert overall(capsys, paper)["judge"]["recall"] == 1
    assert overall(capsys, paper, "--protocol", "default")["judge"]["recall"] == 0.5
    assert main([str(run), str(paper)]) == 2
    assert "--protocol" in capsys.readouterr().err


def test_one_judge_in_two_runs_is_two_judges(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = make_run(tmp_path / "a"), make_run(tmp_path / "b", flip=True)
    found = overall(capsys, first, second)
    assert set(found) == {f"judge ({first})", f"judge ({second})"}
    assert found[f"judge ({second})"]["precision"] == 0


def test_a_split_and_other_annotations_can_be_chosen(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = make_run(tmp_path / "run")
    assert overall(capsys, run, "--split", "test")["judge"]["n"] == 2
    other = tmp_path / "other.jsonl"
    store.write(other, [label(1, False)])
    found = overall(capsys, run, "--annotations", f"trajudge:{other}")["judge"]
    assert (found["n"], found["precision"]) == (1, 0)


def test_labels_of_other_data_are_said_to_belong_to_other_trajectories(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, other = make_run(tmp_path / "run"), tmp_path / "other.jsonl"
    store.write(other, [label(n, False) for n in (7, 8)])
    for full in ([], ["--full"]):
        assert main([str(run), "--annotations", f"trajudge:{other}", *full]) == 0
        text = on_one_line(capsys.readouterr().out)
        assert "No expert labels belong to these trajectories" in text
        told = f"KIND:PATH (not the 2 labels of others that were named, {key(7)} for one)"
        assert told in text


def test_the_labels_of_the_sample_are_named_as_its_runs_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """``--annotations sample``, as ``trajudge judge`` takes it, was no such file here."""
    run = tmp_path / "run"
    assert judge(["--data", "sample", "--judge", "heuristic", "--out", str(run)]) == 0
    capsys.readouterr()
    scored = overall(capsys, run)
    write_labels(run, [])
    assert overall(capsys, run, "--annotations", "sample") == scored != overall(capsys, run)
    page = tmp_path / "page.html"
    assert report([str(run), "--annotations", "sample", "--out", str(page)]) == 0
    assert page.is_file()


def test_published_judgments_are_scored_beside_a_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trajectories = [
        Trajectory(key=a.key, raw_task_id=a.raw_task_id, goal="", official_reward=1.0)
        for a in LABELS
    ]
    judgments = [said(1, True, judge="other"), said(2, False, judge="other")]
    export(tmp_path, judgments, trajectories, ExportSettings(model="m", provider="p"))
    labels = tmp_path / "labels.jsonl"
    store.write(labels, LABELS)
    run = make_run(tmp_path / "run")
    found = overall(capsys, run, "--judgments", tmp_path, "--annotations", labels)
    assert found["other"]["precision"] == 1
    assert set(found) == {"judge", "other"}


def test_a_run_that_has_nothing_to_score_says_what_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not that labels are missing: these have some."""
    run = make_run(tmp_path / "run")
    write_labels(run, [one.model_copy(update={"split": None}) for one in LABELS])
    assert main([str(run), "--split", "test"]) == 2
    assert "--split test: no label is in it (3 in no split)" in capsys.readouterr().err
    (run / "judgments.jsonl").write_bytes(b"")
    assert main([str(run)]) == 2
    assert f"{run}: no judgment was made yet" in capsys.readouterr().err


def test_of_several_runs_one_without_judgments_or_with_fewer_questions_is_no_obstacle(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole, bare, begun = (make_run(tmp_path / name) for name in ("whole", "bare", "begun"))
    write_labels(whole, [one.model_copy(update={"side_effect": False}) for one in LABELS])
    write_labels(bare, LABELS)
    (begun / "judgments.jsonl").write_bytes(b"")
    assert main([str(whole), str(bare), str(begun), "--baselines", "off"]) == 0
    warned = [line for line in capsys.readouterr().err.splitlines() if line.startswith("warning")]
    assert warned == [
        f"warning: {begun}: left out, for no judgment was made yet",
        f"warning: {bare}: its labels lack side effect, which the labels of the other runs answer "
        "where they have the trajectory",
    ]


@pytest.mark.parametrize("arguments", [[], ["absent"], ["--judgments", "absent"]])
def test_a_mistake_is_one_sentence(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.slow
@pytest.mark.real_data
def test_the_published_scores_of_a_judge_from_its_texts(
    arb: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--judgments", str(arb), "--split", "test", "--full"]) == 0
    text = capsys.readouterr().out
    judge, rule = next(
        pair for pair in pairwise(text.splitlines()) if pair[0].startswith("Overall ")
    )
    assert "webjudge-7b  " in judge
    assert "78.6 [69.0, 85.8]" in judge
    assert "rule-based  " in rule
    assert "83.0 [73.4, 89.6]    64.7" in rule
