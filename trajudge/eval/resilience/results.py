"""All results of an experiment, and the files they are written to."""

from __future__ import annotations

import csv
import dataclasses
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from trajudge.eval.resilience.efficiency import ArmCost, costs
from trajudge.eval.resilience.judged import JudgedArm, judged, judged_before
from trajudge.eval.resilience.measures import ArmMeasures, IntervalEstimate, measures
from trajudge.eval.resilience.popups import PopupFactor, popup_factor
from trajudge.eval.resilience.records import FaultExperiment
from trajudge.trajectories.util.atomic import make_folder, write_bytes
from trajudge.trajectories.util.errors import UserError
from trajudge.trajectories.util.terminal import count_of

FORMAT = {"format": "trajudge-resilience-results", "version": 1}
_STALLED_SHARE = 0.05  # of an arm's runs; more is said
_INTERVAL = ("", "_low", "_high")


@dataclass(frozen=True)
class ResilienceResults:
    """What faults did, what runs cost, what popups' accessibility changes, what judges say."""

    measures: Sequence[ArmMeasures]
    costs: Sequence[ArmCost]
    popups: Sequence[PopupFactor]
    judged: Sequence[JudgedArm]
    notes: Sequence[str]


def results_of(
    experiment: FaultExperiment,
    judges: Sequence[str] = (),
    options: Mapping[str, Any] | None = None,
    runs: Sequence[Path] = (),
) -> ResilienceResults:
    """Compute everything; ``options`` are the judges', ``runs`` folders of judges that were run
    before. Raises UserError as ``judged`` and ``judged_before`` do."""
    before, repeated = judged_before(experiment, runs)
    return ResilienceResults(
        measures(experiment),
        costs(experiment),
        popup_factor(experiment),
        [*judged(experiment, judges, options or {}), *before],
        [*experiment.notes, *repeated, *_remarks(experiment)],
    )


def _remarks(experiment: FaultExperiment) -> Iterator[str]:
    """Yield what a reader has to know before the figures."""
    for arm in experiment.arms:
        stalled = sum(run.stalled for run in arm.runs)
        if stalled > _STALLED_SHARE * len(arm.runs):
            yield (
                f"{arm.name}: in {stalled} of {len(arm.runs)} runs the browser waited in vain: a "
                "slow machine, or a fault that holds pages, and then no effect of faults on agents"
            )
    for arm in experiment.faulted:
        paired = len(experiment.pairs(arm))
        alone = len(arm.runs) - paired
        if alone:
            yield f"{arm.name}: {alone} of {len(arm.runs)} runs have no pair of known outcome"
        if paired and not any(pair.faulted.fired for pair in experiment.pairs(arm)):
            yield f"{arm.name}: no fault fired in any run: its figures say nothing of faults"
    runs = [run for arm in experiment.arms for run in arm.runs]
    unmeasured = sum(run.model_calls is None for run in runs)
    if unmeasured:
        yield (
            f"in {unmeasured} of {len(runs)} runs model calls were not measured, so their calls, "
            "tokens and dollars are not known: give  trajudge proxy run  the option --api"
        )
    unknown = sum(run.tokens is None and run.model_calls is not None for run in runs)
    if unknown:
        untold = count_of(unknown, "run")
        yield f"the tokens of {untold} with model calls of unknown usage are left out"


def write_results(results: ResilienceResults, out: Path) -> None:
    """Write ``results.json`` and ``results.csv`` (a row an agent and arm). Raises UserError."""
    content = {**FORMAT, **{name: _plain(rows) for name, rows in _parts(results).items()}}
    try:
        make_folder(out, "--out")
        text = orjson.dumps(content, default=_estimate, option=orjson.OPT_INDENT_2)
        write_bytes(out / "results.json", text)
        write_bytes(out / "results.csv", _table([_flat(row) for row in results.measures]))
        write_bytes(out / "costs.csv", _table([_flat(row) for row in results.costs]))
    except OSError as error:
        raise UserError(f"--out {out}: cannot be written ({error.strerror or error})") from error


def _parts(results: ResilienceResults) -> dict[str, Sequence[Any]]:
    return {part.name: getattr(results, part.name) for part in dataclasses.fields(results)}


def _plain(rows: Sequence[Any]) -> list[Any]:
    return [row if isinstance(row, str) else dataclasses.asdict(row) for row in rows]


def _estimate(value: Any) -> dict[str, float | None]:
    """Write an estimate as an object. Raises TypeError for what is none."""
    if isinstance(value, IntervalEstimate):
        return value._asdict()
    raise TypeError(f"{type(value).__name__} is not written")


def _flat(row: ArmMeasures | ArmCost) -> dict[str, Any]:
    """Return a record as columns: an estimate takes three."""
    found: dict[str, Any] = {}
    for part in dataclasses.fields(row):
        value = getattr(row, part.name)
        for name, one in value.items() if isinstance(value, Mapping) else [("", value)]:
            column = "_".join(filter(None, (part.name, name)))
            cells = one if isinstance(one, IntervalEstimate) else (one,)
            found |= {f"{column}{end}": cell for end, cell in zip(_INTERVAL, cells, strict=False)}
    return found


def _table(rows: Sequence[Mapping[str, Any]]) -> bytes:
    file = io.StringIO()
    if rows:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return file.getvalue().encode()
