"""Judge recorded runs on disk in worker processes, and write and show the results."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import re
import shutil
import signal
import tarfile
import tempfile
import time
import zlib
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from lzma import LZMAError
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path, PurePosixPath
from statistics import fmean, median
from typing import Any, NamedTuple, Protocol, TypeVar

import msgspec
from msgspec import Struct

from trajudge.rules.files import MAX_BYTES, decode, first, read_bytes, write_json
from trajudge.rules.limits import RUN_SECONDS
from trajudge.rules.values import Mode
from trajudge.rules.verdict import Assertion, Outcome, Verdict, conjunction, unknown
from trajudge.rules.verified.answers import MAX_ANSWER, Oversized
from trajudge.rules.verified.evaluator import VerifiedEvaluator
from trajudge.rules.verified.network import Trace, load_hosts, load_trace
from trajudge.rules.verified.state import STATE_FILE, State, run_states
from trajudge.rules.verified.tasks import AnswerCheck, Check, NetworkCheck, Task, TaskId
from trajudge.stats.intervals import clustered_limits
from trajudge.stats.suites import t_half_width
from trajudge.trajectories.loaders.browsergym import holds_experiment, load, run_folders
from trajudge.trajectories.model import Trajectory, Unreadable
from trajudge.util.errors import UserError
from trajudge.util.files import DataFolder, UnsafeFile, open_regular
from trajudge.util.tables import Table, first_screen
from trajudge.util.terminal import count_of, one_line

ANSWER_FILE = "agent_response.json"
CONFIG_FILE = "run_config.json"
"""Where the sites were in this run, as the released package reads it."""

_HEAD = 10_000

TRACE_FILES = (
    *("network.har", "network.har.zip", "network.zip", "network.har.gz"),
    *("trace.zip", "trace.network", "network.json"),
)


class RunFiles(NamedTuple):
    """The files of one run; None for a missing one."""

    task_id: TaskId
    answer: Path | None
    trace: Path | None
    state: Path | None
    config: Path | None = None


def run_files(folder: Path, task_id: TaskId) -> RunFiles:
    """Return the files of a task's run, by their names, without reading them.

    Raises UserError for a path that is not a file or is outside the folder.
    """
    return folder_files(DataFolder(folder), folder / str(task_id), task_id)


def folder_files(data: DataFolder, own: Path, task_id: TaskId) -> RunFiles:
    """Return the files of a run in its own folder, as ``run_files`` does. Raises UserError."""
    traces = (_present(data, own / name, or_folder=True) for name in TRACE_FILES)
    return RunFiles(
        task_id,
        _present(data, own / ANSWER_FILE),
        next((path for path in traces if path is not None), None),
        _present(data, own / STATE_FILE),
        _present(data, own / CONFIG_FILE),
    )


def _present(data: DataFolder, path: Path, *, or_folder: bool = False) -> Path | None:
    if not path.exists():
        return None
    if not data.holds(path):
        raise UserError(f"{path}: leads out of {data.path}: put the file itself there")
    if not (path.is_file() or (or_folder and path.is_dir())):
        raise UserError(f"{path}: is not a file: put the run's own file there")
    return path


def run_ids(folder: Path, tasks: Mapping[str, Task]) -> list[str]:
    """Return the ids of the tasks of which the folder has runs, in the order of the tasks.

    Raises UserError for a folder that does not exist, has no run, or has a run of an unknown task.
    """
    if not folder.is_dir():
        raise UserError(f"{folder}: no such folder: name the one that holds a folder for each task")
    names = {path.name for path in folder.iterdir() if path.is_dir() and _is_run(path)}
    if not names:
        raise UserError(
            f"{folder}: holds no run: a run is a folder TASK_ID with {ANSWER_FILE} and network.har"
        )
    strays = sorted(names - tasks.keys(), key=_natural)
    if strays:
        raise UserError(
            f"{folder / strays[0]}: the tasks know no task_id {strays[0]!r} "
            f"({len(strays)} such folders): name their task file by --tasks, or move them away"
        )
    return [task_id for task_id in tasks if task_id in names]


def _is_run(path: Path) -> bool:
    return any((path / name).exists() for name in (ANSWER_FILE, *TRACE_FILES))


def _natural(name: str) -> list[tuple[int, str]]:
    return [(int(part or 0) if part.isdigit() else 0, part) for part in re.split(r"(\d+)", name)]


def read_answer(path: Path | None) -> bytes | Oversized | None:
    """Return the agent's answer; of a file that is far too large only the beginning.

    Raises UserError for a file that cannot be read.
    """
    if path is None:
        return None
    try:
        with open_regular(path) as file:
            data = file.read(MAX_ANSWER + 1)
            size = os.fstat(file.fileno()).st_size
    except UnsafeFile as error:
        raise UserError(f"{path}: {error}: name a readable file") from error
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}: name a readable file") from error
    if len(data) > MAX_ANSWER:
        return Oversized(max(size, len(data)), data[:_HEAD])
    return data


def read_trace(path: Path | None) -> Trace | None:
    """Return the trace, None without a file. Raises UserError."""
    return None if path is None else load_trace(path)


def load_steps(path: Path) -> dict[str, float]:
    """Return the numbers of steps from a JSON object by task id. Raises UserError."""
    steps: dict[str, float] = decode(read_bytes(path), dict[str, float], path)
    return steps


_ODD = re.compile(r"[^\w.-]")
MULTI_SITE = "multi-site"
TAU = 0.5
"""The least exploration ratio of an adequate claim (paper, section 3.2 and Figure 2)."""


class JudgedTask(Protocol):
    """The fields of a task, WebArena Verified's or an original one, that results contain."""

    @property
    def task_id(self) -> TaskId: ...
    @property
    def template(self) -> str: ...
    @property
    def sites(self) -> tuple[str, ...]: ...
    @property
    def achievable(self) -> bool: ...


