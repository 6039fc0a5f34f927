"""What a selection reads: judgments first, labels only once the plan is frozen."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import JsonValue

from trajudge.annotations import (
    Labels,
    open_annotations,
    open_labels,
    primary_labels,
)
from trajudge.annotations.sources import agentrewardbench
from trajudge.eval.scoring.observations import trained_on, without_training
from trajudge.eval.scoring.records import UnfinishedRun
from trajudge.eval.select.binding import JudgeConfiguration, configuration_of_run
from trajudge.eval.select.plan import SelectionPlan
from trajudge.eval.sources import (
    Source,
    combine,
    judge_names,
    read_last_judgments,
    representation_name,
    unfinished_runs,
)
from trajudge.eval.store.labels import refuse_conflicts
from trajudge.eval.store.published import read_published_folder
from trajudge.eval.store.run_folder import MANIFEST, read_labels, read_manifest
from trajudge.judges.model import Judgment
from trajudge.util.errors import UserError
from trajudge.util.files import refuse_repeated
from trajudge.util.terminal import count_of, one_line


class Inputs(NamedTuple):
    """``configurations`` are those of the judges, by the name that the judgments have;
    ``unfinished`` the runs that lack judgments."""

    judgments: list[Judgment]
    configurations: dict[str, JudgeConfiguration]
    unfinished: tuple[UnfinishedRun, ...] = ()


def read_inputs(runs: Sequence[Path], published: Path | None) -> Inputs:
    """Read the judgments, and how their judges were configured. Raises UserError if there is
    none, and for a run that is given twice."""
    refuse_repeated(runs)
    manifests: list[dict[str, Any] | None] = [_manifest(run) for run in runs]
    sources = [
        _held_out(run, manifest or {}) for run, manifest in zip(runs, manifests, strict=True)
    ]
    if published is not None:
        sources.append(read_published_folder(published, with_labels=False))
        manifests.append(None)
    whole = combine(sources)
    judgments = list(whole.judgments)
    if not judgments:
        raise UserError("no judgments to select from: give the folder of a run, or --judgments DIR")
    configurations = {
        name: _configuration(judge, source, manifest)
        for source, manifest, names in zip(sources, manifests, judge_names(sources), strict=True)
        for judge, name in names.items()
    }
    return Inputs(judgments, configurations, tuple(whole.unfinished))


def check_planned(inputs: Inputs, plan: SelectionPlan) -> None:
    """Raise UserError where no judge of the plan judged."""
    judged = inputs.configurations
    planned = {judge for family in plan.families for judge in family.rule.judges}
    if not planned & judged.keys():
        raise UserError(
            f"the plan's candidates are of {', '.join(sorted(planned))}, while the runs are of "
            f"{', '.join(sorted(judged))}: give runs of the plan's judges, or freeze another plan"
        )


def _held_out(run: Path, manifest: dict[str, Any]) -> Source:
    """Read the run without what its judge was trained on: nothing can be certified on that. Raises
    UserError for a run without a judgment."""
    judgments, notes = read_last_judgments(run)
    if not len(judgments):
        raise UserError(
            f"{run}: no judgment was made yet: judge first, the command that made the folder goes "
            "on; or leave it out"
        )
    sys.stderr.write("".join(f"note: {one_line(note)}\n" for note in notes))
    trained = trained_on(manifest, judgments)
    for judge, keys in trained.items():
        sys.stderr.write(
            f"note: {count_of(len(keys), 'trajectory')} left out: {judge} was trained on them\n"
        )
    cut = unfinished_runs(manifest, len(judgments))
    return Source(str(run), without_training(judgments, trained), {}, unfinished=cut)


def _manifest(run: Path) -> dict[str, Any]:
    """Read what the run was made with; empty where it has no manifest."""
    return read_manifest(run) if (run / MANIFEST).is_file() else {}


def _configuration(
    judge: str, source: Source, manifest: dict[str, Any] | None
) -> JudgeConfiguration:
    """Describe the judge of a run; or, ``manifest`` None, what published judgments tell of their
    judge."""
    if manifest is not None:
        return configuration_of_run(judge, manifest)
    facts: dict[str, JsonValue] = {}
    if judge in source.models:
        facts["model"] = source.models[judge]
    if judge in source.representations:
        facts["representation"] = representation_name(source.representations[judge])
    return JudgeConfiguration(judge=judge, facts=facts)


def read_all_labels(
    runs: Sequence[Path], published: Path | None, annotations: str | None
) -> Labels:
    """Read the expert labels that belong to them: the named ones, or else those of each source.
    Raises UserError where these differ."""
    if annotations:
        return open_labels(annotations)
    named = [(str(run), read_labels(run)) for run in runs]
    if published is not None:
        beside = agentrewardbench.detect(published)
        spec = f"{agentrewardbench.KIND}:{published}" if beside else agentrewardbench.KIND
        named.append((str(published), primary_labels(open_annotations(spec))))
    refuse_conflicts(named)
    return {key: label for _, labels in named for key, label in labels.items()}
