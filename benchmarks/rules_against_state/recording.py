"""Record runs for the comparison: many runs without a browser, resumable.

A recording is a folder as ``trajudge env record`` writes it, with its cases.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from secrets import token_bytes
from typing import NamedTuple

import numpy as np

from benchmarks.rules_against_state.turns import Turn, turning, turns_of
from trajudge.environments.agents.protocol import Job
from trajudge.environments.agents.script import AGENTS
from trajudge.environments.apps import load_app
from trajudge.environments.commands import specification_of
from trajudge.environments.generation import produce
from trajudge.environments.model.case import Case, read_cases, write_cases
from trajudge.environments.planning import planned
from trajudge.environments.recording.campaign import jobs_for
from trajudge.environments.recording.episode import Recorded, play_offline
from trajudge.environments.recording.journal import Journal, assemble
from trajudge.environments.recording.recorder import recorded_offline, run_name
from trajudge.environments.settings import GenerateConfig

RUNS_A_CASE = 1  # more cases tell more than more runs of one, and take longer to generate


class Portion(NamedTuple):
    """Runs of one application: ``runs`` by scripted agents, or by agents that deviate."""

    app: str
    runs: int
    turns: bool
    seed: int


def cases_of(portion: Portion, path: Path, runs_a_case: int = RUNS_A_CASE) -> list[Case]:
    """Return the cases of a portion, generated once."""
    if not path.exists():
        count = max(8, portion.runs // runs_a_case)
        config = GenerateConfig(app=portion.app, count=count, seed=portion.seed, noise=True)
        specification = specification_of(config)
        produced = produce(specification, planned(specification, None), search=False)
        write_cases(path, produced.cases)
    return read_cases(path)


def jobs_of(portion: Portion, cases: Sequence[Case]) -> list[Job]:
    """Draw the jobs of a portion without repetition."""
    rng = np.random.default_rng(portion.seed)
    jobs = _turns(cases) if portion.turns else jobs_for(cases, list(AGENTS))
    size = min(portion.runs, len(jobs))
    return [jobs[at] for at in sorted(rng.choice(len(jobs), size, replace=False))]


def _turns(cases: Sequence[Case]) -> list[Job]:
    return [
        Job(config=case.config, agent=f"turn-{turn}", goal=case.goal, shortest=2 * case.shortest)
        for case in cases
        for turn in turns_of(
            case.config.app, load_app(case.config.app).scenario(case.config.scenario)
        )
    ]


def record(folder: Path, portion: Portion, runs_a_case: int = RUNS_A_CASE) -> list[str]:
    """Record the missing runs of a portion; return why runs could not be played."""
    folder.mkdir(parents=True, exist_ok=True)
    jobs = jobs_of(portion, cases_of(portion, folder / "cases.jsonl", runs_a_case))
    journal = Journal(folder, {"benchmark": "rules against the state", **portion._asdict()})
    if journal.counts is not None:
        return []
    done = journal.done()
    failed: list[str] = []
    for job in jobs:
        if run_name(job) not in done:
            try:
                journal.add(run_name(job), _played(job, portion.seed))
            except Exception as reason:  # reported with the job, while the others go on
                failed.append(f"{run_name(job)}: {type(reason).__name__}: {reason}")
    kept = journal.done()
    assemble(journal, [run_name(job) for job in jobs if run_name(job) in kept])
    return failed


def _played(job: Job, seed: int) -> Recorded:
    """Play one job without a browser. Raises NotPlayed."""
    if job.agent in AGENTS:
        return recorded_offline(job, seed)
    turn = Turn(job.agent.removeprefix("turn-"))
    return play_offline(job, lambda run: turning(run, turn, seed), token_bytes(32))
