"""browser-use's history files: seven forms of one run, and the samples by an independent reader."""

from __future__ import annotations

import base64
import json
import os
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.trajectories.loaders import made_logs
from trajudge.trajectories.goals import GoalsFile
from trajudge.trajectories.loaders import browser_use, detect_kind, open_source
from trajudge.trajectories.model import ImageRef, Trajectory, Unreadable
from trajudge.util.errors import UserError

GOALS = GoalsFile(Path("goals.json"), "", {"browser_use_0_1": "Find Elon Musk."})


def only(path: Path) -> Trajectory:
    (one,) = open_source(str(path), goals=GOALS)
    assert isinstance(one, Trajectory)
    return one


def pixels(image: ImageRef | None) -> bytes:
    assert image is not None
    assert image.problem is None
    return image.data if image.data is not None else Path(str(image.path)).read_bytes()


def colour(image: ImageRef | None) -> object:
    return Image.open(BytesIO(pixels(image))).convert("RGB").getpixel((0, 0))


def shown(run: Trajectory) -> dict[str, Any]:
    """All that the forms have in common, pictures as their bytes."""
    content = run.model_dump(exclude={"telemetry": {"elapsed", "input_tokens"}})
    for step, dumped in zip(run.steps, content["steps"], strict=True):
        dumped["observation"]["screenshot"] = pixels(step.observation.screenshot)
    return content


def test_seven_forms_of_one_run_are_one_trajectory(tmp_path: Path) -> None:
    runs = {
        form: only(made_logs.browser_use(tmp_path / form / "a" / "t", form))
        for form in made_logs.FORMS
    }
    assert len(runs) == 7
    expected = runs["0.9.7"]
    for form, run in runs.items():
        assert shown(run) == shown(expected), form
    assert [colour(step.observation.screenshot) for step in expected.steps] == [
        (255, 255, 255),
        (255, 0, 0),
        (0, 0, 255),
    ]
    assert expected.steps[1].observation.page_error is None
    assert expected.steps[2].observation.page_error == "Element 13 does not exist"
    assert expected.steps[0].action == (
        'navigate({"url": "http://shop.example/", "new_tab": false})'
    )
    assert expected.steps[0].reasoning == (
        "Evaluation: Evaluated 1.\nMemory: Remembered 1.\nNext goal: Wanted 1."
    )
    assert runs["0.1.40"].telemetry == {
        **{"n_steps": 3, "n_err": 1, "elapsed": 7.5, "input_tokens": 300},
    }
    assert "JUDGED" not in expected.model_dump_json()


def test_names_of_runs_agents_and_attempts(tmp_path: Path) -> None:
    made_logs.browser_use(tmp_path / "agent" / "task-1")
    made_logs.browser_use(tmp_path / "again" / "agent" / "task-1")
    named = made_logs.browser_use(tmp_path / "agent" / "files")
    (named / "AgentHistory.json").rename(named / "task-2.json")
    keys = [item.key for item in open_source(f"browser-use:{tmp_path}")]
    assert [str(key) for key in keys] == [
        *("browser-use/agent/task-1", "browser-use/agent/task-1#1", "browser-use/files/task-2"),
    ]
    assert str(only(named / "task-2.json").key) == "browser-use/files/task-2"


def changed(folder: Path, change: Any) -> Trajectory | Unreadable:
    """The made run with one change to its history."""
    file = made_logs.browser_use(folder) / "AgentHistory.json"
    history = json.loads(file.read_text())
    change(history["history"])
    file.write_text(json.dumps(history))
    (one,) = open_source(str(folder))
    return one


def test_a_run_that_was_cut_has_no_answer(tmp_path: Path) -> None:
    run = changed(tmp_path / "a" / "t", lambda history: history.pop())
    assert isinstance(run, Trajectory)
    assert (run.answer, run.terminated, run.metadata["self_report"]) == (None, False, None)
    assert run.steps[-1].observation.page_error == "Element 13 does not exist"


def test_a_file_of_a_rerun_has_steps_without_action(tmp_path: Path) -> None:
    def rerun(history: list[dict[str, Any]]) -> None:
        for item in history:
            item["model_output"] = None

    run = changed(tmp_path / "a" / "t", rerun)
    assert isinstance(run, Trajectory)
    assert [step.action for step in run.steps] == [None, None, None]
    assert [step.observation.page_error for step in run.steps] == [
        *(None, "Element 13 does not exist", None),
    ]


def test_flash_mode_has_memory_alone(tmp_path: Path) -> None:
    def flash(history: list[dict[str, Any]]) -> None:
        output = history[0]["model_output"]
        output |= {"evaluation_previous_goal": None, "next_goal": None, "thinking": ""}

    run = changed(tmp_path / "a" / "t", flash)
    assert isinstance(run, Trajectory)
    assert run.steps[0].reasoning == "Memory: Remembered 1."


