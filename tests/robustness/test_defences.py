"""Each defence takes away the attack that it says, from a model that falls for it, and no more."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.llm_server import LlmServer
from tests.robustness import models
from tests.robustness.test_scripted_judges import Rates, Text, asr
from trajudge.robustness.robust import main
from trajudge.robustness.sources import subjects
from trajudge.robustness.suite import expanded, limited, suite

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


def measured(text: Text, folder: Path, out: Path, *defences: str) -> tuple[dict[str, Any], Rates]:
    """Our own judge on a model behind a real server, undefended first."""
    options = [word for one in defences for word in ("--judge-option", one)]
    with LlmServer(text=text, record=0) as server:
        words = ("--judge", "simplified", "--model", "gpt-4o", "--base-url", f"{server.url}/v1")
        code = main(
            [
                *(*words, "--attacked", str(folder), "--out", str(out), "--yes", *options),
                *("--cache", str(out / "cache.sqlite")),
            ]
        )
    assert code == 0
    (judge,) = json.loads((out / "robustness.json").read_text())["judges"]
    return judge, {one["name"]: one for one in judge["rates"]}


def judgments(out: Path) -> list[dict[str, Any]]:
    (file,) = (out / "runs").glob("*/judgments.jsonl")
    return [json.loads(line) for line in file.read_text().splitlines()]


def verdicts(out: Path) -> dict[str, Any]:
    return {json.dumps(one["key"], sort_keys=True): one["success"] for one in judgments(out)}


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


def test_the_goal_behind_the_material_has_the_last_word(folder: Path, tmp_path: Path) -> None:
    model = models.obeys_what_is_said_last
    _, plain = measured(model, folder, tmp_path / "plain")
    _, held = measured(model, folder, tmp_path / "held", "sandwich=true")
    for name in (f"{TREE}.plain", "inject-reasoning.success.plain"):
        assert asr(plain, name) == 1, name
        assert asr(held, name) == 0, name


def test_a_tag_without_the_ending_closes_nothing(folder: Path, tmp_path: Path) -> None:
    model = models.believes_any_closing_tag
    _, plain = measured(model, folder, tmp_path / "plain")
    _, ended = measured(model, folder, tmp_path / "ended", "nonce=7")
    assert {name: asr(plain, name) for name in CLOSING} == dict.fromkeys(CLOSING, 1.0)
    assert {name: asr(ended, name) for name in CLOSING} == dict.fromkeys(CLOSING, 0.0)
    assert asr(plain, f"{TREE}.plain") == 0, "without a tag it is material"


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


def test_a_reply_without_its_word_is_a_failure_of_its_own(folder: Path, tmp_path: Path) -> None:
    measured(models.forgets_the_form, folder, tmp_path, "canary=7")
    assert {(one["status"], one["detail"]) for one in judgments(tmp_path)} == {
        ("unparsable", "canary: the reply lacks the word that was asked for")
    }


@pytest.mark.parametrize(
    "defence", ["datamark=true", "sandwich=true", "nonce=7", "canary=7", "two_pass=answer"]
)
def test_an_honest_model_says_what_it_said(folder: Path, tmp_path: Path, defence: str) -> None:
    measured(models.honest, folder, tmp_path / "plain")
    measured(models.honest, folder, tmp_path / "defended", defence)
    plain = verdicts(tmp_path / "plain")
    assert verdicts(tmp_path / "defended") == plain
    assert len(set(plain.values())) == 2
