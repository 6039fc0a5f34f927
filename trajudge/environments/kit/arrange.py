"""The order of what stands on a page, as a theme likes it and no reader is misled by."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from trajudge.environments.kit.reading import forms, links
from trajudge.environments.kit.theme import Kind, Theme
from trajudge.environments.model.page import Block, Chart, DefinitionList, Form, Link, Page, Section

_KINDS: dict[type, Kind] = {DefinitionList: "facts", Form: "form", Chart: "chart"}


def arranged(blocks: Sequence[Block], look: Theme) -> list[Block]:
    """Return the blocks: facts, forms and charts that stand together in the theme's order, the
    forms among themselves as they were; neighbouring sections turned around where the theme says
    so."""
    placed: list[Block] = []
    for kind, run in groupby(blocks, _group):
        together = list(run)
        if kind == "loose":
            together.sort(key=lambda block: look.order.index(_KINDS[type(block)]))
        elif kind == "section" and look.swapped and _told_apart(together):
            together.reverse()
        placed += together
    return placed


def navigation(links: tuple[Link, ...], look: Theme) -> tuple[Link, ...]:
    """Return the links of the navigation: the first stays, the others are rotated."""
    first, rest = links[:1], links[1:]
    turn = look.turn % len(rest) if rest else 0
    return (*first, *rest[turn:], *rest[:turn])


def _group(block: Block) -> str:
    if type(block) in _KINDS:
        return "loose"
    return "section" if isinstance(block, Section) else "fixed"


def _told_apart(sections: Iterable[Block]) -> bool:
    """No label is in two places: a reader who takes the first one takes the same in any order."""
    page = Page("", tuple(sections))
    labels = [link.label for link in links(page)]
    for form in forms(page):
        labels += [form.submit, *(entry.label for entry in form.fields)]
    return len(labels) == len(set(labels))
