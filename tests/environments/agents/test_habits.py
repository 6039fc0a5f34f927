"""Detours of scripted runs: as often and as long as the module says."""

from __future__ import annotations

import numpy as np
import pytest

from trajudge.environments.agents.habits import (
    CUSTOMARY,
    ROW,
    Around,
    Habits,
    drawn,
    idle,
    lived,
    why,
)
from trajudge.environments.agents.script import Fumble, Raw, Return, Wander
from trajudge.environments.chromium.action_syntax import write
from trajudge.environments.model.page import Link
from trajudge.environments.model.plan import PlanStep


def test_habits_are_as_frequent_as_the_module_says() -> None:
    rng = np.random.default_rng(0)
    runs = [drawn(rng) for _ in range(20_000)]
    assert np.mean([run.further == 0 for run in runs]) == pytest.approx(0.3, abs=0.01)
    astray = [run for run in runs if run.further]
    assert np.mean([run.further for run in astray]) == pytest.approx(1 / 0.14, abs=0.2)
    assert np.mean([run.circles for run in astray]) == pytest.approx(0.12, abs=0.007)
    assert not any(run.failed or run.circles for run in runs if not run.further)
    assert Habits() == (0, 0, False, 0, "")
    waits = np.mean([idle(rng).startswith("noop(") for _ in range(20_000)])
    assert waits == pytest.approx(0.3, abs=0.01)


def test_a_run_is_as_long_as_its_habits_and_what_it_leaves_out() -> None:
    body = [Return(), Return()]
    around = Around((), folded=False, room=9)
    for further, failed, missing in [(0, 0, 0), (1, 0, 0), (1, 1, 0), (3, 2, 0), (0, 1, 1)]:
        rng = np.random.default_rng(further)
        made = lived(body, Habits(further, failed), around, missing, rng)
        assert len(made) == 2 + max(further + missing, failed), (further, failed, missing)


def test_who_errs_fails_in_a_row_and_who_idles_waits_in_a_row() -> None:
    around = Around((), folded=False, room=9)
    for quirk, kind, least in (("errs", Fumble, ROW[0]), ("idles", Raw, CUSTOMARY)):
        made = lived([], Habits(quirk=quirk), around, 0, np.random.default_rng(0))
        assert {type(intent) for intent in made} == {kind}
        assert least <= len(made) < max(ROW[1], CUSTOMARY + 1)


def test_who_tries_short_ways_goes_to_addresses_and_comes_back() -> None:
    around = Around((), folded=False, room=9, addresses=("file:///a", "http://b.localhost/c"))
    made = lived([], Habits(quirk="shortcuts"), around, 0, np.random.default_rng(0))
    assert isinstance(made[-1], Return)
    tried = {intent.text for intent in made if isinstance(intent, Raw)}
    assert tried <= {write("goto", address) for address in around.addresses} and tried


PRESS = PlanStep("press", "Save", why="save it")


def test_who_turns_pages_instead_does_so_for_as_long_as_is_missing() -> None:
    around, rng = Around((), folded=False, room=9), np.random.default_rng(0)
    fumble, fails = Fumble(PRESS), Fumble(PRESS, fails=True)
    followed = Fumble(PlanStep("follow", "", why="save it"))
    assert lived([fumble], Habits(), around, 2, rng) == [followed, followed, fumble]
    (first, second) = lived([fails], Habits(), around, 1, rng)  # no page to turn: it looks aside
    assert {type(first), type(second)} == {Fumble, Raw}
    # Whoever does more than the task takes does as much less beyond it.
    assert lived([fumble] * 3, Habits(1), around, -1, rng) == [fumble] * 3


def test_a_circle_needs_five_actions() -> None:
    around = Around([Link("Home", "home")], folded=False, room=9)
    for habits, goes_round in (
        (Habits(5, circles=True), True),
        (Habits(4, circles=True), False),
        (Habits(9), False),
    ):
        made = lived([], habits, around, 0, np.random.default_rng(0))
        reasons = [one.why for one in made if isinstance(one, Wander)]
        assert ("open it once more" in reasons) is goes_round


def test_a_run_that_only_fails_tries_a_step_of_its_task() -> None:
    around = Around((), folded=False, room=9, plan=[PRESS])
    made = lived([], Habits(1, 1), around, 0, np.random.default_rng(0))
    assert made == [Fumble(PRESS, fails=True)]


def test_half_of_the_reasons_are_those_of_the_task() -> None:
    rng = np.random.default_rng(0)
    assert {why([], "look", rng) for _ in range(100)} == {"look"}
    share = np.mean([why([PRESS], "look", rng) == "save it" for _ in range(10_000)])
    assert share == pytest.approx(0.5, abs=0.02)
