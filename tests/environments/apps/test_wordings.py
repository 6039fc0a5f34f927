"""The wordings of every scenario, as data: complete, different, and silent about pages."""

from __future__ import annotations

import re
from collections import Counter
from itertools import combinations

import pytest

from trajudge.environments.apps import APPS, load_app
from trajudge.environments.model.binding import placeholders
from trajudge.environments.model.spec import App, Derive, Scenario

_TOKEN = re.compile(r"\{\w+(?:\[\w+\])?\}|[\w$]+")
FAMILIES = {
    "plan", "memory", "recovery", "time", "judgement", "refusal", "irreversible", "vision",
}  # fmt: skip
every_app = pytest.mark.parametrize("name", APPS)


def tokens(goal: str) -> set[str]:
    return set(_TOKEN.findall(goal.casefold()))


def overlap(one: str, other: str) -> float:
    """Shared words over all words of two wordings."""
    a, b = tokens(one), tokens(other)
    return len(a & b) / len(a | b)


def faults(app: App, scenario: Scenario) -> list[str]:
    """What is wrong with the wordings of a scenario."""
    found = [] if len(scenario.goals) >= 4 else [f"{len(scenario.goals)} wordings"]
    slots = {name for name, slot in scenario.slots.items() if not isinstance(slot, Derive)}
    slots -= {"mail"}  # it is found by what the goal says of it
    addresses = {name for name in app.pages if "-" in name}
    for goal in scenario.goals:
        if missing := slots - set(placeholders(goal)):
            found.append(f"{min(missing)} is not in {goal!r}")
        if "/" in re.sub(r"\d/\d|\s/\s|\{\w+(?:\[\w+\])?\}/\d+", "", goal) or "http" in goal:
            found.append(f"an address is in {goal!r}")
        if any(address in goal for address in addresses):
            found.append(f"a page is named in {goal!r}")
    pairs = combinations(scenario.goals, 2)
    return found + [f"{a!r} is too near to {b!r}" for a, b in pairs if overlap(a, b) > 0.7]


@every_app
def test_every_scenario_has_four_different_wordings_with_every_slot(name: str) -> None:
    app = load_app(name)
    assert [fault for scenario in app.scenarios for fault in faults(app, scenario)] == []


def test_the_faults_of_wordings_are_found() -> None:
    assert overlap("Buy the {product[name]} now", "Buy the {product[name]} today") == 3 / 5
    app = load_app("helpdesk")
    scenario = app.scenario("hand-over")
    goals = (scenario.goals[0], "Open /tickets for {ticket[number]}", scenario.goals[0] + " Now!")
    bad = Scenario(scenario.id, goals, scenario.slots, scenario.plan, scenario.replies)
    assert [fault.split(" {")[0].split(" '")[0] for fault in faults(app, bad)] == [
        "3 wordings", "person is not in", "an address is in", "'Hand ticket",
    ]  # fmt: skip


def test_the_families_are_filled() -> None:
    scenarios = [scenario for name in APPS for scenario in load_app(name).scenarios]
    assert len(scenarios) >= 250
    families: Counter[str] = Counter(scenario.family for scenario in scenarios)
    assert min(families[family] for family in FAMILIES) >= 12, families
    assert {scenario.demand for scenario in scenarios} == {1, 2, 3}
