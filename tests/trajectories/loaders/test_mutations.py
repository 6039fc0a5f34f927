"""Whatever is done to the files of a format, its loader yields Trajectory or Unreadable."""

from __future__ import annotations

import gzip
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.samples import examples
from tests.trajectories.loaders import conversations, inspect_made, made, made_logs
from tests.trajectories.loaders.mind2web_submissions import submission as mind2web_v2
from trajudge.trajectories.loaders import (
    agentrewardbench_text,
    browser_use,
    browsergym,
    fara,
    inspect_,
    messages,
    online_mind2web,
    osworld,
    webarena_html,
    webvoyager,
)
from trajudge.trajectories.model import Trajectory, Unreadable


def _judgments(root: Path) -> Path:
    made.judgment(root)
    made.judgment(root, judge="webjudge-gpt-4o")
    return root


def _inspect(root: Path) -> Path:
    """A whole log beside the one that is changed."""
    inspect_made.write(root / "whole.eval", inspect_made.sample())
    return inspect_made.write(root / "changed.json", inspect_made.sample(), task_id="other")


def _messages(root: Path) -> Path:
    return conversations.write(root / "messages.json", {"messages": conversations.responses()})


MAKERS: dict[str, tuple[Any, Callable[[Path], Path]]] = {
    "browsergym": (browsergym, lambda root: made.browsergym(root / "a_on_webarena.3_5", steps=2)),
    "webvoyager": (webvoyager, lambda root: made.webvoyager(root / "taskTea--1")),
    "online-mind2web": (online_mind2web, lambda root: made.mind2web(root / made.TASK)),
    "online-mind2web-v2": (online_mind2web, mind2web_v2),
    "fara": (fara, lambda root: made.fara(root / "Tea--1")),
    "agentrewardbench-text": (agentrewardbench_text, _judgments),
    "inspect": (inspect_, _inspect),
    "messages": (messages, _messages),
    "browser-use": (browser_use, lambda root: made_logs.browser_use(root / "t", "0.5.8")),
    "osworld": (osworld, made_logs.osworld),
    "webarena-html": (webarena_html, made_logs.webarena_html),
}
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([10**400, -1, "", "\ud800", "None", "Action:", 1e308, "\x00"])
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
# What a folder is told by; without these it is no folder of the format.
_MARKS = {
    "web_surfer.log",
    "Tea--1_final_answer.json",
    "step_0.pkl.gz",
    "interact_messages.json",
    "result.json",
    "AgentHistory.json",
    "traj.jsonl",
}
_MARKS |= {"messages.json", "changed.json", "whole.eval"}
every_format = pytest.mark.parametrize("kind", sorted(MAKERS))
unhurried = settings(
    max_examples=examples(60),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def _read_all(kind: str, root: Path) -> None:
    for result in MAKERS[kind][0].load(root):
        assert isinstance(result, Trajectory | Unreadable)
        if isinstance(result, Trajectory):
            json.dumps(result.model_dump(), ensure_ascii=False, default=str).encode()
        else:
            assert result.reason


def _fresh(kind: str, root: Path) -> list[Path]:
    shutil.rmtree(root, ignore_errors=True)
    MAKERS[kind][1](root)
    return sorted(
        p for p in root.rglob("*") if p.suffix in {".json", ".jsonl", ".html", ".pkl", ".gz"}
    )


@every_format
@unhurried
@given(data=st.data())
def test_flipped_and_missing_bytes(kind: str, tmp_path: Path, data: st.DataObject) -> None:
    root = tmp_path / "root"
    path = data.draw(st.sampled_from(_fresh(kind, root)))
    zipped = path.suffix == ".gz" and data.draw(st.booleans())
    content = bytearray(gzip.decompress(path.read_bytes()) if zipped else path.read_bytes())
    for _ in range(data.draw(st.integers(0, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    cut = (
        content[: data.draw(st.integers(0, len(content)))] if data.draw(st.booleans()) else content
    )
    path.write_bytes(gzip.compress(bytes(cut)) if zipped else bytes(cut))
    _read_all(kind, root)


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    if isinstance(value, dict | list):
        for name, inner in value.items() if isinstance(value, dict) else enumerate(value):
            found += _places(inner, (*path, name))
    return found


@pytest.mark.parametrize("kind", sorted(MAKERS.keys() - {"webarena-html"}))
@unhurried
@given(data=st.data())
def test_swapped_types(kind: str, tmp_path: Path, data: st.DataObject) -> None:
    root = tmp_path / "root"
    path = data.draw(st.sampled_from([p for p in _fresh(kind, root) if p.suffix == ".json"]))
    content = json.loads(path.read_text())
    *outer, last = data.draw(st.sampled_from(_places(content)))
    inner = content
    for name in outer:
        inner = inner[name]
    inner[last] = data.draw(VALUES)
    path.write_text(json.dumps(content))
    _read_all(kind, root)


@unhurried
@given(goal=VALUES, agent=VALUES, task=VALUES)
def test_swapped_types_in_pickles(tmp_path: Path, goal: Any, agent: Any, task: Any) -> None:
    shutil.rmtree(tmp_path / "root", ignore_errors=True)
    made.browsergym(tmp_path / "root" / "x", steps=1, goal=goal, agent=agent, task=task)
    _read_all("browsergym", tmp_path / "root")


@every_format
def test_deep_nesting_is_no_recursion(kind: str, tmp_path: Path) -> None:
    for path in _fresh(kind, tmp_path / "root"):
        if path.suffix == ".json":
            path.write_text('{"task":' + "[" * 100_000)
    _read_all(kind, tmp_path / "root")


@every_format
def test_a_folder_in_place_of_a_file(kind: str, tmp_path: Path) -> None:
    for path in _fresh(kind, tmp_path / "root")[1:]:
        path.unlink()
        path.mkdir()
    _read_all(kind, tmp_path / "root")


@every_format
def test_a_pipe_in_place_of_a_file_does_not_block(kind: str, tmp_path: Path) -> None:
    _fresh(kind, tmp_path / "root")
    files = sorted(path for path in (tmp_path / "root").rglob("*") if path.is_file())
    for path in [path for path in files if path.name not in _MARKS]:
        path.unlink()
        os.mkfifo(path)
    _read_all(kind, tmp_path / "root")
