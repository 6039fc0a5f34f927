"""Card of every judge: with its prompts, or here for a judge without prompts."""

from __future__ import annotations

from importlib import resources

from trajudge.judges.entry import JudgeEntry
from trajudge.prompts.cards import Card, read_card
from trajudge.prompts.render import load_prompt


def card_of(name: str, entry: JudgeEntry) -> Card | None:
    """Load the card of the judge ``name``; None for a user's own judge."""
    if entry.label:
        return None
    if entry.needs_model:
        return load_prompt(entry.prompt or name).card.of(name)
    file = resources.files(__name__).joinpath(f"{name.replace(':', '-')}.yaml")
    return read_card(file.read_text(encoding="utf-8"))
