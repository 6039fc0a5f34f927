"""Success of recorded agents: ``trajudge env results RECORDED... --cases CASES``.

Success by agent, the mean over applications of the mean over their scenarios, with the hierarchical
bootstrap (Statistical Precipice, section 4.3, arXiv 2605.08261): scenarios, levels of the axes and
runs are resampled, the applications stay fixed. Also success by level, application and difficulty
dimension, how far each axis moves it (matched pairs, section 16 there), turns and cost. Runs whose
success is ambiguous are left out and counted. A folder or run that is given twice is refused.
"""

from __future__ import annotations

import argparse
import sys

from trajudge.environments.options import add_cases, add_save, add_seed
from trajudge.util.commands import OK, OptionAdder, Parser, command, saved_behind_output


def parser() -> argparse.ArgumentParser:
    """Make the command's parser."""
    made = Parser(prog="trajudge env results", description=__doc__)
    OptionAdder(made).folders("folders", "RECORDED", "folder that env record wrote", nargs="+")
    add_cases(made)
    add_save(made, "results.json")
    made.add_argument("--full", action="store_true", help="print all tables, not one screen")
    add_seed(made)
    return made


@command(parser)
def main(options: argparse.Namespace) -> int:
    """Show the success of recorded agents and write it."""
    from trajudge.environments.analysis.agent_results import results, without_success  # noqa: PLC0415
    from trajudge.environments.analysis.agent_tables import (  # noqa: PLC0415
        METHOD,
        agent_notes,
        screen,
        tables,
    )
    from trajudge.environments.analysis.outcomes import read_outcomes  # noqa: PLC0415
    from trajudge.environments.saving import save_result  # noqa: PLC0415
    from trajudge.util.tables import print_tables  # noqa: PLC0415
    from trajudge.util.terminal import one_line  # noqa: PLC0415

    outcomes = read_outcomes(options.folders, options.cases)
    content = results(outcomes, options.seed)
    notes = [*without_success(outcomes), *agent_notes(content)]
    with saved_behind_output() as save:
        save(save_result, options.save, content)
        if options.full:
            print_tables(tables(content))
            sys.stdout.writelines(f"note: {one_line(note)}\n" for note in (METHOD, *notes))
        else:
            rest = f"By group, by axis and in pairs: --full; everything is in {options.save}"
            sys.stdout.write(screen(content, notes, rest=rest))
    return OK


if __name__ == "__main__":
    sys.exit(main())
