"""``python -m rules.evaluate``: judge runs of WebArena, Verified or original, by its rules.

python -m rules.evaluate --tasks webarena-verified.json --runs runs/
python -m rules.evaluate --tasks tasks.json --runs runs/ --mode release-1.2.3 --workers 8 --out out/
python -m rules.evaluate --tasks test.raw.json --runs runs.jsonl

A run of Verified is a folder ``RUNS/TASK_ID`` with ``agent_response.json`` and ``network.har`` (or
``trace.zip``, ``trace.network``, ``network.json``); runs of original tasks stand in one file, see
schema.md, and what it does not hold (a page, a judge model's decision) makes a run unknown.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path

from trajudge.rules import webarena
from trajudge.rules.hosts import add_host_options, hosts_of
from trajudge.rules.output import first, progress_line, show, write_json
from trajudge.rules.suites import KINDS, detected, suite
from trajudge.rules.values import Mode
from trajudge.rules.verdict import Outcome
from trajudge.rules.verified.backend import State, captured
from trajudge.rules.verified.dataset import Task, load_subset, load_tasks
from trajudge.rules.verified.evaluator import VerifiedEvaluator
from trajudge.rules.verified.runs.batch import SECONDS, Batch, judge_all
from trajudge.rules.verified.runs.files import found_runs, load_steps
from trajudge.rules.verified.runs.results import TaskResult, explored, result_of
from trajudge.rules.verified.runs.summary import Macro, Summary, summarise
from trajudge.rules.verified.state import load_probes
from trajudge.trajectories.util.errors import UserError
from trajudge.trajectories.util.exits import DONE, FAILURES, Parser, user_errors
from trajudge.trajectories.util.terminal import one_line

ORIGINAL = "original"
_COLUMNS = (
    *("site", "runs", "passed", "unknown", "success", "95 %"),
    *("templates", "template macro", "±"),
)
_REASONS = 10
_REASON = 300
# What asks for more than an original run file holds, with its default.
_VERIFIED_ONLY: Mapping[str, object] = {
    "require_activity": False,
    "probes": None,
    "steps": None,
    "workers": 1,
    "seconds": SECONDS,
}


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    made = Parser(
        prog="python -m rules.evaluate",
        description=__doc__.split("\n\n")[0],
        epilog="exit codes: 0 done, 1 a run could not be judged (its files, its time), 2 a mistake "
        "in the call or its files, 130 interrupted",
        allow_abbrev=False,
    )
    add = made.add_argument
    add("--tasks", type=Path, required=True, metavar="FILE", help="the task file")
    add("--runs", type=Path, required=True, metavar="PATH", help="the folder or file of runs")
    add("--kind", choices=tuple(KINDS), help="of the tasks (default: told by the file)")
    add("--out", type=Path, metavar="DIR", help="where results go (default: below evaluated/)")
    add("--mode", choices=(*Mode, ORIGINAL), help="default: sound; original tasks: original")
    add("--task", action="append", metavar="ID", help="only this one; may be repeated")
    add("--subset", type=Path, metavar="FILE", help="only the tasks of this subset file")
    add_host_options(made)
    add("--require-activity", action="store_true", help="ask every run for a visit to the site")
    add("--probes", type=Path, metavar="FILE", help="ask the sites for their state now")
    add("--steps", type=Path, metavar="FILE", help="steps of each run (default: pages loaded)")
    add("--workers", type=int, default=1, metavar="N", help="processes (default: 1)")
    add("--seconds", type=float, default=SECONDS, metavar="S", help="the limit of one run")
    return made.parse_args(argv)


@user_errors
def main(argv: Sequence[str] | None = None) -> int:
    """Judge the runs; show the summary, write it and a result for each task.

    A run that cannot be judged stops no other, and makes the exit code 1. What the rules leave
    unknown for want of evidence is a result like any other.
    """
    options = _options(argv)
    if options.workers < 1 or options.seconds <= 0:
        raise UserError("--workers and --seconds must be positive: leave them out for the defaults")
    kind = options.kind or detected(options.tasks)
    options.mode = suite(kind).mode(options.mode)
    start = time.perf_counter()
    results, missing = _original(options) if kind == "webarena" else _verified(options)
    seconds = time.perf_counter() - start
    summary = summarise(options.mode, results, missing=missing, seconds=seconds)
    out = options.out or _default_out(options)
    for result in results:
        write_json(out / "tasks" / f"{result.task_id}.json", result)
    write_json(out / "summary.json", summary)
    _show(summary, results)
    sys.stdout.write(
        f"written: {one_line(str(out))}: summary.json and {len(results)} files in tasks/\n"
    )
    return FAILURES if summary.not_judged else DONE


def _default_out(options: argparse.Namespace) -> Path:
    """Where results go unless ``--out`` says so: the same for the same tasks, runs and mode, and
    never into what is read. Raises UserError if it would lie there."""
    runs, tasks = options.runs.resolve(), options.tasks.resolve()
    names = "\0".join(map(str, (runs, tasks, options.mode)))
    digest = sha256(os.fsencode(names)).hexdigest()[:8]
    out = Path("evaluated") / f"{runs.stem}-{options.mode}-{digest}"
    if out.resolve().is_relative_to(runs):
        raise UserError(f"--runs {options.runs}: results would be written into it: name --out DIR")
    return out


def _original(options: argparse.Namespace) -> tuple[list[TaskResult], int]:
    """The results of a file of original runs, and how many of the tasks have none there. Raises
    UserError."""
    for name, default in _VERIFIED_ONLY.items():
        if getattr(options, name) != default:
            option = name.replace("_", "-")
            raise UserError(f"--{option}: is for runs of WebArena Verified: leave it out")
    tasks = {str(task.task_id): task for task in webarena.load_tasks(options.tasks)}
    runs = webarena.load_runs(options.runs)
    found = [str(run.task_id) for run in runs]
    repeated = sorted(task_id for task_id, count in Counter(found).items() if count > 1)
    if repeated:
        raise UserError(f"{options.runs}: holds two runs of task {repeated[0]}: keep one")
    chosen = set(_chosen(options, tasks, found))
    # Runs of no task stay, to be named.
    kept = [run for run in runs if str(run.task_id) in chosen or str(run.task_id) not in tasks]
    sites = {name: urls[0] for name, urls in hosts_of(options).items()}
    results, start = [], time.perf_counter()
    evaluator = webarena.WebArenaEvaluator(sites=sites)
    for task_id, verdict in webarena.evaluate_runs(tasks.values(), kept, evaluator):
        now = time.perf_counter()
        results.append(result_of(tasks[str(task_id)], verdict, None, now - start))
        start = now
    return results, len(_wanted(options, tasks)) - len(results)


def _verified(options: argparse.Namespace) -> tuple[list[TaskResult], int]:
    """The results of a folder of Verified's runs, and how many of the tasks have none there.
    Raises UserError."""
    batch, missing = _batch(options)
    tell = progress_line()
    judged = judge_all(batch, options.workers, lambda done, of: tell("judged", done, of))
    return explored(judged), missing


def _batch(options: argparse.Namespace) -> tuple[Batch, int]:
    """What to judge, and how many of the tasks have no run. Raises UserError."""
    tasks = {str(task.task_id): task for task in load_tasks(options.tasks)}
    found = found_runs(options.runs, tasks)
    ids = _chosen(options, tasks, found)
    wanted = _wanted(options, tasks)
    batch = Batch(
        tasks=tasks,
        folder=options.runs,
        ids=ids,
        evaluator=VerifiedEvaluator(
            mode=Mode(options.mode), hosts=hosts_of(options), activity=options.require_activity
        ),
        steps=load_steps(options.steps) if options.steps else {},
        states=_states(options, [tasks[task_id] for task_id in ids]),
        seconds=options.seconds,
    )
    return batch, len(wanted) - len(ids)


def _states(options: argparse.Namespace, tasks: Sequence[Task]) -> dict[str, State]:
    """What the probes say that the tasks' checks name. Raises UserError."""
    if options.probes is None:
        return {}
    named = {check.probe for task in tasks for check in task.backend_checks}
    probes = load_probes(options.probes)
    return captured({name: probe for name, probe in probes.items() if name in named})


