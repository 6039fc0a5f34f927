"""Judges by name, with options that are checked."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from judges.registry import JUDGES, find_judge, make_judge
from trajectories.errors import UserError


@pytest.mark.parametrize("name", sorted(JUDGES))
def test_every_judge_can_be_made_with_its_defaults(name: str) -> None:
    judge_id, judge = make_judge(name)
    assert judge_id.startswith(name)
    assert callable(judge)
    assert find_judge(name).summary


@pytest.mark.parametrize(
    ("options", "judge_id"),
    [
        ({}, "simplified-axtree"),
        ({"representation": "none"}, "simplified-none"),
        ({"success": "last"}, "simplified-axtree-success-last"),
        ({"max_prompt_tokens": 9_000}, "simplified-axtree"),
    ],
)
def test_the_id_tells_variants_apart(options: dict[str, object], judge_id: str) -> None:
    assert make_judge("simplified", options)[0] == judge_id


def test_which_judges_need_a_model() -> None:
    assert {name: entry.needs_model for name, entry in JUDGES.items()} == {
        "simplified": True,
        "rule-based": False,
        "heuristic": False,
    }


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("simplfied", {}, "--judge simplfied: no such judge; there are simplified, "),
        ("simplified", {"colour": 1}, "no option 'colour'; it takes representation, "),
        ("rule-based", {"representation": "axtree"}, "no option 'representation'; it takes none"),
        ("simplified", {"representation": "html"}, "representation = 'html'"),
        ("heuristic", {"cycle_length": "x"}, "cycle_length = 'x'"),
    ],
)
def test_mistakes_are_said(name: str, options: dict[str, object], said: str) -> None:
    with pytest.raises(UserError, match=said.replace("(", r"\(")):
        make_judge(name, options)


def test_listing_judges_imports_none_of_them() -> None:
    code = "import sys, judges.registry; print([m for m in sys.modules if m.startswith('prompts')])"
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=root, check=False
    )
    assert done.stdout.strip() == "[]"
