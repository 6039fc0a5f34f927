"""Which dialect a task file is of, and that every dialect brings what the auditors ask for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

import pytest

from trajudge.rules.audit.suites import open_tasks, suite
from trajudge.rules.settings import DialectName
from trajudge.rules.verdict import Outcome
from trajudge.rules.webarena.tasks import DIALECTS, detected, dialect
from trajudge.util.errors import UserError

TASK = {"task_id": 1, "intent": "?", "eval": {"eval_types": ["string_match"]}}


def written(path: Path, content: Any) -> Path:
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def with_eval(**parts: Any) -> dict[str, Any]:
    return {**TASK, "eval": {**TASK["eval"], **parts}}  # type: ignore[dict-item]


def page(**parts: Any) -> dict[str, Any]:
    return with_eval(program_html=[{"url": "last", "locator": "", **parts}])


@pytest.mark.parametrize(
    ("record", "name"),
    [
        (TASK, "webarena"),
        (with_eval(reference_answers={"must_include": ["a |OR| b"]}), "webarena"),
        (with_eval(reference_answers={"must_include": ["a |or| b"]}), "webchorearena"),
        ({**TASK, "type_main": "Calculation"}, "webchorearena"),
        (page(**{"or": []}), "webchorearena"),
        ({**TASK, "visual_difficulty": "easy"}, "visualwebarena"),
        (with_eval(url_note="EXACT"), "visualwebarena"),
        (with_eval(page_image_query=[]), "visualwebarena"),
        (with_eval(reference_answers={"one_of": ["a"]}), "visualwebarena"),
        (page(required_contents={"required_values": ["> 1"]}), "visualwebarena"),
        ({**with_eval(url_note="EXACT"), "old_task_id": 7}, "webarena-lite"),
        ({**TASK, "eval": [{"evaluator": "NetworkEventEvaluator"}]}, "verified"),
        ({"id": "a-1", "goal": "?", "evals": []}, "real"),
    ],
)
def test_a_dialect_is_recognised_by_its_own_words(
    tmp_path: Path, record: dict[str, Any], name: str
) -> None:
    path = written(
        tmp_path / "tasks.json", [3, TASK, record] if "eval_types" in str(record) else record
    )
    assert detected(path).name == name


def test_a_folder_is_known_by_its_first_file(tmp_path: Path) -> None:
    written(tmp_path / "1.json", [TASK])
    written(tmp_path / "2.json", "not read")
    assert detected(tmp_path).name == "webarena"
    (tmp_path / "1.json").write_text("\ufeff" + json.dumps(TASK))
    assert detected(tmp_path / "1.json").name == "webarena"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ([], "holds no task"),
        ([3], "name it by --dialect"),
        ("{", "truncated"),
        ([{"eval": []}], "name it by --dialect"),
        ({"eval": "eval_types"}, "name it by --dialect"),
        ([TASK, {"id": "a-1", "goal": "?", "evals": []}], "of several dialects"),
        (
            [{**TASK, "type_main": "x"}, with_eval(url_note="EXACT")],
            r"webchorearena \(type_main\) and visualwebarena \(EXACT\): name one by --dialect",
        ),
    ],
)
def test_any_other_file_is_a_mistake(tmp_path: Path, content: Any, said: str) -> None:
    with pytest.raises(UserError, match=rf"tasks\.json: .*{said}"):
        detected(written(tmp_path / "tasks.json", content))


def test_an_empty_folder_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"holds no \.json file: name a file of tasks"):
        detected(tmp_path)


def test_a_dialect_must_exist() -> None:
    assert tuple(DIALECTS) == get_args(DialectName)
    with pytest.raises(UserError, match="no dialect 'x'"):
        dialect("x")


@pytest.mark.parametrize("name", DIALECTS)
def test_every_dialect_is_whole(name: str) -> None:
    rules = suite(DIALECTS[name])
    assert rules.dialect == name
    assert len(set(rules.categories)) == len(rules.categories)
    assert all({*parts} <= {*rules.categories} for parts in rules.unions.values())
    if DIALECTS[name].form == "real":
        with pytest.raises(UserError, match=r"use {2}trajudge rules lint"):
            rules.evaluator(rules.modes[0])
    else:
        assert rules.agents
        assert all(rules.evaluator(mode) for mode in rules.modes)


def test_a_dialect_that_is_named_goes_before_the_files_words(tmp_path: Path) -> None:
    path = written(tmp_path / "tasks.json", [with_eval(url_note="EXACT")])
    assert open_tasks(path).suite.dialect == "visualwebarena"
    assert open_tasks(path, "webarena-lite").suite.dialect == "webarena-lite"


def test_an_idle_run_fails_what_it_can_be_held_to(tmp_path: Path) -> None:
    spec = {"eval_types": ["url_match"], "reference_url": "__SHOPPING__/cart"}
    path = written(tmp_path / "tasks.json", [{**TASK, "eval": spec}])
    _, rules, mode, (task,) = open_tasks(path)
    verdict = rules.evaluator(mode).evaluate(task, "done", rules.idle_trace(task))
    assert verdict.outcome is Outcome.FAIL


@pytest.mark.real_data
@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("webarena/test.raw.json", "webarena"),
        ("webchorearena/test_webchore.raw.json", "webchorearena"),
        ("webarena/webarena-verified.json", "verified"),
        ("real_bench/v1", "real"),
        ("real_bench/v2", "real"),
    ],
)
def test_published_files_are_recognised(real_data: Path, name: str, found: str) -> None:
    assert detected(real_data / name).name == found
