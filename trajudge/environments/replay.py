"""Blind replay: ``trajudge env replay --cases CASES --save FILE``.

Records the oracle on each case and plays its actions back, word for word and without looking, on
the same configuration and on ones in which a single axis or every axis differs. A static
environment gives such an agent its pass@k (Statistical Precipice, section 2.1 and appendix 9,
arXiv 2605.08261); one that varies must not. "same run" repeats the run with its operation codes;
"same" is a new run with other codes.
"""

from __future__ import annotations

import argparse
import sys

from trajudge.environments.options import add_cases, add_save, add_seed
from trajudge.util.commands import OK, Parser, command, saved_behind_output


def parser() -> argparse.ArgumentParser:
    """Make the command's parser."""
    made = Parser(prog="trajudge env replay", description=__doc__)
    add_cases(made)
    add_save(made, "replay.json")
    add_seed(made)
    return made


@command(parser)
def main(options: argparse.Namespace) -> int:
    """Replay recorded actions blindly and write the success rates."""
    from trajudge.environments.analysis.blind_replay import replay, summary, table  # noqa: PLC0415
    from trajudge.environments.analysis.over_cases import over_cases  # noqa: PLC0415
    from trajudge.environments.model.case import read_cases  # noqa: PLC0415
    from trajudge.environments.saving import save_result  # noqa: PLC0415
    from trajudge.util.tables import print_tables  # noqa: PLC0415

    outcomes = over_cases(read_cases(options.cases), options.seed, "replaying", replay)
    rows = summary(outcomes)
    content = {"conditions": rows, "outcomes": [outcome._asdict() for outcome in outcomes]}
    with saved_behind_output() as save:
        save(save_result, options.save, content)
        print_tables([table(rows)])
    return OK


if __name__ == "__main__":
    sys.exit(main())
