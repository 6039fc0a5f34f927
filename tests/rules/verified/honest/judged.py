"""Run a published task honestly, write the traces as browsers do, and judge them from disk."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.rules.verified.honest.sessions import VARIANTS, Demo, session
from trajudge.rules.values import Mode
from trajudge.rules.verified.evaluator import VerifiedEvaluator
from trajudge.rules.verified.network import load_trace
from trajudge.rules.verified.tasks import Task


class Refusal(NamedTuple):
    """A run that was not accepted: its browser, the outcome, and the reasons."""

    task_id: int | str
    variant: int
    outcome: str
    reasons: str


def refusals(
    task: Task, record: dict[str, Any], demo: Demo, folder: Path, mode: Mode = Mode.SOUND
) -> Iterator[Refusal]:
    """Yield the honest runs of a task that are not accepted. Raises ValueError."""
    for variant in range(VARIANTS):
        run = session(record, demo, variant)
        path = written(run.entries, variant, folder / str(task.task_id))
        hosts = {} if variant else {name: (address,) for name, address in run.sites.items()}
        verdict = VerifiedEvaluator(mode=mode, hosts=hosts).evaluate(
            task, run.answer, load_trace(path)
        )
        if verdict.outcome.value != "pass":
            reasons = "; ".join(verdict.reasons)
            yield Refusal(task.task_id, variant, verdict.outcome.value, reasons)


def written(entries: Sequence[dict[str, Any]], variant: int, path: Path) -> Path:
    """Write a trace: as a HAR file, and the second browser's as Playwright writes its own."""
    if variant != 1:
        har = path.with_suffix(".har")
        har.write_text(json.dumps({"log": {"version": "1.2", "entries": entries}}))
        return har
    trace = path.with_suffix(".network")
    lines = [json.dumps({"type": "resource-snapshot", "snapshot": one}) for one in entries]
    trace.write_text("\n".join(lines) + "\n")
    return trace
