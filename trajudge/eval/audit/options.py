"""The options of ``trajudge audit``."""

from __future__ import annotations

import argparse
from pathlib import Path

from trajudge.trajectories.util.exits import TextParser
from trajudge.trajectories.util.options import OptionAdder

_DESCRIPTION = """\
Find where a rule-based evaluator is wrong, and what that changes. Compares the official rewards
(or, with --evaluator, a judge's verdicts) of runs or published judgments with expert labels and
with the judges.

  trajudge audit runs/*
  trajudge audit --judgments DIR --split test --templates test.raw.json
"""


def parser() -> argparse.ArgumentParser:
    """Make the command's parser."""
    made = TextParser(
        prog="trajudge audit",
        description=_DESCRIPTION,
    )
    add = OptionAdder(made)
    add.runs()
    add.folder("--judgments", "judgments in the published layout")
    add.value("--annotations", "KIND:PATH", "expert labels (default: those of the run)")
    add.choice("--split", ("dev", "test", "all"), "of the annotations", default="all")
    add.value("--evaluator", "NAME", "audit this judge instead of the official reward")
    add.value(
        "--data",
        "KIND:PATH",
        "trajectories, for goals and last steps of the cases (default: those of the runs)",
    )
    add.folder("--task-tables", "folder with webarena.csv and the like")
    add.file("--templates", "WebArena's tasks, for their templates")
    add.switch("--full", "print all tables and sentences instead of one screen")
    add.output_folder("--out", "default: audit/", default=Path("audit"))
    return made
