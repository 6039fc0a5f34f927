"""A run with scores to calibrate."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tests.eval.cases import key, label, said
from trajudge.eval.store.run_folder import (
    JUDGMENTS,
    judgment_line,
    write_labels,
    write_manifest,
    write_rewards,
)


def make_run(folder: Path, *, scores: bool = True) -> Path:
    """200 tasks, dev and test in turn; the truth is less likely than the score says. Task 1 of dev
    has a second trajectory in test."""
    folder.mkdir()
    rng = np.random.default_rng(0)
    score = np.round(rng.random(200), 2)
    truth = rng.random(200) < score**2
    judgments, labels = [], []
    for i in range(200):
        where = key(i) if i < 199 else key(1, agent="other")
        given = float(score[i]) if scores else None
        judgments.append(
            said(0, bool(score[i] > 0.5), score=given).model_copy(update={"key": where})
        )
        split = "test" if i % 2 == 0 or i == 199 else "dev"
        labels.append(label(0, bool(truth[i]), split=split).model_copy(update={"key": where}))
    (folder / JUDGMENTS).write_bytes(b"".join(map(judgment_line, judgments)))
    write_labels(folder, labels)
    write_rewards(folder, {j.key: None for j in judgments})
    write_manifest(folder, {"protocol": "default"})
    return folder
