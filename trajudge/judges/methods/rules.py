"""The benchmarks' own rules as judges: ``--judge rules:verified`` and ``--judge rules:webarena``.

    trajudge judge --data runs/ --judge rules:verified \\
        --judge-option tasks=webarena-verified.json --judge-option traces=traces/

and as members, with the same options:
``--judge cascade --members rules:verified,simplified:gpt-4o``.

They ask no model. A trajectory that the rules cannot decide (no such task, no trace, a page that
was not kept, an answer that only a judge model can compare) is skipped, with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Literal

from trajudge.judges.model import Model, Skipped, Verdict
from trajudge.judges.registry import register_judge
from trajudge.rules.files import read_bytes
from trajudge.rules.values import Mode
from trajudge.rules.verdict import Verdict as Evaluation
from trajudge.rules.verified.answers import Oversized, Response, read_response
from trajudge.rules.verified.evaluator import VerifiedEvaluator
from trajudge.rules.verified.network import Hosts, load_hosts
from trajudge.rules.verified.runs import (
    RunFiles,
    located,
    number_of,
    read_answer,
    read_trace,
    run_files,
)
from trajudge.rules.verified.state import run_states
from trajudge.rules.verified.tasks import load_tasks
from trajudge.rules.webarena import Trace, WebArenaEvaluator
from trajudge.rules.webarena import load_tasks as load_webarena_tasks
from trajudge.trajectories.model import Record, Trajectory, TrajectoryKey
from trajudge.trajectories.needs import Needs
from trajudge.util.errors import UserError


class VerifiedOptions(Record):
    """``tasks`` is the task file; ``traces`` holds ``TASK_ID/network.har`` (or another trace that
    ``trajudge rules evaluate`` reads), where there are several agents below a folder named by the
    agent; ``config`` gives the sites' addresses (default: the page on the benchmark's own port for
    a site tells; without one the rules cannot decide)."""

    tasks: Path
    traces: Path
    mode: Literal["sound", "release-1.2.3"] = "sound"
    config: Path | None = None

    @property
    def needs(self) -> Needs:
        """Of the trajectory; the trace is a file of the judge's own."""
        return Needs(answer=True)


class WebArenaOptions(Record):
    """``tasks`` is the task file; ``dialect`` is its dialect (default: recognised); ``config``
    gives the sites' addresses."""

    tasks: Path
    dialect: Literal["webarena", "webchorearena", "visualwebarena", "webarena-lite"] | None = None
    config: Path | None = None

    @property
    def needs(self) -> Needs:
        return Needs(answer=True)


@register_judge(
    "rules:verified",
    VerifiedOptions,
    summary="WebArena Verified's rules on the answer and the network trace",
    id_options=("mode",),
    needs_model=False,
)
class Verified:
    """WebArena Verified's rules. Raises UserError for files that cannot be read."""

    def __init__(self, options: VerifiedOptions) -> None:
        if not options.traces.is_dir():
            raise UserError(
                f"judge rules:verified: traces = {options.traces}: no such folder: name the one "
                "that holds TASK_ID/network.har"
            )
        self.traces = options.traces
        tasks = load_tasks(options.tasks, keep_flawed=True)
        self.tasks = {str(task.task_id): task for task in tasks}
        self.prompt_hash = _digest(options.tasks)
        self._evaluator = VerifiedEvaluator(Mode(options.mode), _hosts(options.config))

    async def __call__(self, trajectory: Trajectory, ask: Model) -> Verdict:
        """Evaluate the task's rules on the trajectory. Raises Skipped."""
        task = self.tasks[_task_id(trajectory.key, self.tasks)]
        files = self._files(trajectory, str(task.task_id))
        try:
            trace = read_trace(files.trace)
            states = run_states(files.state, {}) if task.backend_checks else None
            evaluator = located(self._evaluator, files)
        except UserError as error:
            raise Skipped(str(error)) from error
        return _verdict(evaluator.evaluate(task, trajectory.answer, trace, states))

    def _files(self, trajectory: Trajectory, task_id: str) -> RunFiles:
        """Find the files of this very run. Raises Skipped."""
        try:
            files = run_files(self._folder(trajectory.key.agent, task_id), task_id)
        except UserError as error:
            raise Skipped(str(error)) from error
        if files.trace is None:
            raise Skipped(f"{self.traces}: holds no network trace of task {task_id}")
        if files.answer is not None and not _is_answer(files.answer, trajectory.answer):
            raise Skipped(f"{files.answer}: is not the trajectory's answer: the trace is another's")
        return files

    def _folder(self, agent: str, task_id: str) -> Path:
        """Agents' names come from files: one that is no folder's name names none."""
        is_name = agent not in ("", ".", "..") and not re.search(r"[/\\\0]", agent)
        own = self.traces / agent
        return own if is_name and (own / task_id).is_dir() else self.traces


