"""Detours of scripted runs: as often and as long as the module says."""

from __future__ import annotations

import numpy as np
import pytest

from trajudge.environments.agents.habits import CUSTOMARY, ROW, Around, Habits, drawn, lived
from trajudge.environments.agents.script import Fumble, Raw, Return
from trajudge.environments.chromium.action_syntax import write


def test_three_of_ten_runs_go_straight() -> None:
    rng = np.random.default_rng(0)
    straight = [drawn(rng).further == 0 for _ in range(10_000)]
    assert np.mean(straight) == pytest.approx(0.3, abs=0.015)


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
