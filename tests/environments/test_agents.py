"""Scripts are seeded and bounded, and their words do not give a behaviour away."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from environments.agents import AGENTS, STEP_LIMIT, Behaviour, action, reasoning, script
from environments.axtree import Element
from environments.tasks import TASKS, Move

EVERY_RUN = list(itertools.product(TASKS, Behaviour))


@pytest.mark.parametrize(("task", "behaviour"), EVERY_RUN)
def test_the_same_seed_gives_the_same_script(task: str, behaviour: Behaviour) -> None:
    for seed in range(20):
        first, again = (
            script(TASKS[task], behaviour, np.random.default_rng(seed)) for _ in range(2)
        )
        assert first == again
        assert 2 <= len(first) <= STEP_LIMIT


def test_every_behaviour_has_an_agent_whose_name_does_not_tell() -> None:
    assert sorted(AGENTS.values()) == sorted(Behaviour)
    words = {word for behaviour in Behaviour for word in behaviour.split("-")}
    assert not words & {part for name in AGENTS for part in name.split("-")}


def test_a_move_finds_its_element_by_role_and_name() -> None:
    seen = [
        Element("1", "link", "Mug rack"),
        Element("2", "link", "Mug"),
        Element("3", "link", "Cart (2)"),
    ]
    assert action(Move("click", "link", "Mug"), seen) == "click('2')"
    assert action(Move("click", "link", "Cart ("), seen) == "click('3')"
    with pytest.raises(LookupError, match="no button 'Mug'"):
        action(Move("click", "button", "Mug"), seen)


def test_reasoning_takes_any_title_as_it_is() -> None:
    move = Move("go_back", why="compare {0} again")
    for seed in range(20):
        said = reasoning(move, "{title.__class__} | Shop", None, np.random.default_rng(seed))
        assert "compare {0} again" in said