@register_judge(
    "rules:webarena",
    WebArenaOptions,
    summary="the rules of WebArena and its descendants on the answer and the last page's address",
    id_options=("dialect",),
    needs_model=False,
)
class WebArena:
    """The rules of WebArena and its descendants. Raises UserError for files that cannot be read."""

    def __init__(self, options: WebArenaOptions) -> None:
        tasks = load_webarena_tasks(options.tasks, options.dialect, keep_flawed=True)
        self.tasks = {str(task.task_id): task for task in tasks}
        self.prompt_hash = _digest(options.tasks)
        sites = {name: urls[0] for name, urls in _hosts(options.config).items() if urls}
        self._evaluator = WebArenaEvaluator(sites=sites)

    async def __call__(self, trajectory: Trajectory, ask: Model) -> Verdict:
        """Evaluate the task's rules on the trajectory. Raises Skipped."""
        task = self.tasks[_task_id(trajectory.key, self.tasks)]
        trace = Trace(url=trajectory.final.url)
        return _verdict(self._evaluator.evaluate(task, trajectory.answer, trace))


def _task_id(key: TrajectoryKey, tasks: Mapping[str, object]) -> str:
    """Find the task's id in the task file: the key's own, or a WebArena task's number in it.

    Raises Skipped.
    """
    task_id = number_of(key.task_id, tasks)
    if task_id is None:
        raise Skipped(f"the task file holds no task {key.task_id}")
    return task_id


def _is_answer(file: Path, answer: str | None) -> bool:
    """Return True if the run's file says what the trajectory says, layout and field names aside."""
    try:
        recorded = read_answer(file)
    except UserError as error:
        raise Skipped(str(error)) from error
    if isinstance(recorded, Oversized):
        return recorded.size == len((answer or "").encode("utf-8", "replace"))
    text = (recorded or b"").decode("utf-8", "replace")
    if text.strip() == (answer or "").strip():
        return True
    response = read_response(text)
    return isinstance(response, Response) and response == read_response(answer)


def _verdict(evaluation: Evaluation) -> Verdict:
    """Convert the rules' finding to a verdict.

    Raises Skipped for what the rules cannot decide: that is no failure of the agent's.
    """
    if evaluation.outcome == "unknown":
        raise Skipped(f"the rules cannot decide: {'; '.join(evaluation.reasons)}")
    reasons = "; ".join(evaluation.reasons) or f"all {len(evaluation.assertions)} checks hold"
    return Verdict(
        success=evaluation.outcome == "pass", reasoning="; ".join([reasons, *evaluation.notes])
    )


def _hosts(config: Path | None) -> Hosts:
    return load_hosts(config) if config else {}


def _digest(tasks: Path) -> str:
    """Hash the task file, which identifies a run as prompts identify others: another task file is
    another judge. A folder of task files counts by its files."""
    files = sorted(tasks.glob("*.json")) if tasks.is_dir() else [tasks]
    return sha256(b"".join(sha256(read_bytes(file)).digest() for file in files)).hexdigest()
