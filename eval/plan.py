"""What a run will do, settled before anything is asked: data, labels, judge, folder."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from annotations import Annotation, Labels, primary_labels
from annotations.agentrewardbench import benchmark_of
from eval.manifest import RunManifest, code_version, default_folder
from eval.selection import Filters, select
from eval.source import Source, find_source, open_spec
from judges.model import Judge
from judges.registry import find_judge, make_judge, needs_of
from trajectories.added import stable_dump
from trajectories.errors import UserError
from trajectories.loaders import open_source
from trajectories.model import TrajectoryKey
from trajectories.needs import Needs


@dataclass(frozen=True)
class Plan:
    """``keys`` are judged, in this order; ``labels`` and ``annotations`` are theirs; ``needs`` is
    what the judge must see of each."""

    source: Source
    keys: tuple[TrajectoryKey, ...]
    labels: Labels
    judge_id: str
    judge: Judge
    needs: Needs
    manifest: RunManifest
    folder: Path

    def with_keys(self, keys: Sequence[TrajectoryKey]) -> Plan:
        """The same plan for some of its trajectories."""
        return replace(self, keys=tuple(keys))

    def below(self, folder: Path) -> Plan:
        """The same plan, its run in a folder of its own below ``folder``."""
        return replace(self, folder=folder / default_folder(self.manifest).name)

    @property
    def annotations(self) -> list[Annotation]:
        return [self.labels[key] for key in self.keys if key in self.labels]


def make_plan(
    options: argparse.Namespace, judge_options: Mapping[str, Any], calls: Mapping[str, Any]
) -> Plan:
    """Settle everything. ``judge_options`` come from the model's capabilities, ``calls`` is what
    the manifest says of the model (model, endpoint, parameters). Raises UserError."""
    source = find_source(options.data, options.annotations)
    labels = primary_labels(source.annotations)
    split = _split(options.split, labels)
    keys = _keys(options, source, labels, split)
    name, judge = make_judge(options.judge, judge_options)
    judge_id = f"{name}:{options.model}" if options.model else name
    manifest = RunManifest(
        judge=judge_id,
        card=_card(options.judge),
        prompt_hash=getattr(judge, "prompt_hash", None) or find_judge(options.judge).digest or None,
        options=shown_options(options.judge, judge_options),
        samples=options.samples,
        seed=options.seed,
        data=source.spec,
        annotations=source.labels,
        selection={"split": split, "trajectories": len(keys), **_asked(options)},
        protocol=options.protocol,
        version=code_version(),
        **calls,
    )
    folder = Path(options.out) if options.out else default_folder(manifest)
    kept = {key: labels[key] for key in keys if key in labels}
    needs = needs_of(options.judge, judge_options)
    return Plan(source, tuple(keys), kept, judge_id, judge, needs, manifest, folder)


def _split(asked: str | None, labels: Labels) -> str:
    has_splits = any(label.split for label in labels.values())
    if asked in ("dev", "test") and not has_splits:
        raise UserError(
            f"--split {asked}: the annotations of this data have no splits: leave it out"
        )
    return asked or ("test" if has_splits else "all")


def _keys(
    options: argparse.Namespace, source: Source, labels: Labels, split: str
) -> list[TrajectoryKey]:
    """The selected keys, without reading a trajectory where its key is in its path."""
    found: list[TrajectoryKey] = []

    def note(key: TrajectoryKey) -> bool:
        found.append(key)
        return False

    for _ in open_source(open_spec(source.spec), note):
        pass
    return select(
        found,
        Filters(
            benchmarks=options.benchmark or (),
            agents=options.agent or (),
            tasks=options.task or (),
            split=split,
            limit=options.limit,
            stratified=options.stratified,
        ),
        splits={(k.benchmark, k.task_id): a.split for k, a in labels.items() if a.split},
        benchmark_of=benchmark_of,
        rng=np.random.default_rng(options.seed),
    )


def _asked(options: argparse.Namespace) -> dict[str, Any]:
    names = ("benchmark", "agent", "task", "limit", "stratified")
    return {name: value for name in names if (value := getattr(options, name))}


def _card(judge: str) -> dict[str, Any]:
    from judges.cards import card_of  # noqa: PLC0415 - brings the templates' library

    card = card_of(judge, find_judge(judge))
    return card.model_dump(mode="json") if card else {}


def shown_options(judge: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """All options of the judge with their values, those that were left open as well; an option
    that is new since the first release only where it is not at its default."""
    kind = find_judge(judge).options_class
    return stable_dump(kind.model_validate(given))
