"""``trajudge telemetry``: train the telemetry judge, and say what it reaches on held-out
tasks: on another split, or by cross-validation in which no task is on both sides."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from trajudge.trajectories.util.exits import DONE, user_errors

if TYPE_CHECKING:
    from trajudge.eval.analysis.held_out import FeatureTable

_DESCRIPTION = """\
Train the telemetry judge on numbers of runs (steps, tokens, seconds, errors, actions) and expert
labels, evaluate it on tasks that it was not trained on, and write it for
--judge telemetry --judge-option model=FILE.
"""


def parser() -> argparse.ArgumentParser:
    """The command's options."""
    made = argparse.ArgumentParser(prog="trajudge telemetry", description=_DESCRIPTION)
    add = made.add_argument
    add("--data", metavar="KIND:PATH", help="the trajectories (default: as eval.judge)")
    add("--annotations", metavar="KIND:PATH", help="expert labels (default: those of the data)")
    add("--train", choices=("dev", "test"), help="train on this split and apply to --apply")
    add("--apply", choices=("dev", "test"), help="evaluate on this split")
    add("--cross-validate", action="store_true", help="task-grouped folds over all (the default)")
    add("--folds", type=int, default=5, metavar="N", help="default: 5")
    add("--seeds", type=int, default=20, metavar="N", help="repetitions (default: 20)")
    add("--seed", type=int, default=0, metavar="N", help="where they begin (default: 0)")
    add(
        "--target-precision",
        type=float,
        default=0.85,
        metavar="P",
        help="the threshold aims at this precision, on training data only (default: 0.85)",
    )
    add("--without", action="append", default=[], metavar="FEATURE", help="leave a feature out")
    add("--out", type=Path, metavar="FILE", help="the model, trained on all training data")
    add(
        "--cross-fit",
        type=Path,
        metavar="DIR",
        help="write a run for trajudge score in which every trajectory is judged by a model that "
        "saw nothing of its task (one division into folds, that of --seed)",
    )
    return made


@user_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Train, evaluate, print, write; the exit code."""
    options = parser().parse_args(arguments)
    from trajudge.judges.methods.telemetry_judge import FEATURES  # noqa: PLC0415 - --help needs none of these
    from trajudge.trajectories.util.errors import UserError  # noqa: PLC0415

    for name in options.without:
        if name not in FEATURES:
            raise UserError(f"--without {name}: no such feature; there are {', '.join(FEATURES)}")
    if bool(options.train) != bool(options.apply) or (options.train and options.cross_validate):
        raise UserError("--train goes with --apply, and neither with --cross-validate")
    if options.train and options.train == options.apply:
        raise UserError(f"--train {options.train} --apply {options.apply}: name two splits")
    if options.folds < 2 or options.seeds < 1:
        raise UserError("--folds is at least 2, --seeds at least 1")
    _run(options, [name for name in FEATURES if name not in options.without])
    return DONE


def _run(options: argparse.Namespace, names: Sequence[str]) -> None:
    import numpy as np  # noqa: PLC0415

    from trajudge.eval.analysis.cross_fit import write_cross_fitted  # noqa: PLC0415
    from trajudge.eval.analysis.held_out import evaluate, read_labelled, rendered  # noqa: PLC0415
    from trajudge.judges.methods.telemetry_training import fit  # noqa: PLC0415
    from trajudge.judges.training_set import key_hash  # noqa: PLC0415

    data = read_labelled(options.data, options.annotations)
    training = data.split(options.train) if options.train else data
    _require_both_kinds(training, options.folds)
    found = evaluate(
        training,
        data.split(options.apply) if options.apply else None,
        seeds=range(options.seed, options.seed + options.seeds),
        folds=options.folds,
        names=names,
        target_precision=options.target_precision,
    )
    sys.stdout.write(rendered(found))
    if options.cross_fit:
        write_cross_fitted(options.cross_fit, data, options, names)
        sys.stderr.write(f"the cross-fitted verdicts are in {options.cross_fit}\n")
    if options.out:
        model = fit(
            training.rows,
            training.labels,
            training.groups,
            np.random.default_rng(options.seed),
            names=names,
            target_precision=options.target_precision,
        )
        trained = tuple(sorted(key_hash(key) for key in training.keys))
        model = model.model_copy(update={"training_keys": trained})
        options.out.write_text(model.model_dump_json(indent=2) + "\n", encoding="utf-8")
        sys.stderr.write(f"the model is in {options.out}\n")


def _require_both_kinds(training: FeatureTable, folds: int) -> None:
    from trajudge.trajectories.util.errors import UserError  # noqa: PLC0415

    for kind, name in ((True, "successful"), (False, "unsuccessful")):
        tasks = len(set(training.groups[training.labels == kind]))
        if tasks < 2 * folds:
            raise UserError(
                f"{tasks} tasks with a run labelled {name} are too few to train on in {folds} "
                "folds: name more --data, or fewer --folds"
            )


if __name__ == "__main__":
    sys.exit(main())
