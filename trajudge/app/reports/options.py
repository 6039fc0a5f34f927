"""The options of ``trajudge report``."""

from __future__ import annotations

import argparse

from trajudge.eval.score import scored_options
from trajudge.util.commands import OptionAdder, TextParser, positive, whole

_DESCRIPTION = """\
Write one HTML file about runs: the judges' precision with intervals, figures, comparisons, and the
trajectories that they got wrong, each with goal, answer, pictures and every verdict. It
opens from the disk, without scripts and without a network.

  trajudge report runs/*
  trajudge report --judgments DIR --split test --out report.html
"""


def parser() -> TextParser:
    """Make the command's parser."""
    options = TextParser(prog="trajudge report", description=_DESCRIPTION)
    OptionAdder(options).runs()
    scored_options(options.add_argument_group("what is scored"))
    _page(options.add_argument_group("the file"))
    first = "out folder judgments annotations split data show no-images redact max-size"
    return options.show_first(*first.split())


def _page(group: argparse._ArgumentGroup) -> None:
    add = OptionAdder(group)
    add.output_file("--out", "the file to write (default: report.html)")
    add.output_folder(
        "--folder",
        "write DIR/index.html with every picture as a file in DIR/img, instead of one file",
    )
    add.repeated(
        "--data",
        "KIND:PATH",
        "trajectories of the cases (default: those of the runs); may be repeated",
    )
    add.number(
        "--show",
        "trajectories with wrong verdicts that are shown, those that most judges wrongly "
        "accept first (default: 100)",
        whole,
        default=100,
    )
    add.switch("--no-images", "leave the pictures out")
    add.value(
        "--redact",
        "WHAT,...",
        "leave out goals, urls or answers, and with any of them the pictures; with goals "
        "or answers also what judges wrote, which repeats them",
        type=lambda text: tuple(part.strip() for part in text.split(",")),
    )
    add.value(
        "--max-size",
        "MB",
        "pictures are left out until the file is this small (default: 8)",
        type=positive,
        default=8.0,
    )
