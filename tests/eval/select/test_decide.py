"""The decision: who qualifies, who is chosen, who ties, and what is missing where nobody does."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.eval.select.runs_to_select import stacked
from tests.eval.select.world import evidence, plan
from trajudge.eval.select.decide import decide
from trajudge.eval.select.evidence import drawn_weights
from trajudge.eval.select.plan import Prices, Target
from trajudge.eval.select.text import text
from trajudge.trajectories.model import TrajectoryKey
from trajudge.util.errors import UserError


def test_the_one_that_yields_most_among_those_that_qualify_is_chosen() -> None:
    success, accepted = stacked((60, 2, 0), (150, 10, 0), (190, 120, 0))
    found = decide(plan((1.0,), (1.0,), (1.0,)), evidence(success, accepted))
    assert [f.verdict for f in found.findings] == ["qualifies", "qualifies", "below the target"]
    assert found.chosen == 1
    chosen = found.findings[1]
    assert chosen.precision.estimate == pytest.approx(150 / 160)
    assert chosen.recall.estimate == pytest.approx(150 / 200)
    assert chosen.rate.low is not None
    assert chosen.rate.low >= 0.8
    assert chosen.clean_per_rollout == pytest.approx(150 / 400)
    assert "Decision: filter with judge 2 at threshold 1." in text(found)
    assert not any(f.tied for f in found.findings)


def test_several_candidates_on_the_same_labels_are_warned_of_with_their_number() -> None:
    success, accepted = stacked((60, 2, 0), (150, 10, 0), (190, 120, 0))
    several = decide(plan((1.0, 0.5), (1.0,)), evidence(success, accepted))
    warnings = [note for note in several.notes if note.startswith("warning: ")]
    assert warnings[0].startswith("warning: earlier selections on these labels are not counted")
    assert "the best of 3 candidates (2 families)" in warnings[1]
    assert "\nwarning: the best of 3 candidates" in text(several)
    one = decide(plan((1.0,)), evidence(success, [row[:1] for row in accepted]))
    assert not any("warning" in note for note in one.notes)


def test_dollars_decide_where_prices_are_known() -> None:
    success, accepted = stacked((120, 5, 0), (150, 5, 0))
    made = evidence(success, accepted)
    dear = made.__class__(**{**vars(made), "prices": (0.001, 5.0)})
    prices = Prices(rollout=0.1, training=0.01)
    found = decide(plan((1.0,), (1.0,), prices=prices), dear)
    assert found.compared == "clean trajectories per dollar"
    assert found.chosen == 0
    cost = 0.1 + 0.001 + 125 / 400 * 0.01
    assert found.findings[0].clean_per_dollar == pytest.approx(120 / 400 / cost)


def test_an_unknown_price_falls_back_to_rollouts_and_says_so() -> None:
    success, accepted = stacked((120, 5, 0))
    made = evidence(success, accepted, price=None)
    found = decide(plan((1.0,), prices=Prices(rollout=0.1)), made)
    assert found.compared == "clean trajectories per rollout"
    assert any("price of judge 1 is not known" in note for note in found.notes)


def test_candidates_that_nobody_can_tell_apart_are_tied() -> None:
    success, accepted = stacked((150, 8, 0), (150, 8, 3), (60, 2, 0))
    found = decide(plan((1.0,), (1.0,), (1.0,)), evidence(success, accepted))
    tied = [f.family for f in found.findings if f.tied]
    assert len(tied) == 1
    assert tied[0] in ("judge 1", "judge 2")
    assert "Tied with it" in text(found)


def test_nobody_qualifies_is_said_with_the_labels_that_would_decide() -> None:
    success, accepted = stacked((26, 4, 0))
    found = decide(plan((1.0,)), evidence(success, accepted))
    assert (found.chosen, found.nearest) == (None, 0)
    assert found.findings[0].verdict == "undecided"
    more = found.findings[0].more_labels
    assert more is not None
    assert more > 50
    said = text(found)
    assert "no judge qualifies" in said
    words = " ".join(said.split())
    assert f"About {more:,} more labels of accepted trajectories" in words
    assert "would show that it meets the target with probability 0.8" in words


def test_a_judge_that_is_shown_to_miss_needs_no_more_labels() -> None:
    success, accepted = stacked((50, 60, 0))
    found = decide(plan((1.0,)), evidence(success, accepted))
    assert found.findings[0].verdict == "below the target"
    assert "more labels would not help" in text(found)


def test_a_judge_that_more_labels_may_decide_is_nearer_than_one_that_was_shown_to_miss() -> None:
    """Many accepted trajectories give the worse judge the higher limit."""
    success, accepted = stacked((120, 60, 0), (14, 4, 0))
    found = decide(plan((1.0,), (1.0,)), evidence(success, accepted))
    assert [one.verdict for one in found.findings] == ["below the target", "undecided"]
    assert (found.findings[0].rate.low or 0) > (found.findings[1].rate.low or 0)
    assert found.nearest == 1
    assert "Best that is undecided: judge 2" in text(found)
    assert "more labels would not help" not in text(found)


def test_candidates_of_too_few_labels_are_named_beside_one_that_was_shown_to_miss() -> None:
    success, accepted = stacked((50, 60, 0), (5, 0, 0))
    found = decide(plan((1.0,), (1.0,)), evidence(success, accepted))
    assert [one.verdict for one in found.findings] == ["below the target", "too few"]
    assert found.nearest == 0
    said = " ".join(text(found).split())
    assert "Undecided, with too few labels to qualify: judge 2" in said


def test_too_few_accepted_is_not_a_failure_of_the_judge() -> None:
    success, accepted = stacked((5, 0, 0))
    found = decide(plan((1.0,)), evidence(success, accepted))
    assert found.findings[0].verdict == "too few"
    assert found.findings[0].more_labels == 14 - 5


def test_the_worst_of_benchmarks_without_a_limit_has_the_lowest_rate() -> None:
    """Of one task each: the first by name was called the worst, at 100 %."""
    success, accepted = stacked((3, 2, 0), total=12)
    benchmark = ["webarena" if i < 2 else "workarena" for i in range(12)]
    made = evidence(success, accepted, task=benchmark, benchmark=benchmark)
    (finding,) = decide(plan((1.0,)), made).findings
    assert {p.benchmark: (p.rate.low, p.rate.estimate) for p in finding.by_benchmark} == {
        "webarena": (0.0, 1.0),
        "workarena": (0.0, pytest.approx(1 / 3)),
    }
    assert finding.worst == "workarena"


def test_every_benchmark_has_to_carry_it_where_that_is_asked() -> None:
    success, accepted = stacked((180, 12, 0))
    # The second benchmark holds all the false positives beside few successes.
    benchmark = ["webarena" if i < 160 or i >= 212 else "workarena" for i in range(400)]
    made = evidence(success, accepted, benchmark=benchmark)
    overall = decide(plan((1.0,)), made)
    assert overall.chosen == 0
    assert not overall.findings[0].qualifies_everywhere
    assert overall.findings[0].worst == "workarena"
    assert "was not shown" in text(overall)
    strict = decide(plan((1.0,), scope="every-benchmark"), made)
    assert strict.findings[0].verdict == "below the target"


def test_labels_are_asked_for_on_the_benchmarks_that_are_open() -> None:
    success, accepted = stacked((180, 12, 0))
    benchmark = ["webarena" if i < 110 or i >= 212 else "workarena" for i in range(400)]
    made = evidence(success, accepted, benchmark=benchmark)
    found = decide(plan((1.0,), scope="every-benchmark"), made)
    assert found.findings[0].verdict == "undecided"
    assert found.findings[0].more_labels is not None
    assert "on the benchmarks that are open" in " ".join(text(found).split())


def test_false_positives_may_be_the_target() -> None:
    success, accepted = stacked((100, 4, 0), (150, 60, 0))
    target = Target(kind="false-positive-rate", rate=0.1)
    found = decide(plan((1.0,), (1.0,), target=target), evidence(success, accepted))
    assert found.chosen == 0
    assert found.findings[0].rate.hits == 196
    assert found.findings[0].precision.trials == 104
    assert found.findings[1].verdict == "below the target"
    assert "4 of 200, at most" in text(found)


@pytest.mark.parametrize(
    ("success", "accepted", "task"),
    [
        ([True] * 30, [False] * 30, None),
        ([False] * 30, [True] * 30, None),
        ([True] * 30, [True] * 30, [0] * 30),
        ([True], [True], None),
    ],
    ids=["nothing accepted", "no success", "one task", "one trajectory"],
)
def test_degenerate_evidence_qualifies_nobody_and_is_worded(
    success: list[bool], accepted: list[bool], task: list[int] | None
) -> None:
    made = evidence(success, accepted, task=task)
    found = decide(plan((1.0,)), made)
    assert found.chosen is None
    assert "no judge qualifies" in text(found)
    assert "nan" not in text(found)


def test_the_same_plan_and_evidence_give_the_same_decision() -> None:
    rng = np.random.default_rng(4)
    success = rng.random(300) < 0.5
    accepted = np.where(success[:, None], rng.random((300, 4)) < 0.8, rng.random((300, 4)) < 0.05)
    made = evidence(success, accepted, task=rng.integers(0, 80, 300))
    chosen = plan((0.9, 0.5), (0.9, 0.5))
    assert decide(chosen, made) == decide(chosen, made)


def test_judges_on_other_trajectories_are_compared_where_both_judged() -> None:
    success, accepted = stacked((150, 8, 0), (150, 8, 0))
    judged = [[True, i % 2 == 0] for i in range(400)]
    both = np.asarray(accepted) & np.asarray(judged)
    found = decide(plan((1.0,), (1.0,)), evidence(success, both, judged=judged))
    assert found.findings[1].labelled == 200
    assert found.findings[0].tied or found.findings[1].tied
    assert any("judged 200 of the 400" in note for note in found.notes)


def test_a_threshold_behind_a_failure_was_not_tested_and_says_so() -> None:
    """The strict set is impure, the loose one good: the sequence stops before it."""
    success, accepted = stacked((25, 6, 0), (180, 9, 0))
    found = decide(plan((0.9, 0.5)), evidence(success, accepted))
    assert [f.verdict for f in found.findings] == ["undecided", "undecided"]
    assert found.nearest == 1
    assert "and one before it failed, which ends the test" in " ".join(text(found).split())


def test_a_task_that_holds_more_than_half_of_the_accepted_runs_is_refused() -> None:
    """31 of 60 accepted runs are of one task; 30 of 60, exactly one half, are only told."""
    for runs, told in ((31, "cannot qualify"), (30, "largely")):
        task = [*[0] * runs, *range(1, 61 - runs)]
        found = decide(plan((1.0,), rate=0.2), evidence([True] * 60, [[True]] * 60, task=task))
        assert found.findings[0].verdict == "too few"
        assert sum(told in note and "of one task, 0" in note for note in found.notes) == 1
    even = decide(plan((1.0,)), evidence([True] * 60, [[True]] * 60))
    assert not any("of one task" in note for note in even.notes)


def test_labels_of_a_queue_are_weighted_and_their_numbers_stay_counts() -> None:
    """Accepted runs are labelled three times as often as others, accepted failures ten times: of
    400 accepted 320 succeed, of the labels every second one."""
    truth, accepted = [True] * 40 + [False] * 40, [[True]] * 80
    weight = np.array([8.0] * 40 + [2.0] * 40)
    made = replace(evidence(truth, accepted), weight=weight, shares=(0.25,))
    found = decide(plan((1.0,), rate=0.6), made).findings[0]
    assert (found.rate.hits, found.rate.trials) == (40, 80)
    assert found.rate.estimate == pytest.approx(0.8)
    assert found.rate.low is not None and 0.6 < found.rate.low < 0.8
    assert found.verdict == "qualifies"
    assert found.precision.estimate == pytest.approx(0.8)
    assert found.clean_per_rollout == pytest.approx(0.25 * 0.8)
    unweighted = decide(plan((1.0,), rate=0.6), evidence(truth, accepted)).findings[0]
    assert unweighted.verdict != "qualifies"


def test_some_labels_of_a_queue_among_others_are_refused() -> None:
    """Their chances are unknown: neither is weighted silently as the others."""
    keys = [TrajectoryKey(benchmark="b", agent="a", task_id=str(n)) for n in range(4)]
    labels: Any = {key: SimpleNamespace(inclusion_probability=0.5) for key in keys}
    assert drawn_weights(labels, keys) is None  # all alike
    labels[keys[0]].inclusion_probability = 0.125
    found = drawn_weights(labels, keys)
    assert found is not None
    assert found.tolist() == pytest.approx([8 / 3.5, *[2 / 3.5] * 3])
    labels[keys[1]].inclusion_probability = None
    with pytest.raises(UserError, match="3 of 4 labels say with what probability"):
        drawn_weights(labels, keys)
