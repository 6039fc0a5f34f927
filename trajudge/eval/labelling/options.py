"""The options of ``trajudge label build``."""

from __future__ import annotations

import argparse
from pathlib import Path

from trajudge.eval.score import add_format
from trajudge.util.commands import OptionAdder, TextParser, whole

_DESCRIPTION = """\
Draw a queue of trajectories to label, each with a known inclusion probability, and show before it
is written how narrow the interval of each judge's precision will be at this budget, beside that of
a simple random sample.

  trajudge label build runs/* --strategy ppi --budget 150 --out queue
  trajudge label build runs/* --budget 150 --dry-run
"""
STRATEGIES = ("random", "stratified", "disagreement", "low-confidence", "ppi", "audit", "cascade")
QUESTIONS = ("success", "side_effect", "repetition", "optimality")


def queue_parser(command: str, description: str) -> argparse.ArgumentParser:
    """Make the parser of a command on a queue."""
    made = TextParser(prog=f"trajudge label {command}", description=description)
    made.add_argument("queue", type=Path, metavar="QUEUE", help="folder of a queue")
    return made


def add_stage(parser: argparse.ArgumentParser) -> None:
    """Add ``--stage``, of the labels that a command reads."""
    parser.add_argument(
        "--stage",
        choices=("blind", "informed"),
        default="blind",
        help="the labels before, or after, the verdicts were shown (default: blind)",
    )


def build_parser() -> argparse.ArgumentParser:
    """Make the command's parser."""
    options = TextParser(prog="trajudge label build", description=_DESCRIPTION)
    OptionAdder(options).runs()
    _draw(options.add_argument_group("the draw"))
    _queue(options.add_argument_group("the queue"))
    add_format(options, "table")
    first = "strategy budget double out data annotations gold questions seed dry-run"
    return options.show_first(*first.split())


def _draw(group: argparse._ArgumentGroup) -> None:
    add = OptionAdder(group)
    add.choice(
        "--strategy",
        STRATEGIES,
        "what is drawn more often: ppi narrows the judges' intervals most, audit finds errors "
        "of the rule, cascade decides what trajudge select tries (default: random)",
        default="random",
    )
    add.file("--candidates", "the frozen plan of trajudge select, for --strategy cascade")
    add.number("--budget", "trajectories (default: 100)", default=100)
    add.value(
        "--double",
        "SHARE",
        "share that two people label, for the agreement (default: 0.2)",
        type=float,
        default=0.2,
    )
    add.folder("--judgments", "judgments in the published layout")
    add.value(
        "--filter",
        "TERMS",
        "draw only from what a filter of the table of judgments keeps, such as 'wrong:fp'; "
        "estimates then speak of these trajectories alone",
    )
    add.labels(
        "labels that exist already, of other or the same trajectories, to predict from",
    )
    add.number("--seed", "of the draw (default: 0)", whole, default=0)
    add.switch("--dry-run", "show the expected widths and write nothing")


def _queue(group: argparse._ArgumentGroup) -> None:
    add = OptionAdder(group)
    add.output_folder("--out", "folder of the queue (default: queue)", default=Path("queue"))
    add.repeated(
        "--data", "KIND:PATH", "the trajectories (default: those of the runs); may be repeated"
    )
    add.value("--gold", "KIND:PATH", "known labels, for hidden checks among the items")
    add.value(
        "--gold-share",
        "SHARE",
        "hidden checks per drawn trajectory (default: 0.05)",
        type=float,
        default=0.05,
    )
    add(
        "--questions",
        nargs="+",
        choices=QUESTIONS,
        default=list(QUESTIONS),
        metavar="QUESTION",
        help=f"what is asked: {', '.join(QUESTIONS)} (default: all)",
    )
    add.switch(
        "--informed",
        "after each submission show the verdicts and ask again; kept apart from the label",
    )
    add.file("--guidelines", "Markdown shown beside the form")
