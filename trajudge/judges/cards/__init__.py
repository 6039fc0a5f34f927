"""Card of every judge: with its prompts, or here for a judge without prompts."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources
from typing import Any

from trajudge.judges.entry import JudgeEntry
from trajudge.judges.options import read_options
from trajudge.judges.registry import find_judge
from trajudge.prompts.render import Card, load_prompt, read_card


def card_of(name: str, entry: JudgeEntry) -> Card | None:
    """Load the card of the judge ``name``; None for a user's own judge."""
    if entry.label:
        return None
    if entry.needs_model:
        return load_prompt(entry.prompt or name).card.of(name)
    file = resources.files(__name__).joinpath(f"{name.replace(':', '-')}.yaml")
    return read_card(file.read_text(encoding="utf-8"))


def versions_of(name: str, options: Mapping[str, Any]) -> dict[str, int]:
    """Return the versions on the cards of a judge and of its members, by name; a user's own judge
    has none. Raises UserError as ``judges.registry.make_judge`` does."""
    entry = find_judge(name)
    card = card_of(name, entry)
    versions = {name: card.version} if card else {}
    if entry.composed:
        composed = read_options(name, entry.options_class, options)
        for member in getattr(composed, "of").members:  # noqa: B009 - any composed judge's
            versions |= versions_of(member.name, member.options | member.given)
    return versions
