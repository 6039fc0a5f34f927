"""Actions as agents write them: verb, target, place; marks stand where the raw files say."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trajudge.app.images import KnownImage
from trajudge.app.steps import ActionParts, ScreenMark, action_parts, marks_of
from trajudge.trajectories.loaders import open_source
from trajudge.trajectories.model import Observation, Step, Trajectory

PAGE = KnownImage("0" * 64, 800, 600)


@pytest.mark.parametrize(
    ("action", "parts"),
    [
        ("click('12')", ActionParts("click", "12")),
        ("fill('a51', 'Glass Trivet')", ActionParts("fill", "a51", typed="Glass Trivet")),
        ("select_option('39', ['a', 'b'])", ActionParts("select_option", "39", typed="a, b")),
        ("mouse_click(12, 30.5)", ActionParts("mouse_click", point=(12, 30.5))),
        ("scroll(0, 500)", ActionParts("scroll")),
        ("noop(1000)", ActionParts("noop")),
        ("send_msg_to_user('It is (about) 5')", ActionParts("send_msg_to_user")),
        ("pyautogui.click(241, 362)", ActionParts("click", point=(241, 362))),
        ("Click at (471, 22)", ActionParts("Click", point=(471, 22))),
        ("Scroll (delta_x=0, delta_y=500)", ActionParts("Scroll")),
        ("click [12]", ActionParts("click", "12")),
        ("type [12] [lamp] [1]", ActionParts("type", "12", typed="lamp")),
        ("Type [2]; Baked Salmon", ActionParts("Type", "2", typed="Baked Salmon")),
        ("Scroll [WINDOW]; down", ActionParts("Scroll")),
        ("stop [3]", ActionParts("stop")),
        ("click(target_id=47)", ActionParts("click", "47")),
        (
            'computer({"action": "left_click", "coordinate": [12, 34]})',
            ActionParts("left_click", point=(12, 34)),
        ),
        (
            'input({"index": 12, "text": "lamp", "clear": true})',
            ActionParts("input", "12", typed="lamp"),
        ),
        ('CLICK {"x": 5, "y": 6}', ActionParts("CLICK", point=(5, 6))),
        ("DONE", ActionParts("DONE")),
        ("__import__('os').system('x')", ActionParts("system")),
    ],
)
def test_the_forms_of_actions(action: str, parts: ActionParts) -> None:
    assert action_parts(action) == (parts,)


def test_several_calls_are_read_in_turn() -> None:
    verbs = [parts.verb for parts in action_parts("click('1')\nfill('2', 'x')\nnoop()")]
    assert verbs == ["click", "fill", "noop"]


@given(st.text(max_size=60))
def test_no_action_is_refused(text: str) -> None:
    assert bool(action_parts(text)) is bool(text.strip())


def test_long_actions_take_no_time() -> None:
    for text in ("click(" * 50_000, "a at (" * 20_000, "x [" * 30_000, "9" * 500_000):
        assert len(action_parts(text)) == 1


def test_the_mark_stands_where_the_raw_file_says(real_data: Path) -> None:
    """OSWorld's and Online-Mind2Web's own files, read here without our loaders."""
    wanted: set[tuple[float, float]] = set()
    for file in (real_data / "formats/osworld_style").rglob("traj.jsonl"):
        for line in map(json.loads, file.read_text().splitlines()):
            action = line.get("action")
            if isinstance(action, str) and (
                found := re.search(r"To?\((\d+), (\d+)|click\((\d+), (\d+)", action)
            ):
                wanted.add(tuple(float(part) for part in found.groups() if part))  # type: ignore[arg-type]
            elif isinstance(action, dict):
                wanted.add((float(action["x"]), float(action["y"])))
    for file in (real_data / "online-mind2web").glob("*/result.json"):
        for text in json.loads(file.read_text())["action_history"]:
            if found := re.match(r"Click at \((\d+), (\d+)\)", str(text)):
                wanted.add((float(found[1]), float(found[2])))
    marks = set()
    for spec in ("osworld:formats/osworld_style", "online-mind2web:online-mind2web"):
        kind, place = spec.split(":")
        for run in open_source(f"{kind}:{real_data / place}"):
            if isinstance(run, Trajectory):
                for step in run.steps:
                    screen = marks_of(step, PAGE._replace(width=5_000, height=5_000))
                    marks |= {(mark.x, mark.y) for mark in screen.marks}
    assert len(wanted) >= 10
    assert marks == wanted


def marks(
    action: str, tree: str | None = None, image: KnownImage | None = PAGE
) -> tuple[object, ...]:
    found = marks_of(Step(index=0, action=action, observation=Observation(axtree=tree)), image)
    return (*found.marks, *found.sentences)


def test_a_recorded_box_is_drawn() -> None:
    tree = "RootWebArea 'x'\n\t[12] textbox 'Search', box=\"(10,20,110,50)\", clickable"
    assert marks("fill('12', 'mug')", tree) == (ScreenMark(10, 20, 100, 30, "mug"),)


@pytest.mark.parametrize(
    ("action", "tree", "image", "sentence"),
    [
        ("click('12')", "[12] link 'Pay'", PAGE, "where it was on the screen is not recorded"),
        ("click('99')", "[12] link 'Pay'", PAGE, "Element 99 is not in the recorded tree"),
        ("click('99')", None, PAGE, "no tree of this step is recorded"),
        ("mouse_click(900, 10)", None, PAGE, "outside of the screenshot of 800 × 600 pixels"),
        ("mouse_click(90, 10)", None, None, "The action was at (90, 10)."),
    ],
)
def test_what_cannot_be_drawn_is_said(
    action: str, tree: str | None, image: KnownImage | None, sentence: str
) -> None:
    (said,) = marks(action, tree, image)
    assert sentence in str(said)