class TaskResult(Struct, frozen=True, kw_only=True):
    """The verdict on one run, with every comparison.

    ``notes`` are the rule's assumptions. ``failure_modes`` are the names of failed assertions
    without positions; ``parse_failure`` is the class of an unreadable response. ``steps`` is the
    run's number; ``run`` distinguishes runs of a task. ``exploration``, for tasks that cannot be
    done, is R = steps over the site's median of steps in successes at tasks that can be done.
    ``partial_score`` is that of a dialect with partial scores (WebChoreArena).
    """

    task_id: TaskId
    template: str
    sites: tuple[str, ...]
    outcome: Outcome
    reasons: tuple[str, ...] = ()
    failure_modes: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    parse_failure: str | None = None
    achievable: bool = True
    steps: float | None = None
    exploration: float | None = None
    seconds: float = 0.0
    assertions: tuple[Assertion, ...] = ()
    run: str = ""
    partial_score: float | None = None

    @property
    def file_name(self) -> str:
        """The name of the result's file: of the task, and of the run if a task has several."""
        return f"{self.task_id}-{_ODD.sub('_', self.run)}" if self.run else str(self.task_id)

    @property
    def site(self) -> str:
        """The sites of the task, joined."""
        return "-".join(sorted(self.sites))

    @property
    def stratum(self) -> str:
        """The group of the run in summaries by site: its site, or the tasks of several sites
        (paper, Table 4)."""
        return self.sites[0] if len(self.sites) == 1 else MULTI_SITE

    @property
    def judged(self) -> bool:
        """Whether anything was compared: False if a file could not be read, or over the time
        limit."""
        return bool(self.assertions)

    @property
    def score(self) -> float:
        """1 for a pass, else 0."""
        return float(self.outcome is Outcome.PASS)


def result_of(
    task: JudgedTask, verdict: Verdict, steps: float | None, seconds: float
) -> TaskResult:
    """Return the result of one run."""
    broken = [item for item in verdict.assertions if item.outcome is verdict.outcome]
    failed = broken if verdict.outcome is not Outcome.PASS else []
    modes = dict.fromkeys(_mode(item.name) for item in failed)
    unread = [item.name for item in failed if item.name.startswith("parse_failure.")]
    return TaskResult(
        task_id=task.task_id,
        template=task.template,
        sites=task.sites,
        outcome=verdict.outcome,
        reasons=verdict.reasons,
        notes=verdict.notes,
        failure_modes=tuple(modes) or (("not judged",) if verdict.reasons else ()),
        parse_failure=unread[0].partition(".")[2] if unread else None,
        achievable=task.achievable,
        steps=steps,
        seconds=round(seconds, 6),
        assertions=verdict.assertions,
        partial_score=verdict.score,
    )


def _mode(name: str) -> str:
    """Return ``network.post_data`` for ``network.2.post_data.title``."""
    parts = [part for part in name.partition("[")[0].split(".") if not part.isdigit()]
    return ".".join(parts[:2])


