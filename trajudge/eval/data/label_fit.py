"""How the labels of a run fit its trajectories, and what is said where they do not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from trajudge.annotations.model import Labels
from trajudge.eval.data.index.keys import KeyColumns, places_among
from trajudge.eval.data.index.labels import LabelColumns
from trajudge.eval.data.sources import strangers_said
from trajudge.trajectories.util.errors import UserError


class LabelFit(NamedTuple):
    """``unsplit`` are trajectories that a split leaves out because no label names the split of
    their task. Where some that are judged have a label and others, ``unlabelled``, have none,
    ``strays`` are labels of the same agents and benchmarks that belong to no trajectory."""

    unsplit: KeyColumns
    unlabelled: KeyColumns
    strays: KeyColumns


def refuse_strangers(spec: str, keys: KeyColumns, labels: Labels, split: str) -> None:
    """Raise UserError for a split of labels none of which belongs to the data."""
    if split != "all" and not any(key in labels for key in keys):
        said = strangers_said(spec, labels, keys.key(0))
        raise UserError(f"{said}: correct the labels, or judge without them with --split all")


def label_fit(
    data: KeyColumns, judged: KeyColumns, unsplit: KeyColumns, labels: Labels
) -> LabelFit:
    """Find what does not fit between the labels and the trajectories of ``data``."""
    labelled = LabelColumns.of(labels).keys
    unlabelled = judged.at(places_among(judged, labelled) < 0)
    if not 0 < len(unlabelled) < len(judged):
        return LabelFit(unsplit, _none_of(judged), _none_of(labelled))
    lost = labelled.at(places_among(labelled, data) < 0)
    agents = {(key.benchmark, key.agent) for key in judged}
    strays = lost.at([(key.benchmark, key.agent) in agents for key in lost])
    return LabelFit(unsplit, unlabelled, strays)


def misfits(fit: LabelFit, spec: str) -> Iterator[str]:
    """Yield a sentence for each thing that does not fit."""
    if len(fit.strays):
        yield (
            f"warning: {spec}: labels that belong to no trajectory of the data: "
            f"{_counted(fit.strays)}; trajectories without a label: {_counted(fit.unlabelled)}"
        )
    if len(fit.unsplit):
        yield (
            "warning: not judged, because no label assigns their tasks to dev or test: "
            f"{_counted(fit.unsplit)}: label these tasks, or judge all with --split all"
        )


def _counted(keys: KeyColumns) -> str:
    first = keys.key(0)
    return (
        f"{len(keys):,} (the first of agent {first.agent!r}, task {first.task_id!r}, attempt "
        f"{first.attempt})"
    )


def _none_of(keys: KeyColumns) -> KeyColumns:
    return keys.at(slice(0, 0))
