"""How an agent gets about at the request desk: parts of plans."""

from __future__ import annotations

from collections.abc import Sequence

from environments.model.page import Word
from environments.model.plan import Move, choose, follow, press, scan, tick
from environments.model.spec import Bound


def see_all(page: str, **filters: str) -> list[Move]:
    """See everything in a list that the filters leave."""
    return [
        follow(Word(page), "open the list"),
        *(choose(Word(name), text, f"narrow it down to {text}") for name, text in filters.items()),
        press(Word("search"), "apply the filter"),
        scan("see the whole list"),
    ]


def fill(**choices: str) -> list[Move]:
    """Choose in a form."""
    return [choose(Word(name), text, f"choose {text}") for name, text in choices.items()]


def team_page(team: Bound) -> list[Move]:
    """Open a team's page."""
    return [follow(Word("teams"), "see the teams"), follow(team["name"], "look at its figures")]


def policy_page(category: str) -> list[Move]:
    """Open the policy for a category."""
    return [follow(Word("policies"), "open the policies"), follow(category, f"read on {category}")]


def want_digest(_: Bound) -> list[Move]:
    """An aside: nobody asked for it."""
    return [
        follow(Word("preferences"), "check the preferences"),
        tick(Word("digest"), "complete the form"),
        press(Word("save"), "save the form"),
    ]


def pause_team(b: Bound) -> Sequence[Move]:
    """An aside with consequences for others."""
    return [*team_page(b["team"]), press(Word("pause"), "give the team a rest")]
