"""Fara's task folders: which screenshot an action saw, how a run ended, and the real example."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.trajectories.loaders.made import PNG, fara, split
from trajudge.trajectories.loaders import detect_kind, open_source
from trajudge.trajectories.loaders.fara import detect, load
from trajudge.trajectories.model import Trajectory
from trajudge.util.errors import UserError


def frames(run: Trajectory) -> list[str | None]:
    """The file name of each step's screenshot."""
    shots = [step.observation.screenshot for step in run.steps]
    return [shot.path.name if shot and shot.path else None for shot in shots]


def test_a_screenshot_before_each_action_and_one_after_the_last(tmp_path: Path) -> None:
    folder = fara(tmp_path / "run-1" / "Tea--3")
    assert detect(folder)
    assert detect(folder.parent)
    assert detect_kind(folder.parent) == "fara"
    [run], [] = split(load(tmp_path))
    assert str(run.key) == "fara/run-1/Tea--3"
    assert (run.goal, run.answer) == ("Find tea.", "Green tea.")
    assert [step.action for step in run.steps] == [
        "left_click(coordinate=[10, 20])",
        "terminate(status='success')",
        None,
    ]
    assert [step.reasoning for step in run.steps] == ["The box.", "Done.", None]
    assert frames(run) == ["screenshot0.png", "screenshot1.png", "screenshot2.png"]
    assert run.steps[1].observation.url == "https://tea.example/1"
    assert (run.terminated, run.truncated) == (True, False)
    assert run.telemetry == {"n_steps": 2.0, "cum_input_tokens": 12.0, "cum_output_tokens": 2.0}
    assert run.metadata == {"aborted": False, "warnings": []}


def test_screenshots_go_by_number_and_their_recorders_folder_is_not_followed(
    tmp_path: Path,
) -> None:
    actions = [("scroll", {"pixels": number}) for number in range(11)]
    names = [f"screenshot_{number}.png" for number in range(1, 12)]
    folder = fara(tmp_path / "Tea--3", actions=actions, frames=names)
    path = folder / "Tea--3_final_answer.json"
    told = json.loads(path.read_text())
    told["screenshots"] = [f"/home/recorder/runs/Tea--3/{name}" for name in sorted(names)]
    path.write_text(json.dumps(told))
    [run], [] = split(load(tmp_path))
    assert frames(run) == names
    assert run.truncated


@pytest.mark.parametrize(
    ("count", "shown", "warned"),
    [
        (1, ["screenshot0.png", None], ["2 actions but 1 screenshots."]),
        (4, [f"screenshot{n}.png" for n in range(3)], ["2 actions but 4 screenshots."]),
        (0, [None, None], []),
    ],
)
def test_other_numbers_of_screenshots_are_told(
    tmp_path: Path, count: int, shown: list[str | None], warned: list[str]
) -> None:
    fara(tmp_path / "Tea--3", frames=[f"screenshot{n}.png" for n in range(count)])
    [run], [] = split(load(tmp_path))
    assert frames(run) == shown
    assert run.metadata["warnings"] == warned


def test_how_a_run_ended(tmp_path: Path) -> None:
    clicks = (("left_click", {"coordinate": [1, 2]}),)
    fara(tmp_path / "a", actions=clicks, answer="<no_answer>")
    fara(tmp_path / "b", actions=clicks, answer="<no_answer>", aborted=True)
    fara(tmp_path / "c", actions=(("stop_and_answer_question", {"answer": "x"}),))
    runs, [] = split(load(tmp_path))
    assert [(r.answer, r.terminated, r.truncated, r.metadata["aborted"]) for r in runs] == [
        (None, False, True, False),
        (None, False, False, True),
        ("Green tea.", True, False, False),
    ]
    assert runs[2].steps[0].action == "terminate(answer='x')"


