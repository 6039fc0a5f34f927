"""Trim the traces of recorded runs to what their tasks' rules read, and prove it on each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from trajudge.rules.har.reading import read_raw
from trajudge.rules.har.trimming import Kept, trimmed
from trajudge.rules.har.writing import write_har
from trajudge.rules.reading import read_bytes
from trajudge.rules.values import Mode
from trajudge.rules.verified.dataset import Task, load_tasks
from trajudge.rules.verified.evaluator import VerifiedEvaluator
from trajudge.rules.verified.network.read import load_trace
from trajudge.rules.verified.network.sites import Hosts
from trajudge.rules.verified.runs.files import RunFiles, found_runs, read_answer, run_files
from trajudge.rules.verified.runs.submission import opened_runs
from trajudge.trajectories.util.atomic import make_folder
from trajudge.trajectories.util.errors import UserError


@dataclass
class TrimReport:
    """How much smaller the traces of ``runs`` became; ``failures`` say which could not be read."""

    runs: int = 0
    bytes_before: int = 0
    bytes_after: int = 0
    entries_before: int = 0
    entries_after: int = 0
    failures: list[str] = field(default_factory=list)


def kept_for(task: Task) -> Kept:
    """Return what the task's checks ask of a trace beyond its requests."""
    expected = [check.expected for check in task.network_checks]
    return Kept(
        contents=any(one.response_content for one in expected),
        cookies=any(one.response_cookies for one in expected),
        headers=frozenset(name.lower() for one in expected for name in one.headers or {}),
    )


def trim_runs(tasks: Path, runs: Path, out: Path, only: Sequence[str], hosts: Hosts) -> TrimReport:
    """Write each run into ``out`` with a trace that is trimmed for its task.

    A trace that cannot be read stops no other. Raises UserError for tasks or runs that are not
    there, and for ``out`` inside of ``runs``.
    """
    known = {str(task.task_id): task for task in load_tasks(tasks)}
    if out.resolve().is_relative_to(runs.resolve()):
        raise UserError(f"--out {out}: lies in --runs: name a folder outside of it")
    report = TrimReport()
    with opened_runs(runs) as folder:
        found = found_runs(folder, known)
        for task_id in only:
            if task_id not in found:
                raise UserError(f"{runs}: holds no run of task {task_id}: name another by --task")
        for task_id in only or found:
            try:
                _trim(known[task_id], folder, out / task_id, hosts, report)
            except UserError as error:
                report.failures.append(str(error).replace(str(folder), str(runs)))
    return report


def _trim(task: Task, runs: Path, out: Path, hosts: Hosts, report: TrimReport) -> None:
    """Write one run. Raises UserError."""
    files = run_files(runs, task.task_id)
    report.runs += 1
    for file in (files.answer, files.state):
        if file is not None:
            make_folder(out, "--out")
            (out / file.name).write_bytes(read_bytes(file))
    if files.trace is None:
        return
    recording = read_raw(files.trace)
    document = trimmed(recording, kept_for(task))
    target = out / "network.har"
    write_har(target, document)
    _prove(task, files, target, hosts)
    report.bytes_before += _size(files.trace)
    report.bytes_after += _size(target)
    report.entries_before += len(recording.entries)
    report.entries_after += len(document["log"]["entries"])


def _size(trace: Path) -> int:
    files = trace.rglob("*") if trace.is_dir() else [trace]
    return sum(file.stat().st_size for file in files if file.is_file())


def _prove(task: Task, files: RunFiles, target: Path, hosts: Hosts) -> None:
    """Raise UserError, and write nothing, should the smaller trace be evaluated otherwise."""
    answer = read_answer(files.answer)
    evaluator = VerifiedEvaluator(Mode.SOUND, hosts)
    whole, small = (
        evaluator.evaluate(task, answer, load_trace(path))
        for path in (files.trace or target, target)
    )
    if whole != small:
        target.unlink()
        raise UserError(
            f"{files.trace}: the trimmed trace would be {small.outcome} instead of "
            f"{whole.outcome}: keep the whole one, and report this"
        )
