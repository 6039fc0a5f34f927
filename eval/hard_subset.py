"""``trajudge data hard-subset ATTEMPTS.csv``: select a hard, category-balanced subset of tasks."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from trajudge.trajectories.util.exits import OK, Parser, command
from trajudge.trajectories.util.options import OptionAdder, count, read_settings, whole

COLUMNS = "agent, task_id, site, template, category, steps, success"


def parser() -> argparse.ArgumentParser:
    """Make the command's parser; the defaults are the released configuration."""
    made = Parser(
        prog="trajudge data hard-subset",
        old={"--out": "--save"},
        description="Select a hard, category-balanced subset of single-site tasks from the "
        "attempts of several agents. Append multi-site tasks yourself.",
    )
    add = OptionAdder(made)
    add("attempts", type=Path, help=f"CSV with the columns {COLUMNS}")
    add.file("--save", "CSV of all tasks, hardness, and who is selected")
    add("--hard", type=float, default=0.20, metavar="RATE", help="reference success of a hard task")
    add("--easy", type=float, default=0.85, metavar="RATE", help="of a very easy category")
    add("--cap", type=count, metavar="N", default=3, help="tasks of a category")
    add("--cap-easy", type=count, metavar="N", default=2, help="tasks of a very easy category")
    add("--min-agents", type=count, metavar="N", default=4, help="that attempted a task")
    add("--budget", type=count, metavar="N", default=30, help="step cap of the agents")
    add("--resamples", type=whole, metavar="N", default=500, help="of tasks, for validation")
    add("--seed", type=whole, default=0, metavar="N", help="seed of what is drawn (default: 0)")
    add.choice(
        "--fit",
        ("laplace", "nuts"),
        "penalised likelihood (seconds), or sampling as published (minutes; needs the extra bayes)",
        default="laplace",
    )
    add("--chains", type=count, metavar="N", default=4, help="of --fit nuts")
    add(
        "--draws",
        type=count,
        metavar="N",
        default=1000,
        help="a chain of --fit nuts, after as many of warm-up",
    )
    add.switch("--leave-one-out", "select again without each agent")
    add.switch("--full", "print all lines, not one screen")
    return made


@command(parser)
def main(options: argparse.Namespace) -> int:
    """Fit, select, validate and write; return the exit code."""
    from trajudge.eval.analysis import hard_subset  # noqa: PLC0415 - --help needs none of it

    config = read_settings(hard_subset.HardSubsetConfig, options)
    sys.stdout.write(hard_subset.hard_subset(config))
    return OK


if __name__ == "__main__":
    sys.exit(main())