def test_one_bad_picture_costs_the_picture_and_a_warning(tmp_path: Path) -> None:
    def spoil(history: list[dict[str, Any]]) -> None:
        history[0]["state"]["screenshot"] = "not base64!"
        history[1]["state"]["screenshot_path"] = "/home/somebody/absent.png"
        history[2]["state"]["screenshot_path"] = {"a": 1}

    run = changed(tmp_path / "a" / "t", spoil)
    assert isinstance(run, Trajectory)
    assert run.metadata["warnings"] == [
        "The picture of step 1 is no base64.",
        "The screenshot absent.png is missing.",
        "The screenshot \"{'a': 1}\" is not a file name.",
    ]
    shot = run.steps[2].observation.screenshot
    assert shot is not None
    assert shot.problem


def test_a_value_beyond_the_limit_costs_the_run_alone(tmp_path: Path) -> None:
    def bomb(history: list[dict[str, Any]]) -> None:
        history[0]["model_output"]["action"] = [{"write": [[]] * 400_000}]

    run = changed(tmp_path / "a" / "t", bomb)
    assert isinstance(run, Unreadable)
    assert run.reason == "it holds more than 300,000 objects and lists"


def test_what_is_no_file_in_a_historys_place_is_named(tmp_path: Path) -> None:
    files = [made_logs.browser_use(tmp_path / f"a{n}") / "AgentHistory.json" for n in range(3)]
    for file in files:
        file.unlink()
    os.mkfifo(files[0])
    files[1].mkdir()
    files[2].symlink_to(files[2].name)
    items = list(open_source(f"browser-use:{tmp_path}"))
    assert [item.key.task_id for item in items if item.key] == ["a0", "a1", "a2"]
    assert all(isinstance(item, Unreadable) for item in items)


@pytest.mark.parametrize("name", ["history.json", "agent_history.json"])
def test_a_foreign_file_of_a_common_name_is_passed_over(name: str, tmp_path: Path) -> None:
    made_logs.browser_use(tmp_path / "a" / "t")
    (tmp_path / "a" / name).write_text('{"history": [{"iteration": 1, "result": true}]}')
    (one,) = open_source(f"browser-use:{tmp_path}")
    assert isinstance(one, Trajectory)


@pytest.mark.parametrize("content", ["{}", "[]", '{"history": []}', '{"history": [1]}', "x", ""])
def test_other_files_are_not_taken(content: str, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(content)
    assert not browser_use.detect(tmp_path)
    assert not browser_use.detect(tmp_path / "x.json")
    with pytest.raises(UserError, match="holds no browser-use trajectory"):
        list(browser_use.load(tmp_path))


# The samples, read here by the plain words of the format's description.


def independent(file: Path) -> list[tuple[Any, list[str], Any, bytes]]:
    """Address, actions, reasoning's next goal and picture of each item."""
    read = []
    for item in json.loads(file.read_text())["history"]:
        output, state = item["model_output"] or {}, item["state"]
        actions = output.get("action") or []
        actions = actions if isinstance(actions, list) else [actions]
        lines = [
            f"{name}({json.dumps(values, ensure_ascii=False)})"
            for action in actions
            for name, values in action.items()
        ]
        wish = output.get("current_state", output).get("next_goal")
        if state.get("screenshot"):
            picture = base64.b64decode(state["screenshot"])
        else:
            picture = (
                file.parent / "screenshots" / Path(state["screenshot_path"]).name
            ).read_bytes()
        read.append((state["url"], lines, wish, picture))
    return read


SAMPLES = ("browser_use_0_1/AgentHistoryList.json", "browser_use_0_13/run1/AgentHistory.json")


@pytest.mark.real_data
@pytest.mark.parametrize("name", SAMPLES)
def test_a_sample_equals_an_independent_reading(name: str, real_data: Path) -> None:
    file = real_data / "formats" / name
    assert detect_kind(file) == detect_kind(file.parent) == "browser-use"
    run, read = only(file), independent(file)
    assert len(run.steps) == len(read) == 4
    for step, (url, actions, wish, picture) in zip(run.steps, read, strict=True):
        assert step.observation.url == url
        assert step.action == ("\n".join(actions) or None)
        assert (step.reasoning or "").endswith(f"Next goal: {wish}" if wish else "")
        assert pixels(step.observation.screenshot) == picture
    assert run.metadata["warnings"] == []
    assert run.terminated


@pytest.mark.real_data
def test_the_run_that_the_last_release_wrote(real_data: Path) -> None:
    run = only(real_data / "formats" / SAMPLES[1])
    assert run.goal == "How many lamps cost less than $20?"
    assert run.answer == "Three lamps cost less than $20."
    assert len(str(run.steps[1].action).splitlines()) == 2
    assert [step.observation.page_error for step in run.steps] == [
        None,
        None,
        "Element with index 13 does not exist\nRate limit reached. Waiting before retry.",
        None,
    ]
    red, blue = colour(run.steps[1].observation.screenshot), colour(run.final.screenshot)
    assert (red, blue) == ((200, 30, 30), (30, 30, 200))
    assert colour(run.steps[2].observation.screenshot) == blue
    assert run.metadata["self_report"] is True
    assert "never opened" not in run.model_dump_json()
