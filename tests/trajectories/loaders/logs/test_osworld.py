"""OSWorld-style logs: which picture belongs to which action, the writers' variants, the sample."""

from __future__ import annotations

import json
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.trajectories.loaders import made_logs
from tests.trajectories.loaders.made_logs import line
from trajudge.trajectories.loaders import detect_kind, open_source, osworld
from trajudge.trajectories.model import ImageRef, Trajectory, Unreadable
from trajudge.util.errors import UserError

NO_START = "The state before the first action was not kept: its step shows nothing."


def colour(image: ImageRef | None) -> str | None:
    """Name the colour of a picture of the made logs."""
    if image is None:
        return None
    assert image.path is not None, image.problem
    pixel = Image.open(BytesIO(image.path.read_bytes())).convert("RGB").getpixel((0, 0))
    names = {(255, 255, 255): "white", (255, 0, 0): "red", (0, 0, 255): "blue"}
    assert isinstance(pixel, tuple)
    return names[pixel[:3]]  # type: ignore[index]


def seen(run: Trajectory) -> list[tuple[str | None, str | None]]:
    """The picture and the action of each step."""
    return [(colour(step.observation.screenshot), step.action) for step in run.steps]


def loaded(tmp_path: Path, *lines: Any) -> Trajectory:
    (one,) = open_source(str(made_logs.osworld(tmp_path, lines)))
    assert isinstance(one, Trajectory), one
    return one


def test_each_action_was_seen_on_the_picture_of_the_line_before(tmp_path: Path) -> None:
    run = loaded(tmp_path, *made_logs.LINES)
    assert seen(run) == [
        (None, "pyautogui.click(1, 2)"),
        ("red", "pyautogui.write('x')"),
        ("blue", "DONE"),
        ("white", None),
    ]
    assert str(run.key) == f"osworld/model-a/{made_logs.EXAMPLE}"
    assert (run.goal, run.official_reward, run.answer) == ("Open the shop.", 0.5, None)
    assert (run.terminated, run.truncated) == (True, False)
    assert run.telemetry == {"n_steps": 3, "n_err": 0, "elapsed": 2}
    assert run.metadata["warnings"] == [NO_START]
    assert "LEAKED" not in run.model_dump_json()


def test_the_state_before_the_first_action_where_it_was_kept(tmp_path: Path) -> None:
    folder = made_logs.osworld(tmp_path)
    (folder / "step_0_20260622@000000000000.png").write_bytes(made_logs.picture("blue"))
    (run,) = open_source(str(folder))
    assert isinstance(run, Trajectory)
    assert seen(run)[0] == ("blue", "pyautogui.click(1, 2)")
    assert run.metadata["warnings"] == []


@pytest.mark.parametrize("word", ["initial", "__init__", None, "", "reset"])
def test_a_line_of_number_0_is_the_initial_state(word: str | None, tmp_path: Path) -> None:
    run = loaded(tmp_path, line(0, word), line(1, "DONE"))
    assert seen(run) == [("white", "DONE"), ("red", None)]


def test_writers_that_count_from_0_lose_no_action(tmp_path: Path) -> None:
    old = line(0, "old", response="Another.")
    run = loaded(tmp_path, old, line(0, "click"), line(1, "type"), line(2, "DONE"))
    assert seen(run) == [(None, "click"), ("white", "type"), ("red", "DONE"), ("blue", None)]
    assert "holds 2 runs" in str(run.metadata["warnings"])


def test_a_human_run_begins_with_its_task(tmp_path: Path) -> None:
    first = {"instruction": "Do it by hand.", "initial_state": "step_2_20260622@000002000000.png"}
    run = loaded(tmp_path, first, line(1, "click"), line(2, "DONE"))
    assert run.goal == "Do it by hand."
    assert seen(run) == [("blue", "click"), ("red", "DONE"), ("blue", None)]


def test_pictures_before_the_action_need_no_shift(tmp_path: Path) -> None:
    def before(number: int, action: str, name: str) -> dict[str, Any]:
        return line(number, action) | {
            "screenshot_file": None,
            "screenshot_file_before_exec": name,
        }

    folder = made_logs.osworld(
        tmp_path, [before(1, "click", "step_0_a.png"), before(2, "DONE", "step_1_b.png")]
    )
    for name, shade in (("step_0_a", "white"), ("step_1_b", "red"), ("step_2_final", "blue")):
        (folder / f"{name}.png").write_bytes(made_logs.picture(shade))
    (run,) = open_source(str(folder))
    assert isinstance(run, Trajectory)
    assert seen(run) == [("white", "click"), ("red", "DONE"), ("blue", None)]
    assert run.metadata["warnings"] == []


