"""A folder of published judgments as something to score."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from trajudge.annotations import Labels, agentrewardbench, open_annotations, primary_labels
from trajudge.eval.data.index.judgments import PublishedJudgments, columns_of
from trajudge.eval.data.published.columns import PublishedFacts, SavedPublished
from trajudge.eval.data.published.index import JudgmentIndex
from trajudge.eval.data.published.judgments import (
    PublishedJudgment,
    judgments_folder,
    published_folders,
    read_listed,
    read_published,
    unread_note,
)
from trajudge.eval.data.sources import Source
from trajudge.judges.model import Judgment
from trajudge.trajectories.util.errors import UserError
from trajudge.trajectories.util.gc_pause import collection_paused
from trajudge.trajectories.util.safe_files import DataFolder


def read_published_folder(
    folder: Path, *, with_labels: bool = True, with_index: bool = False
) -> Source:
    """Read published judgments with the annotations beside them, else the installed package's.

    ``with_index``: what is needed of their files is kept in a side file (``JudgmentIndex``), and
    only files that changed are read the next time; nothing else about the result changes.
    """
    read = _read_kept if with_index else _read_files
    judgments, facts, notes = read(folder)
    labels: Labels = {}
    if with_labels:
        beside = agentrewardbench.detect(folder)
        spec = f"{agentrewardbench.KIND}:{folder}" if beside else agentrewardbench.KIND
        labels = primary_labels(open_annotations(spec))
    return Source(
        str(folder),
        judgments,
        facts.rewards,
        labels,
        representations=facts.representations,
        notes=notes,
        models=facts.models,
    )


def _read_files(folder: Path) -> _Published:
    """Read published judgments from their files."""
    with collection_paused():
        found = list(read_published(folder))
    return _Published([item.judgment for item in found], _facts(found), unread_note(folder, found))


def _read_kept(folder: Path) -> _Published:
    """Read published judgments from the side files, the columns or the fields of each file; from
    their own what has changed since, or was never read."""
    root, listed = judgments_folder(folder), published_folders(folder)
    saved = SavedPublished(root, listed)
    kept = saved.load()

    def read() -> tuple[list[PublishedJudgment], JudgmentIndex]:
        with collection_paused():
            index = JudgmentIndex(root, data=DataFolder(folder))
            found = list(read_listed(folder, listed, index))
            index.save()
        return found, index

    def read_again() -> list[Judgment]:
        found, index = read()
        identities = index.identities(listed)
        if identities is None or not saved.is_of(identities):
            raise UserError(f"{folder}: was changed while it was read: read it again")
        return [item.judgment for item in found]

    if kept is not None:
        columns, facts = kept
        return _Published(PublishedJudgments(columns, read_again), facts, [])
    found, index = read()
    judgments, facts = [item.judgment for item in found], _facts(found)
    identities, notes = index.identities(listed), [*index.notes, *unread_note(folder, found)]
    if identities is None or notes:
        return _Published(judgments, facts, notes)
    columns = columns_of(judgments)
    saved.keep(columns, facts, identities)
    return _Published(PublishedJudgments(columns, lambda: judgments), facts, [])


class _Published(NamedTuple):
    judgments: Sequence[Judgment]
    facts: PublishedFacts
    notes: list[str]


def _facts(found: Sequence[PublishedJudgment]) -> PublishedFacts:
    """Return what is told beside the judgments; the first reward that a trajectory's files know is
    its own."""
    # All judges of a trajectory share its key object, and objects are told apart quicker.
    keys = {id(item.judgment.key): item.judgment.key for item in found}
    told: dict[int, float | None] = dict.fromkeys(keys)
    for item in found:
        if told[place := id(item.judgment.key)] is None:
            told[place] = item.official_reward
    return PublishedFacts(
        {key: told[place] for place, key in keys.items()},
        {i.judgment.judge: i.representation for i in found if i.representation},
        {i.judgment.judge: i.judge_model_name for i in found if i.judge_model_name},
    )
