"""The commands of ``trajudge rules``."""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from trajudge.rules import webarena
from trajudge.rules.audit.blind import (
    BlindAgent,
    blind_scores,
    blind_screen,
    recorded,
    union,
    write_scores,
)
from trajudge.rules.audit.lint import LintReport, Severity, counts, lint_screen, write_findings
from trajudge.rules.audit.mutate import mutation_report, report_screen, write_report
from trajudge.rules.audit.suites import chosen_categories, open_tasks
from trajudge.rules.files import decode, read_bytes, write_json
from trajudge.rules.settings import (
    BlindConfig,
    EvaluateConfig,
    LintConfig,
    MutateConfig,
    ProbeConfig,
)
from trajudge.rules.values import Mode
from trajudge.rules.verified.evaluator import VerifiedEvaluator
from trajudge.rules.verified.network import hosts_of_options
from trajudge.rules.verified.runs import (
    Batch,
    Study,
    Summary,
    TaskResult,
    evaluation_screen,
    explored,
    is_study,
    judge_all,
    judge_study,
    load_steps,
    opened_runs,
    read_study,
    result_of,
    run_ids,
    summarise,
    verified_judge,
    write_package_results,
)
from trajudge.rules.verified.state import State, captured, load_probes, record
from trajudge.rules.verified.tasks import Task, load_tasks, subset_ids
from trajudge.rules.webarena.tasks import Dialect, detected, dialect
from trajudge.util.commands import FAILURES, OK, saved_behind_output
from trajudge.util.errors import UserError
from trajudge.util.files import check_folder
from trajudge.util.tables import folded, screen_width
from trajudge.util.terminal import count_of, one_line, progress_bar

# Fields that require more than a file of original runs contains.
_VERIFIED_ONLY = ("require_activity", "probes", "steps", "workers", "seconds")

# Fields that require a folder of runs, one for each task.
_FOLDER_ONLY = ("probes", "steps", "workers", "seconds")


class Evaluation(NamedTuple):
    """The results of all runs, their summary, and for WebArena Verified the tasks by id."""

    results: list[TaskResult]
    summary: Summary
    verified_tasks: Mapping[str, Task]


def evaluate_runs(config: EvaluateConfig) -> Evaluation:
    """Evaluate runs by the rules of their tasks.

    A run that cannot be judged does not stop the others; missing evidence gives the outcome
    unknown. Raises UserError for invalid tasks, runs or options.
    """
    row = dialect(config.dialect) if config.dialect else detected(config.tasks)
    mode = _mode(config, row)
    start = time.perf_counter()
    _refuse_options(config, row.form)
    check_folder(config.out or default_out(config, mode), "--out")
    tasks: Mapping[str, Task] = {}
    if row.form == "webarena":
        listed = webarena.load_tasks(config.tasks, row.name, keep_flawed=True)
        originals = {str(task.task_id): task for task in listed}
        wanted = _selected_ids(config, originals)
        judge_runs = _original_study if is_study(config.runs) else _original
        results = judge_runs(config, originals, wanted)
    else:
        tasks = {str(task.task_id): task for task in load_tasks(config.tasks, keep_flawed=True)}
        wanted = _selected_ids(config, tasks)
        judge_verified = _verified_study if is_study(config.runs) else _verified
        results = judge_verified(config, Mode(mode), tasks, wanted)
    missing = len(wanted - {str(result.task_id) for result in results})
    seconds = time.perf_counter() - start
    return Evaluation(results, summarise(mode, results, missing=missing, seconds=seconds), tasks)


def _mode(config: EvaluateConfig, row: Dialect) -> str:
    """Return the requested mode, or the dialect's default. Raises UserError."""
    modes = {"webarena": ("original",), "verified": tuple(mode.value for mode in Mode)}
    if row.form not in modes:
        raise UserError(
            f"{config.tasks}: {row.title}'s checks ask the sites for their state, which runs do "
            "not hold: use  trajudge rules lint  to see what they check"
        )
    mode = config.mode or modes[row.form][0]
    if mode not in modes[row.form]:
        raise UserError(f"--mode {mode}: {row.name} tasks have {', '.join(modes[row.form])}")
    return mode


