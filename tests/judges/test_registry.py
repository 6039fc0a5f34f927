"""Judges by name, with options that are checked."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.judges.runs import ScriptedAsk, mug_run
from tests.tables import table
from trajudge.judges.judging import judge_trajectory
from trajudge.judges.prompting import AuxiliaryModel
from trajudge.judges.registry import (
    JUDGES,
    JudgeEntry,
    check_representation,
    find_judge,
    judge_of_id,
    make_judge,
    split_model,
    unfit,
)
from trajudge.util.errors import UserError

INCOMPLETE = {"telemetry", "panel", "cascade", "rules:verified", "rules:webarena"}
"""Judges that cannot be made without an option: a trained model, members, a task file."""


@pytest.mark.parametrize("name", sorted(JUDGES.keys() - INCOMPLETE))
def test_every_judge_can_be_made_with_its_defaults(name: str) -> None:
    judge_id, judge = make_judge(name)
    assert judge_id.startswith(name)
    assert callable(judge)
    assert find_judge(name).summary


@pytest.mark.parametrize("name", JUDGES)
def test_a_judges_module_has_its_name_or_the_beginning_of_it(name: str) -> None:
    """By it a judge is found without importing the others."""
    module = JUDGES[name].make.__module__.removeprefix("trajudge.judges.methods.").split(".")[0]
    assert module in {re.sub(r"\W", "_", name), re.split(r"\W", name)[0]}


@pytest.mark.parametrize("name", JUDGES)
def test_an_id_tells_its_judge(name: str) -> None:
    assert judge_of_id(name) == judge_of_id(f"{name}-variant-a:b") == name
    assert judge_of_id(f"x{name}") is None


@table(
    "text judge model",
    """
    simplified             | simplified     |
    simplified:gpt-4o      | simplified     | gpt-4o
    simplified:ollama/m:7b | simplified     | ollama/m:7b
    rules:verified         | rules:verified |
    rules:verified:gpt-4o  | rules:verified | gpt-4o
    rules                  | rules          |
    mine.py:gpt-4o         | mine.py        | gpt-4o
    """,
)
def test_a_judge_and_its_model_are_told_apart(text: str, judge: str, model: str) -> None:
    assert split_model(text) == (judge, model)


@pytest.mark.parametrize(
    ("name", "options", "judge_id"),
    [
        ("simplified", {}, "simplified-axtree"),
        ("simplified", {"representation": "none"}, "simplified-none"),
        ("simplified", {"success": "last"}, "simplified-axtree-success-last"),
        ("simplified", {"max_prompt_tokens": 9_000}, "simplified-axtree"),
        ("aer-c", {}, "aer-c-agentrewardbench"),
        ("aer-c", {"captioner": AuxiliaryModel(max_prompt_tokens=9)}, "aer-c-agentrewardbench"),
        ("aer-c", {"captioner": AuxiliaryModel(model="m")}, "aer-c-agentrewardbench-captioner-m"),
        ("aer-v", {"variant": "original"}, "aer-v-original"),
        ("nnetnav", {}, "nnetnav"),
        ("webvoyager", {"screenshots": "3"}, "webvoyager-screenshots-3"),
        (
            "webjudge",
            {"variant": "online-mind2web", "threshold": 4},
            "webjudge-online-mind2web-threshold-4",
        ),
    ],
)
def test_the_id_tells_variants_apart(name: str, options: dict[str, object], judge_id: str) -> None:
    assert make_judge(name, options)[0] == judge_id


PROMPT: dict[str, float] = {"max_prompt_tokens": 120_000}
OF_A_MODEL: dict[str, float] = {"structured": False, **PROMPT}
DEFAULTS: dict[str, dict[str, float]] = {
    "aer-c": OF_A_MODEL,
    "aer-v": OF_A_MODEL,
    "browser-use": {**OF_A_MODEL, "screenshots": 10, "characters": 40_000},
    "cascade": {"unsure": 0.2},
    "claims-first": {**OF_A_MODEL, "pages": 3, "page_tokens": 6_000},
    "heuristic": {"cycle_length": 4, "cycle_repeats": 3, "commitments": 2},
    "insta": {
        **OF_A_MODEL,
        **{"observations": 5, "actions": 5, "page_tokens": 2_048, "threshold": 0.5},
    },
    "logprob": {**PROMPT, "threshold": 0.5},
    "nnetnav": OF_A_MODEL,
    "rubric": {**OF_A_MODEL, "per_criterion": 2},
    "simplified": {**OF_A_MODEL, "frames": 1},
    "universal-verifier": {
        **PROMPT,
        **{"user_simulator": False, "filter": True, "failures": False, "validity": False},
        **{"last_page": True, "image_last": False, "votes": 1, "attempts": 5, "per_criterion": 5},
        **{"process_threshold": 0.8, "reply_tokens": 8_192},
    },
    "webjudge": {**OF_A_MODEL, "threshold": 3, "screenshots": 50, "note_tokens": 1_000},
    "webvoyager": {**OF_A_MODEL, "screenshots": 15},
}


@pytest.mark.parametrize("name", JUDGES)
def test_numbers_and_switches_of_a_judge_by_default(name: str) -> None:
    fields = JUDGES[name].options_class.model_fields
    numbers = {
        option: field.default
        for option, field in fields.items()
        if isinstance(field.default, int | float)
    }
    assert numbers == DEFAULTS.get(name, {})


@table(
    "name representation sentence",
    """
    nnetnav   | screenshot | --representation screenshot: judge nnetnav reads axtree only
    aer-v     | axtree     | --representation axtree: judge aer-v reads screenshot only
    heuristic | both       | --representation both: judge heuristic reads no page
    """,
)
def test_a_representation_that_a_judge_does_not_read_is_refused(
    name: str, representation: str, sentence: str
) -> None:
    with pytest.raises(UserError, match=sentence):
        check_representation(name, representation)
    check_representation("simplified", representation)


@pytest.mark.parametrize(
    ("name", "roles"),
    [
        ("aer-c", {"captioner"}),
        *((name, {"judge"}) for name in ("aer-v", "webvoyager", "webjudge", "rubric")),
        *((name, {"judge"}) for name in ("browser-use", "universal-verifier")),
        *((name, set()) for name in ("simplified", "nnetnav", "insta", "logprob", "claims-first")),
        *((name, set()) for name in ("panel", "heuristic")),
    ],
)
def test_whose_model_is_shown_pictures(name: str, roles: set[str]) -> None:
    entry = JUDGES[name]
    asked = ("judge", *entry.models)
    assert {role for role in asked if entry.needs_pictures(role, None)} == roles
    assert find_judge("simplified").needs_pictures("judge", "both")


def test_a_judge_of_which_nothing_else_is_said_asks_a_model_of_its_own_prompts() -> None:
    entry = JudgeEntry(name="x", make=JUDGES["simplified"].make)
    switches = (entry.needs_model, entry.composed, entry.logprobs, entry.is_own)
    assert switches == (True, False, False, False)
    assert entry.is_repaired
    for other in (JUDGES["heuristic"], JUDGES["logprob"], replace(entry, is_own=True)):
        assert not other.is_repaired
    assert entry.needs_pictures("judge", "screenshot") and entry.needs_pictures("judge", "both")
    assert not entry.needs_pictures("judge", None)
    assert not entry.needs_pictures("captioner", "both")
    shown = replace(entry, representations=("screenshot", "axtree"))
    assert shown.needs_pictures("judge", None) and not shown.needs_pictures("judge", "axtree")
    captioned = replace(shown, pictures="captioner")
    assert captioned.needs_pictures("captioner", "axtree")
    assert not captioned.needs_pictures("judge", None)


@pytest.mark.parametrize(
    ("name", "defence", "why"),
    [
        ("heuristic", "nonce", "asks no model, and nonce changes prompts"),
        ("heuristic", "cross_modal", ""),
        ("panel", "nonce", ""),
        ("logprob", "canary", "answers with one word, which no canary fits"),
        ("logprob", "nonce", ""),
        ("simplified", "canary", ""),
        ("simplified", "nonce", ""),
    ],
)
def test_which_defence_a_judge_cannot_have(name: str, defence: str, why: str) -> None:
    assert unfit(JUDGES[name], defence) == why
    own = unfit(replace(JUDGES["simplified"], is_own=True), defence)
    known = "which tags its prompts have is not known, and nonce ends them"
    assert own == (known if defence == "nonce" else "")


def test_up_to_three_corrective_turns_may_be_taken() -> None:
    for turns in (0, 3):
        assert make_judge("simplified", {"repair": turns})[0] == "simplified-axtree"
    for wrong in (-1, 4, True, "3"):
        with pytest.raises(UserError, match=f"repair = {wrong!r}: give a number from 0 to 3"):
            make_judge("simplified", {"repair": wrong})


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        (
            "simplfied",
            {},
            "--judge simplfied: no such judge, did you mean 'simplified'",
        ),
        ("zzz", {}, "--judge zzz: no such judge; there are "),
        ("simplified", {"colour": 1}, "no option 'colour'; it takes prompts, untrusted, "),
        ("rule-based", {"representation": "axtree"}, "no option 'representation'; it takes none"),
        ("simplified", {"representation": "html"}, "representation = 'html'"),
        ("heuristic", {"cycle_length": "x"}, "cycle_length = 'x'"),
    ],
)
def test_mistakes_are_said(name: str, options: dict[str, object], said: str) -> None:
    with pytest.raises(UserError, match=said.replace("(", r"\(")):
        make_judge(name, options)


def test_finding_a_judge_imports_no_other() -> None:
    code = (
        "import sys, trajudge.judges.registry as r; r.find_judge('aer-v'); "
        "r.split_model('x.py:m'); "
        "print([m for m in sys.modules if m.startswith('trajudge.judges.methods.')])"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=root, check=False
    )
    assert done.stdout.strip() == "['trajudge.judges.methods.aer']"


def test_a_mistake_in_a_users_judge_is_one_sentence_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(
        "from trajudge import Verdict\n"
        "async def judge(trajectory, ask):\n"
        "    return Verdict(success=int('seven') > 3)\n"
    )
    name, judge = make_judge(str(path))
    with pytest.raises(UserError, match=r"judge mine failed on .*ValueError: .*mine\.py:3\)"):
        asyncio.run(judge_trajectory(name, judge, mug_run(), ScriptedAsk()))
