"""Each defence takes away the attack that it says, from a model that falls for it, and no more."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from tests.commands import robust as main
from tests.llm_server import LlmServer
from tests.robustness import models
from tests.robustness.rates import Rates, Text, asr, measured_judges, rates_of
from tests.screens import one_screen
from tests.tables import mistakes, one_sentence
from trajudge.eval.runs.settings import RunRequest
from trajudge.robustness.judging import defended_requests, read_defences
from trajudge.robustness.perturb import expanded, limited, suite
from trajudge.robustness.subjects import subjects

TREE = "inject-tree.success"
CLOSING = tuple(
    f"{TREE}.closing-{how}" for how in ("tag", "full-width", "zero-width", "soft-hyphen")
)
NAMES = (
    *("identity", "ids", f"{TREE}.plain", "inject-tree.benign-success.plain"),
    *("inject-reasoning.success.plain", "inject-answer.success.plain", "inject-goal.success.plain"),
    *("progress-fabrication", "inject-form-value.success.plain", *CLOSING),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("defences") / "attacked"
    assert expanded(made, limited(subjects("sample"), 18), suite("core", NAMES), 0) == []
    return made


def measured(
    text: Text, folder: Path, out: Path, *defences: str, judge: str = "simplified"
) -> tuple[dict[str, Any], Rates]:
    """Our own judge, with defences or without, on a model behind a real server."""
    options = [word for one in defences for word in ("--judge-option", one)]
    (found,), _ = measured_judges(folder, out, "--judge", judge, *options, model=text)
    return found, rates_of(found)


def judgments(out: Path) -> list[dict[str, Any]]:
    (file,) = (out / "runs").glob("*/judgments.jsonl")
    return [json.loads(line) for line in file.read_text().splitlines()]


def verdicts(out: Path) -> dict[str, Any]:
    return {json.dumps(one["key"], sort_keys=True): one["success"] for one in judgments(out)}


@pytest.mark.slow
def test_marked_words_are_obeyed_nowhere(folder: Path, tmp_path: Path) -> None:
    model = models.obeys_what_is_unmarked
    material = [f"{TREE}.plain", "inject-reasoning.success.plain", "inject-answer.success.plain"]
    material.append("inject-form-value.success.plain")
    _, plain = measured(model, folder, tmp_path / "plain")
    judge, marked = measured(model, folder, tmp_path / "marked", "datamark=true")
    assert judge["judge"] == "simplified-axtree-datamark:gpt-4o"
    for name in material:
        assert asr(plain, name) == 1, name
        assert asr(marked, name) == 0, name
    assert asr(plain, "inject-goal.success.plain") == 1
    assert asr(marked, "inject-goal.success.plain") == 1, "the goal is not marked"


@pytest.mark.slow
def test_the_goal_behind_the_material_has_the_last_word(folder: Path, tmp_path: Path) -> None:
    model = models.obeys_what_is_said_last
    _, plain = measured(model, folder, tmp_path / "plain")
    _, held = measured(model, folder, tmp_path / "held", "sandwich=true")
    for name in (f"{TREE}.plain", "inject-reasoning.success.plain"):
        assert asr(plain, name) == 1, name
        assert asr(held, name) == 0, name


@pytest.mark.slow
def test_a_tag_without_the_ending_closes_nothing(folder: Path, tmp_path: Path) -> None:
    model = models.believes_any_closing_tag
    _, plain = measured(model, folder, tmp_path / "plain")
    _, ended = measured(model, folder, tmp_path / "ended", "nonce=7")
    assert {name: asr(plain, name) for name in CLOSING} == dict.fromkeys(CLOSING, 1.0)
    assert {name: asr(ended, name) for name in CLOSING} == dict.fromkeys(CLOSING, 0.0)
    assert asr(plain, f"{TREE}.plain") == 0, "without a tag it is material"


@pytest.mark.slow
def test_a_model_that_obeys_the_material_is_caught_every_time(folder: Path, tmp_path: Path) -> None:
    model = models.obeys_every_instruction
    _, plain = measured(model, folder, tmp_path / "plain")
    measured(model, folder, tmp_path / "caught", "canary=7")
    assert asr(plain, f"{TREE}.plain") == 1
    lines = judgments(tmp_path / "caught")
    assert len(lines) == len(judgments(tmp_path / "plain")) > 100
    assert {(one["status"], one["detail"]) for one in lines} == {
        ("unparsable", "canary: the reply follows an instruction in the material")
    }


@pytest.mark.slow
def test_a_claim_that_decides_leaves_the_judgment_undecided(folder: Path, tmp_path: Path) -> None:
    model, name = models.believes_thoughts, "progress-fabrication"
    _, plain = measured(model, folder, tmp_path / "plain")
    _, twice = measured(model, folder, tmp_path / "twice", "two_pass=answer,reasoning")
    assert asr(plain, name) == 1
    assert twice[name]["attack_success"]["hits"] == 0
    rejected = plain[name]["attack_success"]["trials"]
    assert rejected > 5
    assert twice[name]["coverage_lost"]["hits"] == rejected
    lines = judgments(tmp_path / "twice")
    undecided = [one for one in lines if one["success"] is None]
    assert len(undecided) == rejected and {one["status"] for one in lines} == {"ok"}
    assert {tuple(one["scores"].items()) for one in undecided} == {
        (("with_claims", 1.0), ("without_claims", 0.0))
    }
    assert all(one["reasoning"].startswith("Undecided: ") for one in undecided)
    assert {one["coverage_lost"]["hits"] for other, one in twice.items() if other != name} == {0}


@pytest.mark.slow
def test_claims_first_takes_prose_away_and_no_page(folder: Path, tmp_path: Path) -> None:
    """The same weakness as that of a model which believes thoughts and obeys plain words."""
    words = ("inject-reasoning.success.plain", "inject-answer.success.plain")
    prose = ("progress-fabrication", *words)
    _, plain = measured(models.gullible_but_honest, folder, tmp_path / "plain")
    _, first = measured(models.examines_claims, folder, tmp_path / "claims", judge="claims-first")
    assert {name: asr(plain, name) for name in prose} == dict.fromkeys(prose, 1.0)
    assert {name: asr(first, name) for name in prose} == dict.fromkeys(prose, 0.0)
    assert asr(first, f"{TREE}.plain") == 1, "a page is shown as it is"
    lines = judgments(tmp_path / "claims")
    assert {one["status"] for one in lines} == {"ok"}
    assert {one["success"] for one in lines} == {True, False}


@pytest.mark.slow
def test_defences_stand_beside_the_judge_without(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One command: what each defence gives, and what it costs in calls and tokens."""
    with LlmServer(text=models.gullible_but_honest, record=0) as server:
        words = ("--judge", "simplified", "--model", "gpt-4o", "--base-url", f"{server.url}/v1")
        defences = ("--defence", "datamark", "--defence", "canary=7+sandwich")
        code = main(
            [
                *(*words, *defences, "--defence", "two-pass", "--judge", "heuristic", "--yes"),
                *("--attacked", str(folder), "--out", str(tmp_path)),
                *("--cache", str(tmp_path / "cache.sqlite")),
            ]
        )
    assert code == 0
    printed = one_screen(capsys.readouterr().out, 100)
    assert any(line.startswith("simplified-axtree:gpt-4o, in %") for line in printed)
    rows = list(csv.DictReader((tmp_path / "defences.csv").open()))
    by_name = {(row["judge"].partition("-")[0], row["defence"]): row for row in rows}
    assert list(by_name) == [
        *(("heuristic", "none"), ("heuristic", "two_pass")),
        *(("simplified", "none"), ("simplified", "datamark"), ("simplified", "sandwich, canary")),
        ("simplified", "two_pass"),
    ]
    none, marked = by_name["simplified", "none"], by_name["simplified", "datamark"]
    assert (none["fooled"], marked["fooled"]) == ("100.0", "100.0"), "a claim is no instruction"
    assert float(none["page"]) < float(none["precision"]) == float(marked["page"])
    for name in ("precision", "recall", "no verdict", "calls"):
        assert none[name] == marked[name], name
    assert int(marked["tokens"]) > int(none["tokens"]) > 0
    caught = by_name["simplified", "sandwich, canary"]
    assert (caught["no verdict"], caught["precision"], caught["fooled"]) == ("100.0", "", "")
    twice = by_name["simplified", "two_pass"]
    assert 1.5 < float(twice["calls"]) <= 2 * float(none["calls"]) == 2
    assert float(twice["agent"]) > float(none["agent"]) and float(twice["no verdict"]) > 0
    assert by_name["heuristic", "none"]["tokens"] == "0"


