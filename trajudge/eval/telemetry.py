"""``trajudge run telemetry``: train the telemetry judge, and say what it reaches on held-out
tasks: on another split, or by cross-validation in which no task is on both sides."""

from __future__ import annotations

import argparse
import sys

from trajudge.util.commands import OK, OptionAdder, Parser, command, read_settings, whole

_DESCRIPTION = """\
Train the telemetry judge on numbers of runs (steps, tokens, seconds, errors, actions) and expert
labels, evaluate it on tasks that it was not trained on, and write it for
--judge telemetry --judge-option model=FILE.
"""


def parser() -> argparse.ArgumentParser:
    """Make the command's parser."""
    made = Parser(
        prog="trajudge run telemetry",
        description=_DESCRIPTION,
    )
    add = OptionAdder(made)
    add.value("--data", "KIND:PATH", "the trajectories (default: as trajudge judge)")
    add.labels("expert labels (default: those of the data)")
    add.choice("--train-split", ("dev", "test"), "train on this split")
    add.choice("--eval-split", ("dev", "test"), "evaluate on this split")
    add.switch("--cross-validate", "task-grouped folds over all (the default)")
    add.number("--folds", "default: 5", default=5)
    add.number("--seeds", "repetitions (default: 20)", default=20)
    add.number("--seed", "the first seed (default: 0)", whole, default=0)
    add.value(
        "--target-precision",
        "RATE",
        "the threshold aims at this precision, on training data only (default: 0.85)",
        type=float,
        default=0.85,
    )
    add.repeated("--without", "FEATURE", "leave a feature out", default=[])
    add.output_file("--save", "the model, trained on all training data")
    add.output_folder(
        "--cross-fit",
        "write a run for trajudge score in which every trajectory is judged by a model that "
        "saw nothing of its task (one division into folds, that of --seed)",
    )
    return made


@command(parser)
def main(options: argparse.Namespace) -> int:
    """Train, evaluate, print and write; return the exit code."""
    from trajudge.eval.analysis import train_telemetry as training  # noqa: PLC0415 - --help needs none of it

    training.train_telemetry(read_settings(training.TelemetryConfig, options))
    return OK


if __name__ == "__main__":
    sys.exit(main())
