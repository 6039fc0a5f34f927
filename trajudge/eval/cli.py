"""The console script ``trajudge``: commands, those that belong together in groups."""

from __future__ import annotations

import atexit
import gc
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from importlib import import_module
from typing import Any, NamedTuple

from trajudge import __version__
from trajudge.util.commands import user_errors
from trajudge.util.errors import MissingExtra, did_you_mean
from trajudge.util.machine import collection_paused, limit_threads
from trajudge.util.terminal import hanging, progress_bar, terminal_width


class Command(NamedTuple):
    """The function that does a command's work, its purpose in a line, and the record of its
    settings, both as ``module:name`` below ``trajudge``: ``--help`` imports the settings alone.
    ``doing`` is what the progress on standard error says; "" where the command shows its own, or
    serves until Ctrl-C."""

    run: str
    purpose: str
    settings: str
    doing: str = ""


class CommandGroup(NamedTuple):
    """Commands with one subject: ``trajudge GROUP COMMAND``. ``default`` is the command that
    ``trajudge GROUP FOLDER`` runs."""

    purpose: str
    commands: Mapping[str, Command]
    default: str = ""


COMMANDS: Mapping[str, Command | CommandGroup] = {
    "data": CommandGroup(
        "fetch benchmarks, convert trajectories",
        {
            "fetch": Command(
                "trajectories.data_commands:fetch",
                "download the needed parts of a benchmark",
                "trajectories.settings:FetchConfig",
                "fetching",
            ),
            "convert": Command(
                "trajectories.data_commands:convert",
                "write trajectories in our own format",
                "trajectories.settings:ConvertConfig",
                "converting trajectories",
            ),
            "verdicts": Command(
                "eval.imported:import_verdicts",
                "import published verdicts as runs",
                "eval.store.settings:ImportConfig",
                "importing verdicts",
            ),
            "sources": Command(
                "trajectories.data_commands:show_sources",
                "show known data sets: licences",
                "trajectories.settings:SourcesConfig",
            ),
            "perturb": Command(
                "robustness.perturb:perturb",
                "write trajectories changed in known ways",
                "robustness.settings:PerturbConfig",
                "changing trajectories",
            ),
        },
    ),
    "label": CommandGroup(
        "draw, collect and compare expert labels",
        {
            "build": Command(
                "eval.labelling.build:build_queue",
                "draw what to label",
                "eval.labelling.settings:BuildConfig",
                "drawing what to label",
            ),
            "serve": Command(
                "app.inspect:label",
                "label in a browser; so does  trajudge label QUEUE",
                "app.settings:LabelServeConfig",
            ),
            "people": Command(
                "eval.labelling.commands:label_people",
                "list or add annotators",
                "eval.labelling.settings:PeopleConfig",
            ),
            "import": Command(
                "eval.labelling.commands:label_import",
                "take labels from a file",
                "eval.labelling.settings:LabelImportConfig",
                "importing labels",
            ),
            "export": Command(
                "eval.labelling.commands:label_export",
                "write the labels as files",
                "eval.labelling.settings:LabelExportConfig",
                "exporting labels",
            ),
            "estimate": Command(
                "eval.labelling.estimates:print_estimates",
                "estimate judges' precision and annotators' agreement",
                "eval.labelling.settings:EstimateConfig",
                "estimating",
            ),
        },
        default="serve",
    ),
    "judges": CommandGroup(
        "list and show the judges that trajudge has",
        {
            "list": Command(
                "judges.show:list_judges",
                "list the judges: the model each needs, and what it asks",
                "judges.settings:ListConfig",
            ),
            "show": Command(
                "judges.show:show_judge",
                "show a judge's card, options and prompts",
                "judges.settings:ShowConfig",
            ),
            "fidelity": Command(
                "judges.show:show_fidelity",
                "show what judges follow of their sources",
                "judges.settings:FidelityConfig",
            ),
            "train": Command(
                "eval.analysis.train_telemetry:train_telemetry",
                "train the telemetry judge, which reads a run's numbers",
                "eval.settings:TelemetryConfig",
                "training the telemetry judge",
            ),
        },
    ),
    "judge": Command(
        "eval.judge:run",
        "judge trajectories and score the judge against experts",
        "eval.runs.settings:RunRequest",
    ),
    "check": Command(
        "eval.check:run",
        "check whether the verdicts in a table can be trusted",
        "eval.settings:CheckConfig",
        "checking",
    ),
    "score": Command(
        "eval.score:report",
        "score judges: tables, ranks, checks, plots, errors",
        "eval.settings:ScoreConfig",
        "scoring",
    ),
    "select": Command(
        "eval.select.decide:run",
        "choose the judge and threshold for filtering",
        "eval.select.settings:SelectConfig",
        "deciding",
    ),
    "accept": Command(
        "eval.accept.accept:run",
        "write the trajectories that a judge accepts, as training data",
        "eval.accept.settings:AcceptConfig",
        "accepting",
    ),
    "audit": Command(
        "eval.audit:run_audit",
        "audit a rule-based evaluator against experts",
        "eval.settings:AuditConfig",
        "auditing",
    ),
    "robust": Command(
        "robustness.robust:measure",
        "measure what verdicts survive: claims, attacks",
        "robustness.settings:RobustConfig",
    ),
    "report": Command(
        "app.report:report",
        "write one HTML file: scores, figures, wrong verdicts",
        "app.settings:ReportConfig",
        "writing the report",
    ),
    "inspect": Command(
        "app.inspect:inspect",
        "look at runs and trajectories in a browser",
        "app.settings:InspectConfig",
    ),
    "serve": Command(
        "rewards.serve:run",
        "serve a judge's rewards to trainers over HTTP",
        "rewards.settings:RewardServerConfig",
    ),
    "rules": CommandGroup(
        "evaluate, lint and test the rules of WebArena and WebArena Verified",
        {
            "evaluate": Command(
                "rules.commands:evaluate",
                "evaluate recorded runs by the rules",
                "rules.settings:EvaluateConfig",
                "evaluating",
            ),
            "lint": Command(
                "rules.commands:lint",
                "find weaknesses of task specifications",
                "rules.settings:LintConfig",
                "linting",
            ),
            "mutate": Command(
                "rules.commands:mutate",
                "measure false accepts and false rejects",
                "rules.settings:MutateConfig",
                "changing runs",
            ),
            "blind": Command(
                "rules.commands:blind",
                "score agents that never see a page",
                "rules.settings:BlindConfig",
                "scoring blind agents",
            ),
            "probe": Command(
                "rules.commands:probe",
                "record a site's state before or after a run",
                "rules.settings:ProbeConfig",
                "recording the state",
            ),
        },
    ),
    "run": CommandGroup(
        "parse a run's replies again, see to its batches",
        {
            "reparse": Command(
                "eval.analysis.reparse:reparse",
                "parse recorded replies again, without a call",
                "eval.store.settings:ReparseConfig",
                "parsing the replies again",
            ),
            "batch": Command(
                "eval.runs.batches:carry_out",
                "show, cancel or collect submitted batches",
                "eval.runs.settings:BatchAction",
            ),
        },
    ),
    "env": CommandGroup(
        "record agents in web applications with known ground truth",
        {
            "generate": Command(
                "environments.commands:generate",
                "generate checked tasks",
                "environments.settings:GenerateConfig",
                "generating tasks",
            ),
            "validate": Command(
                "environments.commands:validate",
                "solve generated tasks in Chromium",
                "environments.settings:ValidateConfig",
                "validating",
            ),
            "record": Command(
                "environments.commands:record",
                "record scripted agents or a model",
                "environments.settings:RecordConfig",
                "recording",
            ),
            "serve": Command(
                "environments.commands:serve",
                "serve runs to agents with their own browser",
                "environments.settings:HostConfig",
            ),
            "play": Command(
                "environments.commands:play",
                "do a task in your own browser",
                "environments.settings:PlayConfig",
            ),
            "verify": Command(
                "environments.commands:verify",
                "verify recorded runs again",
                "environments.settings:VerifyConfig",
                "verifying",
            ),
            "results": Command(
                "environments.commands:results",
                "success by level, dimension and axis",
                "environments.settings:ResultsConfig",
                "computing results",
            ),
        },
    ),
    "proxy": CommandGroup(
        "inject faults between an agent and the web, measure efficiency",
        {
            "run": Command(
                "proxy.commands:run",
                "run an agent behind the proxy and show what it cost",
                "proxy.settings:AgentRunConfig",
            ),
            "serve": Command(
                "proxy.commands:serve",
                "run the proxy alone, for agents started elsewhere",
                "proxy.settings:ServeConfig",
            ),
            "plan": Command(
                "proxy.commands:plan",
                "show what a fault plan does in a task",
                "proxy.settings:ShowPlanConfig",
            ),
            "results": Command(
                "eval.resilience.tables:report",
                "compare runs with and without faults",
                "eval.resilience.settings:ResilienceConfig",
                "comparing runs",
            ),
        },
    ),
}
"""In the order of the work."""

