"""The items of a queue by how probably the rule is wrong, and how far to trust the judges."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from trajudge.annotations import Labels, open_annotations, primary_labels
from trajudge.annotations.labelling.database import LabelStore
from trajudge.annotations.labelling.records import QueueItem
from trajudge.annotations.labelling.transfer import queue_annotations
from trajudge.app.labelling.verdicts import FrameVerdicts, ShownVerdict


class WeighedVerdict(NamedTuple):
    """A verdict, and of the labelled trajectories on which this evaluator said the same, how many
    labels agreed: ``right`` of ``labelled``."""

    verdict: ShownVerdict
    right: int
    labelled: int


class RankedItem(NamedTuple):
    """An item with its ``rank`` from 1; ``wrong`` is the probability that the rule is wrong.
    ``against`` are the judges that contradict it, ``with_it`` those that agree."""

    rank: int
    number: int
    item: QueueItem
    rule: bool
    wrong: float
    against: tuple[WeighedVerdict, ...]
    with_it: tuple[WeighedVerdict, ...]


class RuleRanking(NamedTuple):
    """``labels``: so many labels the probabilities were learned from; 0: too few were there, and
    they are shares of the judges' votes."""

    items: list[RankedItem]
    labels: int


def known_labels(store: LabelStore) -> Labels:
    """Read the labels that a queue was built with, and its own, which come first. Raises UserError
    for those that cannot be read."""
    spec = store.settings.annotations
    built = primary_labels(open_annotations(spec)) if spec else {}
    return {**built, **primary_labels(queue_annotations(store))}


def rank_items(store: LabelStore, verdicts: FrameVerdicts) -> RuleRanking:
    """Rank the items on which the rule said something, hidden checks left out. Raises UserError as
    ``known_labels`` does."""
    labels = known_labels(store)
    learned = verdicts.learned(labels)
    counts = _reliability(verdicts, labels)
    rows = []
    for number, item in store.items():
        rule, share = verdicts.rule(item.key), verdicts.judges_share(item.key)
        if rule is None or share is None or item.gold is not None:
            continue
        success = learned.get(item.key, share) if learned else share
        judges = [v for v in verdicts.of(item.key)[:-1] if v.success is not None]
        weighed = [_weighed(each, counts) for each in judges]
        rows.append(
            RankedItem(
                0,
                number,
                item,
                rule,
                1 - success if rule else success,
                tuple(each for each in weighed if each.verdict.success != rule),
                tuple(each for each in weighed if each.verdict.success == rule),
            )
        )
    rows.sort(key=lambda row: (-row.wrong, row.number))
    ranked = [row._replace(rank=rank) for rank, row in enumerate(rows, start=1)]
    decided = sum(labels[key].success is not None for key in learned if key in labels)
    return RuleRanking(ranked, decided)


_Counts = Mapping[tuple[str, bool], tuple[int, int]]


def _reliability(verdicts: FrameVerdicts, labels: Labels) -> _Counts:
    """Count, by evaluator and what it said, the labels that agreed and all labels."""
    counts: dict[tuple[str, bool], tuple[int, int]] = {}
    for key, label in labels.items():
        for each in verdicts.of(key) if label.success is not None else ():
            if each.success is not None:
                right, labelled = counts.get((each.evaluator, each.success), (0, 0))
                agrees = each.success == label.success
                counts[each.evaluator, each.success] = right + agrees, labelled + 1
    return counts


def _weighed(verdict: ShownVerdict, counts: _Counts) -> WeighedVerdict:
    right, labelled = counts.get((verdict.evaluator, bool(verdict.success)), (0, 0))
    return WeighedVerdict(verdict, right, labelled)
