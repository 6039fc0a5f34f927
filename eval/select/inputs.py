"""What a selection reads: judgments first, labels only once the plan is frozen."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from annotations import Labels, agentrewardbench, open_annotations, primary_labels
from annotations.model import Annotation
from eval.run_folder import read_judgments, read_labels
from eval.sources import Source, combine, read_published_folder
from judges.model import Judgment
from trajectories.errors import UserError
from trajectories.model import TrajectoryKey


def read_all_judgments(runs: Sequence[Path], published: Path | None) -> list[Judgment]:
    """Of runs and of a folder of published judgments; a judge that several have is told apart by
    the folder. Raises UserError if there is none."""
    sources = [Source(str(run), read_judgments(run), {}) for run in runs]
    if published is not None:
        sources.append(read_published_folder(published, with_labels=False))
    judgments = combine(sources).judgments
    if not judgments:
        raise UserError("no judgments to select from: give the folder of a run, or --judgments DIR")
    return judgments


def read_all_labels(
    runs: Sequence[Path], published: Path | None, annotations: str | None
) -> Labels:
    """The expert labels that belong to them: the named ones, or else those of each source."""
    if annotations:
        return primary_labels(open_annotations(annotations))
    labels: dict[TrajectoryKey, Annotation] = {}
    for run in runs:
        labels.update(read_labels(run))
    if published is not None:
        beside = agentrewardbench.detect(published)
        spec = f"{agentrewardbench.KIND}:{published}" if beside else agentrewardbench.KIND
        labels.update(primary_labels(open_annotations(spec)))
    return labels
