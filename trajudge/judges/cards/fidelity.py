"""What each judge follows of its source, and what not: ``fidelity.toml``, read and shown.

Every rule of a source has an id. A template marks the rule with a comment on the line before it,
``{# R V3 #}``; a rule that no template holds is left out on the judge's card, with the reason.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Literal

from pydantic import Field

from trajudge.judges.cards import card_of
from trajudge.judges.registry import find_judge
from trajudge.trajectories.model import Record
from trajudge.util.errors import UserError

FidelityRow = tuple[str, str, str, str, str]
HEAD: FidelityRow = ("judge", "item", "source", "here", "status")


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


class Fidelity(Record):
    """A judge beside its ``source``; ``rules`` are the source's, id to a few words of ours."""

    source: str
    rules: dict[str, str] = Field(default_factory=dict)
    items: tuple[FidelityItem, ...] = ()


@cache
def read_fidelity() -> Mapping[str, Fidelity]:
    """Read ``fidelity.toml``: judge to what is known of it."""
    text = files("trajudge.judges.cards").joinpath("fidelity.toml").read_text(encoding="utf-8")
    return {name: Fidelity.model_validate(table) for name, table in tomllib.loads(text).items()}


def fidelity_rows(name: str | None = None) -> Iterator[FidelityRow]:
    """Yield the table's rows of one judge, or of all: its items, then its rules. Raises UserError
    for a judge that is not in it."""
    known = read_fidelity()
    if name is not None and name not in known:
        raise UserError(
            f"judges fidelity {name}: no source is compared with it; there are {', '.join(known)}"
        )
    for judge in [name] if name else known:
        for row in known[judge].items:
            yield (judge, row.item, row.source, row.ours, row.status)
        yield from _rules_row(judge, known[judge])


def _rules_row(judge: str, fidelity: Fidelity) -> Iterator[FidelityRow]:
    card = card_of(judge, find_judge(judge))
    if card is None or not fidelity.rules:
        return
    left_out = ", ".join(f"{rule} ({reason})" for rule, reason in card.left_out.items())
    held = len(fidelity.rules) - len(card.left_out)
    status = "declared" if left_out else "same"
    here = f"{held} marked in the prompts" + (f"; left out: {left_out}" if left_out else "")
    yield (judge, "rules", str(len(fidelity.rules)), here, status)