def explored(results: Sequence[TaskResult]) -> list[TaskResult]:
    """Return the results with R for runs that claim, rightly or not, that the task cannot be done.

    The median is that of the site's successes among these runs (paper, section 3.2); without one
    there is no R.
    """
    medians = site_medians(results)
    return [
        result
        if result.achievable or result.steps is None or not medians.get(result.site)
        else msgspec.structs.replace(result, exploration=result.steps / medians[result.site])
        for result in results
    ]


def site_medians(results: Iterable[TaskResult]) -> Mapping[str, float]:
    """Median steps of the successes at tasks that can be done, by site."""
    steps: dict[str, list[float]] = {}
    for result in results:
        if result.achievable and result.outcome is Outcome.PASS and result.steps is not None:
            steps.setdefault(result.site, []).append(result.steps)
    return {site: median(values) for site, values in steps.items()}


def premature(result: TaskResult, tau: float = TAU) -> bool:
    """Return True if the run gave up after too little exploration: R < τ."""
    return result.exploration is not None and result.exploration < tau


PATIENCE = 10
_RESULT = msgspec.msgpack.Decoder(TaskResult)


class Batch(Struct, frozen=True, kw_only=True):
    """Runs to judge: those of ``ids`` in ``folder``. ``seconds`` is the limit of one run;
    ``states`` are the current replies of the probes, for runs that did not record any."""

    tasks: Mapping[str, Task]
    folder: Path
    ids: Sequence[str]
    evaluator: VerifiedEvaluator
    steps: Mapping[str, float]
    states: Mapping[str, State] = {}
    seconds: float = RUN_SECONDS


def judged(batch: Batch, task_id: str) -> TaskResult:
    """Return the result of one run; a file that cannot be read makes it unknown, with the
    reason."""
    start = time.perf_counter()
    task = batch.tasks[task_id]
    pages = None
    try:
        files = run_files(batch.folder, task.task_id)
        trace = read_trace(files.trace)
        pages = len(trace.documents) if trace is not None else None
        states = run_states(files.state, batch.states) if task.backend_checks else None
        evaluator = located(batch.evaluator, files)
        verdict = evaluator.evaluate(task, read_answer(files.answer), trace, states)
    except UserError as error:
        verdict = Verdict(outcome=Outcome.UNKNOWN, reasons=(str(error),))
    steps = batch.steps.get(task_id, pages)
    return result_of(task, verdict, steps, time.perf_counter() - start)


def located(evaluator: VerifiedEvaluator, files: RunFiles) -> VerifiedEvaluator:
    """Return the evaluator with the addresses in the run's own configuration, unless others are
    given: the sites may have moved between runs. Raises UserError."""
    if files.config is None or evaluator.hosts:
        return evaluator
    return replace(evaluator, hosts=load_hosts(files.config))


def judge_all(batch: Batch, workers: int, tell: Callable[[int, int], None]) -> list[TaskResult]:
    """Return the results of all runs, in the order of ``ids``. ``tell`` is called with the
    number of finished ones."""
    results: dict[str, TaskResult] = {}
    for task_id, result in _results(batch, max(1, min(workers, len(batch.ids)))):
        results[task_id] = result
        tell(len(results), len(batch.ids))
    return [results[task_id] for task_id in batch.ids]


class _Worker:
    """A process, its current run, and the start of that run."""

    def __init__(self, batch: Batch) -> None:
        methods = multiprocessing.get_all_start_methods()
        context = multiprocessing.get_context("fork" if "fork" in methods else "spawn")
        self.pipe, theirs = context.Pipe()
        self.process: BaseProcess = context.Process(  # type: ignore[attr-defined]
            target=_work, args=(batch, theirs), daemon=True
        )
        self.process.start()
        theirs.close()
        self.task_id: str | None = None
        self.since = 0.0

    def give(self, task_id: str) -> None:
        self.task_id = task_id
        self.since = time.monotonic()
        self.pipe.send(task_id)

    def ended_by_limit(self) -> bool:
        """Return True if the system ended the process because of its processor time."""
        self.process.join(timeout=1)
        return self.process.exitcode == -getattr(signal, "SIGPROF", 0)

    def stop(self) -> None:
        self.process.kill()
        self.process.join()
        self.pipe.close()


def _work(batch: Batch, pipe: Connection) -> None:
    """Run a worker: receive ids and send results until the pipe closes."""
    try:
        while True:
            task_id = pipe.recv()
            with _processor_limit(batch.seconds):
                result = judged(batch, task_id)
            pipe.send_bytes(msgspec.msgpack.encode(result))
    except (EOFError, OSError, KeyboardInterrupt):
        os._exit(0)