def test_actions_that_only_messages_tell(tmp_path: Path) -> None:
    folder = fara(tmp_path / "a", frames=["screenshot_1.png", "screenshot_2.png"])
    messages = [
        "Thought #1: First,\nlook.\nAction #1: executing tool 'click' with arguments {\"id\": 3}",
        "Observation#1: a page",
        "Thought #2: Done.\nAction #2: executing tool 'computer_use' with arguments "
        '{"action": "terminate"}',
        "Thought #3: x\nAction #3: executing tool 'click' with arguments {torn",
    ]
    events = [json.dumps({"type": "OtherEvent", "message": each}) for each in messages]
    (folder / "web_surfer.log").write_text("\n".join([*events, "[]", "{torn"]))
    [run], [] = split(load(tmp_path))
    assert [(step.action, step.reasoning) for step in run.steps] == [
        ("click(id=3)", "First,\nlook."),
        ("terminate()", "Done."),
    ]
    assert [str(line).split(":")[0] for line in run.metadata["warnings"]] == [  # type: ignore[union-attr]
        "Line 5 of the log is no JSON object.",
        "Line 6 of the log is no JSON object.",
        "A message has an action that cannot be read",
    ]


def test_arguments_that_are_text(tmp_path: Path) -> None:
    folder = fara(tmp_path / "a", frames=[])
    lines = [{"action": "click", "arguments": '{"id": 3}'}, {"action": "type", "arguments": "tea"}]
    (folder / "web_surfer.log").write_text("\n".join(map(json.dumps, lines)))
    [run], [] = split(load(tmp_path))
    assert [step.action for step in run.steps] == ["click(id=3)", "type('tea')"]


def test_what_makes_a_folder_unreadable(tmp_path: Path) -> None:
    fara(tmp_path / "a", goal=None)
    (fara(tmp_path / "b") / "x_answer.json").write_text("{}")
    (tmp_path / "outside.png").write_bytes(PNG)
    folder = fara(tmp_path / "c", frames=["screenshot0.png", "screenshot1.png"])
    (folder / "screenshot1.png").unlink()
    (folder / "screenshot1.png").symlink_to("/etc/hostname")
    [run], unreadable = split(open_source(f"fara:{tmp_path}"))
    assert [(one.key.task_id if one.key else "", one.reason) for one in unreadable] == [
        ("a", "no goal for task 'a' in the run's files; give --goals FILE"),
        ("b", "holds 2 files *_answer.json, where exactly one is expected"),
    ]
    shown = run.steps[1].observation.screenshot
    assert shown is not None
    assert "leads out" in str(shown.problem)
    with pytest.raises(UserError, match="holds no fara trajectory"):
        load(tmp_path / "a" / "scores")


def test_the_real_example(real_data: Path) -> None:
    """The counts are those of a reader of the raw lines."""
    folder = real_data / "fara_trajectory" / "alltrails_find_23"
    lines = [json.loads(line) for line in (folder / "web_surfer.log").read_text().splitlines()]
    acted = [line for line in lines if line["action"] is not None]
    [run], [] = split(open_source(str(folder.parent)))
    assert (len(lines), len(acted), len(run.steps)) == (9, 4, 4)
    names = ["input_text", "click", "pause_and_memorize_fact", "terminate"]
    assert [(step.action or "").split("(")[0] for step in run.steps] == names
    assert frames(run) == [f"screenshot_{number}.png" for number in range(1, 5)]
    assert [step.observation.url for step in run.steps] == [line["url"] for line in acted]
    assert run.goal.startswith("Identify the best waterfalls")
    assert (run.answer or "").startswith("The two standout")
    assert (run.terminated, run.truncated, run.metadata["aborted"]) == (True, False, False)
    assert run.telemetry["cum_input_tokens"] == 23_383
    assert run.telemetry["cum_output_tokens"] == 1_920
    assert run.metadata["warnings"] == []
    for step, line in zip(run.steps, acted, strict=True):
        told = line["arguments"]
        assert step.reasoning == f"{told['state_description']}\n{told['reasoning']}"
        others = {k: v for k, v in told.items() if k not in ("state_description", "reasoning")}
        assert all(f"{name}={value!r}" in (step.action or "") for name, value in others.items())
