"""A run's folder with judgments of every kind, written as the main job writes it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tests.eval.cases import call, failed, key, label, said
from trajudge.eval.store.run_folder import (
    CALLS,
    JUDGMENTS,
    judgment_line,
    ledger_lines,
    write_labels,
    write_manifest,
    write_rewards,
)
from trajudge.judges.model import Judgment, Status

TASKS = 12


def judgments() -> list[Judgment]:
    """Three judges on twelve tasks; ``b`` in two samples."""
    made: list[Judgment] = []
    for task in range(TASKS):
        calls = (
            call(
                0.01 * task,
                request=f"{task:064x}",
                rung="full" if task % 4 else "last",
                seconds=task,
            ),
            call(None if task == 7 else 0.5, request=f"{task + 100:064x}", seconds=0.25),
        )
        made += [
            said(
                task,
                task % 2 == 0,
                judge="a",
                score=task / TASKS,
                reasoning=f"Reason {task} 50%_!",
                calls=calls,
            ),
            said(task, task % 3 == 0, judge="b", fallback="" if task % 5 else "no tag"),
            said(task, task % 3 == 1, judge="b", sample=1, side_effect=True),
            failed(task, Status.REFUSED, judge="c") if task % 4 else said(task, True, judge="c"),
        ]
    return made


def write(folder: Path, lines: Iterable[Judgment] | None = None) -> Path:
    """Write a run with labels (task 10 unsure, 11 none) and rewards (11 none)."""
    folder.mkdir(parents=True, exist_ok=True)
    made = judgments() if lines is None else [*lines]
    (folder / JUDGMENTS).write_bytes(b"".join(map(judgment_line, made)))
    (folder / CALLS).write_bytes(b"".join(b"".join(ledger_lines(each)) for each in made))
    truth = {task: None if task == 10 else task < 5 for task in range(11)}
    write_labels(folder, [label(task, success) for task, success in truth.items()])
    write_rewards(folder, {key(task): float(task < 7) for task in range(11)})
    write_manifest(folder, {"judge": "a", "data": "trajudge:absent", "protocol": "default"})
    return folder
