"""``trajudge leaderboard``: judges compared, as one page and one CSV."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from trajudge.util.commands import (
    FAILURES,
    OK,
    OptionAdder,
    TextParser,
    command,
    read_settings,
    saved_behind_output,
)
from trajudge.util.errors import UserError

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
    add.task_id()
    add.output_folder("--out", "default: board/", default=Path("board"))
    return made


@command(parser)
def main(options: argparse.Namespace) -> int:
    """Write the leaderboard that the command line names; the exit code is 1 where a run was left
    out."""
    if not (options.runs or options.published or options.data):
        raise UserError(
            "nothing to compare: give folders of runs, --published DIR or --data KIND:PATH"
        )
    from trajudge.eval.leaderboard.board import LeaderboardConfig, gather_board  # noqa: PLC0415
    from trajudge.eval.leaderboard.page import PAGE, leaderboard_screen, write_board  # noqa: PLC0415

    config = read_settings(LeaderboardConfig, options)
    board = gather_board(config)
    with saved_behind_output() as save:
        save(write_board, board, config.out)
        sys.stdout.write(leaderboard_screen(board, config.out / PAGE))
    return FAILURES if board.left_out else OK


if __name__ == "__main__":
    sys.exit(main())
