"""A run's judge, made again from what the run's manifest says of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from pydantic import JsonValue

from trajudge.judges.methods.panel import Members, PanelMember, panel_members
from trajudge.judges.model import Judge
from trajudge.judges.models import capability
from trajudge.judges.registry import JUDGES, find_judge, judge_of_id, make_judge, needs_of
from trajudge.trajectories.needs import Needs
from trajudge.util.errors import UserError

Manifest = Mapping[str, Any]


class NotRebuilt(Exception):
    """The judge cannot be made again; the message says why, in a sentence."""


class RemadeJudge(NamedTuple):
    """``members`` are those of a panel or a cascade, empty for any other judge. ``prompt_hash`` is
    that of this release; ``needs`` is what the judge is shown."""

    judge: Judge
    members: tuple[PanelMember, ...]
    prompt_hash: str | None
    needs: Needs


class AskedModel(NamedTuple):
    """How a model was asked, as far as the manifest tells: each of ``parameters`` may be it."""

    endpoint: str
    model: str
    parameters: tuple[Mapping[str, JsonValue], ...]


def remake(manifest: Manifest) -> RemadeJudge:
    """Make the judge of a run again. Raises NotRebuilt: no code is run that a run's folder names,
    and a judge of another's cannot be made."""
    if manifest.get("published"):
        raise NotRebuilt("others ran this judge, and its prompts are not recorded")
    name = _registered(manifest)
    if name is None:
        raise NotRebuilt("the judge is none of trajudge's, and its own code is not run here")
    options = manifest.get("options")
    given: dict[str, Any] = dict(options) if isinstance(options, dict) else {}
    try:
        members: tuple[PanelMember, ...] = ()
        if find_judge(name).composed:
            _check_members(given)
            members = tuple(panel_members(Members.model_validate(given["of"])))
        judge, needs = make_judge(name, given)[1], needs_of(name, given)
    except (UserError, ValueError, OSError, LookupError, TypeError, AttributeError) as problem:
        # A manifest may be a stranger's: its values are of any kind.
        raise NotRebuilt(f"this release cannot make the judge again: {problem}") from problem
    return RemadeJudge(judge, members, getattr(judge, "prompt_hash", None), needs)


def asked_model(manifest: Manifest, model: str | None) -> AskedModel:
    """Return how a model was asked; ``model`` None: the run's own."""
    own = str(manifest.get("model") or "")
    parameters = manifest.get("parameters")
    given: dict[str, JsonValue] = dict(parameters) if isinstance(parameters, dict) else {}
    listed = manifest.get("sent")
    entries = [e for e in listed if isinstance(e, dict)] if isinstance(listed, list) else []
    mine = [each for each in entries if each.get("model") == (model or own)]
    endpoints = [each.get("endpoint") for each in mine] if model else []
    sent = [dict(each["parameters"]) for each in mine if isinstance(each.get("parameters"), dict)]
    default = {**given, "max_tokens": capability(model).default_max_tokens()} if model else given
    return AskedModel(
        str(next(iter(endpoints), None) or manifest.get("endpoint") or ""),
        model or own,
        (given, default, *sent),
    )


def _registered(manifest: Manifest) -> str | None:
    """Return the judge's name in the register; None for one that is not there."""
    versions, card = manifest.get("judge_versions"), manifest.get("card")
    names = [*versions] if isinstance(versions, dict) else []
    if isinstance(card, dict):
        names = [card.get("name"), *names]
    judge = str(manifest.get("judge"))
    known = [str(name) for name in names if name in JUDGES and judge.startswith(str(name))]
    # Judges without a card: the id begins with the name.
    return known[0] if known else judge_of_id(judge)


def _check_members(options: Mapping[str, Any]) -> None:
    """Raise NotRebuilt for members that are not recorded, or are none of trajudge's judges."""
    of = options.get("of")
    members = of.get("members") if isinstance(of, dict) else None
    if not isinstance(members, list) or not all(isinstance(each, dict) for each in members):
        raise NotRebuilt("the run does not say of which judges it was made")
    strangers = [str(each.get("name")) for each in members if each.get("name") not in JUDGES]
    if strangers:
        raise NotRebuilt(f"{strangers[0]} is none of trajudge's judges: its code is not run here")
