"""Pairs of verdicts on runs and on their perturbed variants, or of a judge with and without a
perturbation of the call. Runs are identified by manifests, also runs that were judged elsewhere."""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trajudge.annotations.agentrewardbench import family_of
from trajudge.eval.sources import read_last_judgments
from trajudge.eval.store.run_folder import read_manifest
from trajudge.judges.model import Judgment, Status
from trajudge.judges.models import model_name
from trajudge.robustness.catalogue import catalogue
from trajudge.robustness.model import CallChange, LabelQuestion, Perturbation, Relation
from trajudge.robustness.perturb import VariantLine
from trajudge.robustness.subjects import MARK
from trajudge.trajectories.model import TrajectoryKey
from trajudge.util.terminal import one_line

IDENTITY = "identity"


class RunVerdict(NamedTuple):
    """A judge's verdict on a run: ``success`` (None without a verdict), the mean of its scores,
    the hashes of its requests, its replies and its reasons."""

    success: bool | None
    score: float | None = None
    requests: frozenset[str] = frozenset()
    replies: tuple[str, ...] = ()
    reasoning: str = ""


Verdicts = Mapping[TrajectoryKey, RunVerdict]


class PerturbedPairs(NamedTuple):
    """The pairs of one perturbation: ``clean`` and ``perturbed`` verdicts as 1, 0 or NaN (no
    verdict), the ``truth`` of the source as 1, 0 or NaN (unknown), the task's index
    (``cluster``), and the source. All (N,). ``verdicts``: the verdicts before and after (N,),
    empty if only the numbers are known. ``is_drawn_again``: repeated draws of the same prompt."""

    name: str
    relation: Relation
    clean: NDArray[np.float64]
    perturbed: NDArray[np.float64]
    truth: NDArray[np.float64]
    cluster: NDArray[np.int64]
    sources: tuple[TrajectoryKey, ...]
    verdicts: tuple[tuple[RunVerdict, RunVerdict], ...] = ()
    is_drawn_again: bool = False

    @property
    def benchmark(self) -> NDArray[np.str_]:
        """The benchmark of each (N,)."""
        return np.array([source.benchmark for source in self.sources], str)

    @property
    def scores(self) -> NDArray[np.float64]:
        """The scores before and after (2, N), NaN without one."""
        if not self.verdicts:
            return np.full((2, len(self.sources)), np.nan)
        columns = zip(*self.verdicts, strict=True)
        return np.stack([_numbers([one.score for one in column]) for column in columns])


class PairRow(NamedTuple):
    """The verdicts on a source and on one variant; ``truth`` is the source's, ``cluster`` the
    index of its task."""

    source: TrajectoryKey
    cluster: int
    truth: float | None
    clean: RunVerdict
    perturbed: RunVerdict


def verdicts_of(judgments: Iterable[Judgment]) -> Verdicts:
    """Return one judge's verdict on each run: the majority of its samples; a tie is not a success.

    None if no sample has a verdict: a failure is never a "no".
    """
    by_key: dict[TrajectoryKey, list[Judgment]] = defaultdict(list)
    for judgment in judgments:
        by_key[judgment.key].append(judgment)
    return {key: verdict_of(made) for key, made in by_key.items()}


def verdict_of(judgments: Sequence[Judgment]) -> RunVerdict:
    """Return a judge's verdict on one run: the majority of these judgments."""
    answered = [one for one in judgments if one.status is Status.OK and one.success is not None]
    scores = [one.score for one in answered if one.score is not None]
    return RunVerdict(
        2 * sum(one.success is True for one in answered) > len(answered) if answered else None,
        sum(scores) / len(scores) if scores else None,
        frozenset(call.request for one in judgments for call in one.calls),
        tuple(call.text for one in judgments for call in one.calls),
        next((one.reasoning for one in answered if one.reasoning), ""),
    )


