"""What a run will do, settled before anything is asked: data, labels, judge, folder."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from trajudge.annotations import Annotation, Labels
from trajudge.annotations.agentrewardbench import benchmark_of
from trajudge.eval.data.index.keys import KeyColumns
from trajudge.eval.data.index.labels import RunLabels, labels_of, splits_of
from trajudge.eval.data.inputs import DataIndex, DataSource
from trajudge.eval.data.label_fit import LabelFit, label_fit, refuse_strangers
from trajudge.eval.data.manifest import RunManifest, code_version, default_folder
from trajudge.eval.data.run_folder import MANIFEST, read_manifest, unreadable_said
from trajudge.eval.runs.members import composed_id
from trajudge.eval.runs.selection import Filters, select, without_split
from trajudge.eval.runs.settings import DataConfig, JudgeConfig, RunConfig
from trajudge.judges.defences.options import own_options, read_defences
from trajudge.judges.model import Judge
from trajudge.judges.registry import (
    answer_options,
    find_judge,
    make_judge,
    needs_of,
    with_model,
)
from trajudge.judges.training_set import key_hash, training_hashes
from trajudge.trajectories.added import stable_dump
from trajudge.trajectories.model import TrajectoryKey, Unreadable
from trajudge.trajectories.needs import Needs
from trajudge.trajectories.util.errors import UserError


@dataclass(frozen=True)
class RunPlan:
    """``keys`` are judged, in this order; ``known`` are labels of these and of others; ``needs`` is
    what the judge must see of each; ``unreadable`` is what the data holds beside them, and
    ``label_fit`` how the labels fit them.
    ``earlier_id`` is how earlier releases named the judge; ``answer_options`` are those of
    ``judges.registry``."""

    source: DataSource
    keys: KeyColumns
    unreadable: tuple[Unreadable, ...]
    label_fit: LabelFit
    known: Labels
    judge_id: str
    earlier_id: str
    judge: Judge
    needs: Needs
    manifest: RunManifest
    folder: Path
    answer_options: Mapping[str, str]

    def with_keys(self, keys: KeyColumns) -> RunPlan:
        """Return the same plan for some of its trajectories."""
        return replace(self, keys=keys)

    def below(self, folder: Path) -> RunPlan:
        """Return the same plan, its run in a folder of its own below ``folder``."""
        plan = replace(self, folder=folder / default_folder(self.manifest).name)
        return plan.under_its_name()

    def under_its_name(self) -> RunPlan:
        """Return the plan under the name that the run has in its folder, if an earlier release
        began it: its judgments are by that name. Raises UserError for a folder that cannot be
        read."""
        earlier = self.manifest.model_copy(update={"judge": self.earlier_id})
        folder = self.folder
        if folder.name == default_folder(self.manifest).name:
            folder = folder.with_name(default_folder(earlier).name)
        if self.earlier_id == self.judge_id or not (folder / MANIFEST).is_file():
            return self
        if read_manifest(folder).get("judge") != self.earlier_id:
            return self
        return replace(self, judge_id=self.earlier_id, manifest=earlier, folder=folder)

    @property
    def training(self) -> dict[str, set[TrajectoryKey]]:
        """The trajectories that the judge was trained on, by its id."""
        hashes = set(self.manifest.training_keys)
        mine = {key for key in self.keys if hashes and key_hash(key) in hashes}
        return {self.judge_id: mine} if mine else {}

    @cached_property
    def labels(self) -> Labels:
        """The labels of ``keys``, in their order."""
        if isinstance(self.known, RunLabels):
            return self.known.of(self.keys)
        return {key: self.known[key] for key in self.keys if key in self.known}

    @property
    def annotations(self) -> Iterable[Annotation] | RunLabels:
        """The labels by themselves."""
        return self.labels if isinstance(self.labels, RunLabels) else self.labels.values()


class MadeJudge(NamedTuple):
    """A judge with its id, and what a manifest says of it beside that; ``earlier_id`` is how
    earlier releases named it."""

    id: str
    earlier_id: str
    judge: Judge
    needs: Needs
    prompt_hash: str | None
    options: dict[str, Any]


def made_judge(config: JudgeConfig, options: Mapping[str, Any]) -> MadeJudge:
    """Make the judge of a run. Raises UserError for options that it does not take."""
    name, judge = make_judge(config.judge, options)
    named = with_model(name, config.model)
    return MadeJudge(
        id=composed_id(config, name) if find_judge(config.judge).composed else named,
        earlier_id=named,
        judge=judge,
        needs=needs_of(config.judge, options),
        prompt_hash=getattr(judge, "prompt_hash", None) or find_judge(config.judge).digest or None,
        options=shown_options(config.judge, options),
    )


def make_plan(
    config: JudgeConfig,
    data: DataConfig,
    run: RunConfig,
    source: DataSource,
    *,
    seed: int,
    judge_options: Mapping[str, Any],
    calls: Mapping[str, Any],
) -> RunPlan:
    """Settle everything. ``judge_options`` come from the model's capabilities, ``calls`` is what
    the manifest says of the model (model, endpoint, parameters). Raises UserError."""
    labels = labels_of(source.annotations)
    split = _split(data.split, labels)
    index = _index(source, strict=data.strict)
    refuse_strangers(str(source.labels), index.keys, labels, split)
    filters, splits = _filters(data, split), splits_of(labels)
    rng = np.random.default_rng(seed)
    keys = select(index.keys, filters, splits=splits, benchmark_of=benchmark_of, rng=rng)
    unsplit = without_split(index.keys, filters, splits=splits, benchmark_of=benchmark_of)
    made = made_judge(config, judge_options)
    manifest = RunManifest(
        judge=made.id,
        card=_card(config.judge),
        prompt_hash=made.prompt_hash,
        options=made.options,
        samples=run.samples,
        seed=seed,
        data=source.spec,
        revision=source.revision,
        annotations=source.labels,
        selection={"split": split, "trajectories": len(keys), **_asked(data)},
        protocol=run.protocol,
        version=code_version(),
        training_keys=_trained_on(made.id, made.judge, keys),
        loader_digest=source.loader_digest,
        goals=source.goals.digest if source.goals else None,
        judge_versions=_versions(config.judge, judge_options),
        **calls,
    )
    folder = run.out if run.out else default_folder(manifest)
    plan = RunPlan(
        source=source,
        keys=keys,
        unreadable=index.unreadable,
        label_fit=label_fit(index.keys, keys, unsplit, labels),
        known=labels,
        judge_id=made.id,
        earlier_id=made.earlier_id,
        judge=made.judge,
        needs=made.needs,
        manifest=manifest,
        folder=folder,
        answer_options=answer_options(config.judge, judge_options),
    )
    return plan.under_its_name()


def _split(asked: str | None, labels: Labels) -> str:
    has_splits = bool(splits_of(labels))
    if asked in ("dev", "test") and not has_splits:
        raise UserError(
            f"--split {asked}: the annotations of this data have no splits: leave it out"
        )
    return asked or ("test" if has_splits else "all")


def _index(source: DataSource, *, strict: bool) -> DataIndex:
    """Read the keys. Raises UserError where there are none, and under ``--strict`` where anything
    could not be read."""
    index = source.read_index()
    if strict and index.unreadable:
        raise strict_stop(index.unreadable[0])
    if not len(index.keys):
        why = f", only {unreadable_said(index.unreadable)}" if index.unreadable else ""
        raise UserError(
            f"--data {source.spec}: holds no trajectory that can be read{why}: name other data"
        )
    return index


def strict_stop(item: Unreadable) -> UserError:
    """Make the error by which ``--strict`` ends a run at what could not be read."""
    return UserError(f"{item.source}: {item.reason} (--strict stops here)")


def _filters(data: DataConfig, split: str) -> Filters:
    return Filters(
        benchmarks=data.benchmark,
        agents=data.agent,
        tasks=data.task,
        split=split,
        limit=data.limit,
        stratified=data.stratified,
    )


def _asked(data: DataConfig) -> dict[str, Any]:
    names = ("benchmark", "agent", "task", "limit", "stratified")
    found = data.model_dump(mode="json", include=set(names))
    return {name: found[name] for name in names if found[name]}


def _trained_on(judge_id: str, judge: Judge, keys: KeyColumns) -> list[str]:
    """Return the hashes of those of ``keys`` that the judge was trained on."""
    hashes = training_hashes(judge)
    if hashes is None:
        sys.stderr.write(
            f"warning: {judge_id} was trained on trajectories that its file does not name: its "
            "scores may be those on its training set; train it again with  trajudge "
            "telemetry --save FILE\n"
        )
    return sorted(hashes & {key_hash(key) for key in keys}) if hashes else []


def _card(judge: str) -> dict[str, Any]:
    from trajudge.judges.cards import card_of  # noqa: PLC0415 - brings the templates' library

    card = card_of(judge, find_judge(judge))
    return card.model_dump(mode="json") if card else {}


def _versions(judge: str, options: Mapping[str, Any]) -> dict[str, int]:
    from trajudge.judges.cards import versions_of  # noqa: PLC0415 - brings the templates' library

    return versions_of(judge, options)


def shown_options(judge: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return all options of the judge with their values, those that were left open as well; an
    option that is new since the first release only where it is not at its default."""
    kind = find_judge(judge).options_class
    shown = stable_dump(kind.model_validate(own_options(kind, given)))
    return {**shown, **read_defences(judge, kind, given).given}
