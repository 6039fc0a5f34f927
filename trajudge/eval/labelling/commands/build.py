"""``trajudge label build``: draw a queue of trajectories to label."""

from __future__ import annotations

import argparse
import sys
from shlex import quote

from trajudge.eval.labelling.options import build_parser
from trajudge.util.commands import OK, command


def parser() -> argparse.ArgumentParser:
    """Build the command's options."""
    return build_parser()


@command(parser)
def main(options: argparse.Namespace) -> int:
    """Draw what the command line names and return the exit code."""
    from trajudge.eval.labelling.building import hidden_checks, plan_queue, write_queue  # noqa: PLC0415 - --help needs none of these
    from trajudge.eval.labelling.results import expected_table  # noqa: PLC0415
    from trajudge.eval.labelling.settings import BuildConfig  # noqa: PLC0415
    from trajudge.util.commands import read_settings  # noqa: PLC0415
    from trajudge.util.tables import render  # noqa: PLC0415
    from trajudge.util.terminal import count_of  # noqa: PLC0415

    config = read_settings(BuildConfig, options)
    plan = plan_queue(config)
    twice, drawn = sum(plan.twice), len(plan.places)
    sys.stdout.write(render([expected_table(list(plan.expected), drawn)], options.format))
    sys.stdout.write(
        f"{drawn:,} of {len(plan.frame.keys):,} trajectories, {twice:,} of them labelled twice\n"
    )
    if config.dry_run:
        sys.stdout.write("nothing written (--dry-run)\n")
        return OK
    items = write_queue(plan, config)
    made, wanted = items - drawn, hidden_checks(config, drawn)
    fewer = f" (not {wanted:,}: --gold labels no more trajectories)" if made < wanted else ""
    checks = f", {count_of(made, 'hidden check')}{fewer}" if made else ""
    sys.stdout.write(
        f"wrote {config.out}{checks}; next:  trajudge label {quote(str(config.out))}\n"
    )
    return OK


if __name__ == "__main__":
    sys.exit(main())