def perturbed_pairs(variants: Sequence[VariantLine], verdicts: Verdicts) -> list[PerturbedPairs]:
    """Return the pairs of each perturbation, in the order of the variants.

    The clean verdict is that on the source, else that on its identity. Variants without a judgment
    of either side are omitted; a failed judgment is NaN.
    """
    identity = {one.of: one.key for one in variants if one.perturbation == IDENTITY}
    clean = {
        one.of: verdicts[key]
        for one in variants
        for key in (identity.get(one.of, one.of), one.of)
        if key in verdicts
    }
    truth = _truth(variants)
    tasks = {(one.of.benchmark, family_of(one.of)): 0 for one in variants}
    number = {task: index for index, task in enumerate(sorted(tasks))}
    by_name: dict[str, list[VariantLine]] = defaultdict(list)
    for one in variants:
        if one.key in verdicts and one.of in clean:
            by_name[one.perturbation].append(one)

    def row(one: VariantLine) -> PairRow:
        cluster = number[one.of.benchmark, family_of(one.of)]
        return PairRow(one.of, cluster, truth.get(one.of), clean[one.of], verdicts[one.key])

    return [
        side_by_side(
            name,
            lines[0].relations[LabelQuestion.SUCCESS],
            list(map(row, lines)),
            is_drawn_again=all(one.sample and one.of in verdicts for one in lines),
        )
        for name, lines in by_name.items()
    ]


def side_by_side(
    name: str, relation: Relation, rows: Sequence[PairRow], *, is_drawn_again: bool = False
) -> PerturbedPairs:
    """Return the pairs of one perturbation, in the order of the rows."""
    return PerturbedPairs(
        name,
        relation,
        _numbers([one.clean.success for one in rows]),
        _numbers([one.perturbed.success for one in rows]),
        _numbers([one.truth for one in rows]),
        np.array([one.cluster for one in rows]),
        tuple(one.source for one in rows),
        tuple((one.clean, one.perturbed) for one in rows),
        is_drawn_again,
    )


def runs_as_they_were(everything: Sequence[PerturbedPairs]) -> PerturbedPairs:
    """Return every source once, with its clean verdict on both sides."""
    whole = [
        np.concatenate(columns) for columns in zip(*(one[2:6] for one in everything), strict=True)
    ]
    sources = [source for one in everything for source in one.sources]
    first = {source: index for index, source in reversed(list(enumerate(sources)))}
    positions = sorted(first.values())
    clean, _, truth, cluster = (column[positions] for column in whole)
    kept = tuple(sources[index] for index in positions)
    return PerturbedPairs(IDENTITY, Relation.KEEP, clean, clean, truth, cluster, kept)


def _truth(variants: Sequence[VariantLine]) -> dict[TrajectoryKey, bool]:
    """Return the truth of the sources, from variants that state or keep it."""
    truths = {}
    for one in variants:
        truth = one.truth.get(LabelQuestion.SUCCESS)
        if one.source_truth is not None:
            truths[one.of] = one.source_truth
        elif one.relations.get(LabelQuestion.SUCCESS) is Relation.KEEP and truth is not None:
            truths[one.of] = truth
    return truths


def _numbers(values: Sequence[float | None]) -> NDArray[np.float64]:
    return np.array([np.nan if value is None else float(value) for value in values])


# Perturbations of the call.

_DATE = re.compile(r"-(\d{4}-\d{2}-\d{2}|\d{8}|\d{6}|\d{4}|\d{3})")
_LATEST = "-latest"
_OF_MODELS = ("max_prompt_tokens", "images")


class RunInFolder(NamedTuple):
    """A run: its folder, its manifest, and its judgments by judge."""

    folder: Path
    manifest: Mapping[str, Any]
    judgments: Mapping[str, Sequence[Judgment]]

    @property
    def sources_only(self) -> bool:
        """Whether no perturbed run was judged, whose agents' names contain ``~``."""
        keys = (one.key for some in self.judgments.values() for one in some)
        return not any(MARK in key.agent for key in keys)


def judged_run(folder: Path) -> RunInFolder:
    """Read a run; of repeated judgments the last counts, with a note on standard error. Raises
    UserError."""
    own: dict[str, list[Judgment]] = defaultdict(list)
    judgments, repeated = read_last_judgments(folder)
    sys.stderr.writelines(f"note: {one_line(note)}\n" for note in repeated)
    for judgment in judgments:
        own[judgment.judge].append(judgment)
    return RunInFolder(folder, read_manifest(folder), own)