def test_several_actions_of_one_response_are_steps_with_one_reasoning(tmp_path: Path) -> None:
    again = line(1, "b", moment="20260622@000009000000")
    run = loaded(tmp_path, line(1, "a"), again, line(2, "DONE"))
    assert [(step.action, step.reasoning) for step in run.steps] == [
        ("a", "Thought 1."),
        ("b", None),
        ("DONE", "Thought 2."),
        (None, None),
    ]


def test_a_task_that_was_run_again_counts_by_its_last_run(tmp_path: Path) -> None:
    earlier = [line(1, "old"), line(2, "old"), {"Error": "crashed"}]
    run = loaded(tmp_path, *earlier, line(1, "new"), line(2, "FAIL"))
    assert [step.action for step in run.steps] == ["new", "FAIL", None]
    assert run.metadata["infeasible"] is True
    assert run.metadata["error"] is None
    warning = "traj.jsonl holds 2 runs, one after the other: the last one counts."
    assert run.metadata["warnings"] == [warning, NO_START]


def test_an_error_at_the_end_cuts_the_run(tmp_path: Path) -> None:
    run = loaded(tmp_path, line(1, "WAIT"), {"Error": "Time limit exceeded in chrome/x"})
    assert (run.terminated, run.truncated, run.telemetry["n_err"]) == (False, True, 1)
    assert run.metadata["error"] == "Time limit exceeded in chrome/x"


CLICK = {"action_type": "CLICK", "x": 5, "y": 6}
TOOL = {"name": "computer", "input": {"action": "key"}, "id": "t", "action_type": "tool_use"}
ACTIONS = [
    (CLICK, 'CLICK({"x": 5, "y": 6})', None, False),
    ({"action_type": "TYPE", "parameters": {"text": "a"}}, 'TYPE({"text": "a"})', None, False),
    ({"action_type": "DONE"}, "DONE", None, True),
    (TOOL, 'computer({"action": "key"})', None, False),
    ('answer("Three.")', 'answer("Three.")', "Three.", True),
    ("answer(text='Th\\'ree')", "answer(text='Th\\'ree')", "Th'ree", True),
    ("answer(three lamps)", "answer(three lamps)", "three lamps", True),
    ("terminate(status='success')", "terminate(status='success')", None, True),
    ({"name": "answer", "input": {"answer": "3"}}, 'answer({"answer": "3"})', "3", True),
    ("WAIT", "WAIT", None, False),
    (["a", 1], '["a", 1]', None, False),
    (7, "7", None, False),
    ({"odd": 1}, '{"odd": 1}', None, False),
]


@pytest.mark.parametrize(("action", "text", "answer", "ends"), ACTIONS)
def test_shapes_of_actions(
    action: object, text: str, answer: str | None, ends: bool, tmp_path: Path
) -> None:
    run = loaded(tmp_path, line(1, action, done=False))
    assert (run.steps[0].action, run.answer, run.terminated) == (text, answer, ends)


RESPONSES = [
    ({"raw_response": "Click it.", "status": "ok", "usage": {"prompt_tokens": 7}}, "Click it."),
    ([{"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": "Go."}], "Hm.\nGo."),
    ({"role": "assistant", "content": [{"type": "text", "text": "Go."}]}, "Go."),
    ({"thought": "Hm.", "response": "not shown"}, "Hm."),
    (["a", {"type": "image", "source": {"data": "A"}}, "b"], "a\nb"),
    (None, None),
    (3, None),
    ("x" * 200_000, None),
]


@pytest.mark.parametrize(("response", "reasoning"), RESPONSES)
def test_shapes_of_responses(response: object, reasoning: str | None, tmp_path: Path) -> None:
    run = loaded(tmp_path, line(1, "DONE", response=response))
    assert run.steps[0].reasoning == reasoning
    if isinstance(response, dict) and "usage" in response:
        assert run.telemetry["input_tokens"] == 7
    if isinstance(response, str):
        assert "A text of 200,000 characters of step 1 is left out." in str(run.metadata)


