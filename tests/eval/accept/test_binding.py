"""A decision holds for the judge, agents and benchmarks that it was made on, and says so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.commands import accept as accept_main
from tests.eval.accept.decided_runs import (
    JUDGE,
    SETTINGS,
    decided,
    judged,
    lines,
    make_run,
    trajectory,
)
from tests.eval.cases import said
from tests.screens import on_one_line
from trajudge.eval.select.decision import read_decision
from trajudge.eval.store.run_folder import write_manifest


def new_run(tmp_path: Path, settings: dict[str, Any], agents: tuple[str, ...] = ("agent",)) -> Path:
    made, judgments = [], []
    for agent in agents:
        run = trajectory(1)
        made.append(run.model_copy(update={"key": run.key.model_copy(update={"agent": agent})}))
        judgments.append(judged(1, True, agent))
    folder = make_run(tmp_path / "new", made, judgments)
    data = json.loads((folder / "manifest.json").read_text())["data"]
    write_manifest(folder, settings | {"data": data})
    return folder


def accept(decision: Path, run: Path, *options: object) -> int:
    words = ["--decision", decision, "--run", run, "--out", run / "accepted", *options]
    return accept_main([str(word) for word in words])


def test_a_decision_records_judge_agents_and_benchmarks(tmp_path: Path) -> None:
    bound = read_decision(decided(tmp_path, SETTINGS)).binding
    assert bound is not None
    assert bound.agents == {"agent": 80}
    assert bound.benchmarks == {"webarena": 80}
    facts = bound.judges[JUDGE].facts
    assert facts["model"] == "gpt-4o-2024-11-20"
    assert facts["representation"] == "axtree"
    assert accept(tmp_path / "selection", new_run(tmp_path, SETTINGS)) == 0


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"model": "gpt-4o-mini"}, "model 'gpt-4o-mini' instead of 'gpt-4o-2024-11-20'"),
        (
            {"parameters": {"temperature": 1.0, "max_tokens": 512}},
            "parameters.temperature 1.0 instead of 0.0",
        ),
        ({"prompt_hash": "b" * 64}, "prompt_hash"),
        (
            {"options": {"representation": "screenshot", "max_prompt_tokens": 16000}},
            "options.representation 'screenshot' instead of 'axtree'",
        ),
        (
            {"options": {"representation": "axtree", "max_prompt_tokens": 4000}},
            "options.max_prompt_tokens 4000 instead of 16000",
        ),
        ({"samples": 3}, "samples 3 instead of 1"),
        ({"calibration": "isotonic-1"}, "only one of the two records"),
        (
            {"sent": [{"model": "gpt-4o-2024-11-20", "parameters": {"max_tokens": 512}}]},
            "sent [{'model'",
        ),
    ],
    ids=[
        "model",
        "parameter",
        "prompts",
        "representation",
        "option",
        "samples",
        "calibration",
        "sent",
    ],
)
def test_another_configuration_under_the_same_name_is_refused_by_what_differs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], changed: dict[str, Any], named: str
) -> None:
    decision = decided(tmp_path, SETTINGS)
    run = new_run(tmp_path, SETTINGS | changed)
    capsys.readouterr()
    assert accept(decision, run) == 2
    said_ = capsys.readouterr().err
    assert named in said_
    assert str(decision) in said_
    assert not (run / "accepted" / "accepted.jsonl").exists()


def test_a_run_of_another_judge_is_said_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """That it is not the decision's judge, and not how to call it the same."""
    decision = decided(tmp_path, SETTINGS)
    run = make_run(tmp_path / "other", [trajectory(1)], [said(1, True, judge="aer-c")])
    capsys.readouterr()
    for options in ((), ("--assume-same-judge",)):
        assert accept(decision, run, *options) == 2
        assert capsys.readouterr().err == (
            f"error: {decision}: the decision is for judge {JUDGE}, while the run is of judge "
            f"aer-c: name the run of {JUDGE} with --run, or select anew\n"
        )


def test_what_one_side_does_not_record_is_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    known = {name: SETTINGS[name] for name in ("judge", "model")}
    decision = decided(tmp_path, known)
    run = new_run(tmp_path, SETTINGS)
    capsys.readouterr()
    assert accept(decision, run) == 2
    said_ = capsys.readouterr().err
    assert "parameters, prompt_hash, options" in said_
    assert "--assume-same-judge" in said_
    assert accept(decision, run, "--assume-same-judge") == 0
    assert "not compared, because not recorded" in capsys.readouterr().out
    run = new_run(tmp_path / "again", SETTINGS | {"model": "gpt-4o-mini"})
    assert accept(decision, run, "--assume-same-judge") == 2


def test_another_agent_is_warned_of_and_can_be_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    decision = decided(tmp_path, SETTINGS)
    run = new_run(tmp_path, SETTINGS, ("agent", "stranger"))
    capsys.readouterr()
    assert accept(decision, run) == 0
    told = capsys.readouterr().out
    told = on_one_line(told)
    assert "not made on stranger (1)" in told
    summary = json.loads((run / "accepted" / "acceptance.json").read_text())
    [warning] = [warning for warning in summary["cautions"] if "stranger (1)" in warning]
    assert "--recertify" in warning
    assert accept(decision, run, "--agents", "any") == 0
    assert "stranger" not in capsys.readouterr().out
    assert accept(decision, run, "--agents", "same") == 0
    (rejected,) = lines(run / "accepted" / "rejected.jsonl")
    assert rejected["kind"] == "agent not covered"
    assert "stranger" in rejected["reason"]


def test_published_judgments_are_bound_by_what_they_tell(tmp_path: Path) -> None:
    from trajudge.eval.select.binding import JudgeConfiguration, differences, unknown

    published = JudgeConfiguration(judge="j", facts={"model": "m", "representation": "axtree"})
    other = JudgeConfiguration(judge="j", facts={"model": "m", "representation": "both"})
    assert list(differences(published, other)) == ["representation 'both' instead of 'axtree'"]
    assert unknown(published, other) == ([], ["parameters", "prompt_hash", "options", "samples"])