MORE = ("run", "env", "proxy")
"""What ``trajudge help more`` alone lists."""


# Optional packages that a command's modules import -> the extra that brings them.
EXTRAS = {"starlette": "app", "uvicorn": "app"}
HELP = ("-h", "--help")
VERSION = ("-V", "--version")
_LIST_WIDTH = 80  # columns that the names of a group's commands fill


def every_command() -> dict[str, Command]:
    """Return the commands by the words that name them (``label build``)."""
    every: dict[str, Command] = {}
    for name, entry in COMMANDS.items():
        if isinstance(entry, Command):
            every[name] = entry
        else:
            every |= {f"{name} {each}": command for each, command in entry.commands.items()}
    return every


def usage() -> str:
    """List the commands of the usual work, in its order: one line each."""
    width = terminal_width()
    lines = ["usage: trajudge COMMAND [OPTION ...]", ""]
    for name, entry in COMMANDS.items():
        if name not in MORE:
            lines += hanging(f"  {name:<7} ", entry.purpose, width)
    last = (
        "trajudge COMMAND --help shows a command's options; trajudge help more lists every command"
    )
    return "\n".join([*lines, "", *hanging("", last, width)])


def usage_of_all() -> str:
    """List all commands and groups on one screen."""
    width = terminal_width()
    lines = ["usage: trajudge COMMAND [OPTION ...]", ""]
    for name, entry in COMMANDS.items():
        lines += hanging(f"  {name:<7} ", entry.purpose, width)
        if isinstance(entry, CommandGroup):
            lines += hanging(" " * 10, ", ".join(entry.commands), min(width, _LIST_WIDTH))
    last = "trajudge GROUP --help lists a group, trajudge COMMAND --help shows options"
    return "\n".join([*lines, "", *hanging("", last, width)])


