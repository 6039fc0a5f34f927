"""Agents of graded skill: what each rung can do on real pages, and what it knows beforehand."""

from __future__ import annotations

import ast
from itertools import pairwise
from pathlib import Path

import pytest

from tests.environments.cases import sound
from trajudge.environments.agents import ladder
from trajudge.environments.agents.ladder import RUNGS, LadderAgent, Skills
from trajudge.environments.agents.protocol import Job
from trajudge.environments.apps import load_app
from trajudge.environments.checks.integrity import check
from trajudge.environments.model.axes import generator
from trajudge.environments.model.case import Case
from trajudge.environments.model.config import Config
from trajudge.environments.recording.episode import Recorded, play_offline


def climb(case: Case, rung: str) -> Recorded:
    job = Job(config=case.config, agent=f"ladder-{rung}", goal=case.goal, shortest=case.shortest)
    rng = generator("test", rung, case.id)
    return play_offline(job, lambda run: LadderAgent(run.goal, RUNGS[rung], rng), b"k" * 32)


def test_each_rung_has_the_skills_of_the_one_below() -> None:
    skills = [skills for skills in RUNGS.values() if skills is not None]
    assert skills[0] == Skills() and all(skills[-1])
    assert all(all(a <= b for a, b in zip(x, y, strict=True)) for x, y in pairwise(skills))


@pytest.mark.parametrize(
    ("scenario", "instance", "profile", "theme", "ui", "solved"),
    [
        ("price", 3384, 4, 10, 10, "SLMPO"),
        ("cheapest", 1490, 3, 7, 0, "LMPO"),  # S does not choose among several
        ("three-prices", 2303, 9, 2, 2, "MPO"),  # L forgets the first price
        ("only-if-enough", 9670, 2, 1, 9, "PO"),  # M does not look at the stock first
        ("cheapest-month", 7764, 11, 5, 2, "O"),  # a chart, which no tree shows
    ],
)
def test_a_task_is_solved_from_the_rung_on_whose_skill_it_takes(
    scenario: str, instance: int, profile: int, theme: int, ui: int, solved: str
) -> None:
    config = Config(
        app="shop",
        scenario=scenario,
        instance=instance,
        profile=profile,
        theme=theme,
        ui=ui,
        seed=1,
    )
    case = check(load_app("shop"), config)
    assert isinstance(case, Case)
    did = [rung for rung in RUNGS if climb(case, rung).finding.labels.success is True]
    assert did == [rung for rung in solved if rung != "O"]


def test_an_agent_of_the_ladder_knows_nothing_but_goal_and_tree() -> None:
    """It imports none of the applications, plans, states and checks."""
    tree = ast.parse(Path(ladder.__file__).read_text(encoding="utf-8"))
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    ours = {name for name in imported if name and name.startswith("trajudge")}
    assert ours == {
        "trajudge.environments.chromium",
        "trajudge.environments.chromium.action_syntax",
    }
    same = [climb(sound("buy"), "R").trajectory for _ in range(2)]
    assert [s.action for s in same[0].steps] == [s.action for s in same[1].steps]