def test_lines_that_are_no_json_are_left_out_with_a_warning(tmp_path: Path) -> None:
    python = repr(line(2, "DONE"))
    run = loaded(tmp_path, line(1, "a", reward=float("nan")), "{'step_num': 2, 'act", python)
    assert [step.action for step in run.steps] == ["a", "DONE", None]
    warnings = run.metadata["warnings"]
    assert isinstance(warnings, list)
    assert warnings[0] == "Line 2 of traj.jsonl is left out: it is no JSON object."


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ([""], "traj.jsonl is empty"),
        ([{"Error": "no screen"}], "traj.jsonl holds no step (no screen)"),
        ([{"mode": "cua_blackbox"}], "traj.jsonl holds no step (mode cua_blackbox)"),
        (["x"], "traj.jsonl holds no step (no line is an action)"),
    ],
)
def test_a_log_without_a_step_is_named(lines: list[Any], reason: str, tmp_path: Path) -> None:
    made_logs.osworld(tmp_path, lines)
    (one,) = osworld.load(tmp_path)
    assert isinstance(one, Unreadable)
    assert one.reason == reason


@pytest.mark.parametrize("content", ["", "x", "nan", "-1", "inf", "1" * 5_000])
def test_a_result_that_is_no_reward_is_not_known(content: str, tmp_path: Path) -> None:
    folder = made_logs.osworld(tmp_path)
    (folder / "result.txt").write_text(content)
    (run,) = open_source(str(tmp_path))
    assert isinstance(run, Trajectory)
    assert run.official_reward is None
    assert "The reward is not known" in str(run.metadata["warnings"])


def test_agents_by_the_layout(tmp_path: Path) -> None:
    def agent(*levels: str) -> str:
        return osworld._agent(tmp_path.joinpath(*levels, "example"))

    assert agent("results", "pyautogui", "screenshot", "gpt-4o", "chrome") == "gpt-4o"
    assert agent("results", "pyautogui", "som", "gpt-4o", "our_own_domain") == "gpt-4o"
    assert agent("runs", "gpt-4o", "chrome") == "gpt-4o"
    assert agent("runs", "gpt-4o") == "gpt-4o"
    assert agent("results", "claude_computer_use", "screenshot", "chrome") == "results"


def test_numbered_examples_of_two_domains_are_two_tasks(tmp_path: Path) -> None:
    folder = made_logs.osworld(tmp_path, example="7")
    other = folder.parent.parent / "gimp" / "7"
    other.parent.mkdir()
    folder.rename(other)
    made_logs.osworld(tmp_path, example="7")
    items = list(osworld.load(tmp_path))
    assert [item.key.task_id for item in items if item.key] == ["chrome.7", "gimp.7"]


def test_trees_beside_the_pictures(tmp_path: Path) -> None:
    folder = made_logs.osworld(tmp_path)
    (folder / "step_1_20260622@000001000000_a11y.xml").write_text("<desktop/>")
    (run,) = open_source(str(folder))
    assert isinstance(run, Trajectory)
    assert [step.observation.axtree for step in run.steps] == [None, "<desktop/>", None, None]


def test_other_folders_are_not_taken(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "traj.jsonl").write_text('{"role": "user"}')
    assert not osworld.detect(tmp_path)
    (tmp_path / "b").mkdir()
    with pytest.raises(UserError, match="holds no osworld trajectory"):
        osworld.load(tmp_path / "b")


@pytest.mark.real_data
def test_the_sample_equals_an_independent_reading(real_data: Path) -> None:
    root = real_data / "formats" / "osworld_style"
    assert detect_kind(root) == "osworld"
    runs = [item for item in open_source(str(root)) if isinstance(item, Trajectory)]
    assert len(runs) == 2
    for run in runs:
        (log,) = root.rglob(f"{run.raw_task_id}/traj.jsonl")
        lines = [json.loads(text) for text in log.read_text().splitlines()]
        done = [one for one in lines if "step_num" in one]
        named = [None, *(log.parent / one["screenshot_file"] for one in done)]
        images = [step.observation.screenshot for step in run.steps]
        assert [image.path if image else None for image in images] == named
        task = json.loads(next(root.rglob(f"examples/*/{run.raw_task_id}.json")).read_text())
        assert run.goal == task["instruction"]
        assert "SECRET" not in run.model_dump_json()
    first, second = runs
    assert len(first.steps) == 5
    assert [step.action for step in first.steps] == [one["action"] for one in _lines(root)] + [None]
    assert (first.official_reward, first.terminated) == (1.0, True)
    assert (len(second.steps), second.truncated, second.official_reward) == (2, True, None)
    assert second.steps[0].reasoning == "click(5,6)"
    red = first.steps[1].observation.screenshot
    assert red is not None
    assert red.path is not None
    pixel = Image.open(red.path).convert("RGB").getpixel((0, 0))
    assert isinstance(pixel, tuple)
    assert pixel[0] > 150 > pixel[1]


def _lines(root: Path) -> list[dict[str, Any]]:
    (log,) = root.rglob(f"{made_logs.EXAMPLE}/traj.jsonl")
    return [json.loads(text) for text in log.read_text().splitlines()]
