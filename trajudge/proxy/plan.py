"""Show what a fault plan does in a task: ``trajudge proxy plan --faults plan.json --task ID``.

The same plan, seed and task give the same page loads in every run, on every machine.
"""

from __future__ import annotations

import argparse
import sys

from trajudge.proxy.options import (
    add_faults,
    add_horizon,
    add_seed,
    add_task,
    check_horizon,
    check_task,
    require_horizon,
)
from trajudge.util.commands import OK, Parser, command


def parser() -> argparse.ArgumentParser:
    """Make the command's parser."""
    made = Parser(prog="trajudge proxy plan", description=__doc__)
    add_faults(made, required=True)
    add_task(made)
    add_horizon(made)
    add_seed(made)
    return made


@command(parser)
def main(options: argparse.Namespace) -> int:
    """Print the page loads at which each fault of the plan fires."""
    from trajudge.proxy.plans.plan import read_plan  # noqa: PLC0415
    from trajudge.proxy.plans.schedule import Schedule  # noqa: PLC0415
    from trajudge.proxy.reporting.tables import schedule_table  # noqa: PLC0415
    from trajudge.util.tables import print_tables  # noqa: PLC0415

    check_task(options.task)
    plan = read_plan(options.faults)
    require_horizon(plan, options.horizon, options.faults)
    check_horizon(plan, options.horizon, options.faults)
    seed = plan.seed if options.seed is None else options.seed
    print_tables([schedule_table(Schedule(plan, options.task, seed, options.horizon))])
    return OK


if __name__ == "__main__":
    sys.exit(main())
