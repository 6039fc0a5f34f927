"""What a run will do, settled before anything is asked: judges and models, data and labels, the
trajectories that are selected, and several judges in one go.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from trajudge.annotations import Labels
from trajudge.annotations.agentrewardbench import benchmark_of
from trajudge.eval.runs.settings import (
    OF_ANSWERS,
    ROLES,
    DataConfig,
    JudgeConfig,
    RunConfig,
    RunRequest,
)
from trajudge.eval.sources import (
    LabelFit,
    label_fit,
    misfits,
    refuse_unmatched_labels,
    unmatched_labels_message,
)
from trajudge.eval.store.inputs import MEMORY, DataIndex, DataSource, find_source
from trajudge.eval.store.labels import RunLabels, labels_of, splits_of
from trajudge.eval.store.manifest import RunManifest, code_version, default_folder
from trajudge.eval.store.run_folder import unreadable_said
from trajudge.eval.store.table import KeyColumns, are_equal, first_of_each
from trajudge.judges.adapters.local import shown_model
from trajudge.judges.calls.handle import ModelHandle, single_model
from trajudge.judges.calls.settings import CallConfig
from trajudge.judges.defences import OF_PROMPTS, own_options, read_defences
from trajudge.judges.fidelity import published_texts
from trajudge.judges.model import REPAIR, Judge
from trajudge.judges.registry import (
    JudgeEntry,
    answer_options,
    check_representation,
    find_judge,
    make_judge,
    needs_of,
    split_model,
    versions_of,
    with_model,
)
from trajudge.judges.training import key_hash, training_hashes
from trajudge.stats.intervals import Bools, Ints
from trajudge.trajectories.loaders import parse_source
from trajudge.trajectories.model import TrajectoryKey, Unreadable
from trajudge.trajectories.needs import Needs
from trajudge.trajectories.sample import SAMPLE
from trajudge.trajectories.sources import check_redistribution
from trajudge.util.errors import UserError, did_you_mean
from trajudge.util.machine import collection_paused

MEMBER = "member "

"""Before a model's name in ``ModelHandle.others``: a model that a member asks."""


class NamedMember(NamedTuple):
    """A judge of a composed one, as ``--members`` names it; ``model`` None: that of ``--model``,
    where it asks one."""

    name: str
    entry: JudgeEntry
    model: str | None

    def id_with(self, model: str | None) -> str:
        """Return its id, with ``model`` where it asks one and names none."""
        return with_model(self.name, self.model or (model if self.entry.needs_model else None))


def named_members(config: JudgeConfig) -> list[NamedMember]:
    """Return the members of a composed judge. Raises UserError for one that cannot be a member."""
    if not config.members:
        raise UserError(
            f"--judge {config.judge} needs its members: --members NAME[:MODEL],NAME[:MODEL]"
        )
    members = []
    for text in config.members.split(","):
        name, model = split_model(text.strip())
        entry = find_judge(name)
        if entry.composed:
            raise UserError(f"--members {text}: a composed judge cannot be a member of another")
        if model and not entry.needs_model:
            raise UserError(f"--members {text}: judge {name} asks no model: leave {model} out")
        members.append(NamedMember(name, entry, model or None))
    return members


def models_of(config: JudgeConfig, models: Sequence[str]) -> Sequence[str | None]:
    """Return the models that a composed judge is run with: ``--model``, for members that name none;
    without such a member, once."""
    asking = [member.model for member in named_members(config) if member.entry.needs_model]
    if None not in asking:
        return [next(iter(asking), None)]
    if not models:
        raise UserError(
            f"--judge {config.judge} --members {config.members}: a member asks a model: name it "
            "with --model, or as NAME:MODEL"
        )
    return models


