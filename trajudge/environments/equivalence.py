"""Replay is pass@k where nothing varies: ``trajudge env equivalence --cases CASES``.

A scripted agent that succeeds now and then does every case several times, each time from the same
start. A replay policy that keeps k of these recordings and plays a good one back blindly reaches
what pass@k says of the agent (Statistical Precipice, remark 1 and appendix 9, arXiv 2605.08261):
shown here on real runs, each success played back in the browser.
"""

from __future__ import annotations

import argparse
import sys

from trajudge.environments.options import add_cases, add_save, add_seed
from trajudge.util.commands import OK, Parser, attempt_count, command, saved_behind_output


def parser() -> argparse.ArgumentParser:
    """Make the command's parser."""
    made = Parser(prog="trajudge env equivalence", description=__doc__)
    add_cases(made)
    made.add_argument(
        "--attempts", type=attempt_count, default=5, metavar="N", help="runs per case (default: 5)"
    )
    add_save(made, "equivalence.json")
    add_seed(made)
    return made


@command(parser)
def main(options: argparse.Namespace) -> int:
    """Compare blind replay with pass@k on real runs and write both."""
    from trajudge.environments.analysis.over_cases import over_cases  # noqa: PLC0415
    from trajudge.environments.analysis.pass_at_k import attempts, summary  # noqa: PLC0415
    from trajudge.environments.model.case import read_cases  # noqa: PLC0415
    from trajudge.environments.saving import save_result  # noqa: PLC0415
    from trajudge.util.tables import Table, print_tables  # noqa: PLC0415

    cases, tries = read_cases(options.cases), options.attempts
    tried = over_cases(
        cases, options.seed, "attempting", lambda recorder, case: attempts(recorder, case, tries)
    )
    rows = summary(tried, tries)
    content = {"rows": rows, "attempts": [attempt._asdict() for attempt in tried]}
    shown = [
        (str(row["k"]), f"{100 * row['pass_at_k']:.1f}", f"{100 * row['replay']:.1f}")
        for row in rows
    ]
    title = f"Blind replay beside pass@k, {len(cases)} cases, {tries} attempts each (%)"
    table = Table(title, ("k", "pass@k", "replay with k kept"), shown, names=1)
    with saved_behind_output() as save:
        save(save_result, options.save, content)
        print_tables([table])
    return OK


if __name__ == "__main__":
    sys.exit(main())