def default_out(config: EvaluateConfig, mode: str) -> Path:
    """Return the default results folder, which depends on tasks, runs and mode. Raises UserError
    if it would be inside the input."""
    runs, tasks = config.runs.resolve(), config.tasks.resolve()
    names = "\0".join(map(str, (runs, tasks, mode)))
    digest = sha256(os.fsencode(names)).hexdigest()[:8]
    out = Path("evaluated") / f"{runs.stem}-{mode}-{digest}"
    if out.resolve().is_relative_to(runs):
        raise UserError(f"--runs {config.runs}: results would be written into it: name --out DIR")
    return out


def write_evaluation(config: EvaluateConfig, evaluation: Evaluation) -> str:
    """Write the summary, a result for each task and, for WebArena Verified, the released
    package's files. Return their folder. Raises UserError."""
    results, summary, tasks = evaluation
    out = config.out or default_out(config, summary.mode)
    for result in results:
        write_json(out / "tasks" / f"{result.file_name}.json", result)
    write_json(out / "summary.json", summary)
    where = f"{one_line(str(out))}: summary.json and {count_of(len(results), 'file')} in tasks/"
    if summary.mode not in set(Mode):
        return where
    listed = [] if any(result.run for result in results) else results
    made = write_package_results(out / "package", tasks, listed, summary.mode, config.tasks)
    return f"{where}, {made} eval_result.json in package/" if made else where


def _refuse(config: EvaluateConfig, names: Iterable[str], reason: str) -> None:
    """Raise UserError for an option that has no effect here."""
    for name in names:
        if getattr(config, name) != EvaluateConfig.model_fields[name].default:
            raise UserError(f"--{name.replace('_', '-')}: {reason}: leave it out")


def _refuse_options(config: EvaluateConfig, form: str) -> None:
    """Raise UserError for options that have no effect for these tasks and runs."""
    if is_study(config.runs):
        unused = _VERIFIED_ONLY if form == "webarena" else _FOLDER_ONLY
        _refuse(config, unused, "has no meaning for a study's runs")
    elif form == "webarena":
        _refuse(config, _VERIFIED_ONLY, "is for runs of WebArena Verified")


def _original_study(
    config: EvaluateConfig, tasks: Mapping[str, webarena.Task], wanted: set[str]
) -> list[TaskResult]:
    """Return the results of a study's runs by the rules of original tasks. Raises UserError."""
    judge = _original_evaluator(config, tasks).evaluate
    return judge_study(
        _study(config, wanted),
        tasks,
        lambda task, run: judge(task, run.answer, webarena.Trace(url=run.url)),
    )


def _verified_study(
    config: EvaluateConfig, mode: Mode, tasks: Mapping[str, Task], wanted: set[str]
) -> list[TaskResult]:
    """Return the results of a study's runs by the rules of WebArena Verified. Raises UserError."""
    hosts = hosts_of_options(config.sites, config.site, tasks.values())
    study = _study(config, wanted)
    evaluator = VerifiedEvaluator(mode, hosts, config.require_activity)
    return explored(judge_study(study, tasks, verified_judge(study, evaluator)))


def _study(config: EvaluateConfig, wanted: set[str]) -> Study:
    with progress_bar() as show:
        return read_study(config.runs, wanted, partial(show, "read"))


def _original_evaluator(
    config: EvaluateConfig, tasks: Mapping[str, webarena.Task]
) -> webarena.WebArenaEvaluator:
    hosts = hosts_of_options(config.sites, config.site, tasks.values())
    return webarena.WebArenaEvaluator(sites={name: urls[0] for name, urls in hosts.items()})


