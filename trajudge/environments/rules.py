"""Compare rules with the state: ``trajudge env rules RECORDED... --cases CASES``.

Every recorded run is judged by the specification that its case has in WebArena Verified's form
(answer, network, state) and compared with the label that follows from the state: false accepts and
false rejects, precision and recall by kind of check, in the sound reading and in that of the
released package. An agent's prose is read as the protocol's response first. What differs is written
one by one, with the rule's reasons.
"""

from __future__ import annotations

import argparse
import sys

from trajudge.environments.options import add_cases, add_save
from trajudge.util.commands import OK, OptionAdder, Parser, command, saved_behind_output


def parser() -> argparse.ArgumentParser:
    """Make the command's parser."""
    made = Parser(prog="trajudge env rules", description=__doc__)
    OptionAdder(made).folders("folders", "RECORDED", "folder that env record wrote", nargs="+")
    add_cases(made)
    add_save(made, "rules.json")
    made.add_argument("--full", action="store_true", help="print all tables, not one screen")
    return made


@command(parser)
def main(options: argparse.Namespace) -> int:
    """Compare rules with the state, show the rates and write them."""
    from trajudge.environments.model.case import read_cases  # noqa: PLC0415 - --help needs none
    from trajudge.environments.specifications.comparing import (  # noqa: PLC0415
        by_configuration,
        compare,
        recorded_runs,
    )
    from trajudge.environments.specifications.report import report, screen, tables  # noqa: PLC0415
    from trajudge.rules.output import write_json  # noqa: PLC0415
    from trajudge.util.tables import print_tables  # noqa: PLC0415

    cases = by_configuration(read_cases(options.cases))
    content = report(compare(recorded_runs(options.folders, cases)))
    with saved_behind_output() as save:
        save(write_json, options.save, content)
        if options.full:
            print_tables(tables(content))
        else:
            rest = f"every difference, with reasons: {options.save}"
            sys.stdout.write(screen(content, rest=rest))
    return OK


if __name__ == "__main__":
    sys.exit(main())
