"""What is compared on a leaderboard: verdicts with their labels, and how they were made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from trajudge.annotations.agentrewardbench import benchmark_of
from trajudge.eval.data.index.keys import KeyColumns
from trajudge.eval.data.manifest import configuration_of
from trajudge.eval.data.run_folder import read_manifest
from trajudge.eval.data.sources import Source, are_parts, read_run
from trajudge.judges.model import Judgment
from trajudge.trajectories.model import TrajectoryKey


@dataclass(frozen=True)
class BoardEntry:
    """One source of verdicts. ``configuration`` is equal for runs that differ in their data alone;
    ``free``: no model was called, therefore a judgment costs nothing. ``trusted``: the labels are
    the annotations' own; those in a run's folder are what the submitter says they are.
    """

    source: Source
    configuration: str
    free: bool
    trusted: bool = False

    @property
    def benchmarks(self) -> set[str]:
        """The benchmarks that it is scored on."""
        return {benchmark_of(key) for key in self.source.labels} or {
            benchmark_of(judgment.key) for judgment in self.source.judgments
        }


class JudgeVerdicts(NamedTuple):
    """All verdicts of one row of the leaderboard, and the trajectories it was trained on."""

    judgments: list[Judgment]
    trained_on: set[TrajectoryKey]
    versions: Mapping[str, int]
    free: bool


def read_runs(folders: Sequence[Path]) -> list[BoardEntry]:
    """Read folders of runs, by name; each is named after its folder. Raises UserError for what is
    no run."""
    names = Counter(folder.resolve().name for folder in folders)
    return [
        _read_run(folder, f" {number}" if names[folder.resolve().name] > 1 else "")
        for number, folder in enumerate(sorted(folders, key=lambda f: f.resolve().name), start=1)
    ]


def _read_run(folder: Path, suffix: str) -> BoardEntry:
    manifest = read_manifest(folder)
    free = manifest.get("model") is None and not manifest.get("published")
    source = replace(read_run(folder), name=folder.resolve().name + suffix)
    labels = str(manifest.get("annotations") or "").partition(":")[0]
    if "/" in labels and not labels.startswith((".", "/")):
        source.notes.append(f"labels of {source.name}: {labels}")
    return BoardEntry(source, configuration_of(manifest), free=free)


def verdicts_by_judge(entries: Sequence[BoardEntry]) -> dict[str, JudgeVerdicts]:
    """Give every judge one row, by name.

    Entries of one judge with one configuration and no trajectory in common are parts of one row;
    any other two are told apart by their sources' names.
    """
    parts: dict[str, list[tuple[BoardEntry, list[Judgment]]]] = {}
    for entry in entries:
        for judge, judgments in _by_judge(entry.source.judgments).items():
            parts.setdefault(judge, []).append((entry, judgments))
    rows: dict[str, JudgeVerdicts] = {}
    for judge, mine in sorted(parts.items()):
        one = are_parts(
            {entry.configuration for entry, _ in mine},
            (KeyColumns.of(judgment.key for judgment in judgments) for _, judgments in mine),
        )
        for entry, judgments in mine:
            name = judge if one else f"{judge} ({entry.source.name})"
            row = rows.setdefault(
                name, JudgeVerdicts([], set(), entry.source.versions.get(judge, {}), entry.free)
            )
            row.judgments.extend(
                judgments
                if name == judge
                else [j.model_copy(update={"judge": name}) for j in judgments]
            )
            row.trained_on.update(entry.source.training.get(judge, ()))
    return rows


def _by_judge(judgments: Iterable[Judgment]) -> dict[str, list[Judgment]]:
    by_judge: dict[str, list[Judgment]] = {}
    for judgment in judgments:
        by_judge.setdefault(judgment.judge, []).append(judgment)
    return by_judge
