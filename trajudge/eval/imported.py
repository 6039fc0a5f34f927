"""Published verdicts as runs: a folder for each published judge, scored like any other run."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Literal, NamedTuple

from trajudge.annotations import LabelsBy, frame_of, primary_labels
from trajudge.annotations.published import PublishedVerdict, open_verdicts
from trajudge.eval.store.inputs import DataSource, find_source
from trajudge.eval.store.manifest import RunManifest, code_version, open_folder
from trajudge.eval.store.run_folder import (
    write_judgments,
    write_labels,
    write_record,
    write_rewards,
)
from trajudge.judges.model import Judgment
from trajudge.trajectories.model import Record, Trajectory, TrajectoryKey
from trajudge.trajectories.needs import NO_NEEDS
from trajudge.util.errors import UserError, naming
from trajudge.util.terminal import one_line

_NOTE = "counted as a failure: over its budget"


class EndingPolicies(Record):
    """``aborted``: whether the runs that broke off are kept. ``over_budget``: whether a verdict on
    a run without an answer is kept, or a failure in any case."""

    aborted: Literal["keep", "exclude"] = "keep"
    over_budget: Literal["keep", "failure"] = "keep"

    @property
    def is_default(self) -> bool:
        """Whether every verdict counts as it was published."""
        return self == EndingPolicies()


def apply_policies(
    verdicts: Iterable[PublishedVerdict], source: DataSource, policies: EndingPolicies
) -> list[PublishedVerdict]:
    """Return the verdicts that count, as they count. Reads the runs' text if a policy needs it."""
    if policies.is_default:
        return list(verdicts)
    aborted, over_budget = _endings(source)
    kept = []
    for verdict in verdicts:
        if policies.aborted == "exclude" and verdict.key in aborted:
            continue
        counted = verdict
        if policies.over_budget == "failure" and verdict.key in over_budget:
            changed = {"status": "ok", "success": False, "detail": "", "reasoning": _NOTE}
            counted = verdict.model_copy(update=changed)
        kept.append(counted)
    return kept


def _endings(source: DataSource) -> tuple[set[TrajectoryKey], set[TrajectoryKey]]:
    """Return the keys of the runs that broke off, and of those over their budget: without an answer
    though they did not break off."""
    runs = [run for run in source.read(needs=NO_NEEDS) if isinstance(run, Trajectory)]
    aborted = {run.key for run in runs if run.metadata.get("aborted") is True}
    return aborted, {run.key for run in runs if run.answer is None} - aborted


class ImportedRun(NamedTuple):
    """The folder of one published judge: its judgments by status, and how many of them have a
    label."""

    folder: Path
    judge: str
    statuses: Counter[str]
    labelled: int


class ImportConfig(Record):
    """Which verdicts become runs, and where: ``source`` is ``KIND:PATH``; the rest is as in
    ``EndingPolicies`` and ``DataConfig``."""

    source: str
    out: Path
    annotations: str | None = None
    labels_by: LabelsBy | None = None
    aborted: Literal["keep", "exclude"] = "keep"
    over_budget: Literal["keep", "failure"] = "keep"

    @property
    def policies(self) -> EndingPolicies:
        return EndingPolicies(aborted=self.aborted, over_budget=self.over_budget)


def import_verdicts(config: ImportConfig) -> list[ImportedRun]:
    """Write the verdicts published in the source below ``out``, a run folder for each judge.

    Each run's trajectories are all that any judge of the source judged, so that what a judge left
    out counts against its coverage. Raises UserError.
    """
    with naming("the data"):
        source = find_source(config.source, config.annotations, by=config.labels_by)
        published = open_verdicts(config.source)
    verdicts = apply_policies(published, source, config.policies)
    labels = primary_labels(source.annotations)
    if source.note:
        sys.stderr.write(f"note: {one_line(source.note)}\n")
    rewards = dict.fromkeys(verdict.key for verdict in verdicts)
    made = []
    for judge in dict.fromkeys(verdict.judge_id for verdict in verdicts):
        judgments = to_judgments(verdict for verdict in verdicts if verdict.judge_id == judge)
        folder = config.out / judge
        manifest = RunManifest(
            judge=judge,
            data=source.spec,
            annotations=source.labels,
            selection={} if config.policies.is_default else config.policies.model_dump(),
            published=True,
            version=code_version(),
        )
        open_folder(folder, manifest)
        for judgment in judgments:
            write_record(folder, judgment)
        write_judgments(folder, judgments)
        write_rewards(folder, rewards)
        known = [labels[key] for key in rewards if key in labels]
        write_labels(folder, known, frame_of(source.labels))
        statuses = Counter(str(judgment.status) for judgment in judgments)
        made.append(ImportedRun(folder, judge, statuses, len(known)))
    return made


def to_judgments(verdicts: Iterable[PublishedVerdict]) -> list[Judgment]:
    """Make judgments of published verdicts, sorted by key and sample.

    Raises UserError if one judge has two verdicts on one trajectory under one sample.
    """
    judgments: dict[tuple[object, ...], Judgment] = {}
    for verdict in verdicts:
        place = (verdict.judge_id, *verdict.key.order, verdict.sample)
        if place in judgments:
            raise UserError(
                f"{verdict.key}: has two verdicts of {verdict.judge_id} under sample "
                f"{verdict.sample}: remove one of them"
            )
        fields = verdict.model_dump(exclude={"judge"})
        judgments[place] = Judgment(judge=verdict.judge_id, **fields)
    return [judgments[place] for place in sorted(judgments)]
