"""Online-Mind2Web: its first layout and its second."""

from __future__ import annotations

import base64
import json
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.trajectories.loaders.made import LFS_POINTER, TASK, mind2web, only, split
from tests.trajectories.loaders.mind2web_submissions import ACTIONS, Change, submission
from trajudge.trajectories.loaders.online_mind2web import detect, load
from trajudge.trajectories.model import ImageRef


def test_a_task_folder_gives_the_whole_trajectory(tmp_path: Path) -> None:
    folder = mind2web(tmp_path / "some-agent" / TASK)
    assert detect(folder)
    assert detect(folder.parent)
    [run], [] = split(load(folder))
    assert str(run.key) == f"online-mind2web/some-agent/{TASK}"
    assert (run.goal, run.answer, run.official_reward) == ("Find tea.", "Found.", None)
    image = folder / "trajectory" / "1_full_screenshot.png"
    assert [(step.action, step.reasoning, step.observation.screenshot) for step in run.steps] == [
        ("Navigate", None, None),
        ("Click", "I see it.", ImageRef(path=image)),
        (None, None, ImageRef(path=image.with_name("2_full_screenshot.png"))),
    ]
    assert run.metadata["warnings"] == []


def test_screenshots_counted_from_0_show_what_each_action_saw(tmp_path: Path) -> None:
    mind2web(tmp_path / TASK, numbers=(0, 1))
    [run], [] = split(load(tmp_path))
    assert [step.action for step in run.steps] == ["Navigate", "Click"]
    assert all(step.observation.screenshot for step in run.steps)


def test_submissions_of_one_task_are_attempts(tmp_path: Path) -> None:
    mind2web(tmp_path / f"{TASK}_110325", task_id=f"{TASK}_110325")
    mind2web(tmp_path / TASK)
    mind2web(tmp_path / "renamed", task_id="ffff")
    runs, [] = split(load(tmp_path))
    assert [(run.key.task_id, run.key.attempt, run.raw_task_id) for run in runs] == [
        (TASK, 0, TASK),
        (TASK, 1, f"{TASK}_110325"),
        ("ffff", 0, "ffff"),
    ]
    assert [run.raw_task_id for run in split(load(tmp_path, only("ffff")))[0]] == ["ffff"]


def test_amiss_screenshots_and_lengths_are_told(tmp_path: Path) -> None:
    folder = mind2web(tmp_path / TASK, numbers=(2, 3, 12))
    result = json.loads((folder / "result.json").read_text())
    result["thoughts"] = ["a", "b", "c"]
    (folder / "result.json").write_text(json.dumps(result))
    (folder / "trajectory" / "2_full_screenshot.png").write_bytes(LFS_POINTER)
    [run], [] = split(load(tmp_path))
    assert run.metadata["warnings"] == [
        "2 actions but 3 thoughts.",
        "The screenshot 2_full_screenshot.png is a git-LFS pointer, not an image.",
        "The screenshot 12_full_screenshot.png belongs to no action.",
        "There is no screenshot of number 1.",
    ]


def test_a_damaged_folder_is_named(tmp_path: Path) -> None:
    mind2web(tmp_path / "a", task_id="a")
    (mind2web(tmp_path / "b") / "result.json").write_text('{"task_id": "b", "task": ""}')
    (mind2web(tmp_path / "c") / "result.json").write_text('{"task_id": 1}')
    [run], bad = split(load(tmp_path))
    assert run.key.task_id == "a"
    assert [result.key and result.key.task_id for result in bad] == ["1", "b"]


def test_what_a_run_that_broke_off_left_is_named(tmp_path: Path) -> None:
    mind2web(tmp_path / "b", task_id="task")
    (mind2web(tmp_path / "a", task_id="task") / "trajectory").rename(tmp_path / "elsewhere")
    (tmp_path / "c" / "trajectory").mkdir(parents=True)
    (tmp_path / "notes").mkdir()
    [run], bad = split(load(tmp_path))
    assert (run.key.task_id, run.key.attempt) == ("task", 0)
    assert [(Path(one.source).name, one.reason) for one in bad] == [
        ("c", "result.json cannot be read: No such file or directory"),
        ("a", "the folder trajectory/, with the screenshots, is missing"),
    ]


@pytest.mark.real_data
def test_the_real_submissions(real_data: Path) -> None:
    runs, [] = split(load(real_data / "online-mind2web"))
    assert [(run.raw_task_id, len(run.steps)) for run in runs] == [
        ("bf3b311cc8dce16d3de844f4b5875dfd", 39),
        ("d02d236836924919f35f2438d9ed2374", 6),
        ("e43cbc8a0bf9e999884928d11006f894_110325", 19),
    ]
    imdb = runs[1]
    assert imdb.goal == "Browse the top 250 movies and find one movie that is available on AMC+."
    assert imdb.steps[0].action == "Navigate to https://www.imdb.com/chart/top/"
    assert imdb.steps[0].reasoning is None
    assert imdb.steps[4].action == "Click at (949, 345)"
    assert "**The Shawshank Redemption**" in (imdb.answer or "")
    assert imdb.metadata["warnings"] == [
        f"The screenshot {n}_full_screenshot.png is a git-LFS pointer, not an image."
        for n in range(1, 6)
    ]
    tasks = json.loads((real_data / "online-mind2web" / "tasks.json").read_text())
    assert {run.key.task_id for run in runs} <= {task["task_id"] for task in tasks}


