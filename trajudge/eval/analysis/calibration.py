"""Calibration of judges' scores: fitted on the dev split, measured on the test split.

``trajudge score --calibration METHOD`` shows it; what it writes holds the fitted map, which
``read_calibration`` gives back for later scores.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from trajudge.annotations.model import Labels
from trajudge.eval.reporting.sentences import percent, with_limits
from trajudge.eval.scoring.observations import Observations
from trajudge.eval.select.binding import JudgeConfiguration, configuration_of_run
from trajudge.eval.store.run_folder import MANIFEST, read_manifest
from trajudge.stats.calibration import (
    FittedMap,
    Method,
    Reliability,
    closer_sigmoid,
    fit_calibration,
    reliability,
)
from trajudge.trajectories.model import Record
from trajudge.util.errors import UserError
from trajudge.util.files import read_utf8, save_bytes
from trajudge.util.tables import Table

AUTO = "auto"
# Isotonic regression of fewer dev trajectories, or of so few of a class, fits steps to noise.
ENOUGH, ENOUGH_OF_A_CLASS = 200, 30

_FIRST_SCREEN = 4  # judges
_BRIEF = (
    *("calibrated on test", "map", "fitted on", "error before", "after"),
    *("Brier before", "after", "n"),
)
_HEAD = ("scores", "bin", "n", "tasks", "mean score", "successful [95 %]")


class Bin(Record):
    """Trajectories whose score lies in [``low``, ``high``), the last bin with its end: their mean
    score and the share of successes, with 95 % limits over tasks (None: of one task); how many of
    them the judge's own verdict accepts (None: not recorded)."""

    low: float
    high: float
    n: int
    tasks: int
    mean_score: float
    rate: float
    rate_low: float | None
    rate_high: float | None
    accepted: int | None = None


class ReliabilityTable(Record):
    """The ``bins`` that have a trajectory, and the error over all."""

    n: int
    calibration_error: float
    brier: float
    bins: tuple[Bin, ...]


class CalibrationMap(Record):
    """A fitted map, as ``stats.calibration.FittedMap`` has it."""

    method: Method
    scores: tuple[float, ...] = ()
    values: tuple[float, ...] = ()
    slope: float = 0.0
    intercept: float = 0.0

    def fitted(self) -> FittedMap:
        """Convert the stored fields to the map itself, to call with scores."""
        return FittedMap(**self.model_dump())


class Calibration(Record):
    """One judge's: fitted on ``fitted_on`` dev trajectories (``left_out`` others share a task with
    the test split), measured on the test split before (``raw``) and after (``calibrated``).
    ``configuration`` is the judge's as its run records it, None of published judgments."""

    judge: str
    map: CalibrationMap
    fitted_on: int
    left_out: int
    raw: ReliabilityTable
    calibrated: ReliabilityTable
    configuration: JudgeConfiguration | None = None


class Calibrations(Record):
    """What ``--calibration-out`` writes."""

    calibrations: tuple[Calibration, ...]


def calibrate(
    observed: Mapping[str, Observations], labels: Labels, method: Method | Literal["auto"]
) -> list[Calibration]:
    """Fit a map for every judge, from what it said of success. ``auto`` takes isotonic regression
    where the dev split is large, else the closer sigmoid, and the verdicts of a judge that gives no
    scores; the other methods leave such a judge out.

    Raises UserError where no judge has scores, or the labels no dev and test split to use.
    """
    calibrations = []
    for judge, seen in sorted(observed.items()):
        scored = seen.at(seen.answered & ~np.isnan(seen.scores))
        chosen: Method | Literal["auto"] = method
        if method == "verdict" or (method == AUTO and not len(scored)):
            verdicts, chosen = seen.at(seen.answered), "verdict"
            scored = replace(verdicts, scores=verdicts.predictions.astype(float))
        if len(scored):
            calibrations.append(_calibrate(judge, scored, labels, chosen))
    if not calibrations:
        raise UserError(
            "--calibration: no judge here gives scores: score runs of a judge that does, such as "
            "logprob, webjudge or rubric, or take the verdicts with --calibration auto"
        )
    return calibrations


def _calibrate(
    judge: str, seen: Observations, labels: Labels, method: Method | Literal["auto"]
) -> Calibration:
    split = np.array([labels[key].split or "" for key in seen.reference.keys.at(seen.index)])
    test = seen.at(split == "test")
    shared = (split == "dev") & np.isin(seen.task, test.task)
    dev = seen.at((split == "dev") & ~shared)
    if not len(dev) or not len(test):
        raise UserError(
            f"--calibration: {judge} has {len(dev)} scored trajectories in the dev split and "
            f"{len(test)} in the test split, where it is fitted on dev and measured on test: "
            f"{_how_to_have_both(split, is_shared=bool(shared.any()))}"
        )
    if dev.labels.all() or not dev.labels.any():
        raise UserError(
            f"--calibration: the dev split of {judge} has only "
            f"{'successes' if dev.labels.all() else 'failures'}: nothing to fit"
        )
    if method == "auto":
        fewest = min(int(dev.labels.sum()), int((~dev.labels).sum()))
        enough = len(dev) >= ENOUGH and fewest >= ENOUGH_OF_A_CLASS
        method = "isotonic" if enough else closer_sigmoid(dev.scores, dev.labels, dev.weights)
    fitted = fit_calibration(dev.scores, dev.labels, method, dev.weights)
    accepted = test.predictions == 1
    of_test = (test.labels, test.task, test.benchmark)
    raw = reliability(test.scores, *of_test, accepted=accepted, weights=test.weights)
    return Calibration(
        judge=judge,
        map=CalibrationMap(**vars(fitted)),
        fitted_on=len(dev),
        left_out=int(shared.sum()),
        raw=_table(raw),
        calibrated=_table(reliability(fitted(test.scores), *of_test, weights=test.weights)),
    )


