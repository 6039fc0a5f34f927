"""The members of a panel or cascade (``--members``), and the models of a run: the judge's own, and
those of its roles and members."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from trajudge.judges.registry import find_judge, split_model, with_model
from trajudge.trajectories.util.errors import UserError

if TYPE_CHECKING:
    from trajudge.eval.runs.settings import JudgeConfig
    from trajudge.judges.calls.handle import ModelHandle
    from trajudge.judges.calls.settings import CallConfig

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
    from trajudge.eval.runs.settings import OF_ANSWERS, ROLES  # noqa: PLC0415 - slow

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
    from trajudge.eval.runs.settings import ROLES  # noqa: PLC0415 - slow, and so is the next
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