@contextmanager
def _processor_limit(seconds: float) -> Iterator[None]:
    """End this process when the block has used this processor time, where the system supports
    it."""
    if not hasattr(signal, "setitimer"):
        yield
        return
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def _results(batch: Batch, count: int) -> Iterator[tuple[str, TaskResult]]:
    left = list(reversed(batch.ids))
    workers: list[_Worker] = []
    try:
        while left or any(worker.task_id for worker in workers):
            while left and len(workers) < count:
                workers.append(_Worker(batch))
                workers[-1].give(left.pop())
            yield from _collected(batch, workers, left)
    finally:
        for worker in workers:
            worker.stop()


def _collected(
    batch: Batch, workers: list[_Worker], left: list[str]
) -> Iterator[tuple[str, TaskResult]]:
    """Yield results that workers finished, and runs that were lost; give idle workers more work."""
    busy = [worker for worker in workers if worker.task_id is not None]
    now = time.monotonic()
    patience = min(batch.seconds * PATIENCE - (now - worker.since) for worker in busy)
    ready = wait([worker.pipe for worker in busy], timeout=max(0.0, patience))
    for worker in busy:
        task_id = str(worker.task_id)
        result = _received(worker) if worker.pipe in ready else None
        late = time.monotonic() - worker.since > batch.seconds * PATIENCE
        if result is None and worker.pipe not in ready and not late:
            continue
        if result is None:
            result = _lost(batch, task_id, late=late or worker.ended_by_limit())
            worker.stop()
            workers.remove(worker)
        elif left:
            worker.give(left.pop())
        else:
            worker.task_id = None
        yield task_id, result


def _received(worker: _Worker) -> TaskResult | None:
    """Return a worker's message; None if the worker died."""
    try:
        return _RESULT.decode(worker.pipe.recv_bytes())
    except (EOFError, OSError):
        return None


def _lost(batch: Batch, task_id: str, *, late: bool) -> TaskResult:
    reason = (
        f"judging took more than the {batch.seconds:g} s that one run may take"
        if late
        else "the worker died over this run, most likely for want of memory"
    )
    verdict = Verdict(outcome=Outcome.UNKNOWN, reasons=(reason,))
    return result_of(batch.tasks[task_id], verdict, batch.steps.get(task_id), batch.seconds)


# How tasks are named: webarena.108, browsergym/webarena.108, webarena_verified.108.
_NUMBERED = re.compile(r"(?:.*[^a-z])?webarena(?:[._-]?verified)?[./_-](\d+)", re.IGNORECASE)
TaskT = TypeVar("TaskT", bound=JudgedTask)


class StudyRun(NamedTuple):
    """One run. ``name`` distinguishes runs of a task; ``fault`` is the reason why it cannot be
    judged, or ""."""

    task_id: str
    name: str
    folder: Path
    answer: str | None = None
    url: str | None = None
    steps: float | None = None
    fault: str = ""


class Study(NamedTuple):
    """The runs of known tasks, in the order of their tasks' names, and the number of other runs."""

    path: Path
    runs: list[StudyRun]
    others: int

    def files(self, run: StudyRun) -> RunFiles:
        """Return the files of a run. Raises UserError for a file outside its folder."""
        return folder_files(DataFolder(self.path), run.folder, run.task_id)


def is_study(path: Path) -> bool:
    """Return True if the folder is an experiment or contains some."""
    return holds_experiment(path)


def number_of(task_id: str, known: Container[str]) -> str | None:
    """Return the known task for a run's task name: the same name, or a WebArena task by its number.

    The numbers of other benchmarks (``visualwebarena.108``) are not WebArena's.
    """
    numbered = _NUMBERED.fullmatch(task_id)
    ids = (task_id, numbered[1] if numbered else "")
    return next((one for one in ids if one in known), None)


def read_study(
    path: Path, tasks: Container[str], tell: Callable[[int, int], None] = lambda done, of: None
) -> Study:
    """Read the runs of the tasks, one at a time; ``tell`` is called with the number read and their
    total.

    Raises UserError if there is none.
    """
    folders = run_folders(path)
    numbers = {key: number_of(key.task_id, tasks) for key in folders}
    runs: list[StudyRun] = []
    others = sum(number is None for number in numbers.values())
    for read in load(path, lambda key: numbers.get(key) is not None):
        tell(len(runs) + 1, len(numbers) - others)
        if read.key is not None:
            task_id, name = str(numbers[read.key]), f"{read.key.agent}-{read.key.attempt}"
            runs.append(_run(StudyRun(task_id, name, folders[read.key]), read))
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
    """Return a result for each run; a run without the evidence for the rules is unknown, with
    the reason."""
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
    """Return a function that judges a run by the rules of WebArena Verified, from its last
    message or the response in its folder, and the trace there. Without a trace the release's
    verdict is unknown."""

    def judge(task: Task, run: StudyRun) -> Verdict:
        files = study.files(run)
        trace = read_trace(files.trace)
        if trace is None and evaluator.mode is Mode.RELEASE:
            return unknown("the study holds no network trace of the run")
        answer = read_answer(files.answer) if files.answer else run.answer
        states = run_states(files.state, {}) if task.backend_checks else None
        return located(evaluator, files).evaluate(task, answer, trace, states)

    return judge


