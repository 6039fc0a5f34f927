"""``trajudge data hard-subset ATTEMPTS.csv``: select a hard, category-balanced subset of tasks."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from trajudge.util.commands import (
    OK,
    OptionAdder,
    Parser,
    command,
    read_settings,
    saved_behind_output,
    whole,
)

COLUMNS = "agent, task_id, site, template, category, steps, success"


def parser() -> argparse.ArgumentParser:
    """Make the command's parser; the defaults are the released configuration."""
    made = Parser(
        prog="trajudge data hard-subset",
        description="Select a hard, category-balanced subset of single-site tasks from the "
        "attempts of several agents. Append multi-site tasks yourself.",
    )
    add = OptionAdder(made)
    add("attempts", type=Path, help=f"CSV with the columns {COLUMNS}")
    add.output_file("--save", "CSV of all tasks, hardness, and who is selected")
    add.value(
        "--hard", "RATE", "a hard task has at most this reference success", type=float, default=0.20
    )
    add.value(
        "--easy",
        "RATE",
        "a very easy category has at least this median reference success",
        type=float,
        default=0.85,
    )
    add.number("--cap", "at most N tasks of a category", default=3)
    add.number("--cap-easy", "at most N tasks of a very easy category", default=2)
    add.number("--min-agents", "only tasks that at least N agents attempted", default=4)
    add.number("--budget", "step cap of the agents", default=30)
    add.number(
        "--resamples", "resamples of the tasks for validation, at least 1", whole, default=500
    )
    add.number("--seed", "seed of what is drawn (default: 0)", whole, default=0)
    add.choice(
        "--fit",
        ("laplace", "nuts"),
        "penalised likelihood (seconds), or sampling as published (minutes; needs the extra bayes)",
        default="laplace",
    )
    add.number("--chains", "chains of --fit nuts", default=4)
    add.number("--draws", "draws per chain of --fit nuts, after as many of warm-up", default=1000)
    add.switch("--leave-one-out", "select again without each agent")
    add.switch("--full", "print all lines, not one screen")
    return made


@command(parser)
def main(options: argparse.Namespace) -> int:
    """Fit, select, validate and write; return the exit code."""
    from trajudge.eval.analysis import hard_subset  # noqa: PLC0415 - --help needs none of these
    from trajudge.util.files import save_bytes  # noqa: PLC0415

    config = read_settings(hard_subset.HardSubsetConfig, options)
    selected = hard_subset.hard_subset(config)
    with saved_behind_output() as save:
        if config.save:
            save(save_bytes, config.save, selected.tasks)
        sys.stdout.write(selected.screen)
    return OK


if __name__ == "__main__":
    sys.exit(main())
