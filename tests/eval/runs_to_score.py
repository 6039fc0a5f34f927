"""Runs to score."""

from __future__ import annotations

from pathlib import Path

from tests.eval.cases import failed, key, label, said
from trajudge.annotations import Label
from trajudge.eval.store.run_folder import (
    JUDGMENTS,
    judgment_line,
    write_labels,
    write_manifest,
    write_rewards,
)
from trajudge.judges.model import Status


def make_run(folder: Path, *, protocol: str = "default", flip: bool = False) -> Path:
    folder.mkdir()
    judgments = [said(1, not flip), said(2, True), failed(3, Status.PROVIDER_ERROR)]
    (folder / JUDGMENTS).write_bytes(b"".join(map(judgment_line, judgments)))
    write_labels(folder, LABELS)
    write_rewards(folder, {key(1): 1.0, key(2): 0.0, key(3): 1.0})
    write_manifest(folder, {"protocol": protocol})
    return folder


LABELS: list[Label] = [
    label(1, True, split="test"),
    label(2, False, split="dev"),
    label(3, True, split="test"),
]