MAX_UNPACKED = 4 * 2**30
MAX_FILES = 100_000
_PART = re.compile(r"(?!\.+\Z)[\w.-]{1,200}")
_DAMAGED = (tarfile.TarError, zlib.error, LZMAError, EOFError, OSError, ValueError)


@contextmanager
def opened_runs(path: Path) -> Iterator[Path]:
    """Yield the folder of the runs: the path itself, or the unpacked content of an archive, which
    is deleted afterwards.

    Raises UserError for an archive that is damaged, too large, or has a file twice.
    """
    if path.is_dir() or not path.exists():
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="trajudge-") as folder:
        try:
            with open_regular(path) as file, tarfile.open(fileobj=file, mode="r:*") as archive:
                _unpack(archive, path, Path(folder))
        except UnsafeFile as error:
            raise UserError(f"{path}: {error.strerror}: name another file") from error
        except _DAMAGED as error:
            reason = (
                str(error).partition("\n")[0].rstrip(":")
            )  # tarfile lists the formats that it tried
            raise UserError(
                f"{path}: no folder of runs and no whole .tar.gz of one ({reason}): "
                "name one, or pack it again"
            ) from error
        yield Path(folder)


def _unpack(archive: tarfile.TarFile, path: Path, folder: Path) -> None:
    """Write the regular files of runs, by the last two parts of their names; links and other
    members are ignored. Raises UserError."""
    left = MAX_UNPACKED
    for count, member in enumerate(archive):
        left -= max(member.size, 0)
        if left < 0 or member.size > MAX_BYTES or count >= MAX_FILES:
            most = f"{MAX_UNPACKED / 2**30:g} GiB, {MAX_BYTES / 2**20:g} MiB a file, {MAX_FILES:,}"
            raise UserError(
                f"{path}: unpacks to more than {most} files: unpack it and name the folder"
            )
        parts = PurePosixPath(member.name).parts[-2:]
        if not member.isfile() or len(parts) < 2 or not all(map(_PART.fullmatch, parts)):
            continue
        target = folder.joinpath(*parts)
        if target.exists():
            raise UserError(f"{path}: holds {'/'.join(parts)} twice: keep one run of each task")
        target.parent.mkdir(exist_ok=True)
        packed = archive.extractfile(member)
        if packed is not None:
            with packed, target.open("xb") as unpacked:
                shutil.copyfileobj(packed, unpacked, 2**20)


class Macro(Struct, frozen=True, kw_only=True):
    """Success of ``runs`` runs: their share, with Wilson's 95 % limits for templates as clusters
    (None for fewer than two), and the mean over templates with its 95 % t-interval.

    A template counts separately for each site (paper, section 4.4 and appendix H: its 191 templates
    are the pairs of the 190 ids and the sites); ``half_width`` is None for fewer than two, and the
    interval may exceed 0 and 1.
    """

    runs: int
    passed: int
    unknown: int
    templates: int
    success: float | None
    success_low: float | None
    success_high: float | None
    template_macro: float | None
    half_width: float | None


class SiteMacro(Struct, frozen=True, kw_only=True):
    """The mean of the sites' template-macros, with equal weights, and its 95 % t-interval over
    sites (paper, appendix H.3). Tasks of several sites count as one more site."""

    sites: int
    mean: float | None
    half_width: float | None


class PartialScores(Struct, frozen=True, kw_only=True):
    """The mean of the partial scores (WebChoreArena) over the runs that have one; a run with an
    unknown part may have none."""

    runs: int
    mean: float | None


