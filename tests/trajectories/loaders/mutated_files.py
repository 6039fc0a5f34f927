"""Files of every loader, to be changed at random."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from pathlib import Path

import numpy as np

from tests.trajectories.loaders import conversations, cua_made, inspect_made, made, made_logs
from tests.trajectories.loaders.mind2web_submissions import submission as mind2web_v2
from tests.worlds import agentrewardbench_like as like
from trajudge.trajectories import store
from trajudge.trajectories.model import Trajectory
from trajudge.trajectories.sample import sample_path


def _own(root: Path) -> Path:
    """The first trajectories of the bundled sample."""
    read = (item for item in store.read(sample_path()) if isinstance(item, Trajectory))
    store.write(root, islice(read, 2))
    return root


def _agentrewardbench(root: Path) -> Path:
    for task in ("webarena.1", "webarena.2"):
        like.write(root, like.trajectory(np.random.default_rng(0), task_id=task, size=5_000), task)
    return root


def _browsergym(root: Path) -> Path:
    made.browsergym(root / "2025-01-02_00-00-00_A_on_webarena.3_5", steps=2)
    made.browsergym(root / "2025-01-03_00-00-00_A_on_webarena.3_5", steps=2)
    return root


def _webvoyager(root: Path) -> Path:
    made.webvoyager(root / "taskTea--1")
    made.webvoyager(root / "taskTea--2")
    return root


def _online_mind2web(root: Path) -> Path:
    """A submission of each version."""
    made.mind2web(root / f"{made.TASK}_1", task_id=f"{made.TASK}_1")
    return mind2web_v2(root)


def _fara(root: Path) -> Path:
    made.fara(root / "Tea--1")
    made.fara(root / "Tea--2", rubric=made.rubric())
    return root


def _browser_use(root: Path) -> Path:
    made_logs.browser_use(root / "1", "0.1.0")
    made_logs.browser_use(root / "2", "0.9.7")
    return root


def _osworld(root: Path) -> Path:
    made_logs.osworld(root, example="1")
    made_logs.osworld(root, example="2")
    return root


def _inspect(root: Path) -> Path:
    for number in (1, 2):
        samples = inspect_made.sample("a"), inspect_made.sample("b")
        inspect_made.write(root / f"{number}.eval", *samples, task_id=f"T{number}")
    return root


def _messages(root: Path) -> Path:
    record = {"messages": conversations.anthropic(), "reward": 1}
    conversations.write(root / "a.json", record)
    conversations.write(root / "b.jsonl", [record, {"conversation": conversations.responses()}])
    return root


def _webarena_html(root: Path) -> Path:
    made_logs.webarena_html(root, task_id=1)
    made_logs.webarena_html(root, task_id=2)
    return root


def _text(root: Path) -> Path:
    made.judgment(root)
    made.judgment(root, judge="webjudge-gpt-4o")
    made.judgment(root, name="webarena.2")
    return root


MADE: dict[str, Callable[[Path], Path]] = {
    "agentrewardbench": _agentrewardbench,
    "agentrewardbench-text": _text,
    "browser-use": _browser_use,
    "browsergym": _browsergym,
    "inspect": _inspect,
    "messages": _messages,
    "cuaverifierbench": cua_made.release,
    "fara": _fara,
    "online-mind2web": _online_mind2web,
    "osworld": _osworld,
    "trajudge": _own,
    "webarena-html": _webarena_html,
    "webvoyager": _webvoyager,
}
