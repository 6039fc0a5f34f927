"""What the commands of ``trajudge rules`` do."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import msgspec

from trajudge.rules.audit import findings
from trajudge.rules.audit.agents import BlindAgent, recorded
from trajudge.rules.audit.mutation import mutation_report, print_report, write_report
from trajudge.rules.audit.scoring import compare
from trajudge.rules.audit.suites import chosen_categories, open_tasks
from trajudge.rules.evaluating import evaluate_runs, write_evaluation
from trajudge.rules.output import write_text
from trajudge.rules.reading import decode, read_bytes
from trajudge.rules.settings import (
    BlindConfig,
    EvaluateConfig,
    LintConfig,
    LocatorsConfig,
    MutateConfig,
    ProbeConfig,
    TrimConfig,
)
from trajudge.rules.verified.dataset import load_tasks
from trajudge.rules.verified.network import given_hosts
from trajudge.rules.verified.runs import evaluation_screen, show_evaluation, trim_runs
from trajudge.rules.verified.state import load_probes, record
from trajudge.rules.webarena import files as webarena
from trajudge.rules.webarena.locators import read_runs
from trajudge.util.commands import FAILURES, OK, saved_behind_output
from trajudge.util.errors import UserError
from trajudge.util.tables import folded, screen_width
from trajudge.util.terminal import one_line, progress_bar


def evaluate(config: EvaluateConfig) -> int:
    """Evaluate the runs; show the summary, write it and a result for each task.

    The exit code is 1 if a run could not be judged.
    """
    evaluation = evaluate_runs(config)
    results, summary = evaluation.results, evaluation.summary

    def write() -> None:
        written = f"written: {write_evaluation(config, evaluation)}"
        sys.stdout.write("\n".join(folded(written, screen_width())) + "\n")

    with saved_behind_output() as save:
        save(write)
        if config.full:
            show_evaluation(summary, results)
        else:
            sys.stdout.write(evaluation_screen(summary, results, rest="All tables: --full"))
    return FAILURES if summary.not_judged else OK


def lint(config: LintConfig) -> int:
    """Lint the tasks and show, and with ``--out`` write, the findings."""
    _, rules, _, tasks = open_tasks(config.tasks, config.dialect)
    least = findings.Severity(config.min_severity)
    severities = chosen_categories(config.category or None, least, rules)
    found = [one for one in rules.lint(tasks) if one.category in severities]
    unions = {name: parts for name, parts in rules.unions.items() if {*parts} <= {*severities}}
    counted = findings.counts(found, severities, unions)
    with saved_behind_output() as save:
        if config.out:
            save(findings.write_findings, config.out, rules.dialect, counted, found)
        title = f"{config.tasks.name}: {len(tasks)} tasks ({rules.dialect})"
        findings.show_findings(title, counted, found, config.show)
    if config.out:
        sys.stdout.write(f"written: {one_line(str(config.out / 'lint.json'))} and lint.csv\n")
    return FAILURES if found and config.fail_on_findings else OK


def mutate(config: MutateConfig) -> int:
    """Change correct runs, judge them, and show, and with ``--out`` write, where the rule erred."""
    path, rules, mode, tasks = open_tasks(config.tasks, config.dialect, config.mode)
    sites = given_hosts(config.sites, config.site, tasks)
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
        print_report(title, report, config.show, out=config.out, full=config.full)
    return OK


def blind(config: BlindConfig) -> int:
    """Score the blind agents and show, and with ``--out`` write, what they pass."""
    tasks = open_tasks(config.tasks, config.dialect, config.mode)
    compare(tasks, [_recorded(option) for option in config.answers], config.out)
    return OK


def _recorded(option: str) -> BlindAgent:
    name, separator, file = option.partition("=")
    if not (name and separator and file):
        raise UserError(f"--answers {option}: write NAME=FILE, such as gpt=answers.json")
    return recorded(name, decode(read_bytes(Path(file)), dict[str, Any], file))


def trim(config: TrimConfig) -> int:
    """Trim the traces and say how much smaller they are; return 1 if one could not be read."""
    tasks = load_tasks(config.tasks) if config.site else ()
    hosts = given_hosts(config.sites, config.site, tasks)
    report = trim_runs(config.tasks, config.runs, config.out, config.task, hosts)
    for failure in report.failures:
        sys.stderr.write(f"warning: {one_line(failure)}\n")
    small, large = report.bytes_after / 2**20, report.bytes_before / 2**20
    sys.stdout.write(
        f"{report.runs} runs: traces of {large:.2f} MiB take {small:.2f} MiB, "
        f"{report.entries_before:,} entries are {report.entries_after:,}; "
        "every one is evaluated as before\n"
        f"written: {one_line(str(config.out))}\n"
    )
    return FAILURES if report.failures else OK


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


def locators(config: LocatorsConfig) -> int:
    """Read the locators of a file of runs, and write the runs with their values."""
    tasks = webarena.load_tasks(config.tasks)
    read = list(read_runs(tasks, webarena.load_runs(config.runs)))
    write_text(config.save, "".join(f"{msgspec.json.encode(run).decode()}\n" for run in read))
    sys.stdout.write(f"written: {one_line(str(config.save))}\n")
    return OK
