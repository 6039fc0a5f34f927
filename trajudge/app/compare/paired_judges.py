"""Two judges on the same trajectories, as ``trajudge score`` compares them, counted over those that
a filter keeps."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from trajudge.app.compare.query import CompareQuery
from trajudge.eval.reporting.sentences import FAILED
from trajudge.eval.runs.outputs import missing_policy
from trajudge.eval.scoring.comparison import (
    PairedCounts,
    compared_observations,
    on_the_same,
    paired_counts,
)
from trajudge.eval.scoring.observations import Observations, Predictions, ReferenceLabels
from trajudge.eval.scoring.records import Missing
from trajudge.eval.store.labels import LabelColumns, RewardColumns
from trajudge.eval.store.table import (
    UNKNOWN,
    VERDICTS,
    JudgmentColumnsBuilder,
    JudgmentFields,
    KeyColumns,
    last_of_each,
)
from trajudge.judges.model import Status
from trajudge.judges.training import key_hash
from trajudge.trajectories.model import TrajectoryKey
from trajudge.trajectories.store import KeyFields
from trajudge.util.terminal import count_of

_KEPT = 16  # tables: each names up to all trajectories
_JUDGED = """
select t.*, j.run, j.judge, j.sample, j.status, j.success
from trajectory t join judgment j on j.trajectory = t.id
where ({}) and t.expert in (0, 1) and j.judge in (?, ?) order by j.id
"""


class PairedJudges(NamedTuple):
    """The counts, what a failed judgment was ``missing`` as, and the numbers of the trajectories on
    which only the first judge was right; ``weighted``: the labels were drawn with unequal
    probabilities, so that no test applies."""

    counts: PairedCounts
    missing: Missing
    only_first: tuple[int, ...]
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
        self._kept: dict[object, PairedJudges] = {}

    def of(
        self,
        connection: sqlite3.Connection,
        query: CompareQuery,
        manifests: Sequence[Mapping[str, Any]],
    ) -> PairedJudges:
        """Compare on the trajectories that the expert labelled and both judged, whatever the
        preset; ``manifests`` are those of the index's runs."""
        trained = tuple(frozenset(manifest.get("training_keys") or ()) for manifest in manifests)
        missing = _missing({str(manifest.get("protocol", "default")) for manifest in manifests})
        # Runs that have changed are copied into another file.
        ((_, _, file),) = connection.execute("pragma database_list").fetchall()
        place = file, query.chosen, query.first, query.second, trained, missing
        kept = self._kept.get(place)
        if kept is None:
            kept = _paired(connection, query, trained, missing)
            if len(self._kept) >= _KEPT:
                self._kept.clear()
            self._kept[place] = kept
        return kept


def _paired(
    connection: sqlite3.Connection,
    query: CompareQuery,
    trained: Sequence[frozenset[str]],
    missing: Missing,
) -> PairedJudges:
    names = (query.first, query.second)
    clause = query.chosen.trajectories()
    rows = connection.execute(_JUDGED.format(clause.sql), (*clause.parameters, *names)).fetchall()
    rows = [row for row in rows if not _is_trained_on(row, trained[row["run"]])]
    first, second = on_the_same(*_observed(rows, names, missing))
    only_first = first.index[first.right & ~second.right]
    numbers = first.reference.keys.at(only_first).attempt
    counts, weighted = paired_counts(first, second), first.reference.is_weighted
    return PairedJudges(counts, missing, tuple(numbers.tolist()), weighted)


def _observed(
    rows: Sequence[sqlite3.Row], names: Sequence[str], missing: Missing
) -> list[Observations]:
    """Observe the judges of these names. A key's attempt is the trajectory's number in the
    index, and its agent's name is empty: it tells nothing that is counted here."""
    builder = JudgmentColumnsBuilder()
    experts: dict[int, tuple[KeyFields, int, float | None]] = {}
    for row in rows:
        key = KeyFields(row["benchmark"], "", row["task_id"], row["id"])
        experts[row["id"]] = key, row["expert"], row["inclusion"]
        success = None if row["success"] is None else bool(row["success"])
        fields = (key, row["judge"], Status(row["status"]), row["sample"], success)
        builder.add(JudgmentFields(*fields))
    columns = builder.build()
    columns = columns.at(last_of_each(columns))
    verdicts = np.full((len(VERDICTS), len(experts)), UNKNOWN, dtype=np.int8)
    verdicts[VERDICTS.index("success")] = [said for _, said, _ in experts.values()]
    drawn = [chance for _, _, chance in experts.values()]
    inclusion = np.array([np.nan if chance is None else chance for chance in drawn], dtype=float)
    labels = LabelColumns(KeyColumns.of(key for key, *_ in experts.values()), verdicts, inclusion)
    reference = ReferenceLabels.of(columns.keys, labels, RewardColumns.of({}))
    observed = []
    for name in names:
        mine = np.array([columns.judges[each] == name for each in columns.judge.tolist()], bool)
        predictions = Predictions.of(columns.at(mine), reference, reference.judged[mine])
        observed.append(compared_observations(predictions, "success", missing))
    return observed


def _missing(protocols: set[str]) -> Missing:
    """Count failed judgments as the runs' one protocol does, which ``trajudge score`` goes by."""
    return missing_policy(next(iter(protocols)) if len(protocols) == 1 else "default")


def _is_trained_on(row: sqlite3.Row, hashes: frozenset[str]) -> bool:
    """Tell whether the judge was trained on the trajectory: such a verdict counts in no score."""
    names = TrajectoryKey.model_fields
    return bool(hashes) and key_hash(TrajectoryKey(**{n: row[n] for n in names})) in hashes
