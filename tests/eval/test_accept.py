"""``trajudge accept``: who is kept, in which form, and what a decision is bound to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.commands import accept as accept_main
from tests.commands import select as select_main
from tests.eval.cases import failed, label, said
from tests.eval.decided_runs import (
    JUDGE,
    SETTINGS,
    accept,
    decided,
    judged,
    lines,
    make_run,
    trajectory,
)
from tests.screens import on_one_line, one_screen
from tests.tables import mistakes, one_sentence
from trajudge.eval.accept.accept import AcceptanceFilter, apply
from trajudge.eval.accept.conversations import ChatFormat, chat_turns, without_observation
from trajudge.eval.accept.training import first_difference, guarantee_of, written_hash
from trajudge.eval.select.decision import read_decision
from trajudge.eval.select.scores import Rule
from trajudge.eval.store.run_folder import write_labels, write_manifest
from trajudge.judges.model import Status
from trajudge.trajectories.model import Step


@pytest.fixture
def run(tmp_path: Path) -> Path:
    made = [trajectory(n, acts=n != 4) for n in range(5)]
    judgments = [
        said(0, True, score=0.9),
        said(1, True, score=0.6),
        failed(2, Status.REFUSED),
        said(4, True, score=1.0),
    ]
    return make_run(tmp_path / "run", made, judgments)


def test_everything_ends_in_one_file_or_the_other_with_its_reason(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert accept("--judge", "judge", "--threshold", 0.8, "--run", run, "--out", out) == 0
    (accepted,) = lines(out / "accepted.jsonl")
    assert accepted["provenance"] == {
        "benchmark": "webarena",
        "agent": "agent",
        "task_id": "webarena.0",
        "attempt": 0,
        "raw_task_id": "webarena.0",
        "official_reward": 1.0,
        "judge": "judge",
        "score": 0.9,
        "threshold": 0.8,
        "decision": None,
    }
    rejected = {line["key"]["task_id"]: line for line in lines(out / "rejected.jsonl")}
    assert {task: line["kind"] for task, line in rejected.items()} == {
        "webarena.1": "below the threshold",
        "webarena.2": "judgment failed",
        "webarena.3": "not judged",
        "webarena.4": "no action",
    }
    assert "refused: because" in rejected["webarena.2"]["reason"]
    summary = json.loads((out / "acceptance.json").read_text())
    assert summary["counts"] == {
        "accepted": 1,
        "below the threshold": 1,
        "judgment failed": 1,
        "no action": 1,
        "not judged": 1,
    }
    printed = capsys.readouterr().out
    assert "Accepted 1 of 5 trajectories (20.0 %)" in on_one_line(printed)
    assert "how many of them are true successes is unknown" in on_one_line(printed)


def test_a_trajectory_is_one_conversation(run: Path, tmp_path: Path) -> None:
    out, system = tmp_path / "out", tmp_path / "system.txt"
    system.write_text("Be an agent.")
    options = ["--judge", "judge", "--threshold", 0.8, "--run", run, "--out", out]
    assert accept(*options, "--system", system) == 0
    assert lines(out / "accepted.jsonl")[0]["messages"] == [
        {"role": "system", "content": "Be an agent."},
        {
            "role": "user",
            "content": "Goal: Buy a mug\n\nStep 1\nURL: http://shop/\nPage:\npruned tree",
        },
        {
            "role": "assistant",
            "content": "<think>\nI look.\n</think>\n<action>\nclick('1')\n</action>",
        },
        {"role": "user", "content": "Step 2\nError of the last action: no such element"},
        {"role": "assistant", "content": "<action>\nstop()\n</action>"},
    ]
    for page, tree in (("full", "full tree"), ("none", "URL: http://shop/")):
        assert accept(*options, "--page", page) == 0
        content = lines(out / "accepted.jsonl")[0]["messages"][1]["content"]
        assert content.endswith(tree)


def test_a_threshold_that_is_copied_from_a_screen_accepts_the_same_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    votes = [said(0, sample < 2, sample=sample) for sample in range(3)]
    run, out = make_run(tmp_path / "run", [trajectory(0)], votes), tmp_path / "out"
    for exact, shown in ((2 / 3, "0.6666"), (0.6667, "0.6667"), (0.57, "0.57"), (1, "1")):
        accept("--judge", "judge", "--threshold", exact, "--run", run, "--out", out)
        assert f"judge at threshold {shown};" in capsys.readouterr().out
    accept("--judge", "judge", "--threshold", "0.6666", "--run", run, "--out", out)
    assert len(lines(out / "accepted.jsonl")) == 1
    accept("--judge", "judge", "--threshold", "0.6667", "--run", run, "--out", out)
    [rejected] = lines(out / "rejected.jsonl")
    assert rejected["reason"] == "its score 0.6666 is below the threshold 0.6667"


def decided_on(tmp_path: Path, *benchmarks: str) -> Path:
    """A decision for ``judge``, made on these benchmarks."""
    run = tmp_path / "labelled"
    places = [(n, benchmark) for benchmark in benchmarks for n in range(80 // len(benchmarks))]
    make_run(run, [], [said(n, n % 2 == 0, benchmark=where) for n, where in places])
    write_labels(run, [label(n, n % 2 == 0, benchmark=where) for n, where in places])
    out = tmp_path / "selection"
    assert select_main([str(run), "--target-precision", "0.9", "--out", str(out)]) == 0
    return out


def test_a_target_that_was_shown_over_a_mix_is_said_to_hold_for_the_mix(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    decision = decided_on(tmp_path, "webarena", "visualwebarena")
    run = make_run(tmp_path / "new", [trajectory(1)], [said(1, True)])
    capsys.readouterr()
    assert accept("--decision", decision, "--run", run, "--out", tmp_path / "out") == 0
    printed = capsys.readouterr().out
    one_screen(printed.replace(str(tmp_path), "DIR"), 100)
    assert "mix of benchmarks: visualwebarena 40, webarena 40" in " ".join(printed.split())


def test_a_decision_is_applied_where_it_was_shown_to_hold(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    decision = decided_on(tmp_path, "webarena")
    made = [trajectory(1), trajectory(1, "workarena")]
    run = make_run(tmp_path / "new", made, [said(1, True), said(1, True, benchmark="workarena")])
    out = tmp_path / "out"
    assert accept("--decision", decision, "--run", run, "--out", out) == 0
    (accepted,) = lines(out / "accepted.jsonl")
    assert accepted["provenance"]["benchmark"] == "webarena"
    assert len(accepted["provenance"]["decision"]) == 64
    (rejected,) = lines(out / "rejected.jsonl")
    assert rejected["kind"] == "benchmark not covered"
    hint = "1 run of benchmarks on which the decision was not shown to hold: --any-benchmark takes"
    assert hint in " ".join(capsys.readouterr().out.split())
    assert accept("--decision", decision, "--run", run, "--out", out, "--any-benchmark") == 0
    assert len(lines(out / "accepted.jsonl")) == 2
    assert "precision is not known" not in " ".join(capsys.readouterr().out.split())


def test_a_run_whose_pages_were_not_recorded_is_refused_unless_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    steps = tuple(Step(index=n, reasoning="so", action="click('1')") for n in range(3))
    bare = trajectory(0).model_copy(update={"steps": steps})
    partly = trajectory(1).model_copy(update={"steps": (trajectory(1).steps[0], *steps[1:])})
    run = make_run(
        tmp_path / "run", [bare, partly, trajectory(2)], [said(n, True) for n in (0, 1, 2)]
    )
    out = tmp_path / "out"
    options = ["--judge", "judge", "--threshold", 1, "--run", run, "--out", out]
    assert accept(*options) == 0
    (accepted,) = lines(out / "accepted.jsonl")
    assert accepted["provenance"]["task_id"] == "webarena.2"
    rejected = lines(out / "rejected.jsonl")
    assert [line["kind"] for line in rejected] == ["no observation"] * 2
    assert "2 of 3 steps" in rejected[1]["reason"]
    assert "--without-observations" in rejected[0]["reason"]
    screen = " ".join(capsys.readouterr().out.split())
    assert "2 runs left out, a page not recorded: rejected.jsonl says what supplies it" in screen
    assert "--without-observations" in screen
    assert accept(*options, "--without-observations") == 0
    assert len(lines(out / "accepted.jsonl")) == 3


@pytest.mark.slow
@pytest.mark.real_data
def test_published_texts_without_pages_are_not_exported(arb: Path, tmp_path: Path) -> None:
    folder, out = arb, tmp_path / "out"
    data = f"agentrewardbench-text:{folder}"
    options = ["--judge", "webjudge-7b", "--threshold", 1, "--judgments", folder, "--data", data]
    assert accept(*options, "--out", out) == 1
    summary = json.loads((out / "acceptance.json").read_text())
    assert summary["counts"]["no observation"] > 100
    assert "accepted" not in summary["counts"]
    assert accept(*options, "--out", out, "--without-observations") == 0


def test_half_characters_do_not_stop_it(tmp_path: Path) -> None:
    made = trajectory(0)
    step = made.steps[0].model_copy(update={"reasoning": "half \ud83d"})
    choice = AcceptanceFilter("judge", Rule(judges=("judge",)), 1.0)
    broken = made.model_copy(update={"steps": (step,)})
    found = apply(
        [broken],
        [said(0, True)],
        choice,
        tmp_path,
        chat=ChatFormat(),
        bare_turns=False,
        screenshots=False,
    )
    assert found["accepted"] == 1
    assert "\ufffd" in (tmp_path / "accepted.jsonl").read_text(encoding="utf-8")


def test_an_action_recorded_as_reasoning_is_not_learned_twice() -> None:
    said_twice = "<think>\nso\n</think>\n<action>\nclick('1')\n</action>"
    step = Step(index=0, reasoning=said_twice, action="click('1')")
    made = trajectory(0).model_copy(update={"steps": (step,)})
    assert chat_turns(made, ChatFormat())[2].content == said_twice


def test_an_answer_that_no_action_holds_is_learned_after_the_last_page() -> None:
    made = trajectory(0).model_copy(update={"answer": "It is <answer>$12</answer>."})
    *before, page, answer = chat_turns(made, ChatFormat())
    assert before == chat_turns(trajectory(0), ChatFormat())
    assert page.content == "Step 3\nURL: http://shop/\nPage:\npruned tree"
    assert answer.content == "<answer>\nIt is $12.\n</answer>"
    in_action = made.steps[0].model_copy(update={"action": "send_msg_to_user('It is $12.')"})
    spoken = made.model_copy(update={"steps": (in_action, *made.steps[1:]), "answer": "It is $12."})
    assert "<answer>" not in chat_turns(spoken, ChatFormat())[-1].content
    without_end = made.model_copy(update={"steps": made.steps[:2]})
    assert chat_turns(without_end, ChatFormat())[-2].content == "Step 3"
    assert without_observation(without_end, screenshots=False) == (0, 2), (
        "the page before an answer may be unknown"
    )
    assert chat_turns(made.model_copy(update={"steps": made.steps[2:]}), ChatFormat()) == []


def test_two_runs_that_differ_in_their_answer_alone_are_no_duplicates_but_a_pair() -> None:
    one, other = (
        chat_turns(trajectory(0).model_copy(update={"answer": text}), ChatFormat())
        for text in ("$12", "$13")
    )
    assert written_hash(one, "") != written_hash(other, "")
    assert first_difference(one, other) == 6


@mistakes(
    """
    => either --decision DIR, or --judge
    --judge judge => --threshold
    --judge judge --threshold 3 => at most 1
    --judge judge --threshold 1 => no judgments to apply it to
    --decision none => cannot be read
    --decision none --threshold 1 => part of the decision
    --judge x --threshold 1 --run RUN => no judgments of 'x'
    --judge judge --threshold 1 --run RUN --wrong => --wrong
    --judge judge --threshold 1 --run RUN --data none => none
    --judge judge --threshold 1 --run RUN --system none => --system
    """
)
def test_a_mistake_is_one_sentence(
    run: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    sentence: str,
) -> None:
    given = [str(run) if word == "RUN" else word for word in words]
    assert accept(*given, "--out", tmp_path / "out") == 2
    one_sentence(capsys, sentence)
    assert not (tmp_path / "out" / "accepted.jsonl").exists()


def test_no_judge_qualified_leaves_nothing_to_apply(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = make_run(tmp_path / "labelled", [], [said(n, True) for n in range(20)])
    write_labels(run, [label(n, False) for n in range(20)])
    out = tmp_path / "selection"
    assert select_main([str(run), "--target-precision", "0.8", "--out", str(out)]) == 1
    assert accept("--decision", out, "--run", run, "--out", tmp_path / "out") == 2
    assert "no judge qualified" in capsys.readouterr().err


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


def accepted(decision: Path, run: Path, *options: object) -> int:
    words = ["--decision", decision, "--run", run, "--out", run / "accepted", *options]
    return accept_main([str(word) for word in words])


def test_a_decision_records_judge_agents_and_benchmarks(tmp_path: Path) -> None:
    decision = read_decision(decided(tmp_path, SETTINGS))
    bound = decision.binding
    assert bound is not None and decision.chosen is not None
    assert guarantee_of(decision) == (decision.findings[decision.chosen].precision.low, 0.95)
    assert bound.agents == {"agent": 80}
    assert bound.benchmarks == {"webarena": 80}
    facts = bound.judges[JUDGE].facts
    assert facts["model"] == "gpt-4o-2024-11-20"
    assert facts["representation"] == "axtree"
    assert accepted(tmp_path / "selection", new_run(tmp_path, SETTINGS)) == 0


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
    assert accepted(decision, run) == 2
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
        assert accepted(decision, run, *options) == 2
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
    assert accepted(decision, run) == 2
    said_ = capsys.readouterr().err
    assert "parameters, prompt_hash, options" in said_
    assert "--assume-same-judge" in said_
    assert accepted(decision, run, "--assume-same-judge") == 0
    assert "not compared, because not recorded" in capsys.readouterr().out
    run = new_run(tmp_path / "again", SETTINGS | {"model": "gpt-4o-mini"})
    assert accepted(decision, run, "--assume-same-judge") == 2


def test_another_agent_is_warned_of_and_can_be_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    decision = decided(tmp_path, SETTINGS)
    run = new_run(tmp_path, SETTINGS, ("agent", "stranger"))
    capsys.readouterr()
    assert accepted(decision, run) == 0
    told = capsys.readouterr().out
    told = on_one_line(told)
    assert "not made on stranger (1)" in told
    summary = json.loads((run / "accepted" / "acceptance.json").read_text())
    [warning] = [warning for warning in summary["cautions"] if "stranger (1)" in warning]
    assert "--recertify" in warning
    assert accepted(decision, run, "--agents", "any") == 0
    assert "stranger" not in capsys.readouterr().out
    assert accepted(decision, run, "--agents", "same") == 0
    (rejected,) = lines(run / "accepted" / "rejected.jsonl")
    assert rejected["kind"] == "agent not covered"
    assert "stranger" in rejected["reason"]


def test_the_judge_at_another_endpoint_comes_with_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    decision = decided(tmp_path, SETTINGS)
    sentence = f"{JUDGE} was asked at azure, when it was certified at openai"
    for endpoint, is_told in (("azure", True), ("openai", False), (None, False)):
        run = new_run(tmp_path / str(endpoint), SETTINGS | {"endpoint": endpoint})
        capsys.readouterr()
        assert accepted(decision, run, "--assume-same-judge") == 0
        assert (sentence in on_one_line(capsys.readouterr().out)) is is_told


def test_published_judgments_are_bound_by_what_they_tell(tmp_path: Path) -> None:
    from trajudge.eval.select.binding import JudgeConfiguration, differences, unknown

    published = JudgeConfiguration(judge="j", facts={"model": "m", "representation": "axtree"})
    other = JudgeConfiguration(judge="j", facts={"model": "m", "representation": "both"})
    assert list(differences(published, other)) == ["representation 'both' instead of 'axtree'"]
    assert unknown(published, other) == ([], ["parameters", "prompt_hash", "options", "samples"])
