"""``trajudge score RUN…``: score judges from the folders of their runs, without a call."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from trajudge.judges.calls.options import call_options
from trajudge.util.commands import OptionAdder, TextParser, command, read_settings, whole

_DESCRIPTION = """\
Score runs, or published judgments, again without a call: every rate with its interval, judges
against each other, tables as in the paper, plots, and the cases that a judge got wrong.

  trajudge score runs/*
  trajudge score --judgments DIR --split test --protocol agentrewardbench --table 1
  trajudge score runs/* --ranks --html ranks.html
"""

PAPER_TABLES = (1, 2, 3, 6, 7, 8)

"""The tables of AgentRewardBench's paper that a run's scores fill."""


def parser() -> argparse.ArgumentParser:
    """Make the command's parser."""
    options = TextParser(prog="trajudge score", description=_DESCRIPTION)
    OptionAdder(options).runs()
    group = options.add_argument_group("what is scored")
    scored_options(group)
    _only_here(group)
    _output(options.add_argument_group("output"))
    _errors(options.add_argument_group("wrong verdicts, and how --explain calls its model"))
    first = "judgments annotations split ranks checks full format json plots mismatches"
    return options.show_first(*first.split())


def scored_options(group: Any) -> None:
    """Add the options that say what is scored, and how, to a group of them."""
    add = OptionAdder(group)
    add.folder("--judgments", "judgments in AgentRewardBench's published layout")
    add.switch(
        "--no-index",
        "read every file of --judgments; without it what is needed of them is kept in the "
        "user's cache and only changed files are read again",
    )
    add.labels(
        "expert labels (default: those of the run; for --judgments the installed "
        "package agent-reward-bench)",
    )
    add.choice("--split", ("dev", "test", "all"), "of the annotations", default="all")
    add.task_id()
    add.choice(
        "--question",
        ("success", "process"),
        "process: whether the run was sound on its way, with the faults that judges find and "
        "place (default: success, or what the judges answer)",
    )
    add.choice(
        "--missing",
        ("negative", "exclude", "agentrewardbench"),
        "what a failed judgment counts as (default: negative, not accepted)",
    )
    add.choice(
        "--protocol",
        ("default", "agentrewardbench"),
        "agentrewardbench: the paper's arithmetic; implies its --missing (default: the run's)",
    )
    add.choice(
        "--training-set",
        ("exclude", "include"),
        "trajectories that a judge was trained on: left out of its metrics and counted in its "
        "coverage, or scored with a warning (default: exclude)",
        default="exclude",
    )
    add.choice(
        "--baselines",
        ("auto", "on", "off"),
        "score trivial baselines (always-fail, claim-of-success, tfidf-answer, telemetry) "
        "beside the judges; auto: where there are labels and the trajectories are on this machine "
        "and below 512 MiB (default: auto)",
        default="auto",
    )


def _only_here(group: Any) -> None:
    add = OptionAdder(group)
    add.switch(
        "--transfer",
        "leave one benchmark out: baselines that are trained, and judges and thresholds that "
        "are chosen, on the other benchmarks, scored on each",
    )
    add.choice("--by", ("agent",), "agent: also agent by agent")
    add.choice(
        "--compare",
        ("overall", "benchmark"),
        "judges against each other over all benchmarks, or also benchmark by benchmark",
        default="overall",
    )
    add.number(
        "--resamples",
        "0: judges are not compared; other numbers change nothing today (default: 2000)",
        whole,
        default=2_000,
    )
    add.number(
        "--seed",
        "of the baselines' folds; no interval depends on it (default: 0)",
        whole,
        default=0,
    )


def add_format(group: Any, shown: str) -> None:
    """Add the option that says how tables are written."""
    group.add_argument(
        "--format",
        choices=("table", "csv", "markdown", "latex"),
        default="table",
        help=f"of the {shown} (default: table)",
    )


def _output(group: Any) -> None:
    add = OptionAdder(group)
    add(
        "--table",
        action="append",
        type=int,
        choices=PAPER_TABLES,
        help="print this table of the paper instead of all, a long one whole with --full; may be "
        "repeated",
    )
    add.switch("--full", "print all tables and notes instead of one screen")
    add.switch(
        "--ranks",
        "rank the judges, with ties; runs with an error (--checks) are left out (exit code 1)",
    )
    add.output_file("--html", "write --ranks as one page")
    add.switch(
        "--checks",
        "only list the reasons against comparing the runs",
    )
    add_format(group, "tables")
    instead = OptionAdder(group.add_mutually_exclusive_group())
    instead.switch("--csv", "print results.csv instead of tables")
    instead.switch("--json", "print results.json instead of tables")
    add.choice(
        "--calibration",
        ("auto", "isotonic", "platt", "log-odds", "verdict"),
        "fit judges' scores, or verdicts, to the labels on the dev split and show their "
        "reliability on test; auto takes what the split is large enough for",
    )
    add.output_file("--calibration-out", "write map and reliability as JSON")
    add.output_folder("--plots", "write plots, PNG and SVG")
    add.output_file("--submission", "write the leaderboard's fields, hashed")


def _errors(group: Any) -> None:
    add = OptionAdder(group)
    add.output_file(
        "--mismatches",
        "write false positives and negatives with goal, last steps and reasoning (JSON Lines)",
    )
    add.repeated(
        "--data",
        "KIND:PATH",
        "trajectories of --mismatches and --baselines (default: those of the runs); may be "
        "repeated",
    )
    add.value("--explain", "MODEL", "sort --mismatches by the paper's kinds with this model")
    call_options(group, "adapter", "base-url", "script", "prices", "max-cost", "cache")


@command(parser)
def main(options: argparse.Namespace) -> int:
    """Score what the command line names; the exit code."""
    from trajudge.util.errors import UserError  # noqa: PLC0415 - --help needs none of these

    if not options.runs and options.judgments is None:
        raise UserError("nothing to score: give the folder of a run, or --judgments DIR")
    if options.explain and options.mismatches is None:
        raise UserError("--explain sorts wrong verdicts: name their file with --mismatches FILE")
    for name in ("adapter", "base_url", "script"):
        if getattr(options, name) and not options.explain:
            option = f"--{name.replace('_', '-')}"
            raise UserError(
                f"{option} is for the model of --explain: give --explain MODEL, or leave it out"
            )
    from trajudge.eval.rescoring import report  # noqa: PLC0415
    from trajudge.eval.runs.settings import ScoreConfig  # noqa: PLC0415
    from trajudge.judges.calls.settings import CallConfig  # noqa: PLC0415

    calls = read_settings(CallConfig, options, seed=0)
    return report(read_settings(ScoreConfig, options, calls=calls))


if __name__ == "__main__":
    sys.exit(main())
