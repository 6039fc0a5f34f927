"""What a behaviour sets out to do, before any page is opened."""

from __future__ import annotations

from collections import Counter
from typing import Any, cast

import numpy as np
import pytest

from trajudge.environments.agents.courses import ScriptContext, course
from trajudge.environments.agents.script import Behaviour, Wander
from trajudge.environments.model.page import Link
from trajudge.environments.verify.labels import looping

NAMES = ("Home", "Orders", "Help", "Cart")
TASK = ScriptContext(
    scenario=cast(Any, None),
    plan=(),
    wrong_way=(),
    distractor=(),
    navigation=[Link(name, name.lower()) for name in NAMES],
)


@pytest.mark.parametrize("seed", range(5))
def test_who_goes_in_circles_sees_two_pages_four_times(seed: int) -> None:
    """Once more than what is called a cycle: a click that fails leaves it one."""
    intents = course(TASK, Behaviour.LOOPS, np.random.default_rng(seed))
    seen = [one.label for one in intents if isinstance(one, Wander)]
    assert sorted(Counter(seen).values()) == [4, 4]
    assert seen[:2] * 4 == seen
    assert looping(4) and looping(3) and looping(2) is None
