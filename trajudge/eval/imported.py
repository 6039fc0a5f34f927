"""Published verdicts as runs: a folder for each published judge, scored like any other run."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable

from trajudge.annotations import frame_of, primary_labels
from trajudge.annotations.published import PublishedVerdict, open_verdicts
from trajudge.eval.store.inputs import DataSource, find_source
from trajudge.eval.store.manifest import RunManifest, code_version, open_folder
from trajudge.eval.store.run_folder import (
    write_judgments,
    write_labels,
    write_record,
    write_rewards,
)
from trajudge.eval.store.settings import ImportConfig
from trajudge.judges.model import Judgment
from trajudge.trajectories.model import Trajectory, TrajectoryKey
from trajudge.trajectories.needs import NO_NEEDS
from trajudge.util.commands import OK
from trajudge.util.errors import UserError, naming
from trajudge.util.terminal import one_line

_NOTE = "counted as a failure: over its budget"


def apply_policies(
    verdicts: Iterable[PublishedVerdict], source: DataSource, config: ImportConfig
) -> list[PublishedVerdict]:
    """Return the verdicts that count, as they count. Reads the runs' text if a policy needs it."""
    if not config.policies:
        return list(verdicts)
    aborted, over_budget = _endings(source)
    kept = []
    for verdict in verdicts:
        if config.aborted == "exclude" and verdict.key in aborted:
            continue
        counted = verdict
        if config.over_budget == "failure" and verdict.key in over_budget:
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


def import_verdicts(config: ImportConfig) -> int:
    """Write the verdicts published in the source below ``out``, a run folder for each judge, and
    print how many of each status there are.

    Each run's trajectories are all that any judge of the source judged, so that what a judge left
    out counts against its coverage. Raises UserError.
    """
    with naming("the data"):
        source = find_source(config.source, config.annotations, by=config.labels_by)
        published = open_verdicts(config.source)
    verdicts = apply_policies(published, source, config)
    labels = primary_labels(source.annotations)
    if source.note:
        sys.stderr.write(f"note: {one_line(source.note)}\n")
    rewards = dict.fromkeys(verdict.key for verdict in verdicts)
    known = [labels[key] for key in rewards if key in labels]
    for judge in dict.fromkeys(verdict.judge_id for verdict in verdicts):
        judgments = to_judgments(verdict for verdict in verdicts if verdict.judge_id == judge)
        folder = config.out / judge
        manifest = RunManifest(
            judge=judge,
            data=source.spec,
            annotations=source.labels,
            selection=dict(config.policies),
            published=True,
            version=code_version(),
        )
        open_folder(folder, manifest)
        for judgment in judgments:
            write_record(folder, judgment)
        write_judgments(folder, judgments)
        write_rewards(folder, rewards)
        write_labels(folder, known, frame_of(source.labels))
        statuses = Counter(str(judgment.status) for judgment in judgments)
        ended = ", ".join(f"{count} {status}" for status, count in sorted(statuses.items()))
        sys.stdout.write(f"{folder}: {ended}; {len(known)} labelled\n")
    return OK


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
