"""Agreement between experts, against scikit-learn and the paper's figures."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from trajudge.annotations import Annotation, Role, open_annotations
from trajudge.annotations.agreement import Label, agreement, cohen_kappa, label_pairs
from trajudge.trajectories.model import TrajectoryKey

PAIRS = st.lists(st.tuples(st.integers(1, 4), st.integers(1, 4)), max_size=60)


@given(PAIRS)
def test_kappa_is_scikit_learns(pairs: list[tuple[int, int]]) -> None:
    kappa = cohen_kappa(pairs)
    if kappa is None:
        assert len({value for pair in pairs for value in pair}) <= 1
    else:
        first, second = zip(*pairs, strict=True)
        assert kappa == pytest.approx(cohen_kappa_score(first, second))


def opinion(task: str, role: Role, success: bool | None) -> Annotation:
    key = TrajectoryKey(benchmark="webarena", agent="a", task_id=task)
    return Annotation(key=key, raw_task_id=task, annotator="x", role=role, success=success)


def test_only_pairs_without_an_unsure_count() -> None:
    annotations = [
        opinion("1", Role.SECONDARY, True),
        opinion("1", Role.PRIMARY, True),
        opinion("2", Role.PRIMARY, None),
        opinion("2", Role.SECONDARY, True),
        opinion("3", Role.PRIMARY, False),
        opinion("4", Role.PRIMARY, False),
        opinion("4", Role.SECONDARY, True),
        opinion("4", Role.SECONDARY, False),
    ]
    assert label_pairs(annotations, "success") == [(True, True), (False, True)]
    result = agreement(annotations, "success")
    assert (result.n, result.exact) == (2, 0.5)


def test_nothing_to_compare_is_not_a_number() -> None:
    result = agreement([], "success")
    assert (result.n, result.exact, result.kappa) == (0, None, None)


@pytest.mark.real_data
def test_the_figures_of_the_benchmark(real_data: Path) -> None:
    everything = open_annotations(f"agentrewardbench:{real_data / 'agentrewardbench'}")
    test = [a for a in everything if a.split == "test"]
    expected: dict[Label, tuple[float | None, float]] = {
        "success": (0.8929, 0.777),
        "side_effect": (None, 0.708),
        "repetition": (None, 0.713),
        "optimality": (0.619, 0.484),
    }
    for label, (exact, kappa) in expected.items():
        found = agreement(test, label)
        assert found.n == 84
        assert found.kappa == pytest.approx(kappa, abs=5e-4)
        if exact is not None:
            assert found.exact == pytest.approx(exact, abs=5e-5)
    overall = agreement(everything, "success")
    assert (overall.n, round(overall.exact or 0, 4)) == (105, 0.8857)
