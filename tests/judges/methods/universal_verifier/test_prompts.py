"""The verifier's prompts: every rule is rendered on a line of its own, in every mode."""

from __future__ import annotations

import asyncio
import re

import pytest

from tests.judges.methods.universal_verifier.scripts import StageScript, rubric_reply
from tests.judges.runs import seen_run
from trajudge.judges.fidelity import read_fidelity
from trajudge.judges.judging import judge_trajectory
from trajudge.judges.registry import make_judge
from trajudge.prompts.render import load_prompt

NUMBERED = {
    "critical_point": 7,
    "rubric": 12,
    "dependencies": 8,
    "evidence": 8,
    "conditions": 4,
    "reality": 5,
    "rescore": 11,
    "side_effects": 4,
    "outcome": 15,
    "violation": 4,
    "failures": 6,
}
MODES = [
    {},
    {"user_simulator": True},
    {"critical_points": "inline"},
    {"year": 2025},
]


def prompts(**options: object) -> dict[str, str]:
    """The text of the first question of every stage."""
    ask = StageScript(rubric=rubric_reply("if it is there", "if it is not there", None))
    _, judge = make_judge("universal-verifier", {"failures": True, "validity": True, **options})
    asyncio.run(judge_trajectory("verifier", judge, seen_run(3), ask))
    return {
        stage: "\n".join(p.text for m in calls[0].messages for p in m.parts if p.kind == "text")
        for stage in ask.stages
        if (calls := ask.stage(stage))
    }


@pytest.mark.parametrize("options", MODES)
def test_every_numbered_rule_begins_its_line(options: dict[str, object]) -> None:
    for stage, text in prompts(**options).items():
        numbers = [int(n) for n in re.findall(r"^(\d+)\. ", text, re.MULTILINE)]
        if stage in NUMBERED:
            assert numbers[: NUMBERED[stage]] == list(range(1, NUMBERED[stage] + 1)), stage


@pytest.mark.parametrize("options", MODES)
def test_bullets_headings_and_tags_begin_their_lines(options: dict[str, object]) -> None:
    for stage, text in prompts(**options).items():
        inside = re.findall(r"\S(?:- [A-Z][a-z]+: |# [A-Z]|</?(?:rubric|history|task)>\S)", text)
        assert inside == [], stage
        assert "\n\n\n\n" not in text, stage


def test_the_stages_say_what_the_mode_is() -> None:
    asked, alone, inline = (
        prompts(user_simulator=True),
        prompts(),
        prompts(critical_points="inline"),
    )
    for stage in ("rubric", "baseline", "outcome"):
        assert "Yes: a simulated user" in asked[stage]
        assert "Yes: a simulated user" not in alone[stage]
        assert "<critical_point>" in alone[stage]
        assert "<critical_point>" not in inline[stage]
    assert "violation" not in inline
    assert "- Permission to cross." in inline["outcome"]
    assert "A date without a year is of 2025." in prompts(year=2025)["outcome"]


def test_what_a_stage_must_not_see() -> None:
    texts = prompts()
    for stage in ("rubric", "dependencies", "relevance", "conditions", "reality"):
        assert "<history>" not in texts[stage], stage
        assert "<answer>" not in texts[stage], stage
    assert "<answer>" not in texts["violation"]
    assert "<history>" not in texts["validity_before"]
    for stage in ("baseline", "evidence", "rescore", "outcome", "failures"):
        assert "<history>" in texts[stage], stage
        assert "<answer>" in texts[stage], stage


def test_every_rule_of_the_source_is_in_the_templates() -> None:
    rules = read_fidelity()["universal-verifier"].rules
    assert len(rules) == 113
    assert load_prompt("universal-verifier").rules == rules.keys()
