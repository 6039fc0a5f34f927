"""How an agent gets about at the moderation desk: parts of plans."""

from __future__ import annotations

from collections.abc import Sequence

from trajudge.environments.apps import lists
from trajudge.environments.apps.lists import CONFIRM, open_listed, search_and_open, switch
from trajudge.environments.model.page import Word
from trajudge.environments.model.plan import PlanStep, choose, enter, follow, press
from trajudge.environments.model.spec import Bound


def list_all(page: str, **filters: str) -> list[PlanStep]:
    """See everything in a list that the filters leave."""
    return lists.list_all(page, "open the list", **filters)


def fill(button: str, note: str = "", **choices: str) -> list[PlanStep]:
    """Complete the form and send it."""
    moves = [choose(Word(name), text, f"choose {text}") for name, text in choices.items()]
    if note:
        moves.append(enter(Word("note"), note, "write the message"))
    return [*moves, press(Word(button), "send the form")]


def post_of(report: Bound) -> list[PlanStep]:
    """Open the post that a report is about."""
    return [
        *search_and_open("reports", report["number"]),
        follow(report["about"], "open the reported post"),
    ]


def charts_of(forum: Bound) -> list[PlanStep]:
    """Look at a forum's charts."""
    return open_listed("forums", forum["name"], "see the forums", "look at its charts")


def suspend(clause: Bound, days: int) -> list[PlanStep]:
    """From the member's page."""
    return [
        follow(Word("suspend_member"), "open the form"),
        choose(Word("clause"), clause["number"], f"name clause {clause['number']}"),
        enter(Word("days"), days, f"set {days} days"),
        press(Word("suspend"), "suspend the member"),
        CONFIRM,
    ]


def set_alerts(_: Bound) -> list[PlanStep]:
    """Return a distractor: nobody asked for it."""
    return switch("preferences", "alerts")


def lock_forum(b: Bound) -> Sequence[PlanStep]:
    """Return a distractor with consequences for others."""
    return [*charts_of(b["forum"]), press(Word("lock"), "keep the forum calm meanwhile")]
