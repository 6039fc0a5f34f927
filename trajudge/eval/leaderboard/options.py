"""The options of ``trajudge leaderboard``."""

from __future__ import annotations

import argparse
from pathlib import Path

from trajudge.trajectories.util.exits import TextParser
from trajudge.trajectories.util.options import OptionAdder

_DESCRIPTION = """\
Compare judges: precision with intervals, recall, F1, kappa with experts, cost per 1,000 judgments,
n and coverage on every benchmark, and ranks, shared by judges that do not differ significantly.
Writes a page (index.html) that needs no network, and leaderboard.csv. No model is asked.

  trajudge leaderboard runs/* --out board
  trajudge leaderboard runs/* --published DIR     # beside what is published
  trajudge leaderboard --data sample              # the judges that need no model

A submission is the folder of a run; one that  trajudge run check  refuses is left out.
"""


def parser() -> argparse.ArgumentParser:
    """Make the command's parser."""
    made = TextParser(prog="trajudge leaderboard", description=_DESCRIPTION)
    add = OptionAdder(made)
    add.runs()
    add.folder(
        "--published",
        "folder with data sets whose verdicts are published, each in a folder of its own",
    )
    add.repeated(
        "--data",
        "KIND:PATH",
        "labelled trajectories, or sample: run the judges that need no model on them; may be "
        "repeated",
    )
    add.labels(
        "expert labels that the runs' must agree with, or those of --data (default: the runs' "
        "own, and those beside the data)",
    )
    add.choice(
        "--split",
        ("dev", "test", "all"),
        "of the annotations that have splits (default: test)",
        default="test",
    )
    add.output_folder("--out", "default: board/", default=Path("board"))
    return made
