"""Verdicts of a judge and of the same judge asked otherwise, side by side.

Which run is which the manifests tell, so that runs that were judged elsewhere are compared alike.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from trajudge.eval.sources import read_last_judgments
from trajudge.eval.store.run_folder import read_manifest
from trajudge.judges.model import Judgment
from trajudge.judges.models import model_name
from trajudge.robustness.catalogue import catalogue
from trajudge.robustness.facts import MARK
from trajudge.robustness.measures.pairs import (
    PairRow,
    PerturbedPairs,
    RunVerdict,
    Verdicts,
    side_by_side,
    verdict_of,
)
from trajudge.robustness.model import Asking, Perturbation, Relation
from trajudge.trajectories.model import TrajectoryKey
from trajudge.util.terminal import one_line

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
    found = _configuration(other)
    if not asking.dated:
        return wanted == found
    for one in (wanted, found):  # what is known of a model goes by its name
        one["options"] = _without_limits(one["options"])
    return _is_version(wanted.pop("model"), found.pop("model")) and wanted == found


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


def asked_pairs(asked: AskedRun, base: PerturbedPairs, clean: Verdicts) -> PerturbedPairs | None:
    """Pair the base judge's verdicts on the runs as they were (``base``, each once; ``clean`` with
    what it sent) with those of the same judge asked otherwise; None where it judged none of
    them. Several draws are a row each."""
    said: dict[TrajectoryKey, list[Judgment]] = defaultdict(list)
    for some in asked.run.judgments.values():
        for judgment in some:
            said[judgment.key].append(judgment)
    asking = asked.perturbation.asking or Asking()
    rows = [
        PairRow(source, int(base.cluster[place]), float(base.truth[place]), clean[source], verdict)
        for place, source in enumerate(base.sources)
        if source in clean
        for verdict in _drawn(asking, clean[source], said[source])
    ]
    return side_by_side(asked.perturbation.name, Relation.KEEP, rows) if rows else None


def _drawn(
    asking: Asking, clean: RunVerdict, judgments: Sequence[Judgment]
) -> Iterator[RunVerdict]:
    """Yield what was said: of several draws each but those that the clean verdict is made of."""
    if asking.samples == 1:
        if judgments:
            yield verdict_of(judgments)
        return
    for judgment in sorted(judgments, key=lambda one: one.sample):
        verdict = verdict_of([judgment])
        if not verdict.requests or not verdict.requests <= clean.requests:
            yield verdict
