"""Blind replay reaches what a run reached, as long as everything is the same."""

from __future__ import annotations

from tests.environments.agents.blind_replay import replayed, solution
from tests.environments.cases import sound
from trajudge.environments.checks.variation import AXES


def test_a_replay_works_where_nothing_differs_and_only_there() -> None:
    for scenario in ("buy", "price"):
        case = sound(scenario)
        recorded = solution(case)
        assert recorded.finding.labels.success is True
        assert replayed(recorded, case) is True
        assert replayed(recorded, case, AXES) is False
    assert replayed(solution(sound("buy")), sound("buy"), ["theme"]) is False