def composed_id(config: JudgeConfig, name: str) -> str:
    """Put each member's own model into ``name``, the composed judge's. Raises UserError for a
    member that is then another's double, whose vote would count twice."""
    members = named_members(config)
    given = "+".join(member.id_with(None) for member in members)
    asked = [member.id_with(config.model) for member in members]
    if twice := [each for place, each in enumerate(asked) if each in asked[:place]]:
        raise UserError(
            f"--members {config.members}: with --model {config.model} two members are {twice[0]}: "
            "name each judge and model once"
        )
    return name.replace(f"of-{given}", f"of-{'+'.join(asked)}", 1)


def member_fields(config: JudgeConfig) -> set[str]:
    """Return the options that any member takes."""
    members = named_members(config)
    return {field for member in members for field in member.entry.options_class.model_fields}


def without_effect(
    judges: Sequence[str], models: Sequence[str], judge: JudgeConfig, calls: CallConfig
) -> list[str]:
    """Name the options that say which model answers, or how, where no judge or member asks one, in
    a sentence at most: a loop over judges may give them to all. Limits on calls hold there, too."""

    roles = [name for role in ROLES if getattr(judge, name := f"{role}_model") is not None]
    answers = [name for name in OF_ANSWERS if name in calls.model_fields_set]
    given = [*(["model"] if models else []), *roles, *answers]
    configs = [judge.model_copy(update={"judge": name}) for name in judges]
    if any(map(_asks, configs)):
        if not models or any(_asks(config, models_of_their_own=False) for config in configs):
            return []
        return ["each judge or member that asks a model names its own: without effect: --model"]
    if not given:
        return []
    options = ", ".join(f"--{name.replace('_', '-')}" for name in given)
    return [f"{_none_asks(judges)} a model: without effect: {options}"]


def warn_without_effect(request: RunRequest) -> None:
    """Say on standard error which options have no effect."""
    for line in without_effect(request.judges, request.models, request.judge, request.calls):
        sys.stderr.write(f"warning: {line}\n")


def _asks(config: JudgeConfig, *, models_of_their_own: bool = True) -> bool:
    """Tell whether the judge asks a model, itself or for a named member; ``models_of_their_own``:
    also for members that name theirs."""
    entry = find_judge(config.judge)
    if not entry.composed or not config.members:
        return entry.needs_model or entry.composed
    return any(
        member.entry.needs_model and (models_of_their_own or not member.model)
        for member in named_members(config)
    )


def no_judge_asks(judges: Sequence[str]) -> str:
    """Say that none of these judges asks a model, and what to do with an option of calls."""
    return f"{_none_asks(judges)} a model, so that there are no requests: leave it out"


def _none_asks(judges: Sequence[str]) -> str:
    return "no judge here asks" if len(judges) > 1 else f"judge {judges[0]} does not ask"


def make_model_handle(config: JudgeConfig, calls: CallConfig) -> ModelHandle:
    """Make the model of ``--model`` and the options beside it. Raises UserError for what cannot
    work."""
    if config.model is None:
        raise ValueError("a model handle has a model")
    named = {role: getattr(config, f"{role}_model") for role in ROLES}
    if find_judge(config.judge).composed:
        named |= {MEMBER + str(each.model): each.model for each in named_members(config)}
    others = {
        role: single_model(model, calls)
        for role, model in named.items()
        if model is not None and model != config.model
    }
    return replace(single_model(config.model, calls), others=others)


def judge_options(config: JudgeConfig, model: ModelHandle | None) -> dict[str, Any]:
    """Return the options for ``judges.registry.make_judge``; ``model`` None: the judge needs none.

    What the command line leaves open is left to the judge. Raises UserError for what this judge
    cannot do, or cannot do with these models.
    """
    entry = find_judge(config.judge)
    given = _given(config)
    if "representation" in given:
        check_representation(config.judge, given["representation"])
        if len(entry.representations) == 1:
            del given["representation"]
    for role, handle in model.others.items() if model else ():
        if role not in entry.models and not role.startswith(MEMBER):
            raise UserError(
                f"--{role}-model {handle.model}: judge {config.judge} has no {role}: leave the "
                "option out"
            )
    if entry.composed:
        return _composed_options(config, model, given)
    if model is None:
        return given
    return _model_options(config, entry, model, "--model", given.get("representation")) | given