def group_usage(name: str, group: CommandGroup) -> str:
    """List the commands of a group."""
    width = terminal_width()
    lines = [f"usage: trajudge {name} COMMAND [OPTION ...]", ""]
    lines += [*hanging("", group.purpose, width), ""]
    for each, command in group.commands.items():
        lines += hanging(f"  {each:<12} ", command.purpose, width)
    last = f"trajudge {name} COMMAND --help shows a command's options"
    return "\n".join([*lines, "", *hanging("", last, width)])


@user_errors
def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code (2: no such command)."""
    words = list(sys.argv[1:] if argv is None else argv)
    if words[:1] == ["help"]:
        if words[1:] == ["more"]:
            sys.stdout.write(usage_of_all() + "\n")
            return 0
        words = [*words[1:], "--help"]
    if not words or words[0] in HELP:
        sys.stdout.write(usage() + "\n")
        return 0
    if words[0] in VERSION:
        sys.stdout.write(f"trajudge {__version__}\n")
        return 0
    name, *rest = words
    entry, known = COMMANDS.get(name), [*COMMANDS]
    if isinstance(entry, CommandGroup):
        if not rest or rest[0] in HELP:
            sys.stdout.write(group_usage(name, entry) + "\n")
            return 0
        if entry.default and rest[0] not in entry.commands and os.path.isdir(rest[0]):  # noqa: PTH112 - quick to start
            rest = [entry.default, *rest]
        name, known = f"{name} {rest[0]}", [*entry.commands]
        entry, rest = entry.commands.get(rest[0]), rest[1:]
    if entry is None:
        close = did_you_mean(name.rpartition(" ")[2], known) or ":"
        sys.stderr.write(f"error: no command {name!r}{close} use one of {', '.join(known)}\n")
        return 2
    limit_threads()
    atexit.register(gc.freeze)  # or a last collection would walk over all that the process frees
    try:
        with collection_paused():  # which would walk over every module again and again
            from trajudge.util.settings import parse  # noqa: PLC0415 - lists of commands need none

            config = parse(named(entry.settings), f"trajudge {name}", rest)
            run = named(entry.run)
    except ModuleNotFoundError as error:
        package = str(error.name).partition(".")[0]
        if package not in EXTRAS:
            raise
        raise MissingExtra(package, EXTRAS[package], f"trajudge {name}") from None
    with progress_bar(entry.doing) if entry.doing else nullcontext():
        code: int = run(config)
    return code


def named(name: str) -> Any:
    """Import what ``module:name`` names below ``trajudge``."""
    module, _, attribute = name.partition(":")
    return getattr(import_module(f"trajudge.{module}"), attribute)


if __name__ == "__main__":
    sys.exit(main())
