"""The options of ``trajudge judge``: one parser for the command line and for ``--config``.

Nothing slow is imported here, so that ``--help`` answers at once.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trajudge.eval.batches.options import batch_options
from trajudge.judges.calls.options import call_options
from trajudge.trajectories.util.exits import Parser, TextParser
from trajudge.trajectories.util.options import (
    config_words,
    count,
    read_settings,
)

if TYPE_CHECKING:
    from trajudge.eval.runs.settings import RunRequest

DESCRIPTION = """\
Ask a judge whether web agents succeeded, caused side effects or went round in circles, and
measure the judge against expert annotations, the rule-based baseline beside it.

  trajudge judge --model gpt-4o
  trajudge judge --judge heuristic
  trajudge judge --model my-model --base-url http://127.0.0.1:8000/v1 --limit 20
"""
EPILOG = """\
exit codes: 0 done, 1 more failed judgments than --max-failures, 2 a mistake in the call or its
files, 130 interrupted (everything kept: the same command goes on from there)
"""


def _failures(text: str) -> float | int:
    """Read a count, or a share such as ``5%``."""
    with suppress(ValueError):
        if text.endswith("%") and 0 <= (share := float(text[:-1])) <= 100:
            return share / 100
        if (value := int(text)) >= 0:
            return value
    raise argparse.ArgumentTypeError(f"{text!r} is neither a count nor a share such as 5%")


def parser() -> Parser:
    """Make the parser of ``trajudge judge``."""
    made = TextParser(
        prog="trajudge judge",
        description=DESCRIPTION,
        epilog=EPILOG,
        old={"--of": "--members"},
    )
    judge = made.add_argument_group("the judge")
    judge_options(judge)
    ensemble_options(judge)
    prompt_options(judge)
    _data_options(made.add_argument_group("the trajectories"))
    call_options(made.add_argument_group("the calls"))
    batch_options(made.add_argument_group("calls in batches: half the price, within a day"))
    _run_options(made.add_argument_group("the run"))
    first = "model judge base-url data limit samples concurrency max-cost dry-run out"
    return made.show_first(*first.split())


def judge_options(group: Any) -> None:
    """Add what names the judges and their models."""
    add = group.add_argument
    add(
        "--model",
        action="append",
        metavar="NAME",
        help="the model to ask, e.g. gpt-4o, claude-..., provider/name; may be repeated",
    )
    add(
        "--judge",
        action="append",
        metavar="NAME",
        help="see  trajudge judges list  (default: simplified); may be repeated, and runs with "
        "every --model",
    )
    add(
        "--judge-option",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="an option of this judge, or of the members that take it, see  "
        "trajudge judges show NAME; may be repeated",
    )


def ensemble_options(group: Any) -> None:
    """Add what a panel or cascade takes."""
    add = group.add_argument
    add("--members", metavar="NAME[:MODEL],...", help="members of --judge panel or cascade")
    add(
        "--rule",
        choices=("majority", "unanimous", "mean"),
        help="how a panel's verdicts are combined (default: majority)",
    )
    add(
        "--quorum",
        type=count,
        metavar="N",
        help="minimum number of member verdicts (default: majority)",
    )
    add(
        "--tie",
        choices=("success", "failure"),
        help="verdict when a panel's votes tie (default: failure)",
    )


def prompt_options(group: Any) -> None:
    """Add what a judge is shown, by whose prompts."""
    add = group.add_argument
    add("--captioner-model", metavar="NAME", help="describes screenshots (default: --model)")
    add("--describer-model", metavar="NAME", help="describes changes (default: --model)")
    add("--light-model", metavar="NAME", help="takes a judge's lighter stages (default: --model)")
    add(
        "--representation",
        choices=("axtree", "screenshot", "both", "none"),
        help="what the judge sees of the final page (default: the judge's own)",
    )
    add("--success-last", action="store_true", help="ask for success after the other labels")
    add(
        "--prompts",
        choices=("trajudge", "agentrewardbench", "browser-use", "fara"),
        help="our prompts (default), or the source's own, read from the installed package: "
        "agent-reward-bench (for simplified), browser-use; fara's cannot be read yet",
    )


def _data_options(group: Any) -> None:
    add = group.add_argument
    add(
        "--data",
        metavar="KIND:PATH",
        help="a file or folder whose format is detected, KIND:PATH (a KIND that is unknown lists "
        "them), an installed loader or a Python file (default: "
        "the AgentRewardBench copy on this machine, else the bundled sample)",
    )
    add("--annotations", metavar="KIND:PATH", help="expert labels (default: those of the data)")
    add(
        "--goals",
        type=Path,
        metavar="FILE",
        help="JSON, JSON Lines or CSV of task_id and goal, for logs that do not hold them",
    )
    add(
        "--split",
        choices=("dev", "test", "all"),
        help="default: test where the annotations have splits, else all",
    )
    for name, metavar in (("benchmark", "NAME"), ("agent", "NAME"), ("task", "ID")):
        add(
            f"--{name}", action="append", metavar=metavar, help=f"only this {name}; may be repeated"
        )
    add("--limit", type=count, metavar="N", help="at most N trajectories")
    add("--stratified", action="store_true", help="spread --limit over benchmarks and agents")
    add("--strict", action="store_true", help="stop at the first trajectory that cannot be read")


def _run_options(group: Any) -> None:
    add = group.add_argument
    add(
        "--samples",
        type=count,
        default=1,
        metavar="N",
        help="judgments per trajectory (default: 1)",
    )
    add("--retry-failed", action="store_true", help="ask again where an earlier try failed")
    add(
        "--max-failures",
        type=_failures,
        default=0,
        metavar="N|N%",
        help="failed judgments that still exit with 0 (default: 0)",
    )
    add(
        "--protocol",
        choices=("default", "agentrewardbench"),
        default="default",
        help="what a failed judgment counts as, and how figures are rounded",
    )
    add("--full", action="store_true", help="show all tables and notes instead of one screen")
    add(
        "--out",
        type=Path,
        metavar="DIR",
        help="the run's folder (default: runs/, named by its settings)",
    )
    add(
        "--export",
        nargs=2,
        metavar=("FORMAT", "DIR"),
        help="agentrewardbench DIR: the judgments in the published layout as well",
    )
    add(
        "--export-restricted",
        action="store_true",
        help="also of data whose card forbids redistribution (trajudge data sources)",
    )
    add(
        "--log-format",
        choices=("text", "json"),
        default="text",
        help="of progress, notes and errors on standard error; json: an object per line",
    )
    add("--config", metavar="FILE", help="options from a YAML file; the command line wins")


def parse(argv: Sequence[str]) -> RunRequest:
    """Read the settings from the command line, and from ``--config`` what it does not name.

    Raises UserError for what the parser refuses, and for a config file that cannot be read or
    names an unknown option.
    """
    made = parser()
    if "--log-format=json" in argv or ("--log-format", "json") in pairwise(argv):
        log_as_json()  # before anything is refused
    options = made.parse_args([*config_words(made, argv), *argv])
    if options.log_format == "json":
        log_as_json()
    return request_of(options)


def log_as_json() -> None:
    """Write JSON lines to standard error until the command ends."""
    from trajudge.trajectories.util.terminal import JsonLines  # noqa: PLC0415 - --help needs none of these

    if not isinstance(sys.stderr, JsonLines):
        sys.stderr = JsonLines(sys.stderr)


def request_of(options: argparse.Namespace) -> RunRequest:
    """Return the typed settings of parsed options, those that a parser has not at their default.
    Raises UserError."""
    from trajudge.eval.batches.settings import BatchConfig  # noqa: PLC0415 - --help needs none
    from trajudge.eval.runs.settings import (  # noqa: PLC0415 - --help needs none of these
        DataConfig,
        JudgeConfig,
        RunConfig,
        RunRequest,
        check_request,
    )
    from trajudge.judges.calls.settings import CallConfig  # noqa: PLC0415 - --help needs none of these
    from trajudge.judges.options import named_options  # noqa: PLC0415

    judges = tuple(options.judge or ["simplified"])
    given = named_options("--judge-option", options.judge_option)
    first = read_settings(JudgeConfig, options, judge=judges[0], model=None, options=given)
    request = RunRequest(
        judges=judges,
        models=tuple(options.model or ()),
        judge=first,
        data=read_settings(DataConfig, options),
        calls=read_settings(CallConfig, options),
        run=read_settings(RunConfig, options),
        batch=read_settings(BatchConfig, options),
        yes=options.yes,
        full=options.full,
    )
    check_request(request)
    return request