def _wanted(options: argparse.Namespace, tasks: Mapping[str, object]) -> set[str]:
    """The tasks that were asked for. Raises UserError for one that the file does not hold."""
    named = set(options.task or ()) | (load_subset(options.subset) if options.subset else set())
    for task_id in sorted(named - tasks.keys()):
        raise UserError(f"{options.tasks}: holds no task {task_id!r}: name one that it holds")
    return named or set(tasks)


def _chosen(
    options: argparse.Namespace, tasks: Mapping[str, object], found: Sequence[str]
) -> list[str]:
    wanted = _wanted(options, tasks)
    without = [task_id for task_id in options.task or () if task_id not in found]
    if without:
        raise UserError(f"{options.runs}: holds no run of task {without[0]}: add its folder")
    ids = [task_id for task_id in found if task_id in wanted]
    if not ids:
        raise UserError(f"{options.runs}: holds no run of the tasks asked for: ask for others")
    return ids


def _show(summary: Summary, results: Sequence[TaskResult]) -> None:
    rows = [("all", summary.overall), *summary.sites.items()]
    show(f"{summary.mode}: {len(results)} runs", _COLUMNS, [_row(*row) for row in rows])
    for note in _notes(summary):
        sys.stdout.write(f"{note}\n")
    if summary.failure_modes:
        modes = list(summary.failure_modes.items())[:20]
        show("what did not hold", ("check", "runs"), modes)
    if summary.parse_failures:
        show("unreadable answers", ("class", "runs"), list(summary.parse_failures.items()))
    _show_reasons(results)


