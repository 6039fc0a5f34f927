"""What a run will do, settled before anything is asked: judges and models, data and labels, the
trajectories that are selected, and several judges in one go.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from trajudge.annotations import Annotation, Labels
from trajudge.annotations.agentrewardbench import benchmark_of
from trajudge.eval.runs.settings import (
    OF_ANSWERS,
    ROLES,
    DataConfig,
    JudgeConfig,
    RunConfig,
    RunRequest,
)
from trajudge.eval.sources import LabelFit, label_fit, misfits, refuse_strangers, strangers_said
from trajudge.eval.store.inputs import MEMORY, DataIndex, DataSource, find_source
from trajudge.eval.store.labels import RunLabels, labels_of, splits_of
from trajudge.eval.store.manifest import RunManifest, code_version, default_folder
from trajudge.eval.store.run_folder import MANIFEST, read_manifest, unreadable_said
from trajudge.eval.store.table import KeyColumns, are_equal, first_of_each
from trajudge.judges.calls.settings import CallConfig
from trajudge.judges.defences import OF_PROMPTS, own_options, read_defences
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
from trajudge.stats.intervals import Bools, Ints
from trajudge.trajectories.loaders import parse_source
from trajudge.trajectories.model import TrajectoryKey, Unreadable
from trajudge.trajectories.needs import Needs
from trajudge.trajectories.sample import SAMPLE
from trajudge.trajectories.sources import check_redistribution
from trajudge.util.errors import UserError, did_you_mean
from trajudge.util.machine import collection_paused

if TYPE_CHECKING:
    from trajudge.judges.calls.handle import ModelHandle


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
    from trajudge.judges.calls.handle import single_model  # noqa: PLC0415

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
    if config.success_last:
        if "success" not in takes:
            raise UserError(
                f"--success-last: judge {config.judge} asks for success in one way: leave it out, "
                "or take --judge simplified"
            )
        given["success"] = "last"
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


@dataclass(frozen=True)
class Filters:
    """What the user asked for; an empty collection asks for everything.

    ``limit`` at most so many; ``stratified`` spreads them over (benchmark, agent) in proportion.
    """

    benchmarks: Collection[str] = ()
    agents: Collection[str] = ()
    tasks: Collection[str] = ()
    split: str = "all"
    limit: int | None = None
    stratified: bool = False


def select(
    keys: KeyColumns,
    filters: Filters,
    *,
    splits: Mapping[tuple[str, str], str],
    benchmark_of: Callable[[TrajectoryKey], str],
    rng: np.random.Generator,
) -> KeyColumns:
    """Return the keys to judge, in the order in which they came, without repeats.

    ``splits`` maps (benchmark, task id) to dev or test. Raises UserError for a benchmark, agent
    or task that the data does not have, and if nothing is left.
    """
    found = keys.at(first_of_each(keys))
    wanted = _asked_for(found, filters, benchmark_of)
    if filters.split != "all":
        told = _by_task(found, lambda key: splits.get((key.benchmark, key.task_id)))
        wanted &= [split == filters.split for split in told]
    left = found.at(wanted)
    if not len(left):
        raise UserError(
            f"no trajectory is left of {len(found)} with --split {filters.split} and the "
            "filters given: loosen one of --split, --benchmark, --agent, --task"
        )
    if filters.limit is None or filters.limit >= len(left):
        return left
    if filters.stratified:
        return left.at(_stratified(left, filters.limit, benchmark_of, rng))
    return left.at(np.arange(filters.limit))


def without_split(
    keys: KeyColumns,
    filters: Filters,
    *,
    splits: Mapping[tuple[str, str], str],
    benchmark_of: Callable[[TrajectoryKey], str],
) -> KeyColumns:
    """Return the keys that a split leaves out because no label names the split of their task."""
    if filters.split == "all":
        return keys.at(np.empty(0, dtype=np.int64))
    found = keys.at(first_of_each(keys))
    told = _by_task(found, lambda key: splits.get((key.benchmark, key.task_id)))
    lost = _asked_for(found, filters, benchmark_of)
    return found.at(lost & [split is None for split in told])


def _asked_for(
    found: KeyColumns, filters: Filters, benchmark_of: Callable[[TrajectoryKey], str]
) -> Bools:
    """Mark the keys of the benchmarks, agents and tasks that are named, (K,)."""
    wanted = np.ones(len(found), dtype=bool)
    if filters.benchmarks:
        named = _by_task(found, lambda key: {key.benchmark, benchmark_of(key)})
        _known("benchmark", filters.benchmarks, (name for names in named for name in names))
        wanted &= [not names.isdisjoint(filters.benchmarks) for names in named]
    if filters.agents:
        _known("agent", filters.agents, found.agents)
        wanted &= _marked(found.agents, filters.agents)[found.agent]
    if filters.tasks:
        _known("task", filters.tasks, found.tasks)
        wanted &= _marked(found.tasks, filters.tasks)[found.task]
    return wanted


def _by_task(keys: KeyColumns, told: Callable[[TrajectoryKey], T]) -> list[T]:
    """Return what is told of each of the keys, (K,), looked up once for every task of a
    benchmark."""
    pair = keys.benchmark.astype(np.int64) * len(keys.tasks) + keys.task
    _, first, which = np.unique(pair, return_index=True, return_inverse=True)
    values = [told(keys.key(place)) for place in first.tolist()]
    return [values[number] for number in which.tolist()]


def _marked(names: Sequence[str], wanted: Collection[str]) -> Bools:
    return np.array([name in wanted for name in names], dtype=bool)


def _known(what: str, asked: Collection[str], has: Iterable[str]) -> None:
    if not asked:
        return
    known = set(has)
    for name in asked:
        if name not in known:
            offered = did_you_mean(name, known) or f": it has {_some(sorted(known))}"
            raise UserError(f"--{what} {name}: the data has no such {what}{offered}")


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")


def _stratified(
    keys: KeyColumns,
    limit: int,
    benchmark_of: Callable[[TrajectoryKey], str],
    rng: np.random.Generator,
) -> Ints:
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
        judge_versions=versions_of(config.judge, judge_options),
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
    card = find_judge(judge).card
    return card.model_dump(mode="json") if card else {}


def shown_options(judge: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return all options of the judge with their values, those that were left open as well; an
    option that is new since the first release only where it is not at its default."""
    kind = find_judge(judge).options_class
    shown = kind.model_validate(own_options(kind, given)).model_dump(mode="json")
    return {**shown, **read_defences(judge, kind, given).given}


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
    if not _grid_asks(mine) and any(map(_grid_asks, entries)):
        foreign |= set(OF_PROMPTS)
    options = {name: value for name, value in one.options.items() if name not in foreign}
    mended = {"options": options, "success_last": one.success_last and "success" not in foreign}
    if "prompts" in foreign:
        mended["prompts"] = None
    return one.model_copy(update=mended)


def _grid_asks(entry: JudgeEntry) -> bool:
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
