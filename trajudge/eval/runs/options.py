"""The options of ``trajudge judge``: one parser for the command line and for ``--config``.

Nothing slow is imported here, so that ``--help`` answers at once.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from trajudge.judges.calls.options import call_options
from trajudge.util.commands import (
    OptionAdder,
    Parser,
    TextParser,
    config_words,
    count,
    read_settings,
    samples,
)

if TYPE_CHECKING:
    from trajudge.eval.runs.settings import RunRequest


def batch_options(group: Any) -> None:
    """Add the options. Their fields are those of ``eval.batches.settings.BatchConfig``."""
    add = OptionAdder(group)
    add.switch("--batch", "ask through the provider's batch interface (OpenAI, Azure, Anthropic)")
    add.output_folder(
        "--batch-files",
        "write the requests into files for  vllm run-batch; started again, read its output",
    )
    add.switch("--batch-submit-only", "submit and leave: the same command collects and goes on")
    add.value(
        "--batch-options",
        "NAME=N,...",
        "limits of a file (lines, bytes, tokens), tokens under way (enqueued), seconds "
        "(poll, grace)",
    )


DESCRIPTION = """\
Ask a judge whether web agents succeeded, caused side effects or repeated themselves, and
measure the judge against expert annotations, the rule-based baseline beside it.

  trajudge judge --model gpt-4o
  trajudge judge --judge heuristic
  trajudge judge --model my-model --base-url http://127.0.0.1:8000/v1 --limit 20
"""

EPILOG = """\
exit codes: 0 done, 1 stopped at --max-cost or more failed judgments than --max-failures, 2 a
mistake in the call or its files, 130 interrupted (everything kept: the same command goes on)
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
    add = OptionAdder(group)
    add.repeated(
        "--model",
        "NAME",
        "e.g. gpt-4o, claude-..., provider/name; may be repeated",
    )
    add.repeated(
        "--judge",
        "NAME",
        "see  trajudge judges list  (default: simplified); may be repeated, and runs with "
        "every --model",
    )
    add.repeated(
        "--judge-option",
        "NAME=VALUE",
        "an option of this judge, or of the members that take it, see  "
        "trajudge judges show NAME; may be repeated",
        default=[],
    )


def ensemble_options(group: Any) -> None:
    """Add what a panel or cascade takes."""
    add = OptionAdder(group)
    add("--members", metavar="NAME[:MODEL],...", help="members of --judge panel or cascade")
    add.choice(
        "--rule",
        ("majority", "unanimous", "mean"),
        "how a panel's verdicts are combined (default: majority)",
    )
    add(
        "--quorum",
        type=count,
        metavar="N",
        help="minimum number of member verdicts (default: majority)",
    )
    add.choice(
        "--tie", ("success", "failure"), "verdict when a panel's votes tie (default: failure)"
    )


def prompt_options(group: Any) -> None:
    """Add what a judge is shown, by whose prompts."""
    add = OptionAdder(group)
    add("--captioner-model", metavar="NAME", help="describes screenshots (default: --model)")
    add("--describer-model", metavar="NAME", help="describes changes (default: --model)")
    add("--light-model", metavar="NAME", help="takes a judge's lighter stages (default: --model)")
    add.choice(
        "--representation",
        ("axtree", "screenshot", "both", "none"),
        "what the judge sees of the final page (default: the judge's own)",
    )
    add.switch("--success-last", "ask for success after the other labels")
    add.choice(
        "--prompts",
        ("trajudge", "agentrewardbench", "browser-use", "fara"),
        "our prompts (default), or the source's own, read from the installed package: "
        "agent-reward-bench (for simplified), browser-use; fara's cannot be read yet",
    )


def _data_options(group: Any) -> None:
    add = OptionAdder(group)
    add(
        "--data",
        metavar="KIND:PATH",
        help="a file or folder whose format is detected, KIND:PATH (a KIND that is unknown lists "
        "them), an installed loader or a Python file (default: "
        "the AgentRewardBench copy on this machine, else the bundled sample)",
    )
    add.labels("expert labels (default: those of the data)")
    add.file(
        "--goals", "JSON, JSON Lines or CSV of task_id and goal, for logs that do not hold them"
    )
    add.choice(
        "--split",
        ("dev", "test", "all"),
        "default: test where the annotations have splits, else all",
    )
    for name, metavar in (("benchmark", "NAME"), ("agent", "NAME"), ("task", "ID")):
        add.repeated(f"--{name}", metavar, f"only this {name}; may be repeated")
    add("--limit", type=count, metavar="N", help="at most N trajectories")
    add.switch("--stratified", "spread --limit over benchmarks and agents")
    add.switch("--strict", "stop at the first trajectory that cannot be read")


def _run_options(group: Any) -> None:
    add = OptionAdder(group)
    add(
        "--samples",
        type=samples,
        default=1,
        metavar="N",
        help="judgments per trajectory, each with the next seed (default: 1)",
    )
    add.switch("--retry-failed", "ask again where an earlier try failed")
    add(
        "--max-failures",
        type=_failures,
        default=0,
        metavar="N|N%",
        help="failed judgments that still exit with 0 (default: 0)",
    )
    add.choice(
        "--protocol",
        ("default", "agentrewardbench"),
        "what a failed judgment counts as, and how figures are rounded",
        default="default",
    )
    add.switch("--full", "show all tables and notes instead of one screen")
    add.output_folder("--out", "the run's folder (default: runs/, named by its settings)")
    add(
        "--export",
        nargs=2,
        metavar=("FORMAT", "DIR"),
        help="agentrewardbench DIR: the judgments in the published layout as well",
    )
    add.switch(
        "--export-restricted",
        "also of data whose card forbids redistribution (trajudge data sources)",
    )
    add.choice(
        "--log-format",
        ("text", "json"),
        "of progress, notes and errors on standard error; json: an object per line",
        default="text",
    )
    add(
        "--ray",
        type=count,
        metavar="N",
        help="judge with N actors of Ray, in the cluster at RAY_ADDRESS or on this machine",
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
    from trajudge.util.terminal import JsonLines  # noqa: PLC0415 - --help needs none of these

    if not isinstance(sys.stderr, JsonLines):
        sys.stderr = JsonLines(sys.stderr)


def request_of(options: argparse.Namespace) -> RunRequest:
    """Return the typed settings of parsed options, those that a parser has not at their default.
    Raises UserError."""
    from trajudge.eval.runs.plan import without_effect  # noqa: PLC0415 - --help needs none
    from trajudge.eval.runs.settings import (  # noqa: PLC0415 - --help needs none of these
        BatchConfig,
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
    for line in without_effect(judges, request.models, first, request.calls):
        sys.stderr.write(f"warning: {line}\n")
    return request
