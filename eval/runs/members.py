"""The members of a panel or cascade (``--of``): who they are, and which models they ask."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from trajudge.judges.registry import find_judge, split_model
from trajudge.trajectories.util.errors import UserError

if TYPE_CHECKING:
    from trajudge.eval.runs.models import ModelSide
    from trajudge.eval.runs.settings import JudgeConfig

MEMBER = "member "
"""Before a model's name in ``ModelSide.others``: a model that a member asks."""


def named_members(config: JudgeConfig) -> list[tuple[str, str | None]]:
    """(judge, model) of every member. Raises UserError for one that cannot be a member."""
    if not config.of:
        raise UserError(f"--judge {config.judge} needs its members: --of NAME[:MODEL],NAME[:MODEL]")
    members = []
    for text in config.of.split(","):
        name, model = split_model(text.strip())
        entry = find_judge(name)
        if entry.composed:
            raise UserError(f"--of {text}: a composed judge cannot be a member of another")
        if model and not entry.needs_model:
            raise UserError(f"--of {text}: judge {name} asks no model: leave {model} out")
        members.append((name, model or None))
    return members


def models_of(config: JudgeConfig, models: Sequence[str]) -> Sequence[str | None]:
    """With which models a composed judge is run: ``--model``, for members that name none; without
    such a member, once."""
    asking = [model for name, model in named_members(config) if find_judge(name).needs_model]
    if None not in asking:
        return [next(iter(asking), None)]
    if not models:
        raise UserError(
            f"--judge {config.judge} --of {config.of}: a member asks a model: name it with "
            "--model, or as NAME:MODEL"
        )
    return models


def member_models(config: JudgeConfig) -> list[str]:
    """The models beside ``--model`` that members ask."""
    if not find_judge(config.judge).composed:
        return []
    named = (model for _, model in named_members(config) if model)
    return [model for model in dict.fromkeys(named) if model != config.model]


def member_fields(config: JudgeConfig) -> set[str]:
    """The options that any member takes."""
    members = (name for name, _ in named_members(config))
    return {field for name in members for field in find_judge(name).options_class.model_fields}


def member_options(
    config: JudgeConfig, model: ModelSide | None, given: Mapping[str, Any]
) -> dict[str, Any]:
    """``of`` for the judge: every member with what its model's window and eyes allow, and with
    those of the ``given`` options that it takes. Raises UserError for a model that lacks what its
    member needs."""
    members = []
    for name, named in named_members(config):
        entry = find_judge(name)
        side = model and model.others.get(f"{MEMBER}{named}", model)
        facts: dict[str, Any] = {}
        if side:
            if entry.pictures and not side.known.images:
                raise UserError(f"--of {name}: {side.model} takes no images, and {name} needs them")
            if entry.logprobs and not side.gives_logprobs:
                raise UserError(
                    f"--of {name}: Anthropic's protocol gives no token probabilities, which {name} "
                    f"is made of: name another model than {side.model}"
                )
            reader = side.reader("")
            facts = {"max_prompt_tokens": reader.max_prompt_tokens, "images": reader.images}
            facts |= dict.fromkeys(entry.models, reader)
        takes = entry.options_class.model_fields
        members.append(
            {
                "name": name,
                "model": named,
                "asks": None if side is model or side is None else side.model,
                "options": {key: value for key, value in facts.items() if key in takes},
                "given": {key: value for key, value in given.items() if key in takes},
            }
        )
    return {"of": {"members": members}}
