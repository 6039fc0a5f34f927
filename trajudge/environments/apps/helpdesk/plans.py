"""How an agent gets about at the request desk: parts of plans."""

from __future__ import annotations

from collections.abc import Sequence

from trajudge.environments.apps import lists
from trajudge.environments.apps.lists import open_listed, switch
from trajudge.environments.model.page import Word
from trajudge.environments.model.plan import PlanStep, choose, press
from trajudge.environments.model.spec import Bound


def list_all(page: str, **filters: str) -> list[PlanStep]:
    """See everything in a list that the filters leave."""
    return lists.list_all(page, "open the list", **filters)


def fill(**choices: str) -> list[PlanStep]:
    """Choose in a form."""
    return [choose(Word(name), text, f"choose {text}") for name, text in choices.items()]


def team_page(team: Bound) -> list[PlanStep]:
    """Open a team's page."""
    return open_listed("teams", team["name"], "see the teams", "look at its figures")


def policy_page(category: str) -> list[PlanStep]:
    """Open the policy for a category."""
    return open_listed("policies", category, "open the policies", f"read on {category}")


def want_digest(_: Bound) -> list[PlanStep]:
    """Return a distractor: nobody asked for it."""
    return switch("preferences", "digest")


def pause_team(b: Bound) -> Sequence[PlanStep]:
    """Return a distractor with consequences for others."""
    return [*team_page(b["team"]), press(Word("pause"), "give the team a rest")]