def _model_options(
    config: JudgeConfig,
    entry: JudgeEntry,
    model: ModelHandle,
    option: str,
    representation: str | None = None,
) -> dict[str, Any]:
    """Return the judge's options that follow from its models. Raises UserError for a model that
    lacks what the judge needs."""
    if entry.logprobs and not model.gives_logprobs:
        raise UserError(
            f"{option} {model.model}: Anthropic's protocol gives no token probabilities, which "
            f"judge {entry.name} is made of: name another model or judge"
        )
    for role in ("judge", *entry.models):
        handle = model.others.get(role, model)
        if entry.needs_pictures(role, representation) and not handle.known.images:
            named = option if handle is model else f"--{role}-model"
            raise UserError(
                f"{named} {handle.model}: takes no images, and judge {entry.name} shows it "
                "screenshots: name another model, or choose a judge or --representation of text"
            )
    options: dict[str, Any] = {
        "max_prompt_tokens": model.max_prompt_tokens,
        "images": model.images,
        "structured": model.gives_structured_output
        if config.structured is None
        else config.structured,
        **{role: model.reader(role) for role in entry.models},
    }
    takes = entry.options_class.model_fields
    return {name: value for name, value in options.items() if name in takes}


def _composed_options(
    config: JudgeConfig, model: ModelHandle | None, given: Mapping[str, Any]
) -> dict[str, Any]:
    """Give every member what its model allows, and those of the ``given`` options that it takes;
    what neither a member nor the composed judge takes stays, to be refused. Raises UserError."""
    own, theirs = find_judge(config.judge).options_class.model_fields, member_fields(config)
    members = []
    for name, entry, named in named_members(config):
        handle = model and model.others.get(f"{MEMBER}{named}", model)
        takes = entry.options_class.model_fields.keys() - own.keys()
        its_own = {option: value for option, value in given.items() if option in takes}
        members.append(
            {
                "name": name,
                "model": named,
                "asks": None if handle is model or handle is None else handle.model,
                "options": _model_options(config, entry, handle, "--members") if handle else {},
                "given": its_own,
            }
        )
    kept = {name: value for name, value in given.items() if name in own or name not in theirs}
    return kept | {"of": {"members": members}}


def _own_prompt(path: Path) -> object:
    from trajudge.prompts.own import read_own_prompt  # noqa: PLC0415 - imports Jinja2's meta

    return read_own_prompt(path)


def _given(config: JudgeConfig) -> dict[str, Any]:
    """Return what the command line names."""
    given: dict[str, Any] = dict(config.options)
    for name in ("representation", "prompts"):
        if getattr(config, name) is not None:
            given[name] = getattr(config, name)
    takes = find_judge(config.judge).options_class.model_fields
    if config.prompts and "prompts" not in takes and not find_judge(config.judge).composed:
        raise UserError(
            f"--prompts {config.prompts}: judge {config.judge} has no prompts of a source: leave "
            "the option out"
        )
    if config.prompt is not None:
        if "prompt" not in takes:
            raise UserError(
                f"--prompt {config.prompt}: judge {config.judge} has prompts of its own: take "
                "--judge simplified"
            )
        given["prompt"] = _own_prompt(config.prompt)
    if config.success_last:
        if "success" not in takes:
            raise UserError(
                f"--success-last: judge {config.judge} asks for success in one way: leave it out, "
                "or take --judge simplified"
            )
        given["success"] = "last"
    if find_judge(config.judge).is_repaired:
        published = given.get("prompts", "trajudge") != "trajudge"
        repair = config.repair if config.repair is not None else int(not published)
        if repair:
            given.setdefault(REPAIR, repair)
    for name in ("rule", "quorum", "tie"):
        if getattr(config, name) is not None and name in takes:
            given[name] = getattr(config, name)
    return given


T = TypeVar("T")