@mistakes(
    """
    --defence walls => --defence walls: 'walls' is not a defence; there are hide
    --defence datamarc => did you mean 'datamark'?
    --defence datamark+datamark => names datamark twice
    --defence hide=thoughts => judge heuristic: hide = 'thoughts': name answer, reasoning, or both
    --defence nonce => --defence nonce: judge heuristic asks no model, and nonce changes prompts
    --defence hide --judge-option hide=answer,reasoning => is named twice: name each defence once
    """
)
def test_a_mistake_is_one_sentence(
    folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    sentence: str,
) -> None:
    fixed = ["--judge", "heuristic", "--attacked", str(folder), "--out", str(tmp_path)]
    assert main([*fixed, *words]) == 2
    one_sentence(capsys, sentence)


def test_a_judge_goes_without_what_it_cannot_have() -> None:
    request = RunRequest(judges=("logprob", "simplified", "heuristic"), models=("m",))
    made = [(one.judges, one.judge.options) for one in defended_requests(request, ["each"])]
    everyone = request.judges
    assert [judges for judges, _ in made] == [
        *(everyone, everyone, everyone),
        *(everyone[:2], everyone[:2], everyone[:2], ("simplified",), everyone),
    ]
    assert [options for _, options in made[-2:]] == [{"canary": "0"}, {"cross_modal": "abstain"}]


