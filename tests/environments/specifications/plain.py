"""Runs of scripted agents on the real server, without a browser, kept as a recording keeps them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tests.environments.specifications.plain_session import open_plain_session
from trajudge.environments.agents.protocol import Job
from trajudge.environments.agents.scripted import Scripted
from trajudge.environments.model.case import Case, write_cases
from trajudge.environments.recording.episode import play_in
from trajudge.environments.recording.journal import Journal, assemble
from trajudge.environments.recording.recorder import run_name
from trajudge.environments.serving.server import serve


def recorded(folder: Path, cases: Iterable[Case], jobs: list[Job]) -> Path:
    """Record the jobs into a folder, the cases beside them."""
    write_cases(folder / "cases.jsonl", cases)
    journal = Journal(folder, {"test": "rules against the state"})
    with serve(b"secret") as server:
        for job in jobs:
            run = play_in(
                lambda url: open_plain_session(server.port, url),
                server,
                job,
                lambda run, job=job: Scripted(run, job.agent, job.attempt, 0),  # type: ignore[misc]
            )
            journal.add(run_name(job), run)
    assemble(journal, [run_name(job) for job in jobs])
    return folder
