"""Two judges on the same trajectories, as ``trajudge score`` compares them, counted over those that
a filter keeps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from trajudge.app.compare.query import CompareQuery
from trajudge.eval.reporting.sentences import FAILED
from trajudge.eval.runs.outputs import missing_policy
from trajudge.eval.scoring.comparison import PairedCounts, paired_counts
from trajudge.eval.scoring.observations import (
    Observations,
    Predictions,
    ReferenceLabels,
    compared_observations,
    on_the_same,
)
from trajudge.eval.scoring.records import Missing
from trajudge.eval.store.filters import JudgmentView
from trajudge.eval.store.labels import LabelColumns
from trajudge.eval.store.table import UNKNOWN, VERDICTS, last_of_each, places_among
from trajudge.judges.training import key_hash
from trajudge.stats.intervals import Ints
from trajudge.util.terminal import count_of

_KEPT = 16  # tables: each names up to all trajectories


class PairedJudges(NamedTuple):
    """The counts, what a failed judgment was ``missing`` as, and the places of the trajectories on
    which only the first judge was right; ``weighted``: the labels were drawn with unequal
    probabilities, so that no test applies."""

    counts: PairedCounts
    missing: Missing
    only_first: Ints
    weighted: bool

    @property
    def counting(self) -> str:
        """Say how many trajectories there are, and what judgments without an answer count as."""
        counts = self.counts
        sizes = ((counts.failed_first, "A"), (counts.failed_second, "B"))
        failed = " and ".join(f"{size:,} of {name}" for size, name in sizes if size)
        said = f"; judgments without an answer ({failed}) {FAILED[self.missing]}" if failed else ""
        return f"{count_of(counts.n, 'trajectory')}{said}, as in trajudge score."


class PairedTables:
    """Counts pairs of judges, and keeps what was counted as long as the runs stay. To be used from
    any thread."""

    def __init__(self) -> None:
        self._kept: dict[object, tuple[JudgmentView, PairedJudges]] = {}

    def of(
        self,
        view: JudgmentView,
        query: CompareQuery,
        manifests: Sequence[Mapping[str, Any]],
    ) -> PairedJudges:
        """Compare on the trajectories that the expert labelled and both judged, whatever the
        preset; ``manifests`` are those of the runs that the view combines."""
        trained = tuple(frozenset(manifest.get("training_keys") or ()) for manifest in manifests)
        missing = _missing({str(manifest.get("protocol", "default")) for manifest in manifests})
        place = query.chosen, query.first, query.second, trained, missing
        kept = self._kept.get(place)
        if kept is None or kept[0] is not view:
            kept = view, _paired(view, query, trained, missing)
            if len(self._kept) >= _KEPT:
                self._kept.clear()
            self._kept[place] = kept
        return kept[1]


def _paired(
    view: JudgmentView,
    query: CompareQuery,
    trained: Sequence[frozenset[str]],
    missing: Missing,
) -> PairedJudges:
    first, second = on_the_same(*_observed(view, query, trained, missing))
    right = first.reference.keys.at(first.index[first.right & ~second.right])
    counts, weighted = paired_counts(first, second), first.reference.is_weighted
    return PairedJudges(counts, missing, places_among(right, view.keys), weighted)


def _observed(
    view: JudgmentView,
    query: CompareQuery,
    trained: Sequence[frozenset[str]],
    missing: Missing,
) -> list[Observations]:
    """Observe the two judges of a query. A verdict on what its judge was trained on counts in no
    score."""
    labelled = query.chosen.trajectories(view) & (view.expert >= 0)
    table = view.judgments
    kept = labelled[view.trajectory] & (table.of_judge(query.first) | table.of_judge(query.second))
    if any(trained):
        for row in np.flatnonzero(kept).tolist():
            key = view.keys.key(int(view.trajectory[row]))
            kept[row] = key_hash(key) not in trained[table.source[row]]
    columns = table.at(kept)
    columns = columns.at(last_of_each(columns))
    places = np.flatnonzero(labelled)
    verdicts = np.full((len(VERDICTS), len(places)), UNKNOWN, dtype=np.int8)
    verdicts[VERDICTS.index("success")] = view.expert[places]
    known = view.inclusion[places], view.split[places]
    labels = LabelColumns(view.keys.at(places), verdicts, *known)
    reference = ReferenceLabels.of(columns.keys, labels, {})
    return [
        compared_observations(Predictions.of(judge, columns, reference), "success", missing)
        for judge in (query.first, query.second)
    ]


def _missing(protocols: set[str]) -> Missing:
    """Count failed judgments as the runs' one protocol does, which ``trajudge score`` goes by."""
    return missing_policy(next(iter(protocols)) if len(protocols) == 1 else "default")
