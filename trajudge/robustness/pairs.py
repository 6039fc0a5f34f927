"""Verdicts on runs and on their perturbed variants, or of the same judge asked otherwise, side by
side. Manifests identify the runs, so that runs that were judged elsewhere are compared in the same
way."""

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
from trajudge.robustness.model import Asking, LabelQuestion, Perturbation, Relation
from trajudge.robustness.perturb import VariantLine
from trajudge.robustness.subjects import MARK
from trajudge.trajectories.model import TrajectoryKey
from trajudge.util.terminal import one_line

IDENTITY = "identity"


class RunVerdict(NamedTuple):
    """A judge's verdict on a run: ``success`` None where it gave no verdict, the mean of its
    scores, the requests that it sent (their hashes), the replies that it got, and its reasons."""

    success: bool | None
    score: float | None = None
    requests: frozenset[str] = frozenset()
    replies: tuple[str, ...] = ()
    reasoning: str = ""


Verdicts = Mapping[TrajectoryKey, RunVerdict]


class PerturbedPairs(NamedTuple):
    """One perturbation's variants: ``clean`` and ``perturbed`` verdicts as 1, 0 or NaN (the judge
    gave none), the ``truth`` of the source as 1, 0 or NaN (not known), the task of each as a number
    from 0 (``cluster``), and its source. All (N,). ``verdicts``: those before and
    after (N,), empty where only the numbers are known. ``is_drawn_again``: the same prompt, of
    which the judge was asked once more."""

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
        """The scores before and after (2, N), NaN where there is none."""
        if not self.verdicts:
            return np.full((2, len(self.sources)), np.nan)
        columns = zip(*self.verdicts, strict=True)
        return np.stack([_numbers([one.score for one in column]) for column in columns])


class PairRow(NamedTuple):
    """The verdicts on a source and on one variant of it; ``truth`` is the source's, ``cluster``
    the number of its task."""

    source: TrajectoryKey
    cluster: int
    truth: float | None
    clean: RunVerdict
    perturbed: RunVerdict


def verdicts_of(judgments: Iterable[Judgment]) -> Verdicts:
    """Return one judge's verdict on each run: the majority of its samples, a tie is no success.

    None where no sample has one: a failure is never a "no".
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

    The clean verdict is that on the source, else that on its identity. Variants of which either
    side was not asked are left out; a judge that was asked and failed is NaN.
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
    """Return every source once, its clean verdict as both."""
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
    """Return the truth of the sources, as each variant states it, or those that keep it."""
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


# The same judge asked otherwise.

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
        """Whether no changed run was judged: their agents' names hold a ``~``."""
        keys = (one.key for some in self.judgments.values() for one in some)
        return not any(MARK in key.agent for key in keys)


def judged_run(folder: Path) -> RunInFolder:
    """Read a run; of judgments that come more than once the last counts, and a note on standard
    error says so. Raises UserError."""
    own: dict[str, list[Judgment]] = defaultdict(list)
    judgments, repeated = read_last_judgments(folder)
    sys.stderr.writelines(f"note: {one_line(note)}\n" for note in repeated)
    for judgment in judgments:
        own[judgment.judge].append(judgment)
    return RunInFolder(folder, read_manifest(folder), own)


class AskedRun(NamedTuple):
    """A run in which the judge ``base`` was asked as the perturbation says."""

    perturbation: Perturbation
    base: str
    run: RunInFolder


def asked_runs(runs: Sequence[RunInFolder]) -> list[AskedRun]:
    """Find the runs in which the judge of another run is asked otherwise."""
    askings = [(one, one.asking) for one in catalogue().values() if one.asking]
    return [
        AskedRun(one, name, other)
        for run in runs
        for name in run.judgments
        if not run.sources_only
        for other in runs
        if other is not run
        for one, asking in askings
        if (asking.dated or other.sources_only) and _is_asked(asking, run.manifest, other.manifest)
    ]


def _is_asked(asking: Asking, base: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Say whether the other differs from the base in what the asking changes, and only there."""
    wanted = _configuration(base)
    wanted["options"] = {**wanted["options"], **asking.options}
    if asking.temperature is not None:
        wanted["parameters"] = {**wanted["parameters"], "temperature": asking.temperature}
    if asking.samples > 1:
        wanted["samples"] = asking.samples
    actual = _configuration(other)
    if not asking.dated:
        return wanted == actual
    for one in (wanted, actual):  # what is known of a model goes by its name
        one["options"] = _without_limits(one["options"])
    return _is_version(wanted.pop("model"), actual.pop("model")) and wanted == actual


def _without_limits(options: Any) -> Any:
    """Return the options without what is known of models, also of a panel's members."""
    if isinstance(options, list):
        return [*map(_without_limits, options)]
    if not isinstance(options, dict):
        return options
    return {n: _without_limits(value) for n, value in options.items() if n not in _OF_MODELS}


def _configuration(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Read what makes a judge this judge, but for its prompt, which is another."""
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
    """Say whether a model's name is another one with a date behind it."""
    if not alias or not dated:
        return False
    stem = model_name(alias).removesuffix(_LATEST)
    name = model_name(dated)
    return name.startswith(stem) and _DATE.fullmatch(name[len(stem) :]) is not None


def asked_pairs(other: AskedRun, base: PerturbedPairs, clean: Verdicts) -> PerturbedPairs | None:
    """Pair the base judge's verdicts on the runs as they were (``base``, each once; ``clean`` with
    what it sent) with those of the same judge asked otherwise; None where it judged none of
    them. Several draws are a row each."""
    by_key: dict[TrajectoryKey, list[Judgment]] = defaultdict(list)
    for some in other.run.judgments.values():
        for judgment in some:
            by_key[judgment.key].append(judgment)
    asking = other.perturbation.asking or Asking()
    rows = [
        PairRow(source, int(base.cluster[index]), float(base.truth[index]), clean[source], verdict)
        for index, source in enumerate(base.sources)
        if source in clean
        for verdict in _drawn(asking, clean[source], by_key[source])
    ]
    return side_by_side(other.perturbation.name, Relation.KEEP, rows) if rows else None


def _drawn(
    asking: Asking, clean: RunVerdict, judgments: Sequence[Judgment]
) -> Iterator[RunVerdict]:
    """Yield the verdicts: of several draws each but those that the clean verdict is made of."""
    if asking.samples == 1:
        if judgments:
            yield verdict_of(judgments)
        return
    for judgment in sorted(judgments, key=lambda one: one.sample):
        verdict = verdict_of([judgment])
        if not verdict.requests or not verdict.requests <= clean.requests:
            yield verdict