def select(
    keys: KeyColumns,
    data: DataConfig,
    split: str,
    splits: Mapping[tuple[str, str], str],
    rng: np.random.Generator,
) -> tuple[KeyColumns, KeyColumns]:
    """Return the keys to judge, in the order in which they came, without repeats, and those that
    the split leaves out because no label names the split of their task.

    ``splits`` maps (benchmark, task id) to dev or test. Raises UserError for a benchmark, agent
    or task that the data does not have, and if nothing is left.
    """
    found = keys.at(first_of_each(keys))
    wanted = np.ones(len(found), dtype=bool)
    if data.benchmark:
        named = _by_task(found, lambda key: {key.benchmark, benchmark_of(key)})
        _check_known("benchmark", data.benchmark, (name for names in named for name in names))
        wanted &= [not names.isdisjoint(data.benchmark) for names in named]
    if data.agent:
        _check_known("agent", data.agent, found.agents)
        wanted &= _marked(found.agents, data.agent)[found.agent]
    if data.task:
        _check_known("task", data.task, found.tasks)
        wanted &= _marked(found.tasks, data.task)[found.task]
    unsplit = found.at(np.zeros(len(found), dtype=bool))
    if split != "all":
        of_task = _by_task(found, lambda key: splits.get((key.benchmark, key.task_id)))
        unsplit = found.at(wanted & [each is None for each in of_task])
        wanted &= [each == split for each in of_task]
    left = found.at(wanted)
    if not len(left):
        raise UserError(
            f"no trajectory is left of {len(found)} with --split {split} and the filters given: "
            "loosen one of --split, --benchmark, --agent, --task"
        )
    if data.limit is not None and data.limit < len(left):
        drawn = _stratified(left, data.limit, rng) if data.stratified else np.arange(data.limit)
        left = left.at(drawn)
    return left, unsplit


def _by_task(keys: KeyColumns, fact: Callable[[TrajectoryKey], T]) -> list[T]:
    """Return a fact of each of the keys, (K,), looked up once for every task of a benchmark."""
    pair = keys.benchmark.astype(np.int64) * len(keys.tasks) + keys.task
    _, first, which = np.unique(pair, return_index=True, return_inverse=True)
    values = [fact(keys.key(place)) for place in first.tolist()]
    return [values[number] for number in which.tolist()]


def _marked(names: Sequence[str], wanted: Collection[str]) -> Bools:
    return np.array([name in wanted for name in names], dtype=bool)


def _check_known(what: str, asked: Collection[str], has: Iterable[str]) -> None:
    known = set(has)
    for name in asked:
        if name not in known:
            offered = did_you_mean(name, known) or f": it has {_some(sorted(known))}"
            raise UserError(f"--{what} {name}: the data has no such {what}{offered}")


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")


def _stratified(keys: KeyColumns, limit: int, rng: np.random.Generator) -> Ints:
    """Draw the places of ``limit`` keys, in order, each stratum's share rounded by largest
    remainder, drawn without return."""
    strata: dict[tuple[str, str], list[int]] = {}
    agents = (keys.agents[agent] for agent in keys.agent.tolist())
    for place, stratum in enumerate(zip(_by_task(keys, benchmark_of), agents, strict=True)):
        strata.setdefault(stratum, []).append(place)
    groups = [strata[name] for name in sorted(strata)]
    exact = np.array([len(group) for group in groups]) * limit / len(keys)
    shares = np.floor(exact).astype(int)
    for largest in np.argsort(-(exact - shares), kind="stable")[: limit - shares.sum()]:
        shares[largest] += 1
    drawn = [
        rng.choice(group, size=share, replace=False)
        for group, share in zip(groups, shares, strict=True)
    ]
    return np.sort(np.concatenate(drawn))


