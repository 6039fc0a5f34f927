"""Which kind a task file is, and that every kind brings what the auditors ask for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from trajudge.rules.options import KINDS
from trajudge.rules.suites import detected, suite
from trajudge.rules.verdict import Outcome
from trajudge.trajectories.util.errors import UserError

TASK = {"task_id": 1, "intent": "?", "eval": {"eval_types": ["string_match"]}}


def test_a_file_or_folder_is_known_by_its_first_task(tmp_path: Path) -> None:
    (tmp_path / "1.json").write_text(json.dumps([TASK]))
    (tmp_path / "2.json").write_text("not read")
    assert detected(tmp_path / "1.json") == "webarena"
    assert detected(tmp_path) == "webarena"
    (tmp_path / "1.json").write_text("\ufeff" + json.dumps(TASK))
    assert detected(tmp_path / "1.json") == "webarena"


@pytest.mark.parametrize("content", [[], [3], "{", [{"eval": []}], {"eval": "eval_types"}])
def test_any_other_file_is_a_mistake(tmp_path: Path, content: Any) -> None:
    path = tmp_path / "tasks.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    with pytest.raises(UserError, match=r"tasks\.json"):
        detected(path)


def test_an_empty_folder_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"holds no \.json file: name a file of tasks"):
        detected(tmp_path)


def test_a_kind_must_exist() -> None:
    with pytest.raises(UserError, match="no kind 'x'"):
        suite("x")


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_kind_is_whole(kind: str, tmp_path: Path) -> None:
    rules = suite(kind)
    assert len(set(rules.categories)) == len(rules.categories)
    assert all({*parts} <= {*rules.categories} for parts in rules.unions.values())
    assert rules.agents
    assert all(rules.evaluator(mode) for mode in rules.modes)


def test_an_idle_run_fails_what_it_can_be_held_to(tmp_path: Path) -> None:
    spec = {"eval_types": ["url_match"], "reference_url": "__SHOPPING__/cart"}
    path = tmp_path / "tasks.json"
    path.write_text(json.dumps([{**TASK, "eval": spec}]))
    rules = suite("webarena")
    (task,) = rules.load(path)
    verdict = rules.evaluator("original").evaluate(task, "done", rules.idle_trace(task))
    assert verdict.outcome is Outcome.FAIL