class Summary(Struct, frozen=True, kw_only=True):
    """A batch under one mode. ``missing`` are tasks without a run, which no rate includes;
    ``notes`` are the rule's assumptions, by number of runs; ``not_judged`` are runs with unreadable
    files or over the time limit.

    ``unachievable`` counts tasks that cannot be done; ``premature`` of them were passed with an
    exploration ratio below τ.
    """

    mode: str
    overall: Macro
    site_macro: SiteMacro
    sites: Mapping[str, Macro]
    failure_modes: Mapping[str, int]
    parse_failures: Mapping[str, int]
    parse_failure_rate: float | None
    unachievable: int
    premature: tuple[str, ...]
    notes: Mapping[str, int]
    missing: int
    partial: PartialScores
    not_judged: tuple[str, ...]
    seconds: float


def summarise(mode: str, results: Sequence[TaskResult], *, missing: int, seconds: float) -> Summary:
    """Return the summary of a batch. Modes and sites are sorted by name, failures by frequency."""
    strata = sorted({result.stratum for result in results})
    sites = {site: macro(r for r in results if r.stratum == site) for site in strata}
    failures = Counter(mode for result in results for mode in result.failure_modes)
    parse = Counter(result.parse_failure for result in results if result.parse_failure)
    claims = [result for result in results if not result.achievable]
    early = [result for result in claims if result.outcome is Outcome.PASS and premature(result)]
    parts = [result.partial_score for result in results if result.partial_score is not None]
    return Summary(
        mode=mode,
        overall=macro(results),
        site_macro=_site_macro(sites.values()),
        sites=sites,
        failure_modes=_by_count(failures),
        parse_failures=_by_count(parse),
        parse_failure_rate=parse.total() / len(results) if results else None,
        unachievable=len(claims),
        premature=tuple(str(result.task_id) for result in early),
        notes=_by_count(Counter(note for result in results for note in result.notes)),
        missing=missing,
        partial=PartialScores(runs=len(parts), mean=fmean(parts) if parts else None),
        not_judged=tuple(str(result.task_id) for result in results if not result.judged),
        seconds=round(seconds, 3),
    )


def _by_count(counter: Counter[str]) -> dict[str, int]:
    return dict(sorted(counter.items(), key=lambda pair: (-pair[1], pair[0])))


def macro(results: Iterable[TaskResult]) -> Macro:
    """Return the rates of some runs; None without any."""
    listed = list(results)
    templates: dict[tuple[str, str], list[float]] = {}
    for result in listed:
        templates.setdefault((result.stratum, result.template), []).append(result.score)
    means = [fmean(scores) for scores in templates.values()]
    passed = sum(result.outcome is Outcome.PASS for result in listed)
    low, high = clustered_limits(
        [result.outcome is Outcome.PASS for result in listed],
        [(result.stratum, result.template) for result in listed],
    )
    return Macro(
        runs=len(listed),
        passed=passed,
        unknown=sum(result.outcome is Outcome.UNKNOWN for result in listed),
        templates=len(means),
        success=passed / len(listed) if listed else None,
        success_low=low,
        success_high=high,
        template_macro=fmean(means) if means else None,
        half_width=t_half_width(means),
    )


def _site_macro(sites: Iterable[Macro]) -> SiteMacro:
    means = [site.template_macro for site in sites if site.template_macro is not None]
    return SiteMacro(
        sites=len(means),
        mean=fmean(means) if means else None,
        half_width=t_half_width(means),
    )


_REASONS, _FIRST_REASONS = 10, 3
_REASON = 300
_SPREAD = 1e-9  # half a width up to which shares count as equal (rounding)
_SCREEN = ("site", "runs", "passed", "unknown", "success [95 %]", "template macro [95 %]")


def evaluation_screen(
    summary: Summary,
    results: Sequence[TaskResult],
    *,
    full: bool = False,
    width: int | None = None,
) -> str:
    """Lay out the summary in at most 40 lines: success, sites, failures, reasons; with ``full``
    all lines, and why answers could not be read."""
    whole = summary.overall
    finding = f"{summary.mode}: {whole.passed} of {whole.runs} runs passed"
    if whole.success is not None:
        finding += f", success {_rate(whole)} ({_unit(_limits_of(whole))})"
    if whole.unknown:
        finding += f"; {whole.unknown} unknown, which count as not passed"
    sites = [("all", whole), *(summary.sites.items() if len(summary.sites) > 1 else ())]
    tables = [Table("", _SCREEN, [_row(*row) for row in sites], names=1)]
    counted = {"what did not hold": summary.failure_modes}
    if full:
        counted["unreadable answers"] = summary.parse_failures
    for head, counts in counted.items():
        rows = [(name, str(runs)) for name, runs in counts.items()]
        tables += [Table("", (head, "runs"), rows, names=1)] if rows else []
    notes = list(_notes(summary))
    if summary.not_judged:  # the last note is the most important one
        notes = [f"warning: {notes[-1]}", *notes[:-1]]
    reasons = _reasons(results, _REASONS if full else _FIRST_REASONS)
    rest = "" if full else "All tables: --full"
    return first_screen([finding], tables, reasons, notes, rest=rest, width=width, full=full)


