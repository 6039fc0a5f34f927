"""The options of ``trajudge audit``."""

from __future__ import annotations

import argparse
from pathlib import Path

from trajudge.trajectories.util.exits import TextParser

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
        old={"--rule": "--evaluator", "--tasks": "--task-tables"},
    )
    add = made.add_argument
    add("runs", nargs="*", type=Path, metavar="RUN", help="folder of a run")
    add("--judgments", type=Path, metavar="DIR", help="judgments in the published layout")
    add("--annotations", metavar="KIND:PATH", help="expert labels (default: those of the run)")
    add("--split", choices=("dev", "test", "all"), default="all", help="of the annotations")
    add("--evaluator", metavar="NAME", help="audit this judge instead of the official reward")
    add(
        "--data",
        metavar="KIND:PATH",
        help="trajectories, for goals and last steps of the cases (default: those of the runs)",
    )
    add("--task-tables", type=Path, metavar="DIR", help="folder with webarena.csv and the like")
    add("--templates", type=Path, metavar="FILE", help="WebArena's tasks, for their templates")
    add("--full", action="store_true", help="print all tables and sentences instead of one screen")
    add("--out", type=Path, default=Path("audit"), metavar="DIR", help="default: audit/")
    return made
