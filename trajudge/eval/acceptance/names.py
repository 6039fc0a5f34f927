"""Names that a composed judge has had: files that earlier releases wrote hold the earlier one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trajudge.eval.acceptance.binding import JudgeConfiguration
from trajudge.judges.registry import find_judge, with_model
from trajudge.util.errors import UserError


def names_of(judge: JudgeConfiguration) -> frozenset[str]:
    """Return the judge's name and, of a panel or cascade whose members are known, the one that it
    has in other releases: an earlier one put one model behind all members."""
    name, model = judge.judge, judge.facts.get("model")
    members = _members(judge.facts.get("options"))
    if not members or not isinstance(model, str):
        return frozenset({name})
    plain = "of-" + "+".join(with_model(each["name"], each.get("model")) for each in members)
    try:
        named = (with_model(each["name"], _model_of(each, model)) for each in members)
        modelled = "of-" + "+".join(named)
    except UserError:  # a member's file is gone
        return frozenset({name})
    _, is_present, rest = name.partition(modelled)
    if is_present and not (plain == modelled and rest.endswith(f":{model}")):
        return frozenset({name, with_model(name.replace(modelled, plain, 1), model)})
    if not name.endswith(f":{model}"):
        return frozenset({name})
    return frozenset({name, name.removesuffix(f":{model}").replace(plain, modelled, 1)})


def current_names(judges: Mapping[str, JudgeConfiguration]) -> dict[str, str]:
    """Map every name that one of ``judges`` has had to the name that it has there."""
    known = {name: now for now, judge in judges.items() for name in names_of(judge)}
    return known | {now: now for now in judges}


def _members(options: object) -> list[Mapping[str, Any]]:
    of = options.get("of") if isinstance(options, Mapping) else None
    members = of.get("members") if isinstance(of, Mapping) else None
    return [each for each in members or () if isinstance(each, Mapping) and "name" in each]


def _model_of(member: Mapping[str, Any], model: str) -> str | None:
    own = member.get("model")
    return own or (model if find_judge(member["name"]).needs_model else None)