def _notes(summary: Summary) -> Iterator[str]:
    """What the table does not say, one line each."""
    macro = summary.site_macro
    if macro.mean is not None and macro.sites > 1:
        yield f"site macro: {macro.mean:.1%} ± {macro.half_width:.1%} over {macro.sites} sites"
    if any(site.half_width is None for site in summary.sites.values()):
        yield "± is blank for one template: the spread over templates is not seen in it"
    if summary.missing:
        yield f"{summary.missing} tasks have no run and count in no rate"
    if summary.premature:
        yield f"{len(summary.premature)} passes gave up early (R < 0.5)"
    for note, runs in summary.notes.items():
        yield f"note, in {runs} runs: {one_line(note)}"
    if summary.not_judged:
        yield f"runs that could not be judged: {first(summary.not_judged)}"


def _show_reasons(results: Sequence[TaskResult]) -> None:
    """Why the first runs did not pass, those first that the rules could not decide."""
    order = {Outcome.UNKNOWN: 0, Outcome.FAIL: 1}
    found = sorted((r for r in results if r.outcome in order), key=lambda r: order[r.outcome])
    for result in found[:_REASONS]:
        reason = one_line("; ".join(result.reasons))
        cut = reason if len(reason) <= _REASON else f"{reason[: _REASON - 1]}…"
        sys.stdout.write(f"task {result.task_id}: {result.outcome}: {cut}\n")
    if len(found) > _REASONS:
        sys.stdout.write(f"and {len(found) - _REASONS} more that did not pass: see tasks/\n")


def _row(site: str, macro: Macro) -> tuple[object, ...]:
    shares = (macro.success, macro.template_macro, macro.half_width)
    success, mean, half = ("" if share is None else f"{share:.1%}" for share in shares)
    limits = "" if macro.success is None else f"{macro.success_low:.1%} to {macro.success_high:.1%}"
    counts = (site, macro.runs, macro.passed, macro.unknown)
    return (*counts, success, limits, macro.templates, mean, half)


if __name__ == "__main__":
    sys.exit(main())