def _original(
    config: EvaluateConfig, tasks: Mapping[str, webarena.Task], wanted: set[str]
) -> list[TaskResult]:
    """Return the results of a file of runs of original tasks. Raises UserError."""
    runs = webarena.load_runs(config.runs)
    recorded = [str(run.task_id) for run in runs]
    repeated = sorted(task_id for task_id, count in Counter(recorded).items() if count > 1)
    if repeated:
        raise UserError(f"{config.runs}: holds two runs of task {repeated[0]}: keep one")
    chosen = set(_chosen(config, wanted, recorded))
    # Runs of unknown tasks are kept, to be reported.
    kept = [run for run in runs if str(run.task_id) in chosen or str(run.task_id) not in tasks]
    results, start = [], time.perf_counter()
    evaluator = _original_evaluator(config, tasks)
    for task_id, verdict in webarena.evaluate_runs(tasks.values(), kept, evaluator):
        now = time.perf_counter()
        results.append(result_of(tasks[str(task_id)], verdict, None, now - start))
        start = now
    return results


def _verified(
    config: EvaluateConfig, mode: Mode, tasks: Mapping[str, Task], wanted: set[str]
) -> list[TaskResult]:
    """Return the results of a folder of WebArena Verified's runs. Raises UserError."""
    with opened_runs(config.runs) as folder:
        batch = _batch(config, mode, folder, tasks, wanted)
        with progress_bar() as show:
            judged = judge_all(batch, config.workers, partial(show, "judged"))
    return explored([_renamed(result, str(folder), str(config.runs)) for result in judged])


def _renamed(result: TaskResult, unpacked: str, runs: str) -> TaskResult:
    """Replace the temporary folder by the archive's name in a result's reasons."""
    reasons = tuple(reason.replace(unpacked, runs) for reason in result.reasons)
    return msgspec.structs.replace(result, reasons=reasons)


def _batch(
    config: EvaluateConfig, mode: Mode, folder: Path, tasks: Mapping[str, Task], wanted: set[str]
) -> Batch:
    """Return the batch to judge. Raises UserError."""
    ids = _chosen(config, wanted, run_ids(folder, tasks))
    return Batch(
        tasks=tasks,
        folder=folder,
        ids=ids,
        evaluator=VerifiedEvaluator(
            mode=mode,
            hosts=hosts_of_options(config.sites, config.site, tasks.values()),
            activity=config.require_activity,
        ),
        steps=load_steps(config.steps) if config.steps else {},
        states=_states(config, [tasks[task_id] for task_id in ids]),
        seconds=config.seconds,
    )


def _states(config: EvaluateConfig, tasks: Sequence[Task]) -> dict[str, State]:
    """Return the current replies of the probes that the tasks' checks use. Raises UserError."""
    if config.probes is None:
        return {}
    named = {check.probe for task in tasks for check in task.backend_checks}
    probes = load_probes(config.probes)
    return captured({name: probe for name, probe in probes.items() if name in named})


def _selected_ids(config: EvaluateConfig, tasks: Mapping[str, object]) -> set[str]:
    """Return the ids of the selected tasks. Raises UserError for an id that the file does not
    have."""
    subset = subset_ids(config.subset, config.tasks) if config.subset else frozenset[str]()
    named = set(config.task) | subset
    for task_id in sorted(named - tasks.keys()):
        raise UserError(f"{config.tasks}: holds no task {task_id!r}: name one that it holds")
    return named or set(tasks)


def _chosen(config: EvaluateConfig, wanted: set[str], recorded: Sequence[str]) -> list[str]:
    """Return the selected tasks that have a run. Raises UserError if there is none, and for a
    task named by the user without a run."""
    without = [task_id for task_id in config.task if task_id not in recorded]
    if without:
        raise UserError(f"{config.runs}: holds no run of task {without[0]}: add its folder")
    ids = [task_id for task_id in recorded if task_id in wanted]
    if not ids:
        raise UserError(f"{config.runs}: has no run of the selected tasks: select others")
    return ids


