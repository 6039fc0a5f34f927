"""Seeded mutations of every format: loaded, or named with a reason, never a traceback.

``TRAJUDGE_MUTATIONS=200`` makes 200 of them for each format.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from tests.trajectories.loaders.mutated_files import MADE
from tests.trajectories.loaders.mutations import run

COUNT, SECONDS = int(os.environ.get("TRAJUDGE_MUTATIONS", "60")), 10


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
