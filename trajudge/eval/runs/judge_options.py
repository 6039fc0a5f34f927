"""What the command line and the models say about a judge, as the options of that judge."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from trajudge.eval.runs.members import MEMBER, member_fields, named_members
from trajudge.judges.entry import JudgeEntry
from trajudge.judges.registry import check_representation, find_judge
from trajudge.trajectories.util.errors import UserError

if TYPE_CHECKING:
    from trajudge.eval.runs.settings import JudgeConfig
    from trajudge.judges.calls.handle import ModelHandle


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
