"""What judges follow of their sources, and what not: ``fidelity.toml`` in a prompt folder.

Every rule of a source has an id. A template marks the rule with a comment on the line before it,
``{# R V3 #}``; a rule that no template holds is left out on the judge's card, with the reason.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from typing import Literal

from pydantic import Field

from trajudge.judges.registry import JUDGES
from trajudge.trajectories.model import Record
from trajudge.util.errors import UserError


class FidelityItem(Record):
    """One property of a judge in its source, and here.

    ``status``: the ``same``; ``mended`` for what earlier versions had otherwise; ``declared`` for a
    deviation, of which ``card`` are the first words on the judge's card.
    """

    item: str
    source: str
    ours: str
    status: Literal["same", "mended", "declared"]
    card: str = ""


class PublishedPrompts(Record):
    """The source's own words: ``prompts`` is how they are asked for (``--prompts``), ``of`` the
    version whose ``texts`` have these SHA-256 (``prompts.published.PublishedTexts.text_hash``), by
    judge or variant."""

    prompts: str
    of: str
    texts: dict[str, str]


class Fidelity(Record):
    """A judge compared with its ``source``; ``rules`` are the source's, id to a few words of
    ours; ``published`` are its own prompts, where they can be asked with."""

    source: str
    published: PublishedPrompts | None = None
    rules: dict[str, str] = Field(default_factory=dict)
    items: tuple[FidelityItem, ...] = ()


@cache
def read_fidelity() -> Mapping[str, Fidelity]:
    """Read every ``fidelity.toml``: judge to what is known of it."""
    return _read_texts(_texts())


def _texts() -> list[str]:
    return [
        file.read_text(encoding="utf-8")
        for folder in sorted(files("trajudge.prompts").iterdir(), key=lambda entry: entry.name)
        if (file := folder.joinpath("fidelity.toml")).is_file()
    ]


def _read_texts(texts: Iterable[str]) -> dict[str, Fidelity]:
    return {
        name: Fidelity.model_validate(table)
        for text in texts
        for name, table in tomllib.loads(text).items()
    }


def published_texts(name: str) -> dict[str, str]:
    """Return the known SHA-256 of the texts that a judge's source published, by judge or variant;
    empty where they cannot be asked with."""
    compared = _read_texts(text for text in _texts() if f"[{name}]\n" in text).get(name)
    return dict(compared.published.texts) if compared and compared.published else {}


def fidelity_items(name: str) -> list[FidelityItem]:
    """Return the items of a judge, and one for its rules. Raises UserError for a judge that has no
    source."""
    compared = read_fidelity()
    if name not in compared:
        raise UserError(
            f"judges fidelity {name}: no source is compared with it; there are "
            f"{', '.join(compared)}"
        )
    items, card = list(compared[name].items), JUDGES[name].card
    if card is not None and (rules := compared[name].rules):
        left_out = ", ".join(f"{rule} ({reason})" for rule, reason in card.left_out.items())
        ours = f"{len(rules) - len(card.left_out)} marked in the prompts"
        ours += f"; left out: {left_out}" if left_out else ""
        status: Literal["same", "declared"] = "declared" if left_out else "same"
        items.append(FidelityItem(item="rules", source=str(len(rules)), ours=ours, status=status))
    return items
