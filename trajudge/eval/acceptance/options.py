"""The options of ``trajudge accept`` and ``trajudge run recertify``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import get_args

from trajudge.eval.acceptance.training.names import FormatName, Per
from trajudge.util.commands import OptionAdder, TextParser, whole

_ACCEPT = """\
Apply a choice of judge and threshold: write the accepted trajectories as conversations for
fine-tuning, with their provenance, and the rejected ones with the reason.

  trajudge accept --decision selections/0a1b2c3d --run runs/new --out accepted
  trajudge accept --judge webjudge-7b --threshold 1 --judgments DIR --data KIND:PATH
  trajudge accept --judge heuristic --threshold 1 --data sample --format trl-messages

Without --run and --judgments the judge is asked now: options that are not listed here are those of
trajudge judge.
"""
_FILES = """\
accepted.jsonl: a line a trajectory, {"messages": [{"role", "content"}, ...], "provenance": {...}};
one system turn, then a step: a user turn (goal, url, page), an assistant turn (<think>, <action>);
an answer that no action holds is a last turn of its own (<answer>).
rejected.jsonl: {"key", "kind", "reason", "score"}.
acceptance.json: what was applied to what, and how many ended how.
With --format a folder of its name: train and test (--test-share), README.md, the card.
"""
_RECERTIFY = """\
A decision of trajudge select holds for the agents whose runs were labelled for it. For others draw
a sample of the runs that trajudge accept took, label them in order, and test after every label:

  trajudge run recertify --decision selections/0a1b2c3d --accepted accepted --out again
  trajudge run recertify --sample again --annotations trajudge:labels.jsonl

The first call writes sample.jsonl: tasks in random order, one accepted run of each, with its
inclusion probability and weight. The second reads labels in that order, up to the first run
without one, and once the target is shown, or shown to be missed, writes decision.json for these
agents alone. It may be repeated as labels come: the error is at most 1 - confidence, however often
it is repeated. It assumes that the tasks are independent draws from those that the judge will be
used on; runs of one task may depend on each other in any way, because only one of each is labelled.
"""
_EXIT_CODES = (
    "exit codes: 0 the sample was drawn, or the target is shown; 1 it is not (yet); 2 a mistake"
)


def accept_parser() -> TextParser:
    """Make the parser of ``trajudge accept``."""
    made = TextParser(prog="trajudge accept", description=_ACCEPT, epilog=_FILES)
    add = OptionAdder(made)
    add.folder("--decision", "what trajudge select wrote")
    add.value("--judge", "NAME", "the judge, instead of a decision")
    add.value("--threshold", "T", "accept scores of at least T (a verdict: 1)", type=float)
    add("--run", type=Path, action="append", default=[], help="folder of a run; may be repeated")
    add.folder("--judgments", "in AgentRewardBench's published layout")
    add.value("--data", "KIND:PATH", "the trajectories (default: those of the run)")
    add.output_folder("--out", "default: accepted", default=Path("accepted"))
    add.output_folder("--dataset", "the accepted ones as a datasets dataset, too")
    add.choice("--page", ("pruned", "full", "none"), "accessibility tree", default="pruned")
    add.switch(
        "--without-observations",
        "also export runs with steps whose page was not recorded (their user turns are bare)",
    )
    add.file("--system", "another text of the system turn")
    add.switch("--any-benchmark", "also where the decision was not shown to hold")
    add.choice(
        "--agents",
        ("same", "any"),
        "runs of agents that the decision was not made on: same rejects them, any takes them "
        "(default: take them, and ask for a sample to recertify)",
    )
    add.switch(
        "--assume-same-judge",
        "where the decision or the run does not record the judge's settings: they are the "
        "same (what both record is compared all the same)",
    )
    add.file("--held-out", "reject runs on the tasks that it lists")
    _training_options(made.add_argument_group("training data"))
    return made.show_first(
        *("decision", "run", "data", "judge", "threshold", "out", "format", "per", "per-task"),
        "with-screenshots",
    )


def _training_options(group: argparse._ArgumentGroup) -> None:
    add = OptionAdder(group)
    formats = get_args(FormatName)
    about = f"also write rows in a trainer's layout: {', '.join(formats)}"
    add.choice("--format", formats, about, metavar="NAME")
    add.choice("--per", get_args(Per), "a row is a trajectory or a step")
    add.switch("--with-screenshots", "rows hold the screenshots of the pages", default=None)
    add.number("--per-task", "at most N accepted and N rejected runs of a task")
    add.value("--test-share", "SHARE", "of the tasks, in a file of their own", type=float)
    add.value(
        "--rejected-below",
        "T",
        "examples of failure score below T (default: the threshold)",
        type=float,
    )
    add.number("--seed", "seed of the draws (default: 0)", whole)


def recertify_parser() -> argparse.ArgumentParser:
    """Make the parser of ``trajudge run recertify``."""
    made = TextParser(prog="trajudge run recertify", description=_RECERTIFY, epilog=_EXIT_CODES)
    add = OptionAdder(made)
    add.folder("--decision", "what trajudge select wrote")
    add.folder("--accepted", "what trajudge accept wrote")
    add.repeated(
        "--agent",
        "NAME",
        "certify for this agent; may be repeated (default: those the decision does not know)",
    )
    add.number("--size", "runs to label (default: planned, power 0.8)")
    add.number("--seed", "seed of the sample (default: 0)", whole, default=0)
    add.output_folder("--out", "a new folder for the sample")
    add.folder("--sample", "test this sample with --annotations")
    add.labels("labels of the sampled runs")
    return made
