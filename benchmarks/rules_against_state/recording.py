"""Recordings to hold rules against: many runs without a browser, resumable.

A recording is a folder as ``trajudge env record`` writes it, its cases beside it. Killed at any
moment it goes on where it was.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import partial
from pathlib import Path
from threading import Lock
from typing import NamedTuple

import numpy as np

from benchmarks.rules_against_state.turns import Turn, turning, turns_of
from tests.environments.specifications.plain_session import open_plain_session
from trajudge.environments.agents.protocol import Job
from trajudge.environments.agents.script import AGENTS, ORACLE, Behaviour
from trajudge.environments.agents.scripted import Scripted
from trajudge.environments.apps import load_app
from trajudge.environments.commands import specification_of
from trajudge.environments.model.case import Case, read_cases, write_cases
from trajudge.environments.recording.episode import Recorded, play_in
from trajudge.environments.recording.jobs import jobs_for
from trajudge.environments.recording.journal import Journal, assemble
from trajudge.environments.recording.recorder import actions_of, changed_job, run_name
from trajudge.environments.serving.run import ServedRun
from trajudge.environments.serving.server import Server, serve
from trajudge.environments.settings import GenerateConfig
from trajudge.environments.stages import produce
from trajudge.environments.stages.planning import planned

_WALKED = Lock()  # the states in which plans are walked beforehand are shared by all threads
RUNS_A_CASE = 1  # more cases tell more than more runs of one, and take longer to generate


class Portion(NamedTuple):
    """Runs of one application: ``runs`` by scripted agents, or by those that take turns."""

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
    """Draw the jobs of a portion, no two alike."""
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


def record(
    folder: Path, portion: Portion, workers: int, runs_a_case: int = RUNS_A_CASE
) -> list[str]:
    """Record what is missing of a portion; returns why runs were not played."""
    folder.mkdir(parents=True, exist_ok=True)
    jobs = jobs_of(portion, cases_of(portion, folder / "cases.jsonl", runs_a_case))
    journal = Journal(folder, {"benchmark": "rules against the state", **portion._asdict()})
    if journal.counts is not None:
        return []
    done = journal.done()
    failed: list[str] = []
    with serve() as server, ThreadPoolExecutor(workers) as pool:
        play = partial(_played, server, portion.seed)
        missing = [job for job in jobs if run_name(job) not in done]
        futures = {pool.submit(play, job): job for job in missing}
        for future in as_completed(futures):
            job = futures[future]
            try:
                journal.add(run_name(job), future.result())
            except Exception as reason:  # reported with the job, while the others go on
                failed.append(f"{run_name(job)}: {type(reason).__name__}: {reason}")
    kept = journal.done()
    assemble(journal, [run_name(job) for job in jobs if run_name(job) in kept])
    return failed


def _played(server: Server, seed: int, job: Job) -> Recorded:
    """Play one job without a browser. Raises NotPlayed."""
    if job.agent in AGENTS:
        return _play(server, job, _scripted(server, seed, job))
    turn = Turn(job.agent.removeprefix("turn-"))
    return _play(server, job, lambda run: turning(run, turn, seed))


def _scripted(server: Server, seed: int, job: Job) -> Callable[[ServedRun], Scripted]:
    actions = _elsewhere(server, seed, job) if AGENTS[job.agent] is Behaviour.REPLAYS else ()
    return lambda run: Scripted(run, job.agent, job.attempt, seed, actions)


def _elsewhere(server: Server, seed: int, job: Job) -> Sequence[str]:
    """Return what the oracle did where every axis is another. Raises NotPlayed."""
    with _WALKED:
        oracles = changed_job(job)
    return actions_of(_play(server, oracles, lambda run: Scripted(run, ORACLE, 0, seed)))


def _play(server: Server, job: Job, make: Callable[[ServedRun], Scripted]) -> Recorded:
    def made(run: ServedRun) -> Scripted:
        with _WALKED:
            return make(run)

    return play_in(lambda url: open_plain_session(server.port, url), server, job, made)
