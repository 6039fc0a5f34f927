"""Tasks are read as published, without loss; mistakes are one sentence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.rules.verified.tasks import task
from trajudge.rules.verified.tasks import load_tasks, placeholders, subset_ids
from trajudge.util.errors import UserError


def _written(folder: Path, value: Any) -> Path:
    path = folder / "tasks.json"
    path.write_text(json.dumps(value))
    return path


def _record(**changes: Any) -> dict[str, Any]:
    record: dict[str, Any] = msgspec.to_builtins(task(["a"]))
    return {**record, **changes}


@pytest.mark.real_data
def test_the_812_published_tasks_are_loaded_without_loss(real_data: Path) -> None:
    path = real_data / "webarena" / "webarena-verified.json"
    records = json.loads(path.read_text())
    tasks = load_tasks(path)
    assert len(tasks) == 812
    for record, loaded in zip(records, tasks, strict=True):
        _assert_holds(record, msgspec.to_builtins(loaded))


def _assert_holds(published: Any, loaded: Any) -> None:
    """Everything that was published is there; what is there besides are defaults."""
    if isinstance(published, dict):
        for key, value in published.items():
            _assert_holds(value, loaded[key])
    elif isinstance(published, list):
        assert len(published) == len(loaded)
        for one, other in zip(published, loaded, strict=True):
            _assert_holds(one, other)
    else:
        assert published == loaded
        assert type(published) is type(loaded)


@pytest.mark.real_data
def test_the_published_counts(real_data: Path) -> None:
    folder = real_data / "webarena"
    tasks = load_tasks(folder / "webarena-verified.json")
    checks = [check for task in tasks for check in task.network_checks]
    assert len(checks) == 663
    assert sum(check.should_not_exist for check in checks) == 8
    assert sum(not task.network_checks for task in tasks) == 324
    assert sum(not task.achievable for task in tasks) == 40
    assert len({task.template for task in tasks}) == 190
    hard = subset_ids("webarena-verified-hard", folder / "webarena-verified.json")
    assert len(hard) == 258
    assert hard <= {str(task.task_id) for task in tasks}


@pytest.mark.parametrize(
    ("record", "said"),
    [
        (_record(task_id=None), "task_id"),
        (_record(evals=[]), "evals"),
        (_record(task_id="../x"), "names no folder"),
        (_record(task_id=".."), "names no folder"),
        (_record(eval=[]), "eval: holds no check"),
        (_record(eval=[{"evaluator": "Other"}]), "Other"),
        (_record(eval=_record()["eval"] * 2), "keep one"),
    ],
)
def test_a_mistake_is_named_with_its_place(tmp_path: Path, record: Any, said: str) -> None:
    path = _written(tmp_path, [record])
    with pytest.raises(UserError, match=said) as caught:
        load_tasks(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_task_id_may_occur_once(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="two tasks"):
        load_tasks(_written(tmp_path, [_record(), _record()]))


def test_a_file_without_tasks_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="holds no task"):
        load_tasks(_written(tmp_path, []))


def test_placeholders_are_found_wherever_they_stand() -> None:
    assert placeholders("^__SHOPPING_ADMIN__/x$ __MAP__") == {"__SHOPPING_ADMIN__", "__MAP__"}


def test_a_task_without_a_template_is_its_own_template() -> None:
    assert task(["a"]).template == "task 1"
    assert task(["a"], intent_template_id=7).template == "7"


def test_a_bad_field_is_the_flaw_of_its_task_alone(tmp_path: Path) -> None:
    """Its place and value are named, and the linter goes on."""
    wrong = [_record(task_id=number) for number in range(4)]
    wrong[0] = {**wrong[0], "extra": 7}
    wrong[1] = {name: value for name, value in wrong[1].items() if name != "intent"}
    wrong[2] = {**wrong[2], "sites": ["shopping", 5]}
    path = tmp_path / "tasks.json"
    path.write_text(json.dumps(wrong))
    tasks = load_tasks(path, keep_flawed=True)
    flaws = [(task.task_id, task.flaw.field, task.flaw.value) for task in tasks if task.flaw]
    assert flaws == [(0, "extra", 7), (1, "intent", None), (2, "sites[1]", 5)]
    assert [task.task_id for task in tasks if not task.flaw] == [3]
    with pytest.raises(UserError, match="task 0: extra: "):
        load_tasks(path)