def put(name: str, value: object, step: int | None = None) -> Change:
    def change(told: dict[str, Any]) -> None:
        (told if step is None else told["action_history"][step])[name] = value

    return change


def drop(name: str, step: int | None = None) -> Change:
    def change(told: dict[str, Any]) -> None:
        del (told if step is None else told["action_history"][step])[name]

    return change


def answer(text: str | None, end: str) -> Change:
    def change(told: dict[str, Any]) -> None:
        told["agent_final_answer"] = text
        told["action_history"][-1]["action"] = end

    return change


def only_the_end(told: dict[str, Any]) -> None:
    told["action_history"] = [told["action_history"][-1] | {"step": 0}]


def renamed(ending: str) -> Change:
    def change(told: dict[str, Any]) -> None:
        for entry in told["action_history"]:
            entry["screenshot"] = entry["screenshot"].replace(".png", ending)

    return change


def inline() -> str:
    file = BytesIO()
    Image.new("RGB", (4, 4)).save(file, "PNG")
    return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode()


VALID: dict[str, Change] = {
    "as it is": lambda told: None,
    "no answer": answer(None, "TASK_COMPLETE -> ANSWER: "),
    "an end without answer": answer(None, "TASK_COMPLETE"),
    "an empty answer": answer("", "TASK_COMPLETE -> ANSWER:"),
    "an answer with other blanks": answer(
        "Green\n\n tea.", "TASK_COMPLETE  ->  ANSWER:  Green tea. "
    ),
    "an answer with an arrow": answer("a -> b | c", "TASK_COMPLETE -> ANSWER: a -> b | c"),
    "an answer of several lines": answer("a\nb", "TASK_COMPLETE -> ANSWER: a\nb"),
    "an answer in other letters": answer("\u7dd1\u8336", "TASK_COMPLETE -> ANSWER: \u7dd1\u8336"),
    "a null url": put("url", None, 0),
    "an empty url": put("url", "", 0),
    "no url": drop("url", 0),
    "a null thought": put("thought", None, 1),
    "an empty thought": put("thought", "", 1),
    "a status that agrees": put("action_status", "FAILED", 1),
    "a null status": put("action_status", None, 1),
    "a status without suffix": lambda told: told["action_history"][0].update(
        action="page -> NAVIGATE -> open", action_status="SUCCESS"
    ),
    "no suffix": put("action", "WAIT page -> waiting", 1),
    "the compact grammar": put("action", "click_at(x=3, y=4)", 1),
    "a pipe inside an action": put("action", "TYPE [a] -> a | b | SUCCESS", 1),
    "JPEG": renamed(".jpg"),
    "WebP": renamed(".webp"),
    "a time in the names": renamed("_full_screenshot_1700000000000.png"),
    "an inline picture": put("screenshot", inline(), 0),
    "one step": only_the_end,
    "a step of one": put("reference_length", 1),
    "an id that is no hash": put("task_id", "Tea_shop-3"),
    "a field of the submitter's": put("agent", "mine"),
    "a step's field of the submitter's": put("seconds", 3.5, 0),
}


@pytest.mark.parametrize("name", VALID)
def test_a_valid_result_is_read(name: str, tmp_path: Path) -> None:
    [run], [] = split(load(submission(tmp_path, VALID[name])))
    assert [step.index for step in run.steps] == [*range(len(run.steps))]
    assert run.goal == "Find tea."
    assert (run.steps[-1].action or "").startswith("TASK_COMPLETE")