def evaluate(config: EvaluateConfig) -> int:
    """Evaluate runs; print a summary, write it and a result for each task.

    The exit code is 1 if a run could not be judged.
    """
    evaluation = evaluate_runs(config)
    results, summary = evaluation.results, evaluation.summary

    def write() -> None:
        written = f"written: {write_evaluation(config, evaluation)}"
        sys.stdout.write("\n".join(folded(written, screen_width())) + "\n")

    with saved_behind_output() as save:
        save(write)
        sys.stdout.write(evaluation_screen(summary, results, full=config.full))
    return FAILURES if summary.not_judged else OK


def lint(config: LintConfig) -> int:
    """Lint tasks; print the findings and, with ``--out``, write them."""
    path, rules, _, tasks = open_tasks(config.tasks, config.dialect)
    severities = chosen_categories(config.category or None, Severity(config.min_severity), rules)
    with progress_bar() as show:
        listed = _watched(tasks, lambda done: show("tasks", done, len(tasks)))
        findings = [one for one in rules.lint(listed) if one.category in severities]
    unions = {name: parts for name, parts in rules.unions.items() if {*parts} <= {*severities}}
    counted = counts(findings, severities, unions)
    report = LintReport(path.name, rules.dialect, len(tasks), findings, counted)
    with saved_behind_output() as save:
        if config.out:
            save(write_findings, config.out, report)
        sys.stdout.write(lint_screen(report, config.show, config.out, full=config.full))
    return FAILURES if findings and config.fail_on_findings else OK


def _watched(tasks: Sequence[Any], tell: Callable[[int], None]) -> Iterator[Any]:
    for done, task in enumerate(tasks, start=1):
        yield task
        tell(done)


def mutate(config: MutateConfig) -> int:
    """Evaluate mutations of correct runs; print, and with ``--out`` write, the errors of the
    rule."""
    path, rules, mode, tasks = open_tasks(config.tasks, config.dialect, config.mode)
    sites = hosts_of_options(config.sites, config.site, tasks)
    suite = rules.mutations(tasks, config.runs, mode, sites)
    with progress_bar() as show:
        report = mutation_report(
            *suite,
            passing_only=config.passing_only,
            progress=lambda done: show("runs", done, len(tasks)),
        )
    if not report.mutators:
        raise UserError(f"{config.runs or path}: no run to change: add one that passes")
    title = f"{path.name}, {mode} rules"
    with saved_behind_output() as save:
        if config.out:
            save(write_report, config.out, rules.dialect, mode, report)
        screen = report_screen(title, report, config.show, out=config.out, full=config.full)
        sys.stdout.write(screen)
    return OK


def blind(config: BlindConfig) -> int:
    """Score the blind agents; print, and with ``--out`` write, the tasks that they pass."""
    path, rules, mode, tasks = open_tasks(config.tasks, config.dialect, config.mode)
    agents = [*rules.agents, *map(_recorded, config.answers)]
    with progress_bar() as show:
        made = blind_scores(
            tasks,
            rules.evaluator(mode),
            agents,
            rules.idle_trace,
            progress=show,
            start_trace_of=rules.start_trace,
        )
    listed = [*made, union(made)]
    sys.stdout.write(blind_screen(path, mode, listed, config.out))
    if config.out:
        write_scores(config.out, rules.dialect, mode, listed)
    return OK


def _recorded(option: str) -> BlindAgent:
    name, separator, file = option.partition("=")
    if not (name and separator and file):
        raise UserError(f"--answers {option}: write NAME=FILE, such as gpt=answers.json")
    return recorded(name, decode(read_bytes(Path(file)), dict[str, Any], file))


def probe(config: ProbeConfig) -> int:
    """Record the state of a site; return 1 if a probe had no reply."""
    probes = load_probes(config.probes)
    if not probes:
        raise UserError(f"{config.probes}: holds no probe: name at least one")
    replies = record(config.run_folder, probes, config.when)
    failures = {name: reply.failure for name, reply in replies.items() if reply.failure}
    for name, failure in failures.items():
        sys.stderr.write(f"probe {name}: {failure}\n")
    return FAILURES if failures else OK
