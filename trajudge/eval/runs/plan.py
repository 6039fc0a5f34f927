"""What a run will do, settled before anything is asked: judges and models, data and labels, the
trajectories that are selected, and several judges in one go.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from trajudge.annotations import Label, Labels
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
from trajudge.judges.judging import REPAIR
from trajudge.judges.model import Judge
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
from trajudge.prompts.own import read_own_prompt
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


def named_members(config: JudgeConfig) -> list[tuple[str, str | None]]:
    """Return (judge, model) of every member. Raises UserError for one that cannot be a member."""
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
        members.append((name, model or None))
    return members


def models_of(config: JudgeConfig, models: Sequence[str]) -> Sequence[str | None]:
    """Return the models that a composed judge is run with: ``--model``, for members that name none;
    without such a member, once."""
    asking = [model for name, model in named_members(config) if find_judge(name).needs_model]
    if None not in asking:
        return [next(iter(asking), None)]
    if not models:
        raise UserError(
            f"--judge {config.judge} --members {config.members}: a member asks a model: name it "
            "with --model, or as NAME:MODEL"
        )
    return models


def member_models(config: JudgeConfig) -> list[str]:
    """Return the models beside ``--model`` that members ask."""
    if not find_judge(config.judge).composed:
        return []
    named = (model for _, model in named_members(config) if model)
    return [model for model in dict.fromkeys(named) if model != config.model]


def composed_id(config: JudgeConfig, name: str) -> str:
    """Put each member's own model into ``name``, the composed judge's: that of ``--model`` for a
    member that names none and asks one. Raises UserError for a member that is then another's
    double, whose vote would count twice."""
    members = named_members(config)
    given = "+".join(with_model(member, model) for member, model in members)
    asked = [
        with_model(member, model or (config.model if find_judge(member).needs_model else None))
        for member, model in members
    ]
    if twice := [each for place, each in enumerate(asked) if each in asked[:place]]:
        raise UserError(
            f"--members {config.members}: with --model {config.model} two members are {twice[0]}: "
            "name each judge and model once"
        )
    return name.replace(f"of-{given}", f"of-{'+'.join(asked)}", 1)


def member_fields(config: JudgeConfig) -> set[str]:
    """Return the options that any member takes."""
    members = (name for name, _ in named_members(config))
    return {field for name in members for field in find_judge(name).options_class.model_fields}


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
        find_judge(name).needs_model and (models_of_their_own or not own)
        for name, own in named_members(config)
    )


def no_judge_asks(judges: Sequence[str]) -> str:
    """Say that none of these judges asks a model, and what to do with an option of calls."""
    return f"{_none_asks(judges)} a model, so that there are no requests: leave it out"


def _none_asks(judges: Sequence[str]) -> str:
    return "no judge here asks" if len(judges) > 1 else f"judge {judges[0]} does not ask"


def make_model_handle(config: JudgeConfig, calls: CallConfig) -> ModelHandle:
    """Make the model of ``--model`` and the options beside it. Raises UserError for what cannot
    work."""
    named = {role: getattr(config, f"{role}_model") for role in ROLES}
    others = {
        role: single_model(model, calls)
        for role, model in named.items()
        if model is not None and model != config.model
    }
    others |= {MEMBER + model: single_model(model, calls) for model in member_models(config)}
    if config.model is None:
        raise ValueError("a model handle has a model")
    return replace(single_model(config.model, calls), others=others)


# Not installed from an index: the package named webeval there is a stranger's and empty.
NO_FARA_PROMPTS = (
    "--prompts fara: the Universal Verifier's own prompts are in the repository microsoft/fara "
    "(folder webeval), of which there is no published package, and this version does not read "
    "them: leave --prompts out, and universal-verifier asks with ours"
)


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
    if entry.composed:
        return _composed(config, entry, model, given)
    if model is None:
        return given
    _check_models(config, entry, model, given.get("representation"))
    facts: dict[str, Any] = {
        "max_prompt_tokens": model.max_prompt_tokens,
        "images": model.images,
        "structured": model.gives_structured_output,
        **{role: model.reader(role) for role in entry.models},
    }
    takes = entry.options_class.model_fields
    return {name: value for name, value in facts.items() if name in takes} | given


def _composed(
    config: JudgeConfig, entry: JudgeEntry, model: ModelHandle | None, given: dict[str, Any]
) -> dict[str, Any]:
    """Give the members the options that the composed judge does not take itself."""
    own = entry.options_class.model_fields
    theirs = {name: value for name, value in given.items() if name not in own}
    nobodys = theirs.keys() - member_fields(config)
    kept = {name: value for name, value in given.items() if name in own or name in nobodys}
    return kept | member_options(config, model, theirs)


def _given(config: JudgeConfig) -> dict[str, Any]:
    """Return what the command line names."""
    if config.prompts == "fara":
        raise UserError(NO_FARA_PROMPTS)
    given: dict[str, Any] = dict(config.options)
    for name in ("representation", "prompts"):
        if getattr(config, name) is not None:
            given[name] = getattr(config, name)
    takes = find_judge(config.judge).options_class.model_fields
    if config.prompt is not None:
        if "prompt" not in takes:
            raise UserError(
                f"--prompt {config.prompt}: judge {config.judge} has prompts of its own: take "
                "--judge simplified"
            )
        given["prompt"] = read_own_prompt(config.prompt)
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


def _check_models(
    config: JudgeConfig, entry: JudgeEntry, model: ModelHandle, representation: str | None
) -> None:
    """Check that the judge uses every model and that each model has what the judge needs.

    Raises UserError.
    """
    for role in model.others:
        if role not in entry.models:
            raise UserError(
                f"--{role}-model {model.others[role].model}: judge {config.judge} has no {role}: "
                "leave the option out"
            )
    if entry.logprobs and not model.gives_logprobs:
        raise UserError(
            f"--model {model.model}: Anthropic's protocol gives no token probabilities, which "
            f"judge {config.judge} is made of: name another model or judge"
        )
    for role in ("judge", *entry.models):
        handle = model.others.get(role, model)
        if entry.needs_pictures(role, representation) and not handle.known.images:
            option = "--model" if handle is model else f"--{role}-model"
            raise UserError(
                f"{option} {handle.model}: takes no images, and judge {config.judge} shows it "
                "screenshots: name another model, or choose a judge or --representation of text"
            )


def member_options(
    config: JudgeConfig, model: ModelHandle | None, given: Mapping[str, Any]
) -> dict[str, Any]:
    """``of`` for the judge: every member with what its model's window and eyes allow, and with
    those of the ``given`` options that it takes. Raises UserError for a model that lacks what its
    member needs."""
    members = []
    for name, named in named_members(config):
        entry = find_judge(name)
        handle = model and model.others.get(f"{MEMBER}{named}", model)
        facts: dict[str, Any] = {}
        if handle:
            if entry.pictures and not handle.known.images:
                raise UserError(
                    f"--members {name}: {handle.model} takes no images, and {name} needs them"
                )
            if entry.logprobs and not handle.gives_logprobs:
                raise UserError(
                    f"--members {name}: Anthropic's protocol gives no token probabilities, which "
                    f"{name} is made of: name another model than {handle.model}"
                )
            reader = handle.reader("")
            facts = {"max_prompt_tokens": reader.max_prompt_tokens, "images": reader.images}
            facts["structured"] = handle.gives_structured_output
            facts |= dict.fromkeys(entry.models, reader)
        takes = entry.options_class.model_fields
        members.append(
            {
                "name": name,
                "model": named,
                "asks": None if handle is model or handle is None else handle.model,
                "options": {key: value for key, value in facts.items() if key in takes},
                "given": {key: value for key, value in given.items() if key in takes},
            }
        )
    return {"of": {"members": members}}


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

    @property
    def annotations(self) -> Iterable[Label] | RunLabels:
        """The labels by themselves."""
        return self.labels if isinstance(self.labels, RunLabels) else self.labels.values()


class MadeJudge(NamedTuple):
    """A judge with its id, and what a manifest says of it beside that."""

    id: str
    judge: Judge
    needs: Needs
    prompt_hash: str | None
    options: dict[str, Any]


def made_judge(config: JudgeConfig, options: Mapping[str, Any]) -> MadeJudge:
    """Make the judge of a run. Raises UserError for options that it does not take."""
    name, judge = make_judge(config.judge, options)
    entry = find_judge(config.judge)
    return MadeJudge(
        id=composed_id(config, name)
        if entry.composed
        else with_model(name, config.model and shown_model(config.model)),
        judge=judge,
        needs=needs_of(config.judge, options),
        prompt_hash=getattr(judge, "prompt_hash", None) or entry.digest or None,
        options=shown_options(config.judge, options),
    )


def _plan(request: RunRequest, config: JudgeConfig, find: Callable[[], DataSource]) -> RunPlan:
    """Settle everything; the model is made before the data are looked for. Raises UserError."""
    data, calls, run = request.data, request.calls, request.run
    model = make_model_handle(config, calls) if config.model is not None else None
    options = judge_options(config, model)
    source = find()
    labels = labels_of(source.annotations)
    split = _split(data.split, labels)
    index = _index(source, strict=data.strict)
    refuse_unmatched_labels(str(source.labels), index.keys, labels, split)
    rng = np.random.default_rng(calls.seed)
    keys, unsplit = select(index.keys, data, split, splits_of(labels), rng)
    made, card = made_judge(config, options), find_judge(config.judge).card
    names = ("benchmark", "agent", "task", "limit", "stratified")
    asked = data.model_dump(mode="json", include=set(names))
    manifest = RunManifest(
        judge=made.id,
        card=card.model_dump(mode="json") if card else {},
        prompt_hash=made.prompt_hash,
        options=made.options,
        samples=run.samples,
        seed=calls.seed,
        data=source.spec,
        revision=source.revision,
        annotations=source.labels,
        selection={
            "split": split,
            "trajectories": len(keys),
            **{name: asked[name] for name in names if asked[name]},
        },
        protocol=run.protocol,
        version=code_version(),
        training_keys=_trained_on(made.id, made.judge, keys),
        loader_digest=source.loader_digest,
        goals=source.goals.digest if source.goals else None,
        judge_versions=versions_of(config.judge, options),
        **(model.manifest if model else {}),
    )
    return RunPlan(
        config=config,
        data=data,
        calls=calls,
        run=run,
        model=model,
        source=source,
        keys=keys,
        unreadable=index.unreadable,
        label_fit=label_fit(index.keys, keys, unsplit, labels),
        known=labels,
        judge_id=made.id,
        judge=made.judge,
        needs=made.needs,
        manifest=manifest,
        folder=run.out if run.out else default_folder(manifest),
        answer_options=answer_options(config.judge, options),
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
        runs = [_plan(request, _for_one(request, judge, model), find) for judge, model in wanted]
    if len(wanted) > 1 and request.run.out:
        runs = [plan.below(request.run.out) for plan in runs]
    folders = [plan.folder for plan in runs]
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