def _row(site: str, macro: Macro) -> tuple[str, ...]:
    mean = _share(macro.template_macro, _limits(macro.template_macro, macro.half_width))
    return (site, *map(str, (macro.runs, macro.passed, macro.unknown)), _rate(macro), mean)


def _rate(macro: Macro) -> str:
    return _share(macro.success, _limits_of(macro))


def _limits_of(macro: Macro) -> tuple[float, float] | None:
    low, high = macro.success_low, macro.success_high
    return None if low is None or high is None else (low, high)


def _unit(limits: tuple[float, float] | None) -> str:
    return "%" if limits is None else "%, 95 % interval"


def _share(share: float | None, limits: tuple[float, float] | None) -> str:
    if share is None:
        return ""
    ends = "" if limits is None else f" [{100 * limits[0]:.1f}, {100 * limits[1]:.1f}]"
    return f"{100 * share:.1f}{ends}"


def _limits(mean: float | None, half_width: float | None) -> tuple[float, float] | None:
    """Return the ends of a t-interval of shares, clipped to [0, 1]; None if the shares do not
    vary, because the interval would have no width."""
    if mean is None or half_width is None or half_width < _SPREAD:
        return None
    return max(mean - half_width, 0.0), min(mean + half_width, 1.0)


def _notes(summary: Summary) -> Iterator[str]:
    """Yield the notes below the table, one line each."""
    if summary.partial.mean is not None:
        mean, runs = summary.partial.mean, summary.partial.runs
        yield f"mean score, parts counted: {100 * mean:.1f} % of {runs} runs that have one"
    macro = summary.site_macro
    if macro.mean is not None and macro.sites > 1:
        limits = _limits(macro.mean, macro.half_width)
        share = _share(macro.mean, limits)
        yield f"site macro: {share} over {macro.sites} sites ({_unit(limits)})"
    rows = (summary.overall, *summary.sites.values())
    if any(_limits(row.template_macro, row.half_width) is None for row in rows if row.runs):
        yield (
            "an interval is blank where there is one template, or where the means of all are the "
            "same: it does not show the spread over templates"
        )
    if summary.missing:
        yield f"{summary.missing} tasks have no run and count in no rate"
    if summary.premature:
        yield f"{len(summary.premature)} passes gave up early (R < 0.5)"
    for note, runs in summary.notes.items():
        yield f"note, in {count_of(runs, 'run')}: {one_line(note)}"
    if summary.not_judged:
        yield f"runs that could not be judged: {first(summary.not_judged)}"


def _reasons(results: Sequence[TaskResult], most: int) -> list[str]:
    """Explain the first runs that did not pass, starting with undecided ones."""
    order = {Outcome.UNKNOWN: 0, Outcome.FAIL: 1}
    found = sorted((r for r in results if r.outcome in order), key=lambda r: order[r.outcome])
    lines = []
    for result in found[:most]:
        reason = one_line("; ".join(result.reasons))
        cut = reason if len(reason) <= _REASON else f"{reason[: _REASON - 1]}…"
        named = f"{result.task_id} ({one_line(result.run)})" if result.run else result.task_id
        lines.append(f"task {named}: {result.outcome}: {cut}")
    if len(found) > most:
        lines.append(f"and {len(found) - most} more that did not pass: see tasks/")
    return lines


RESULT_FILE, RESULTS_FILE = "eval_result.json", "eval_results.json"
_STATUS = {Outcome.PASS: "success", Outcome.FAIL: "failure", Outcome.UNKNOWN: "error"}
_NO_TEMPLATE = -1


class Provenance(NamedTuple):
    """The source of the results: a description of the evaluator, and the SHA-256 of the task
    file."""

    evaluator: str
    tasks_digest: str

    @property
    def fields(self) -> dict[str, str]:
        """The fields as the package names them."""
        return {
            "webarena_verified_version": self.evaluator,
            "webarena_verified_evaluator_checksum": f"none: {self.evaluator}",
            "webarena_verified_data_checksum": self.tasks_digest,
        }


