"""A wrong call is one sentence, in the words of the command."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from html import unescape
from pathlib import Path

import pytest

import trajudge as tj
from tests.llm_server import LlmServer, always
from tests.tables import mistakes


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> tj.Run:
    """One judge on nine trajectories."""
    return tj.judge("sample", "heuristic", limit=9, out=tmp_path_factory.mktemp("one") / "run")


WRONG: list[tuple[Callable[..., object], dict[str, object], str]] = [
    (tj.load, {"data": "nowhere"}, "--data 'nowhere': no such file"),
    (tj.labels, {"data": "nowhere"}, "--data 'nowhere': no such file"),
    (tj.judge, {"runs": "nowhere", "judge": "heuristic"}, "--data 'nowhere': no such file"),
    (tj.judge, {"runs": "sample"}, "--judge simplified asks a model: name it with --model NAME"),
    (tj.judge, {"runs": "sample", "model": 5}, "--model 5: Input should be a valid string"),
    (
        tj.judge,
        {"runs": "sample", "judge": "telemetry"},
        "--judge telemetry needs --judge-option model=FILE",
    ),
]
WRONG_OF_JUDGMENTS: list[tuple[Callable[..., object], dict[str, object], str]] = [
    (tj.score, {"labels": "nowhere"}, "labels 'nowhere': no such file"),
    (tj.score, {"runs": "nowhere"}, "runs 'nowhere': no such file"),
    (tj.score, {"split": "test"}, "--split test: no label is in it"),
    (
        tj.score,
        {"split": "tset"},
        "--split tset: use 'dev', 'test' or 'all', did you mean 'test'?",
    ),
    (tj.score, {"missing": "foo"}, "--missing foo: use 'negative', "),
    (tj.compare, {"by": "agent"}, "--compare agent: use 'overall', "),
    (tj.compare, {}, "compare: the judgments are by heuristic: a comparison needs those of two"),
    (tj.select, {}, "no target: give --target-precision RATE or --max-false-positives RATE"),
    (tj.select, {"seed": True}, "--seed True: must be a number"),
    (tj.accept, {}, "give either --decision DIR, or --judge NAME with --threshold T"),
]


@pytest.mark.parametrize(("call", "given", "expected"), WRONG)
def test_a_wrong_value_is_named_with_its_parameter(
    call: Callable[..., object], given: dict[str, object], expected: str
) -> None:
    with pytest.raises(tj.UserError, match="^" + re.escape(expected)):
        call(**given)


@pytest.mark.parametrize(("call", "given", "expected"), WRONG_OF_JUDGMENTS)
def test_a_wrong_value_beside_judgments_is_named_with_its_parameter(
    one: tj.Run, call: Callable[..., object], given: dict[str, object], expected: str
) -> None:
    with pytest.raises(tj.UserError, match="^" + re.escape(expected)):
        call(one, **given)


def test_a_coroutine_says_the_same() -> None:
    with pytest.raises(tj.UserError, match=r"^--judge simplified asks a model"):
        asyncio.run(tj.ajudge("sample"))


def test_a_comparison_and_a_plot_say_what_they_need(one: tj.Run) -> None:
    for call in (tj.score, tj.compare):
        empty = f"^{call.__name__}: judgments is empty: give at least one judgment$"
        with pytest.raises(tj.UserError, match=empty):
            call([])
        with pytest.raises(tj.UserError, match=empty):
            call([], one.labels)
    with pytest.raises(tj.UserError, match=r"^plot: kind is 'foo': choose from precision, "):
        tj.score(one).plot("foo")  # type: ignore[arg-type]


def test_what_is_of_another_kind_is_a_type_error_that_says_what_to_give(one: tj.Run) -> None:
    with pytest.raises(TypeError, match="judge: 5 is of type int: give trajectories"):
        tj.judge(5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="score: 5 is of type int: give judgments or folders"):
        tj.score(5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="score: labels is of type list: give annotations by"):
        tj.score(one, [])  # type: ignore[arg-type]
    for wrong in ({one[0].key: True}, {one[0].key: None}, {1: next(iter(one.labels.values()))}):
        with pytest.raises(TypeError, match=r"score: labels has .* for .*: give a Label by"):
            tj.score(one, wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="score: 5 is of type int: give trajectories"):
        tj.score(one, runs=5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="is of type Trajectory: give judgments with their run"):
        tj.audit(tj.load())  # type: ignore[arg-type]


@mistakes(
    """
    => panel: name two judges or more:  panel('NAME:MODEL', 'NAME:MODEL')
    heuristic => panel: name two judges or more
    heuristic heuristic => --members heuristic,heuristic: name two judges or more, each once
    heuristic:m rule-based => --members heuristic:m: judge heuristic asks no model: leave m out
    simplified rule-based => --judge panel --members simplified,rule-based: a member asks a model
    """
)
def test_the_members_of_a_panel_can_work(words: list[str], sentence: str) -> None:
    with pytest.raises(tj.UserError, match="^" + re.escape(sentence)):
        tj.judge("sample", tj.panel(*words))


def test_a_panel_or_cascade_is_told_by_its_members() -> None:
    with pytest.raises(tj.UserError, match=r"^--judge panel needs its members: --members NAME"):
        tj.judge("sample", "panel")
    with pytest.raises(tj.UserError, match=r"quorum.*5 is more than the 2 members"):
        tj.judge("sample", tj.panel("heuristic", "rule-based", quorum=5))
    found = tj.judge("sample", "panel", members="heuristic,rule-based", limit=3)
    assert {len(judgment.scores) for judgment in found} == {2}


def test_folders_of_runs_are_judgments(one: tj.Run) -> None:
    expected = tj.score(one).scores
    for given in (one.folder, str(one.folder), [one.folder], [str(one.folder)]):
        assert tj.score(given).scores == expected
    with pytest.raises(tj.UserError, match="nowhere: is not the folder of a run"):
        tj.score("nowhere")


def test_a_path_is_data(folder: Path) -> None:
    one = tj.judge("sample", "heuristic", limit=3, out="run")
    labels = Path("run/labels.jsonl").resolve()
    assert tj.labels("sample", str(labels)) == one.labels
    with pytest.raises(tj.UserError, match="--data 'nowhere': no such file"):
        tj.load(Path("nowhere"))


def test_several_judgments_are_audited_together(one: tj.Run) -> None:
    rules = tj.judge("sample", "rule-based", limit=9)
    assert tj.audit([one, rules]).n == tj.audit([one.folder, rules.folder]).n


def test_a_warning_names_the_callers_line(one: tj.Run, folder: Path) -> None:
    (folder / "broken.jsonl").write_text("{}\n")
    for call in (tj.load, lambda data: tj.score(one, runs=data)):
        with pytest.warns(UserWarning, match="broken") as caught:
            call("trajudge:broken.jsonl")
        assert caught[0].filename == __file__


def test_no_trajectories_are_refused() -> None:
    with pytest.raises(tj.UserError, match="judge: runs is empty: give at least one"):
        tj.judge([], "heuristic")


def test_warnings_are_those_of_the_command() -> None:
    with (
        LlmServer(script=always("refusal")) as server,
        pytest.warns(UserWarning, match="--max-failures 0: --retry-failed asks"),
    ):
        tj.judge(tj.load()[:2], model="gpt-4o-mini", base_url=f"{server.url}/v1")


@pytest.mark.parametrize("judge", ["heuristic", tj.panel("heuristic", "rule-based")])
def test_what_has_no_effect_is_a_warning(judge: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.warns(UserWarning, match="without effect: --model, --temperature") as caught:
        tj.judge(tj.load()[:2], judge, "gpt-4o", temperature=0.5)
    assert caught[0].filename == __file__
    assert "without effect" not in capsys.readouterr().err


def test_scores_without_labels_say_which_parameter_names_them(one: tj.Run) -> None:
    found = tj.score(one, {})
    for shown in (str(found), found._repr_html_().partition("<details>")[0]):
        assert "labels=KIND:PATH" in shown
        assert "labels='sample'" in unescape(shown).replace("\n  ", " ")
        assert "--annotations" not in shown


def test_what_is_no_judge_is_named_and_not_its_type() -> None:
    """It read: write  async def NoneType(trajectory, ask)."""
    with pytest.raises(tj.UserError, match=r"^judge is None: give a judge's name, a function "):
        tj.judge("sample", None)  # type: ignore[arg-type]
    with pytest.raises(tj.UserError, match=r"^judge is 3: give a judge's name"):
        tj.judge("sample", tj.panel("heuristic", 3))  # type: ignore[arg-type]