class CallChangeRun(NamedTuple):
    """A run of the judge ``base`` with a perturbation of the call."""

    perturbation: Perturbation
    base: str
    run: RunInFolder


def call_change_runs(runs: Sequence[RunInFolder]) -> list[CallChangeRun]:
    """Return the runs of another run's judge with a perturbation of the call."""
    askings = [(one, one.asking) for one in catalogue().values() if one.asking]
    return [
        CallChangeRun(one, name, other)
        for run in runs
        for name in run.judgments
        if not run.sources_only
        for other in runs
        if other is not run
        for one, asking in askings
        if (asking.dated or other.sources_only)
        and _is_call_change(asking, run.manifest, other.manifest)
    ]


def _is_call_change(asking: CallChange, base: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Return True if the other configuration differs from the base exactly as the perturbation
    does."""
    wanted = _configuration(base)
    wanted["options"] = {**wanted["options"], **asking.options}
    if asking.temperature is not None:
        wanted["parameters"] = {**wanted["parameters"], "temperature": asking.temperature}
    if asking.samples > 1:
        wanted["samples"] = asking.samples
    actual = _configuration(other)
    if not asking.dated:
        return wanted == actual
    for one in (wanted, actual):  # properties of a model are stored by its name
        one["options"] = _without_limits(one["options"])
    return _is_version(wanted.pop("model"), actual.pop("model")) and wanted == actual


def _without_limits(options: Any) -> Any:
    """Return the options without properties of models, also in a panel's members."""
    if isinstance(options, list):
        return [*map(_without_limits, options)]
    if not isinstance(options, dict):
        return options
    return {n: _without_limits(value) for n, value in options.items() if n not in _OF_MODELS}


def _configuration(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return the configuration of a judge except its prompt, which differs."""
    card = manifest.get("card") or {}
    return {
        "card": card.get("name") or str(manifest.get("judge", "")).partition(":")[0],
        "model": manifest.get("model"),
        "endpoint": manifest.get("endpoint"),
        "parameters": manifest.get("parameters") or {},
        "options": manifest.get("options") or {},
        "samples": manifest.get("samples", 1),
    }


def _is_version(alias: str | None, dated: str | None) -> bool:
    """Return True if a model's name is another name followed by a date."""
    if not alias or not dated:
        return False
    stem = model_name(alias).removesuffix(_LATEST)
    name = model_name(dated)
    return name.startswith(stem) and _DATE.fullmatch(name[len(stem) :]) is not None


def call_change_pairs(
    other: CallChangeRun, base: PerturbedPairs, clean: Verdicts
) -> PerturbedPairs | None:
    """Pair the base judge's verdicts on the unchanged runs (``base``, each once; ``clean`` with
    its requests) with those under a perturbation of the call; None without any. Each draw is a
    row."""
    by_key: dict[TrajectoryKey, list[Judgment]] = defaultdict(list)
    for some in other.run.judgments.values():
        for judgment in some:
            by_key[judgment.key].append(judgment)
    asking = other.perturbation.asking or CallChange()
    rows = [
        PairRow(source, int(base.cluster[index]), float(base.truth[index]), clean[source], verdict)
        for index, source in enumerate(base.sources)
        if source in clean
        for verdict in _drawn(asking, clean[source], by_key[source])
    ]
    return side_by_side(other.perturbation.name, Relation.KEEP, rows) if rows else None


def _drawn(
    asking: CallChange, clean: RunVerdict, judgments: Sequence[Judgment]
) -> Iterator[RunVerdict]:
    """Yield the verdicts; of several draws all except those of the clean verdict."""
    if asking.samples == 1:
        if judgments:
            yield verdict_of(judgments)
        return
    for judgment in sorted(judgments, key=lambda one: one.sample):
        verdict = verdict_of([judgment])
        if not verdict.requests or not verdict.requests <= clean.requests:
            yield verdict