def write_package_results(
    out: Path, tasks: Mapping[str, Task], results: Iterable[TaskResult], mode: str, file: Path
) -> int:
    """Write the results of tasks with integer ids, as the package's are; return their number.
    Raises UserError."""
    digest = hashlib.sha256(read_bytes(file)).hexdigest()
    origin = Provenance(f"trajudge, {mode} rules", digest)
    written = []
    for result in results:
        if isinstance(result.task_id, int):
            record = package_result(tasks[str(result.task_id)], result, origin)
            write_json(out / str(result.task_id) / RESULT_FILE, record)
            written.append(record)
    if written:
        now = datetime.now(UTC).isoformat()
        summary = {"timestamp": now, **origin.fields, "summary": package_summary(written)}
        write_json(out / RESULTS_FILE, summary)
    return len(written)


def package_result(task: Task, result: TaskResult, origin: Provenance) -> dict[str, Any]:
    """Return one result in the package's format, with an entry for each of the task's checks."""
    template = task.intent_template_id
    networks = iter(range(1, len(task.eval) + 1))
    states = iter(range(1, len(task.eval) + 1))
    checks = []
    for check in task.eval:
        starts = _starts(check, networks, states)
        own = [one for one in result.assertions if f"{one.name}.".startswith(starts)]
        if own:  # of a run that ended with an error, the others were not compared
            checks.append(_checked(check, own))
    unknown = result.outcome is Outcome.UNKNOWN
    return {
        "task_id": task.task_id,
        "intent_template_id": template if isinstance(template, int) else _NO_TEMPLATE,
        "sites": task.sites,
        "task_revision": task.revision,
        "status": _status(result.outcome, result.assertions),
        "score": result.score,
        "evaluators_results": checks,
        **({"error_msg": "; ".join(result.reasons)} if unknown else {}),
        **origin.fields,
    }


def _starts(check: Check, networks: Iterator[int], states: Iterator[int]) -> tuple[str, ...]:
    """Return the prefixes of the names of a check's assertions; assertions without a check, such
    as the activity, belong to the answer."""
    if isinstance(check, AnswerCheck):
        return ("answer.", "parse_failure.", "error.", "activity.")
    if isinstance(check, NetworkCheck):
        return (f"network.{next(networks)}.",)
    return (f"backend.{next(states)}.",)


def _status(outcome: Outcome, assertions: Sequence[Assertion]) -> str:
    is_error = any(one.name.partition(".")[0] == "error" for one in assertions)
    return "error" if is_error and outcome is not Outcome.PASS else _STATUS[outcome]


def _checked(check: Check, own: Sequence[Assertion]) -> dict[str, Any]:
    """Return the result of one evaluator; only failed comparisons are listed."""
    outcome = conjunction(one.outcome for one in own)
    missed = [one for one in own if one.outcome is not Outcome.PASS]
    unsure = "; ".join(one.reason for one in own if one.outcome is Outcome.UNKNOWN)
    status = _status(outcome, own)
    return {
        "evaluator_name": type(check).__struct_config__.tag,
        "status": status,
        "score": float(outcome is Outcome.PASS),
        "actual": {one.name: one.found for one in own} or None,
        "actual_normalized": {one.name: one.found_normalised for one in own} or None,
        "expected": {one.name: one.expected for one in own} or None,
        "assertions": [_missed(one) for one in missed] or None,
        "error_msg": (unsure or missed[0].reason) if status == "error" else None,
        "should_not_exist": check.should_not_exist if isinstance(check, NetworkCheck) else None,
    }


def _missed(assertion: Assertion) -> dict[str, Any]:
    status = _status(assertion.outcome, [assertion])
    return {
        "assertion_name": assertion.name,
        "status": status,
        "assertion_msgs": [assertion.reason],
        **({"error_msg": assertion.reason} if status == "error" else {}),
    }


_COUNTED = {"success": "success", "failure": "failed", "error": "error"}


def package_summary(results: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the package's summary: counts over all tasks, counts and ids by site or sites."""
    overall, per_site = _counts(), dict[str, dict[str, Any]]()
    for result in results:
        own = per_site.setdefault("-".join(sorted(result["sites"])), {**_counts(), **_ids()})
        own[f"{_COUNTED[result['status']]}_task_ids"].append(result["task_id"])
        for counts in (overall, own):
            counts["total"] += 1
            counts[f"{result['status']}_count"] += 1
            counts["failed_or_error_count"] += result["status"] != "success"
    return {"overall": overall, "per_site": per_site}


def _counts() -> dict[str, Any]:
    names = ("success_count", "failure_count", "error_count", "failed_or_error_count")
    return dict.fromkeys(("total", *names), 0)


def _ids() -> dict[str, list[int]]:
    return {f"{name}_task_ids": [] for name in _COUNTED.values()}
