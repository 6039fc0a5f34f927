"""Runs of a BrowserGym or AgentLab study, as far as it holds what rules read.

An experiment's folder tells the agent's last message, the pages' addresses and how the run ended.
It has a network trace, or an ``agent_response.json``, only where somebody recorded one into it.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Container, Mapping
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec

from trajudge.rules.values import Mode
from trajudge.rules.verdict import Verdict, unknown
from trajudge.rules.verified.dataset import Task
from trajudge.rules.verified.evaluator import VerifiedEvaluator
from trajudge.rules.verified.runs.batch import located
from trajudge.rules.verified.runs.files import RunFiles, folder_files, read_answer, read_trace
from trajudge.rules.verified.runs.results import JudgedTask, TaskResult, result_of
from trajudge.rules.verified.state import run_states
from trajudge.trajectories.loaders.browsergym import holds_experiment, load, run_folders
from trajudge.trajectories.model import Trajectory, Unreadable
from trajudge.trajectories.util.errors import UserError
from trajudge.trajectories.util.safe_files import DataFolder

# How tasks are named: webarena.108, browsergym/webarena.108, webarena_verified.108.
_NUMBERED = re.compile(r"(?:.*[^a-z])?webarena(?:[._-]?verified)?[./_-](\d+)", re.IGNORECASE)


TaskT = TypeVar("TaskT", bound=JudgedTask)


class StudyRun(NamedTuple):
    """One run. ``name`` tells it from others of its task; ``fault`` says why nothing of it can be
    judged, "" if something can."""

    task_id: str
    name: str
    folder: Path
    answer: str | None = None
    url: str | None = None
    steps: float | None = None
    fault: str = ""


class Study(NamedTuple):
    """The runs of known tasks, in the order of their tasks' names, and how many others it has."""

    path: Path
    runs: list[StudyRun]
    others: int

    def files(self, run: StudyRun) -> RunFiles:
        """Return what stands beside a run. Raises UserError for a file that leads out."""
        return folder_files(DataFolder(self.path), run.folder, run.task_id)


def is_study(path: Path) -> bool:
    """Tell whether the folder is an experiment or holds some."""
    return holds_experiment(path)


def number_of(task_id: str, known: Container[str]) -> str | None:
    """Return the known task that a run's task is: the very one, or a WebArena task by its number.

    Another benchmark's numbers (``visualwebarena.108``) are none of WebArena's.
    """
    numbered = _NUMBERED.fullmatch(task_id)
    ids = (task_id, numbered[1] if numbered else "")
    return next((one for one in ids if one in known), None)


def read_study(path: Path, tasks: Container[str]) -> Study:
    """Read the runs of the tasks, one at a time. Raises UserError if there is none."""
    folders = run_folders(path)
    numbers = {key: number_of(key.task_id, tasks) for key in folders}
    runs = []
    for read in load(path, lambda key: numbers.get(key) is not None):
        if read.key is not None:
            task_id, name = str(numbers[read.key]), f"{read.key.agent}-{read.key.attempt}"
            runs.append(_run(StudyRun(task_id, name, folders[read.key]), read))
    others = sum(number is None for number in numbers.values())
    if not runs:
        raise UserError(
            f"{path}: none of its {others} runs is of a task of the file: name another by --tasks"
        )
    return Study(path, runs, others)


def _run(run: StudyRun, read: Trajectory | Unreadable) -> StudyRun:
    if isinstance(read, Unreadable):
        return run._replace(fault=f"{read.source}: {read.reason}")
    fault = ""
    if read.answer is None and not (read.terminated or read.truncated):
        error = read.metadata.get("error")
        fault = "the run did not end, and its agent had said nothing"
        fault += f": {str(error)[:300]}" if error else ""
    steps = float(len(read.steps))
    return run._replace(answer=read.answer, url=read.final.url, steps=steps, fault=fault)


def judge_study(
    study: Study, tasks: Mapping[str, TaskT], judge: Callable[[TaskT, StudyRun], Verdict]
) -> list[TaskResult]:
    """Return a result for each run; one that lacks what the rules read is unknown, with the
    reason."""
    results = []
    for run in study.runs:
        start, task = time.perf_counter(), tasks[run.task_id]
        try:
            verdict = unknown(run.fault) if run.fault else judge(task, run)
        except UserError as error:
            verdict = unknown(str(error))
        result = result_of(task, verdict, run.steps, time.perf_counter() - start)
        results.append(msgspec.structs.replace(result, run=run.name))
    return results


def verified_judge(
    study: Study, evaluator: VerifiedEvaluator
) -> Callable[[Task, StudyRun], Verdict]:
    """Return what judges a run by Verified's rules: its last message, or the response in its
    folder, and the trace there. The release, which needs a trace, decides nothing without one."""

    def judge(task: Task, run: StudyRun) -> Verdict:
        files = study.files(run)
        trace = read_trace(files.trace)
        if trace is None and evaluator.mode is Mode.RELEASE:
            return unknown("the study holds no network trace of the run")
        answer = read_answer(files.answer) if files.answer else run.answer
        states = run_states(files.state, {}) if task.backend_checks else None
        return located(evaluator, files).evaluate(task, answer, trace, states)

    return judge