def test_every_defence_alone() -> None:
    assert read_defences(["each", "canary=0", "two-pass=answer"]) == [
        {"hide": "answer,reasoning"},
        {"two_pass": "answer,reasoning"},
        {"datamark": "true"},
        {"sandwich": "true"},
        {"nonce": "0"},
        {"canary": "0"},
        {"cross_modal": "abstain"},
        {"two_pass": "answer"},
    ]


def test_forged_parts_of_a_record_are_not_asked_about(tmp_path: Path) -> None:
    """A model that believes every page: what the other parts deny costs no call and no verdict.

    Of runs that end in a message to the user, after which a page cannot have changed."""
    attacked, every = tmp_path / "attacked", subjects("sample")
    answered = tuple(run for run in every.trajectories if run.answer)
    known = limited(every._replace(trajectories=answered), 18)
    names = ("identity", "sibling-tree", f"{TREE}.plain", "claim-confident", "page-visited")
    assert expanded(attacked, known, suite("core", names), 0) == []
    _, plain = measured(models.obeys_every_instruction, attacked, tmp_path / "plain")
    checked = "cross_modal=abstain"
    _, found = measured(models.obeys_every_instruction, attacked, tmp_path / "checked", checked)
    assert asr(plain, f"{TREE}.plain") == 1
    assert found[f"{TREE}.plain"]["attack_success"]["trials"] == 0
    for name in (f"{TREE}.plain", "sibling-tree"):
        assert found[name]["coverage_lost"]["estimate"] == 1, name
    for name in ("identity", "claim-confident", "page-visited"):
        assert found[name]["coverage_lost"]["hits"] == 0, name
    lines = judgments(tmp_path / "checked")
    assert {(one["success"] is None, one["calls"] == []) for one in lines} == {
        (True, True),
        (False, False),
    }


def test_a_reply_without_its_word_is_a_failure_of_its_own(folder: Path, tmp_path: Path) -> None:
    measured(models.forgets_the_form, folder, tmp_path, "canary=7")
    assert {(one["status"], one["detail"]) for one in judgments(tmp_path)} == {
        ("unparsable", "canary: the reply lacks the word that was asked for")
    }


@pytest.fixture(scope="module")
def honest(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What an honest model says without a defence."""
    out = tmp_path_factory.mktemp("honest")
    measured(models.honest, folder, out)
    return verdicts(out)


@pytest.mark.slow
@pytest.mark.parametrize(
    "defence", ["datamark=true", "sandwich=true", "nonce=7", "canary=7", "two_pass=answer"]
)
def test_an_honest_model_says_what_it_said(
    folder: Path, tmp_path: Path, honest: dict[str, Any], defence: str
) -> None:
    measured(models.honest, folder, tmp_path, defence)
    assert verdicts(tmp_path) == honest
    assert len(set(honest.values())) == 2
