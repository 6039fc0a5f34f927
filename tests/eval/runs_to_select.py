"""Runs to select from."""

from __future__ import annotations

from pathlib import Path

from tests.commands import select as main
from tests.eval.cases import label, said
from trajudge.eval.store.run_folder import JUDGMENTS, judgment_line, write_labels, write_manifest


def make_run(folder: Path, judge: str = "good", *, wrong: int = 2, tasks: int = 120) -> Path:
    """A judge that accepts what succeeded (every other task) and ``wrong`` failures beside."""
    folder.mkdir()
    judgments = [said(n, n % 2 == 0 or n < 2 * wrong, judge=judge) for n in range(tasks)]
    (folder / JUDGMENTS).write_bytes(b"".join(map(judgment_line, judgments)))
    write_labels(folder, [label(n, n % 2 == 0, split="test") for n in range(tasks)])
    write_manifest(folder, {"protocol": "default"})
    return folder


def select(*arguments: object) -> int:
    return main([str(argument) for argument in arguments])


def stacked(*judges: tuple[int, int, int], total: int = 400) -> tuple[list[bool], list[list[bool]]]:
    """Each judge as (accepted true successes, accepted failures, offset into the successes); half
    of the trajectories succeed."""
    half = total // 2
    success = [True] * half + [False] * half
    accepted = [
        [o <= i < o + tp or half <= i < half + fp for i in range(total)] for tp, fp, o in judges
    ]
    return success, [list(row) for row in zip(*accepted, strict=True)]