@dataclass(frozen=True)
class RunPlan:
    """One judge with one model (None: it needs none) on some data, as ``config``, ``data``,
    ``calls`` and ``run`` ask for it.

    ``keys`` are judged, in this order; ``known`` are labels of these and of others; ``needs`` is
    what the judge must see of each; ``unreadable`` is what the data holds beside them, and
    ``label_fit`` how the labels fit them. ``answer_options`` are those of ``judges.registry``.
    """

    config: JudgeConfig
    data: DataConfig
    calls: CallConfig
    run: RunConfig
    model: ModelHandle | None
    source: DataSource
    keys: KeyColumns
    unreadable: tuple[Unreadable, ...]
    label_fit: LabelFit
    known: Labels
    judge_id: str
    judge: Judge
    needs: Needs
    manifest: RunManifest
    folder: Path
    answer_options: Mapping[str, str]

    def below(self, folder: Path) -> RunPlan:
        """Return the same plan, its run in a folder of its own below ``folder``."""
        return replace(self, folder=folder / default_folder(self.manifest).name)

    @property
    def total(self) -> int:
        """The judgments that it consists of."""
        return len(self.keys) * self.run.samples

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


class ReadyJudge(NamedTuple):
    """A judge with the model that it asks (None: it asks none), its id, and what a manifest says of
    it besides."""

    id: str
    judge: Judge
    needs: Needs
    prompt_hash: str | None
    options: dict[str, Any]
    given: dict[str, Any]
    model: ModelHandle | None


def ready_judge(config: JudgeConfig, calls: CallConfig) -> ReadyJudge:
    """Make the judge and the model of a run; ``given`` of it are the options that it was made of.
    Raises UserError for options and models that it does not take."""
    model = make_model_handle(config, calls) if config.model is not None else None
    given = judge_options(config, model)
    name, judge = make_judge(config.judge, given)
    entry = find_judge(config.judge)
    return ReadyJudge(
        id=composed_id(config, name)
        if entry.composed
        else with_model(name, config.model and shown_model(config.model)),
        judge=judge,
        needs=needs_of(config.judge, given),
        prompt_hash=getattr(judge, "prompt_hash", None) or entry.digest or None,
        options=shown_options(config.judge, given),
        given=given,
        model=model,
    )


@dataclass(frozen=True)
class ChosenData:
    """The trajectories and labels of a request: ``keys`` are to be judged, in this order, of all in
    ``index``; a split leaves ``unsplit`` out because no label names theirs."""

    source: DataSource
    index: DataIndex
    labels: Labels
    split: str
    keys: KeyColumns
    unsplit: KeyColumns


def choose_data(request: RunRequest, source: DataSource | None = None) -> ChosenData:
    """Open the data and labels, and draw what is judged; ``source`` is there instead of the
    request's. Raises UserError for what cannot be read, and where nothing is left to judge."""
    data = request.data
    source = source or find_source(data.data, data.annotations, data.goals, data.labels_by)
    labels = labels_of(source.annotations)
    split = _split(data.split, labels)
    index = _index(source, strict=data.strict)
    refuse_unmatched_labels(str(source.labels), index.keys, labels, split)
    rng = np.random.default_rng(request.calls.seed)
    keys, unsplit = select(index.keys, data, split, splits_of(labels), rng)
    return ChosenData(source, index, labels, split, keys, unsplit)


def _plan(request: RunRequest, config: JudgeConfig, chosen: ChosenData) -> RunPlan:
    """Make the judge and its model, and settle what its run is. Raises UserError."""
    data, calls, run = request.data, request.calls, request.run
    ready, card = ready_judge(config, calls), find_judge(config.judge).card
    source, keys, labels = chosen.source, chosen.keys, chosen.labels
    names = ("benchmark", "agent", "task", "limit", "stratified")
    asked = data.model_dump(mode="json", include=set(names))
    manifest = RunManifest(
        judge=ready.id,
        card=card.model_dump(mode="json") if card else {},
        prompt_hash=ready.prompt_hash,
        text_hash=getattr(ready.judge, "text_hash", None) or None,
        published_texts=published_texts(config.judge),
        options=ready.options,
        samples=run.samples,
        seed=calls.seed,
        data=source.spec,
        revision=source.revision,
        annotations=source.labels,
        selection={
            "split": chosen.split,
            "trajectories": len(keys),
            **{name: asked[name] for name in names if asked[name]},
        },
        protocol=run.protocol,
        version=code_version(),
        training_keys=_trained_on(ready.id, ready.judge, keys),
        loader_digest=source.loader_digest,
        goals=source.goals.digest if source.goals else None,
        judge_versions=versions_of(config.judge, ready.given),
        **(ready.model.manifest if ready.model else {}),
    )
    return RunPlan(
        config=config,
        data=data,
        calls=calls,
        run=run,
        model=ready.model,
        source=source,
        keys=keys,
        unreadable=chosen.index.unreadable,
        label_fit=label_fit(chosen.index.keys, keys, chosen.unsplit, labels),
        known=labels,
        judge_id=ready.id,
        judge=ready.judge,
        needs=ready.needs,
        manifest=manifest,
        folder=run.out if run.out else default_folder(manifest),
        answer_options=answer_options(config.judge, ready.given),
    )


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


