"""Findings about the data: the same revision, the same labels, nothing left out in silence."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from trajudge.annotations import (
    Annotation,
    Labels,
    agentrewardbench,
    open_annotations,
    primary_labels,
)
from trajudge.annotations.agentrewardbench import benchmark_of
from trajudge.eval.checking.findings import RunFinding, error, note, warning
from trajudge.eval.checking.recorded import CheckedRun
from trajudge.eval.data.inputs import MEMORY, find_source
from trajudge.trajectories.sample import SAMPLE
from trajudge.trajectories.sources.register import card_of_kind
from trajudge.trajectories.util.errors import UserError

_FETCHED = (agentrewardbench.KIND, "cuaverifierbench")
_NOT_READ = "not read"
_CUTS = ("limit", "benchmark", "agent", "task", "stratified")


def known_data(run: CheckedRun) -> Iterator[RunFinding]:
    """Find data that others cannot open again, or of an unknown revision."""
    spec = str(run.manifest.get("data") or "")
    if spec.startswith(MEMORY):
        yield warning(
            "data_in_memory",
            "the trajectories were in memory, so that nobody can judge them again: publish them as "
            "files",
        )
    elif run.manifest.get("loader_digest"):
        yield warning(
            "own_loader",
            f"the trajectories were read by a loader of the submitter's ({Path(spec).name}): "
            "others see the same only with that file",
        )
    elif not run.manifest.get("revision") and (kind := _fetched_kind(spec)):
        yield warning(
            "no_revision",
            f"the revision of the benchmark's files is not recorded: judge the copy that  trajudge "
            f"data fetch {kind}  makes",
        )
    elif spec and spec != SAMPLE and not run.manifest.get("revision"):
        yield note("no_revision", "the data are files of the submitter's, without a revision")
    if spec != SAMPLE:
        yield from _registered(spec.partition(":")[0], run.manifest.get("revision"))
    cuts = {name: value for name, value in run.part("selection").items() if name in _CUTS}
    if cuts:
        listed = ", ".join(f"{name} {_shown(value)}" for name, value in cuts.items())
        yield warning("selection", f"only a part of the data was judged ({listed})")


def _registered(kind: str, revision: object) -> Iterator[RunFinding]:
    """Hold the data to what the register of sources says of its kind."""
    card = card_of_kind(kind)
    if card is None:
        return
    if card.revision and revision and revision != card.revision:
        yield error(
            "other_revision",
            f"the run judged revision {str(revision)[:12]} of {card.title}, others judge "
            f"{card.revision[:12]}: judge the copy that  trajudge data fetch {kind}  makes",
        )
    if card.contamination not in ("", _NOT_READ):
        yield note("source", f"{card.title}: {card.contamination}")


def _fetched_kind(spec: str) -> str | None:
    """Return the kind of the data where its files can be fetched from a hub."""
    kind = spec.partition(":")[0]
    return kind if kind in _FETCHED else None


def _shown(value: object) -> str:
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


def known_labels(run: CheckedRun, annotations: str | None) -> Iterator[RunFinding]:
    """Hold the run's labels to the annotations, and the run to all that these label.

    ``annotations`` is KIND:PATH; None: those that the run names, where they are at hand. Raises
    UserError where the user names some that cannot be read.
    """
    known = _expected_labels(run, annotations)
    if known is None:
        yield note(
            "labels_not_checked",
            "the labels were not held to their source: name it with --annotations KIND:PATH",
        )
        return
    other = [
        key
        for key, label in sorted(run.labels.items(), key=lambda each: each[0].order)
        if key not in known or _opinion(known[key]) != _opinion(label)
    ]
    if other:
        yield error(
            "other_labels",
            f"{len(other)} of {len(run.labels)} labels are not those of the annotations, "
            f"{other[0]} for one: judge again with these annotations",
        )
    split = run.part("selection").get("split")
    benchmarks = {benchmark_of(key) for key in run.rewards}
    due = {
        key
        for key, label in known.items()
        if label.success is not None
        and benchmark_of(key) in benchmarks
        and (split not in ("dev", "test") or label.split == split)
    }
    if absent := due - run.rewards.keys():
        first = min(absent, key=lambda key: key.order)
        yield warning(
            "dropped",
            f"{len(absent)} of {len(due)} labelled trajectories of these benchmarks are not in the "
            f"run, {first} for one: they count against its coverage",
        )


def _opinion(label: Annotation) -> tuple[bool | None, bool | None]:
    return label.success, label.process


def _expected_labels(run: CheckedRun, named: str | None) -> Labels | None:
    if named:
        annotations = open_annotations(named)
        if named.startswith(agentrewardbench.KIND) and not any(a.split for a in annotations):
            annotations = agentrewardbench.with_packaged_splits(annotations)
        return primary_labels(annotations)
    recorded = run.manifest.get("annotations")
    if recorded == SAMPLE:
        return primary_labels(find_source(SAMPLE, None).annotations)
    if recorded != agentrewardbench.KIND:
        return None  # a path of the submitter's machine
    try:
        return primary_labels(open_annotations(agentrewardbench.KIND))
    except UserError:
        return None
