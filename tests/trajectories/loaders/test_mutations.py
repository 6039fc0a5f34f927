"""Whatever is done to the files of a format, its loader yields Trajectory or Unreadable: seeded
mutations of every format are loaded, or named with a reason, never a traceback.

``TRAJUDGE_MUTATIONS=200`` does so many to each format.
"""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.samples import examples
from tests.trajectories.loaders import made
from tests.trajectories.loaders.mutated_files import MADE
from tests.trajectories.loaders.mutations import CONTENTS, PLACES, Outcome, copied, run
from tests.trajectories.loaders.mutations import load as load_mutated
from trajudge.trajectories.loaders.browsergym import load
from trajudge.trajectories.model import Trajectory, Unreadable

COUNT, FEW, SECONDS = int(os.environ.get("TRAJUDGE_MUTATIONS", "60")), 12, 10


# One file holds all trajectories; in the other formats one of two is whole.
_ALONE = {"cuaverifierbench", "trajudge"}


def _mutated(kind: str, folder: Path, count: int, seed: int) -> list[Outcome]:
    """So many loads of a made folder, each with another mutation, each checked."""
    base, rng = MADE[kind](folder / "base"), np.random.default_rng(seed)
    done = [run(kind, base, folder / "work", rng) for _ in range(count)]
    for outcome in done:
        _check(kind, outcome)
    return done


def _check(kind: str, outcome: Outcome) -> None:
    assert outcome.seconds < SECONDS, outcome
    assert "\n" not in outcome.refused
    assert kind in _ALONE or (outcome.loaded and not outcome.refused), outcome
    named = outcome.loaded or outcome.unreadable or outcome.refused
    assert named or outcome.mutation.startswith("empty"), outcome


@pytest.mark.parametrize("kind", sorted(MADE))
def test_every_file_as_a_pipe_a_folder_and_nested_without_end(kind: str, tmp_path: Path) -> None:
    """Which of these a draw meets is chance; a loader that waits for a pipe waits for ever."""
    base, work = MADE[kind](tmp_path / "base"), tmp_path / "work"
    for at in range(len(copied(base, work))):
        for name in ("pipe", "folder", "deep nesting without an end"):
            path = copied(base, work)[at]
            if name in PLACES:
                PLACES[name](path, work)
            else:
                path.write_bytes(CONTENTS[name](b"", None))
            _check(kind, load_mutated(kind, base, work, f"{name} {path.name}"))


@pytest.mark.parametrize("kind", sorted(MADE))
def test_a_few_mutations(kind: str, tmp_path: Path) -> None:
    _mutated(kind, tmp_path, FEW, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted(MADE))
def test_many_mutations(kind: str, tmp_path: Path) -> None:
    done = _mutated(kind, tmp_path, COUNT, seed=0)
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


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([10**400, -1, "", "\ud800", "None", "Action:", 1e308, "\x00"])
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@settings(
    max_examples=examples(60),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(goal=VALUES, agent=VALUES, task=VALUES)
def test_swapped_types_in_pickles(tmp_path: Path, goal: Any, agent: Any, task: Any) -> None:
    shutil.rmtree(tmp_path / "root", ignore_errors=True)
    made.browsergym(tmp_path / "root" / "x", steps=1, goal=goal, agent=agent, task=task)
    for result in load(tmp_path / "root"):
        assert isinstance(result, Trajectory | Unreadable)
        if isinstance(result, Trajectory):
            json.dumps(result.model_dump(), ensure_ascii=False, default=str).encode()
        else:
            assert result.reason
