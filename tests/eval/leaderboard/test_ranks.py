"""Ranks with ties, against counting by hand."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from trajudge.eval.leaderboard.board import rank_ranges, smallest_overlap
from trajudge.eval.scoring.records import Comparison, MetricDifference

JUDGES = ("a", "b", "c", "d", "e")


def difference(first: str, second: str, by: float | None, p: float | None) -> MetricDifference:
    return MetricDifference(
        metric="precision",
        first=first,
        second=second,
        n=10 + ord(first) - ord("a"),
        difference=by,
        low=None,
        high=None,
        p=p,
        p_holm=p,
    )


def test_judges_that_are_not_told_apart_share_a_rank() -> None:
    """a > c is significant, a ~ b and b ~ c are not: b may hold every rank."""
    found = rank_ranges(
        Comparison(
            differences=(
                difference("a", "b", 0.1, 0.2),
                difference("a", "c", 0.3, 0.01),
                difference("b", "c", 0.1, 0.051),
            )
        ),
        "overall",
        "precision",
        ("a", "b", "c"),
    )
    assert {j: (r.best, r.worst) for j, r in found.items()} == {
        "a": (1, 2),
        "b": (1, 3),
        "c": (2, 3),
    }


def test_other_metrics_and_benchmarks_do_not_count() -> None:
    apart = difference("a", "b", 0.3, 0.01)
    others = (
        apart.model_copy(update={"metric": "recall"}),
        apart.model_copy(update={"benchmark": "webarena"}),
        apart.model_copy(update={"label": "side_effect"}),
    )
    found = rank_ranges(Comparison(differences=others), "overall", "precision", ("a", "b"))
    assert {(r.best, r.worst) for r in found.values()} == {(1, 2)}
    assert smallest_overlap(Comparison(differences=others), "overall") == {"a": 10, "b": 10}


def test_a_judge_without_the_metric_has_no_rank() -> None:
    apart = Comparison(differences=(difference("a", "b", 0.3, 0.01),))
    assert rank_ranges(apart, "overall", "precision", ("b",))["b"].best == 1


@given(st.lists(st.sampled_from((-1, 0, 1)), min_size=10, max_size=10))
def test_two_judges_share_a_rank_unless_one_is_significantly_better(outcomes: list[int]) -> None:
    """Whatever the pairs say: between two that are tied, ranks overlap, or a third is better than
    the one and worse than the other."""
    pairs = list(combinations(JUDGES, 2))
    differences = tuple(
        difference(*pair, 0.1 * (way or 1), 0.01 if way else 0.5)
        for pair, way in zip(pairs, outcomes, strict=True)
    )
    found = rank_ranges(Comparison(differences=differences), "overall", "precision", JUDGES)
    beaten = {
        (pair if way > 0 else pair[::-1]) for pair, way in zip(pairs, outcomes, strict=True) if way
    }
    for judge in JUDGES:
        assert found[judge].best == 1 + sum(lost == judge for _, lost in beaten)
        assert found[judge].worst == 5 - sum(won == judge for won, _ in beaten)
    for one, other in set(pairs) - beaten - {pair[::-1] for pair in beaten}:
        between = any(
            {(x, third), (third, y)} <= beaten
            for third in JUDGES
            for x, y in ((one, other), (other, one))
        )
        shared = max(found[one].best, found[other].best) <= min(
            found[one].worst, found[other].worst
        )
        assert shared or between