LAST = 2
INVALID: dict[str, tuple[Change, str]] = {
    "an unknown version": (
        put("schema_version", "online-mind2web-v3"),
        "schema_version is 'online-mind2web-v3': this trajudge reads online-mind2web-v2",
    ),
    "no task": (drop("task"), "task is missing: write the task's text"),
    "an empty task": (put("task", " "), "task is ' ': write the task's text"),
    "a task of another type": (put("task", ["x"]), "task is ['x']: write the task's text"),
    "a prefixed id": (put("task_id", f"tasks/{TASK}"), "without tasks/"),
    "no id": (drop("task_id"), "task_id is missing: write the benchmark's bare id"),
    "a number as id": (put("task_id", 3), "task_id is 3: write the benchmark's bare id"),
    "no answer field": (
        drop("agent_final_answer"),
        "agent_final_answer is missing: write the answer, or null for none",
    ),
    "an answer that is no text": (
        put("agent_final_answer", {"a": 1}),
        "agent_final_answer is {'a': 1}: write the answer, or null for none",
    ),
    "another answer than the last action's": (
        put("agent_final_answer", "Black tea."),
        "agent_final_answer is not the text after TASK_COMPLETE -> ANSWER: in the last action",
    ),
    "no reference length": (drop("reference_length"), "reference_length is missing"),
    "a reference length of 0": (put("reference_length", 0), "reference_length is 0: write the per"),
    "a length in text": (put("reference_length", "4"), "reference_length is '4'"),
    "a length that is true": (put("reference_length", True), "reference_length is True"),
    "no history": (drop("action_history"), "action_history is no list of steps"),
    "an empty history": (put("action_history", []), "action_history is no list of steps"),
    "a history of version 1": (
        put("action_history", ["click", "type"]),
        "action_history[0] is no object: write step, screenshot, action and thought, or leave out "
        "schema_version",
    ),
    "a step out of order": (
        put("step", 2, 1),
        "action_history[1].step is 2: number the steps from 0, here 1",
    ),
    "steps from 1": (put("step", 1, 0), "action_history[0].step is 1"),
    "no step": (drop("step", 0), "action_history[0].step is missing"),
    "no screenshot": (
        drop("screenshot", 0),
        "action_history[0].screenshot is missing: name the step's file in trajectory/",
    ),
    "a null screenshot": (put("screenshot", None, 1), "action_history[1].screenshot is None"),
    "a url that is no text": (
        put("url", 3, 0),
        "action_history[0].url is 3: write the page's address, or null",
    ),
    "no action": (
        put("action", "", 1),
        "action_history[1].action is '': write the action's text",
    ),
    "no thought": (
        drop("thought", 1),
        "action_history[1].thought is missing: write the thought, or null for none",
    ),
    "a thought that is no text": (
        put("thought", 1, 0),
        "action_history[0].thought is 1: write the thought",
    ),
    "an unknown status": (
        put("action_status", "OK", 0),
        "action_history[0].action_status is 'OK': write SUCCESS, FAILED or null",
    ),
    "a status that disagrees": (
        put("action_status", "SUCCESS", 1),
        "action_history[1].action_status is SUCCESS, but the action ends with FAILED: make them",
    ),
    "an end without TASK_COMPLETE": (
        put("action", "click", LAST),
        "action_history ends with 'click': end it with a step TASK_COMPLETE -> ANSWER:",
    ),
}


@pytest.mark.parametrize("name", INVALID)
def test_a_mistake_names_file_field_and_mend(name: str, tmp_path: Path) -> None:
    change, message = INVALID[name]
    [], [one] = split(load(submission(tmp_path, change)))
    assert one.reason.startswith("result.json: ")
    assert message in one.reason
    assert TASK in one.source


def test_each_step_has_what_its_object_says(tmp_path: Path) -> None:
    folder = submission(tmp_path / "my-agent")
    [run], [] = split(load(folder))
    assert str(run.key) == f"online-mind2web/my-agent/{TASK}"
    place = folder / TASK / "trajectory"
    assert [
        (step.observation.screenshot, step.observation.url, step.action, step.reasoning)
        for step in run.steps
    ] == [
        (ImageRef(path=place / f"{n:04}.png"), f"https://tea.example/{n}", action, f"thought {n}")
        for n, action in enumerate(ACTIONS)
    ]
    assert (run.answer, run.terminated) == ("Green tea.", True)
    assert run.telemetry == {"n_steps": 3.0, "n_err": 1.0}
    assert run.metadata == {"warnings": []}


def test_the_name_decides_the_screenshot_not_its_place(tmp_path: Path) -> None:
    """The mistake that version 2 is there to end: a lost file moves no other picture."""

    def change(told: dict[str, Any]) -> None:
        told["action_history"][1]["screenshot"] = "0002.png"
        told["action_history"][2]["screenshot"] = "/home/me/run/trajectory/0003.png"

    folder = submission(tmp_path, change)
    [run], [] = split(load(folder))
    shots = [step.observation.screenshot for step in run.steps]
    names = [shot.path.name if shot and shot.path else None for shot in shots]
    assert names == ["0000.png", "0002.png", None]
    assert shots[2] is not None
    assert "is missing" in str(shots[2].problem)
    assert run.metadata["warnings"] == ["The screenshot 0003.png is missing."]


def test_pictures_in_transit(tmp_path: Path) -> None:
    def change(told: dict[str, Any]) -> None:
        told["action_history"][0]["screenshot"] = inline()
        told["action_history"][1]["screenshot"] = "https://pictures.example/1.png"

    [run], [] = split(load(submission(tmp_path, change)))
    first, second, _ = (step.observation.screenshot for step in run.steps)
    assert first is not None
    assert first.data is not None
    assert first.data.startswith(b"\x89PNG")
    assert second is not None
    assert "is an address, not a file" in str(second.problem)


def test_unknown_fields_cost_a_warning(tmp_path: Path) -> None:
    [run], [] = split(load(submission(tmp_path, VALID["a step's field of the submitter's"])))
    assert run.metadata["warnings"] == [
        "The schema knows no field action_history[0].seconds: it is not read."
    ]
