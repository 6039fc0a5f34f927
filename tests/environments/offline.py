"""Runs of scripted agents without a browser, kept as a recording keeps them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from trajudge.environments.agents.protocol import Job
from trajudge.environments.model.case import Case, write_cases
from trajudge.environments.recording.episode import play_offline
from trajudge.environments.recording.journal import Journal, assemble
from trajudge.environments.recording.recorder import run_name, scripted


def recorded(folder: Path, cases: Iterable[Case], jobs: list[Job]) -> Path:
    """Record the jobs into a folder, the cases beside them."""
    write_cases(folder / "cases.jsonl", cases)
    journal = Journal(folder, {"test": "offline"})
    for job in jobs:
        run = play_offline(job, lambda run, job=job: scripted(run, job, 0), b"secret")  # type: ignore[misc]
        journal.add(run_name(job), run)
    assemble(journal, [run_name(job) for job in jobs])
    return folder