def shown_options(judge: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return all options of the judge with their values, those that were left open as well; an
    option that is new since the first release only where it is not at its default."""
    kind = find_judge(judge).options_class
    shown = kind.model_validate(own_options(kind, given)).model_dump(mode="json")
    repair = {REPAIR: given[REPAIR]} if given.get(REPAIR) else {}
    return {**shown, **read_defences(judge, kind, given).given, **repair}


LEAN = (
    "note: the server is on this machine: asked through the lean http adapter (--adapter openai "
    "takes the SDK)"
)


def plan_runs(request: RunRequest, source: DataSource | None = None) -> list[RunPlan]:
    """Plan the runs that are asked for, in order; ``source`` is their data in place of the
    request's. Paths are looked at first, then data, then judges and their models. Raises UserError
    for any that cannot work, before the first is begun."""
    if request.judge.prompt is not None:
        _own_prompt(request.judge.prompt)
    with collection_paused():
        chosen = choose_data(request, source)
        wanted = list(_pairs(request))
        if request.batch.is_on and all(model is None for _, model in wanted):
            option = "--batch-files" if request.batch.batch_files else "--batch"
            raise UserError(f"{option}: {no_judge_asks([judge for judge, _ in wanted])}")
        runs = [_plan(request, _for_one(request, judge, model), chosen) for judge, model in wanted]
    if len(wanted) > 1 and request.run.out:
        runs = [plan.below(request.run.out) for plan in runs]
    folders = [plan.folder for plan in runs]
    for folder in folders:
        if folders.count(folder) > 1:
            raise UserError(f"duplicate run {folder}: name each judge, and each model, once")
    if request.run.export and (
        note := _export_note(chosen.source.spec, request.run.export_restricted)
    ):
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
    if not _grid_asks(mine) and any(map(_grid_asks, entries)):
        foreign |= set(OF_PROMPTS)
    options = {name: value for name, value in one.options.items() if name not in foreign}
    mended = {"options": options, "success_last": one.success_last and "success" not in foreign}
    if "prompts" in foreign:
        mended["prompts"] = None
    if "prompt" in foreign:
        mended["prompt"] = None
    return one.model_copy(update=mended)


def _grid_asks(entry: JudgeEntry) -> bool:
    return entry.needs_model or entry.composed


def labels_of_runs(runs: Sequence[RunPlan]) -> Labels:
    """Return the labels of all runs: one mapping, where they judge the same trajectories of one
    source."""
    first = runs[0]
    if all(p.source is first.source and are_equal(p.keys, first.keys) for p in runs):
        return first.labels
    return {key: label for plan in runs for key, label in plan.labels.items()}


def say_sources(runs: Sequence[RunPlan], *, is_asked: bool = True) -> None:
    """Say what was chosen for the user, and what labels do not fit, once. ``is_asked``: whether
    requests go to the model's server, and not into files."""
    notes = [plan.source.note for plan in runs]
    notes += [_strangers(plan) for plan in runs]
    for plan in runs:
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
    return "warning: " + unmatched_labels_message(
        str(plan.source.labels), plan.known, plan.keys.key(0)
    )
