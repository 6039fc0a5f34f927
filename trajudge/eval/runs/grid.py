"""Several judges and models in one go: every ``--judge`` with every ``--model``, one run each.

The runs share the cache, so a stage that several judges have in common (a caption, a description)
is asked for once, and they share the budget of ``--max-cost``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from trajudge.annotations.model import Labels
from trajudge.eval.data.index.keys import are_equal
from trajudge.eval.data.inputs import MEMORY, DataSource, find_source
from trajudge.eval.data.label_fit import misfits
from trajudge.eval.data.sources import strangers_said
from trajudge.eval.runs.judge_options import judge_options
from trajudge.eval.runs.members import member_fields, models_of, no_judge_asks
from trajudge.eval.runs.plan import RunPlan, make_plan
from trajudge.eval.runs.settings import (
    ROLES,
    DataConfig,
    JudgeConfig,
    RunConfig,
    RunRequest,
)
from trajudge.judges.calls.settings import CallConfig
from trajudge.judges.defences.options import OF_PROMPTS
from trajudge.judges.entry import JudgeEntry
from trajudge.judges.registry import find_judge
from trajudge.trajectories.loaders import parse_source
from trajudge.trajectories.sample import SAMPLE
from trajudge.trajectories.sources.register import check_redistribution
from trajudge.trajectories.util.errors import UserError
from trajudge.trajectories.util.gc_pause import collection_paused

if TYPE_CHECKING:
    from trajudge.judges.calls.handle import ModelHandle

LEAN = (
    "note: the server is on this machine: asked through the lean http adapter (--adapter openai "
    "takes the SDK)"
)


@dataclass(frozen=True)
class PlannedRun:
    """One judge with one model (None: it needs none), planned."""

    config: JudgeConfig
    data: DataConfig
    calls: CallConfig
    run: RunConfig
    plan: RunPlan
    model: ModelHandle | None

    @property
    def total(self) -> int:
        """The judgments that it consists of."""
        return len(self.plan.keys) * self.run.samples


def plan_runs(request: RunRequest, source: DataSource | None = None) -> list[PlannedRun]:
    """Plan the runs that are asked for, in order; ``source`` is their data in place of the
    request's. Raises UserError for any that cannot work, before the first is begun."""
    wanted = list(_pairs(request))
    if request.batch.is_on and all(model is None for _, model in wanted):
        option = "--batch-files" if request.batch.batch_files else "--batch"
        raise UserError(f"{option}: {no_judge_asks([judge for judge, _ in wanted])}")
    data = request.data

    @cache
    def find() -> DataSource:
        return source or find_source(data.data, data.annotations, data.goals, data.labels_by)

    with collection_paused():
        runs = [
            _planned(request, _for_one(request, judge, model), find, len(wanted) > 1)
            for judge, model in wanted
        ]
    folders = [planned.plan.folder for planned in runs]
    for folder in folders:
        if folders.count(folder) > 1:
            raise UserError(f"duplicate run {folder}: name each judge, and each model, once")
    if request.run.export and (note := _export_note(find().spec, request.run.export_restricted)):
        sys.stderr.write(f"note: {note}\n")
    return runs


def _export_note(spec: str, allowed: bool) -> str:
    """Say what the card of the data leaves open of an export; raise UserError where it forbids
    one."""
    if spec.startswith(MEMORY):
        return ""
    kind = spec if spec == SAMPLE else parse_source(spec)[0]
    return check_redistribution(kind, allowed=allowed)


def _pairs(request: RunRequest) -> Iterator[tuple[str, str | None]]:
    models: Sequence[str] = request.models
    for judge in request.judges:
        if find_judge(judge).composed:
            one = _for_one(request, judge, None)
            yield from ((judge, model) for model in models_of(one, models))
        elif not find_judge(judge).needs_model:
            yield judge, None
        elif not models:
            raise UserError(
                f"--judge {judge} asks a model: name it with --model NAME, such as gpt-4o; "
                "the judges heuristic and rule-based need none"
            )
        else:
            yield from ((judge, model) for model in models)


def _for_one(request: RunRequest, judge: str, model: str | None) -> JudgeConfig:
    """Return the settings of one run: what only other judges of the grid take is left out."""
    entries = [find_judge(name) for name in request.judges]
    mine = find_judge(judge)
    mended: dict[str, object] = {"judge": judge, "model": model}
    for role in ROLES:
        if role not in mine.models and any(role in entry.models for entry in entries):
            mended[f"{role}_model"] = None
    if not mine.representations and any(entry.representations for entry in entries):
        mended["representation"] = None
    one = request.judge.model_copy(update=mended)
    takes = {name for entry in entries for name in entry.options_class.model_fields}
    foreign = takes - set(mine.options_class.model_fields)
    if mine.composed:
        foreign -= member_fields(one)
    if not _asks(mine) and any(map(_asks, entries)):
        foreign |= set(OF_PROMPTS)
    options = {name: value for name, value in one.options.items() if name not in foreign}
    mended = {"options": options, "success_last": one.success_last and "success" not in foreign}
    if "prompts" in foreign:
        mended["prompts"] = None
    return one.model_copy(update=mended)


def _asks(entry: JudgeEntry) -> bool:
    return entry.needs_model or entry.composed


def _planned(
    request: RunRequest,
    config: JudgeConfig,
    find: Callable[[], DataSource],
    is_one_of_many: bool,
) -> PlannedRun:
    data, calls, run = request.data, request.calls, request.run
    model = None
    if config.model is not None:
        from trajudge.eval.runs.members import make_model_handle  # noqa: PLC0415 - baselines need no model

        model = make_model_handle(config, calls)
    plan = make_plan(
        config,
        data,
        run,
        find(),
        seed=calls.seed,
        judge_options=judge_options(config, model),
        calls=model.manifest if model else {},
    )
    if is_one_of_many and run.out:
        plan = plan.below(run.out)
    return PlannedRun(config, data, calls, run, plan, model)


def labels_of_runs(runs: Sequence[PlannedRun]) -> Labels:
    """Return the labels of all runs: one mapping, where they judge the same trajectories of one
    source."""
    first = runs[0].plan
    plans = [planned.plan for planned in runs]
    if all(p.source is first.source and are_equal(p.keys, first.keys) for p in plans):
        return first.labels
    return {key: label for planned in runs for key, label in planned.plan.labels.items()}


def say_sources(runs: Sequence[PlannedRun], *, is_asked: bool = True) -> None:
    """Say what was chosen for the user, and what labels do not fit, once. ``is_asked``: whether
    requests go to the model's server, and not into files."""
    notes = [planned.plan.source.note for planned in runs]
    notes += [_strangers(planned.plan) for planned in runs]
    for plan in (planned.plan for planned in runs):
        notes += misfits(plan.label_fit, str(plan.source.labels))
    handles = [handle for run in runs if run.model for handle in run.model.handles.values()]
    if is_asked and any(h.adapter.name == "http" and not h.calls.adapter for h in handles):
        notes.append(LEAN)
    for note in dict.fromkeys(filter(None, notes)):
        sys.stderr.write(note + "\n")


def _strangers(plan: RunPlan) -> str:
    """Say where none of the labels belongs to a trajectory, and by what one of either is known;
    nothing where one does."""
    if len(plan.labels) or not len(plan.known):
        return ""
    return "warning: " + strangers_said(str(plan.source.labels), plan.known, plan.keys.key(0))