def _how_to_have_both(split: NDArray[np.str_], *, is_shared: bool) -> str:
    if not split.any():
        return 'the labels name no split: give each its own ("split": "dev" or "test"), by task'
    if is_shared:
        return "every task of dev is in test too: split the labels by task"
    return (
        "a run judges the test split alone unless it is told otherwise: judge again with --split "
        "all and another --out (no reply in the cache is paid twice), and score without --split"
    )


def _table(reliability: Reliability) -> ReliabilityTable:
    limits = np.stack([reliability.rate.low, reliability.rate.high], axis=1).tolist()
    bins = [
        Bin(
            low=float(reliability.low[i]),
            high=float(reliability.high[i]),
            n=int(reliability.n[i]),
            tasks=int(reliability.tasks[i]),
            mean_score=float(reliability.mean_score[i]),
            rate=float(reliability.rate.estimate[i]),
            rate_low=None if np.isnan(low) else low,
            rate_high=None if np.isnan(high) else high,
            accepted=None if reliability.accepted is None else int(reliability.accepted[i]),
        )
        for i, (low, high) in enumerate(limits)
    ]
    return ReliabilityTable(
        n=int(reliability.n.sum()),
        calibration_error=reliability.calibration_error,
        brier=reliability.brier,
        bins=tuple(bins),
    )


def calibration_table(calibrations: Sequence[Calibration]) -> Table:
    """Build one table of all judges for the first screen: the errors before and after."""
    rows = [
        (
            each.judge,
            each.map.method,
            str(each.fitted_on),
            *map(percent, (each.raw.calibration_error, each.calibrated.calibration_error)),
            *(f"{table.brier:.3f}" for table in (each.raw, each.calibrated)),
            str(each.raw.n),
        )
        for each in calibrations[:_FIRST_SCREEN]
    ]
    if more := len(calibrations) - len(rows):
        rows.append((f"and {more} more: --full", *[""] * (len(_BRIEF) - 1)))
    return Table("", _BRIEF, rows, names=1)


def calibration_tables(calibrations: Sequence[Calibration]) -> list[Table]:
    """Build one table per judge: bins of raw scores, then of calibrated ones, with their errors."""
    shown = []
    for each in calibrations:
        rows = [
            row
            for name, table in (("raw", each.raw), (each.map.method, each.calibrated))
            for row in _rows(name, table)
        ]
        title = (
            f"Calibration of {each.judge} on {each.raw.n} test trajectories, fitted on "
            f"{each.fitted_on} of dev"
        )
        shown.append(Table(title, _HEAD, rows))
    return shown


def _rows(name: str, table: ReliabilityTable) -> list[tuple[str, ...]]:
    rows = [
        (
            name,
            f"{each.low:.1f} to {each.high:.1f}",
            str(each.n),
            str(each.tasks),
            percent(each.mean_score),
            with_limits(
                each.rate,
                None
                if each.rate_low is None or each.rate_high is None
                else (each.rate_low, each.rate_high),
            ),
        )
        for each in table.bins
    ]
    error = f"error {percent(table.calibration_error)}, Brier {table.brier:.3f}"
    return [*rows, (name, "all", str(table.n), "", "", error)]


def with_configurations(
    calibrations: Sequence[Calibration], runs: Sequence[Path]
) -> list[Calibration]:
    """Add how each judge was configured, from the manifest of the run that bears its name."""
    manifests = [read_manifest(run) for run in runs if (run / MANIFEST).is_file()]
    known = {str(one.get("judge")): one for one in manifests}
    return [
        each.model_copy(
            update={"configuration": configuration_of_run(each.judge, known[each.judge])}
        )
        if each.judge in known
        else each
        for each in calibrations
    ]


def write_calibrations(path: Path, calibrations: Sequence[Calibration]) -> None:
    """As JSON. Raises UserError for an unwritable file."""
    content = Calibrations(calibrations=tuple(calibrations)).model_dump(mode="json")
    save_bytes(path, (json.dumps(content, indent=2) + "\n").encode())


def read_calibration(path: Path, judge: str) -> Calibration:
    """Read the calibration of ``judge`` from a file of ``write_calibrations``. Raises UserError."""
    try:
        calibrations = Calibrations.model_validate_json(read_utf8(path))
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from error
    except ValidationError as error:
        raise UserError(f"{path}: is not what --calibration-out writes") from error
    known = {each.judge: each for each in calibrations.calibrations}
    if judge not in known:
        raise UserError(f"{path}: has no calibration of {judge}; there are {', '.join(known)}")
    return known[judge]
