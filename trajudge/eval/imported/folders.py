"""A folder of a run for each published judge: scored, compared and ranked like any other run,
without a call."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Literal, NamedTuple

from trajudge.annotations import LabelsBy, frame_of, primary_labels
from trajudge.annotations.published import PublishedVerdict, open_verdicts
from trajudge.eval.data.inputs import find_source
from trajudge.eval.data.manifest import RunManifest, code_version, open_folder
from trajudge.eval.data.run_folder import (
    write_judgments,
    write_labels,
    write_record,
    write_rewards,
)
from trajudge.eval.imported.endings import EndingPolicies, apply_policies
from trajudge.judges.model import Judgment
from trajudge.trajectories.model import Record
from trajudge.trajectories.util.errors import UserError, naming
from trajudge.trajectories.util.terminal import one_line


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
