"""``trajudge leaderboard``: judges side by side, as one page and one CSV."""

from __future__ import annotations

import argparse
import sys

from trajudge.eval.leaderboard.options import parser
from trajudge.trajectories.util.errors import UserError
from trajudge.trajectories.util.exits import FAILURES, OK, command, saved_behind_output
from trajudge.trajectories.util.options import read_settings


@command(parser)
def main(options: argparse.Namespace) -> int:
    """Write the leaderboard that the command line names; the exit code is 1 where a run was left
    out."""
    if not (options.runs or options.published or options.data):
        raise UserError(
            "nothing to compare: give folders of runs, --published DIR or --data KIND:PATH"
        )
    from trajudge.eval.leaderboard.gather import gather_board  # noqa: PLC0415 - --help needs none
    from trajudge.eval.leaderboard.output.page import PAGE, write_board  # noqa: PLC0415
    from trajudge.eval.leaderboard.output.screen import leaderboard_screen  # noqa: PLC0415
    from trajudge.eval.leaderboard.settings import LeaderboardConfig  # noqa: PLC0415

    config = read_settings(LeaderboardConfig, options)
    board = gather_board(config)
    with saved_behind_output() as save:
        save(write_board, board, config.out)
        sys.stdout.write(leaderboard_screen(board, config.out / PAGE))
    return FAILURES if board.left_out else OK


if __name__ == "__main__":
    sys.exit(main())
