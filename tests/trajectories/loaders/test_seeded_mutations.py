"""Seeded mutations of every format: loaded, or named with a reason, never a traceback.

The mutations are those of ``benchmarks.loader_mutations``, which runs 200 of them on folders that
one has; ``TRAJUDGE_MUTATIONS=200`` does so on the folders here.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from benchmarks import agentrewardbench_like as like
from benchmarks.loader_mutations import run, sample
from tests.trajectories.loaders import conversations, cua_made, inspect_made, made, made_logs
from tests.trajectories.loaders.test_online_mind2web_v2 import submission as mind2web_v2

COUNT, SECONDS = int(os.environ.get("TRAJUDGE_MUTATIONS", "60")), 10


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
    "trajudge": partial(sample, count=2),
    "webarena-html": _webarena_html,
    "webvoyager": _webvoyager,
}
# One file holds all trajectories; in the other formats one of two is whole.
_ALONE = {"cuaverifierbench", "trajudge"}


@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted(MADE))
def test_made_folders(kind: str, tmp_path: Path) -> None:
    base, rng = MADE[kind](tmp_path / "base"), np.random.default_rng(0)
    done = [run(kind, base, tmp_path / "work", rng) for _ in range(COUNT)]
    for outcome in done:
        assert outcome.seconds < SECONDS, outcome
        assert "\n" not in outcome.refused
        assert kind in _ALONE or (outcome.loaded and not outcome.refused), outcome
        named = outcome.loaded or outcome.unreadable or outcome.refused
        assert named or outcome.mutation.startswith("empty"), outcome
    assert len(Counter(outcome.mutation for outcome in done)) > min(COUNT // 4, 25)


REAL = {
    "agentrewardbench-text": "agentrewardbench/judgments/assistantbench/*/webjudge-7b/*.30.json",
    "online-mind2web": "online-mind2web/*/result.json",
    "webvoyager": "webvoyager/*/interact_messages.json",
}


@pytest.mark.real_data
@pytest.mark.parametrize("kind", sorted(REAL))
def test_real_files(kind: str, tmp_path: Path, real_data: Path) -> None:
    for file in real_data.glob(REAL[kind]):
        target = tmp_path / "base" / file.relative_to(real_data / REAL[kind].split("/")[0])
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, target)
        if kind == "online-mind2web":
            (target.parent / "trajectory").mkdir()
    rng = np.random.default_rng(1)
    done = [run(kind, tmp_path / "base", tmp_path / "work", rng) for _ in range(COUNT // 3)]
    for outcome in done:
        assert outcome.seconds < SECONDS, outcome
        assert outcome.loaded, outcome
