"""Defences put around a judge, each in its place.

A run goes from the last to the first: its record is checked, it is judged twice, marked, then parts
of it are hidden.
Messages go from the first to the last: the goal is repeated, tags get their ending, the canary's
word is asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from trajudge.judges.defences.options import OF_PROMPTS, Defences
from trajudge.judges.entry import JudgeEntry
from trajudge.judges.model import Judge
from trajudge.trajectories.model import Record
from trajudge.trajectories.util.errors import UserError

# Tokens that a defence adds to a prompt, which the judge must leave free; nonces also take a share,
# for a prompt of many steps has many tags: a fourth more where steps are short.
# What goes beyond is cut as any prompt that a server finds too long.
_TOKENS = {"datamark": 100, "sandwich": 500, "nonce": 100, "canary": 150}
_NONCE_SHARE = 0.15


def defended(name: str, entry: JudgeEntry, judge: Judge, defences: Defences) -> Judge:
    """Put ``defences`` around a judge. Raises UserError where it cannot have one of them."""
    if defences.hide:
        from trajudge.judges.defences.hide import HidingJudge  # noqa: PLC0415 - most have none

        judge = HidingJudge(judge, defences.hide)
    if defences.of_prompts and not entry.composed:
        judge = _asking(name, entry, judge, defences)
    if defences.two_pass:
        from trajudge.judges.defences.two_pass import TwoPassJudge  # noqa: PLC0415 - most have none

        judge = TwoPassJudge(judge, defences.two_pass)
    if defences.cross_modal:
        from trajudge.judges.defences.cross_modal import CrossModalJudge  # noqa: PLC0415

        judge = CrossModalJudge(judge, defences.cross_modal)
    return judge


def _asking(name: str, entry: JudgeEntry, judge: Judge, defences: Defences) -> Judge:
    """Put around the judge what changes its prompts."""
    from trajudge.judges.defences.canary import CanaryJudge  # noqa: PLC0415 - brings jinja2
    from trajudge.judges.defences.datamark import DatamarkedJudge  # noqa: PLC0415
    from trajudge.judges.defences.nonce import NonceJudge  # noqa: PLC0415
    from trajudge.judges.defences.sandwich import SandwichedJudge  # noqa: PLC0415

    for defence in defences.of_prompts:
        if why := unfit(entry, defence):
            raise UserError(f"judge {name}: {why}: leave {defence} out")
    if defences.sandwich:
        judge = SandwichedJudge(judge)
    if defences.nonce is not None:
        judge = NonceJudge(judge, defences.nonce, _tags(name, entry))
    if defences.canary is not None:
        judge = CanaryJudge(judge, defences.canary)
    return DatamarkedJudge(judge) if defences.datamark else judge


def _tags(name: str, entry: JudgeEntry) -> frozenset[str]:
    from trajudge.prompts.render import load_prompt  # noqa: PLC0415 - brings jinja2

    return load_prompt(entry.prompt or name).tags


def unfit(entry: JudgeEntry, defence: str) -> str:
    """Say why a judge cannot have a defence, "" if it can; of a composed judge its members have
    it."""
    if defence not in OF_PROMPTS or entry.composed:
        return ""
    if not entry.needs_model:
        return f"asks no model, and {defence} changes prompts"
    if defence == "canary" and entry.logprobs:
        return "answers with one word, which no canary fits"
    if defence == "nonce" and entry.label:
        return "which tags its prompts have is not known, and nonce ends them"
    return ""


def with_room(options: Record, defences: Defences) -> Record:
    """Return a judge's options with as much less room for its prompt as the defences take."""
    limit = getattr(options, "max_prompt_tokens", None)
    if not defences.of_prompts or limit is None:
        return options
    share = 1 - _NONCE_SHARE if "nonce" in defences.of_prompts else 1.0
    room = int(limit * share) - sum(_TOKENS[name] for name in defences.of_prompts)
    return options.model_copy(update={"max_prompt_tokens": room})


def with_defended_members(options: Any, defences: Defences, asks: Callable[[str], bool]) -> Any:
    """Return the options of a composed judge, whose members that ask a model (``asks`` tells by
    name) have its defences of prompts. Raises UserError if there is none."""
    if not defences.of_prompts:
        return options
    members = tuple(
        member.model_copy(update={"given": member.given | defences.of_prompts})
        if asks(member.name)
        else member
        for member in options.of.members
    )
    if members == options.of.members:
        first = next(iter(defences.of_prompts))
        raise UserError(f"{first}: changes prompts, and no member asks a model: leave it out")
    of = options.of.model_copy(update={"members": members})
    return options.model_copy(update={"of": of})
