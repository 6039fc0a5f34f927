"""Accessibility trees that a BrowserGym agent left as Chromium gave them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.trajectories.loaders.made import browsergym, split
from trajudge.trajectories.loaders.browsergym import load, tree_text


def _node(number: int, role: str, *children: int, name: str | None = "", **more: Any) -> Any:
    named = {} if name is None else {"name": {"value": name}}
    ids = [str(child) for child in children]
    return {"nodeId": str(number), "role": {"value": role}, "childIds": ids, **named, **more}


def _property(name: str, value: object) -> dict[str, object]:
    return {"name": name, "value": {"type": "x", "value": value}}


TREE = {
    "nodes": [
        _node(1, "RootWebArea", 2, 5, 8, 99, name="Té", properties=[_property("focused", True)]),
        _node(2, "heading", 3, name=" Hot tea ", properties=[_property("level", 1)]),
        _node(3, "StaticText", name="Hot tea"),
        _node(5, "generic", 6),
        _node(6, "textbox", 7, name="Name", value={"value": "x\ny"}, browsergym_id="a6"),
        _node(7, "StaticText", name="x"),
        _node(8, "none", 9, name=None),
        _node(9, "button", 1, name="Go", properties=[_property("disabled", True)]),
    ]
}
TEXT = """\
RootWebArea 'Té', focused
\theading 'Hot tea'
\t[a6] textbox 'Name' value='x\\ny'
\t\tStaticText 'x'
\tbutton 'Go', disabled=True"""


def test_a_tree_is_written_in_browsergyms_form_and_once_where_it_holds_itself() -> None:
    assert tree_text(TREE) == TEXT


@pytest.mark.parametrize("value", [None, {}, {"nodes": []}, {"nodes": [3]}, {"nodes": "ab"}])
def test_what_is_no_tree_has_no_text(value: object) -> None:
    assert tree_text(value) is None


def test_a_step_without_the_text_shows_the_object(tmp_path: Path) -> None:
    folder = tmp_path / "2025-01-01_00-00-00_A_on_webarena.3_5"
    seen = {"chat_messages": [], "axtree_object": TREE, "last_action_error": ""}
    [run], [] = split(load(browsergym(folder, steps=2, told={"obs": seen})))
    assert [(step.observation.axtree or "")[:11] for step in run.steps] == ["RootWebArea"] * 2
