"""Settings of ``trajudge rules``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from trajudge.rules.limits import RUN_SECONDS
from trajudge.util.settings import Option, Output, Positive, Settings, Workers

DialectName = Literal[
    "webarena", "webchorearena", "visualwebarena", "webarena-lite", "verified", "real"
]


class TaskFileConfig(Settings):
    """A file of tasks, and its format."""

    tasks: Annotated[Path, Option("the task file")]
    dialect: Annotated[DialectName | None, Option("dialect of the tasks (default: recognised)")] = (
        None
    )


class TasksConfig(TaskFileConfig):
    """A file of tasks, and the mode of the rules."""

    mode: Annotated[
        str | None,
        Option("Verified: sound, release-1.2.3; WebArena: original (default: the first)", "MODE"),
    ] = None


class SitesConfig(Settings):
    """The addresses of the sites."""

    sites: Annotated[Path | None, Option("the sites' addresses, as the package has them")] = None
    site: Annotated[
        tuple[str, ...],
        Option(
            "one site's address (default: the page's on the benchmark's own port for the site)",
            "SITE=URL",
        ),
    ] = ()


class EvaluateConfig(TasksConfig, SitesConfig):
    """Evaluate runs of WebArena, Verified or original, by its rules.

      trajudge rules evaluate --tasks webarena-verified.json --runs runs/
      trajudge rules evaluate --tasks tasks.json --runs runs/ --mode release-1.2.3 --workers 8
      trajudge rules evaluate --tasks webarena-verified.json --runs submission.tar.gz --subset NAME
      trajudge rules evaluate --tasks test.raw.json --runs runs.jsonl
      trajudge rules evaluate --tasks test.raw.json --runs agentlab_results/STUDY

    A run of Verified is a folder RUNS/TASK_ID with agent_response.json and a trace (schema.md).
    Runs of original tasks stand in one file; what it lacks (a page, a decision) makes a run
    unknown.
    """

    epilog: ClassVar[str] = (
        "exit codes: 0 done, 1 a run could not be judged (its files, its time), 2 a mistake in the "
        "call or its files, 130 interrupted"
    )
    first: ClassVar = (
        *("tasks", "runs", "out", "task", "subset", "mode", "sites", "workers", "full"),
        "seconds",
    )

    runs: Annotated[Path, Option("a folder, submission, study, or file", "PATH")]
    out: Annotated[Path | None, Output("where results go (default: below evaluated/)", "DIR")] = (
        None
    )
    task: Annotated[tuple[str, ...], Option("only this task; may be repeated", "ID")] = ()
    subset: Annotated[
        str | None, Option("only the tasks of this subset; checked by its sum", "NAME|FILE")
    ] = None
    require_activity: Annotated[bool, Option("fail runs that never visit the site")] = False
    probes: Annotated[Path | None, Option("ask the sites for their state now")] = None
    steps: Annotated[Path | None, Option("steps of each run (default: pages loaded)")] = None
    workers: Annotated[Workers, Option("processes")] = 1
    full: Annotated[bool, Option("print all tables instead of one screen")] = False
    seconds: Annotated[Positive, Option("time limit of one run", "S")] = RUN_SECONDS


class LintConfig(TaskFileConfig):
    """Find weaknesses of task specifications.

    trajudge rules lint --tasks test.raw.json
    trajudge rules lint --tasks mine.json --min-severity error --out lint/ --fail-on-findings
    """

    epilog: ClassVar[str] = (
        "exit codes: 0 done, 1 findings of the selected categories and severities under "
        "--fail-on-findings, 2 a mistake in the call or its files, 130 interrupted"
    )

    category: Annotated[tuple[str, ...], Option("only this category; may be repeated")] = ()
    min_severity: Annotated[
        Literal["error", "warning", "note"],
        Option(
            "error: no honest run passes, or one that did nothing does; warning: also what lets "
            "some wrong runs pass; note: all (default)"
        ),
    ] = "note"
    show: Annotated[int, Field(ge=0), Option("findings shown")] = 3
    full: Annotated[bool, Option("print all categories instead of one screen")] = False
    out: Annotated[Path | None, Output("write lint.json and lint.csv", "DIR")] = None
    fail_on_findings: Annotated[bool, Option("exit with 1 if there are findings")] = False


class MutateConfig(TasksConfig, SitesConfig):
    """Measure false accepts and false rejects of the rules on near misses.

      trajudge rules mutate --tasks webarena-verified.json
      trajudge rules mutate --tasks tasks.json --runs correct/ --site shopping=http://shop.test

    Without --runs a correct run is built from every task's specification. The runs of --runs, in
    the form that  trajudge rules evaluate  reads, are taken to be correct: one that the rule fails
    is a false rejection.
    """

    epilog: ClassVar[str] = (
        "exit codes: 0 done, 2 a mistake in the call or its files, 130 interrupted"
    )

    runs: Annotated[Path | None, Option("correct runs (default: built from the tasks)", "PATH")] = (
        None
    )
    passing_only: Annotated[bool, Option("leave out runs that the rule does not pass")] = False
    show: Annotated[
        int, Field(ge=0), Option("misjudgments shown, five without --full (default: 10)")
    ] = 10
    full: Annotated[
        bool, Option("print all changes and --show misjudgments instead of one screen")
    ] = False
    out: Annotated[Path | None, Output("write mutation.json and mutation.csv", "DIR")] = None


class BlindConfig(TasksConfig):
    """Score agents that never see a page on a set of tasks.

      trajudge rules blind --tasks test.raw.json
      trajudge rules blind --tasks test.raw.json --answers gpt=answers.json --out blind

    trajudge.rules.audit.blind scores any evaluator of trajudge.rules.verdict from Python.
    """

    epilog: ClassVar[str] = (
        "exit codes: 0 done, 2 a mistake in the call or its files, 130 interrupted"
    )

    answers: Annotated[
        tuple[str, ...],
        Option(
            "another agent, such as a model without a browser: a JSON object of answers by task "
            "id; may be repeated",
            "NAME=FILE",
        ),
    ] = ()
    out: Annotated[Path | None, Output("write naive.json and naive.csv", "DIR")] = None


class ProbeConfig(Settings):
    """Record what a site's probes say before or after a run.

    trajudge rules probe --probes probes.json --run-folder runs/tea-1 --when before
    trajudge rules probe --probes probes.json --run-folder runs/tea-1 --when after
    """

    epilog: ClassVar[str] = (
        "exit codes: 0 done, 1 a probe had no reply, 2 a mistake in the call or its files"
    )

    probes: Annotated[Path, Option("probes by name (JSON)")]
    run_folder: Annotated[Path, Output("folder of the agent's run", "DIR")]
    when: Annotated[Literal["before", "after"], Option("of the run")]
