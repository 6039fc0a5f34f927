"""How much of a scripted run's success its words, actions and numbers give away."""

from __future__ import annotations

from typing import Any

import pytest

from tests.environments.agents.page_blind import BlindRun, areas, balanced, played
from trajudge.environments.agents.script import AGENTS


def runs(count: int) -> list[BlindRun]:
    """Make runs of ten scenarios that differ in nothing but their number and success."""
    return [
        BlindRun(
            f"app.s{n % 10}", n % 20 < 10, "I go on.", "It is done.", "click(B)", (n % 7, 0, 11, 3)
        )
        for n in range(count)
    ]


def test_every_scenario_has_as_many_failures_as_successes() -> None:
    lopsided = [run for run in runs(400) if run.success or run.scenario != "app.s3"][:-1]
    sample = balanced(lopsided, 0)
    assert "app.s3" not in {run.scenario for run in sample}
    assert sum(run.success for run in sample) * 2 == len(sample)


@pytest.mark.parametrize("source", ["reasoning", "answer", "actions"])
def test_a_word_that_only_successes_say_is_seen(source: str) -> None:
    """The measure sees what it is to see, in each source and in all of them together."""
    telling = []
    for run in runs(400):
        said = f"{getattr(run, source)} {'finally' if run.success else 'again'}"
        changed: dict[str, Any] = {source: said}
        telling.append(run._replace(**changed))
    found = areas(telling, 0)
    assert found[source] > 0.99 and found["together"] > 0.99
    assert found["counts"] < 0.6


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_runs_give_little_of_their_success_away(seed: int) -> None:
    """The goal is 0.65 from all together, on all scenarios; on a third of them, as here, the area
    varies by some hundredths."""
    sample = list(played(seed, every=3))
    assert len(sample) >= 20 * len(AGENTS)
    found = areas(sample, seed)
    assert found["answer"] <= 0.7
    assert found["counts"] <= 0.7
    assert found["together"] <= 0.75
