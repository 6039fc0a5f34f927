"""Whether a choice may be carried to another benchmark."""

from __future__ import annotations

import numpy as np
import pytest

from tests.eval.cases import said
from tests.eval.select_world import evidence
from trajudge.eval.accept.accept import transfer_obstacles
from trajudge.eval.select.evidence import SelectionData
from trajudge.eval.select.plan import Target
from trajudge.eval.select.rates import cluster_sums, lower_limits, rate_sums, upper_limits
from trajudge.eval.select.scores import Rule
from trajudge.eval.select.transport import (
    homogeneity,
    largest_difference,
    least_success_rate,
    transport,
)

TARGET = Target(rate=0.7)


def world(false: dict[str, float], true: float = 0.9, n: int = 300, seed: int = 0) -> SelectionData:
    """Every benchmark with half its trajectories successful."""
    rng = np.random.default_rng(seed)
    benchmark = np.repeat(sorted(false), n)
    success = np.tile([True, False], len(benchmark) // 2)
    share = np.where(success, true, [false[name] for name in benchmark])
    return evidence(success, rng.random(len(success)) < share, benchmark=benchmark)


def test_chi_square_is_the_textbook_one() -> None:
    from scipy import stats

    rng = np.random.default_rng(1)
    benchmark = rng.choice(["a", "b", "c"], 200)
    trials, hits = rng.random(200) < 0.7, rng.random(200) < 0.4
    found = homogeneity(hits, trials, benchmark)
    table = [
        [((benchmark == b) & trials & (hits == side)).sum() for b in "abc"]
        for side in (True, False)
    ]
    expected = stats.chi2_contingency(np.array(table), correction=False)
    assert found.chi_square == pytest.approx(expected.statistic)
    assert found.p_value == pytest.approx(expected.pvalue)
    assert found.rates["a"] == (table[0][0], table[0][0] + table[1][0])


def test_refused_where_false_positive_rates_differ_with_the_labels_to_buy() -> None:
    found = transport(world({"webarena": 0.02, "workarena": 0.25}), 0, TARGET, 0.95, 0.1)
    assert not found.allowed
    assert "false-positive rate differs" in found.reason
    assert found.least_success_rate is None
    assert found.accepted_to_label is not None
    assert found.accepted_to_label > 10


def test_allowed_where_rates_are_equivalent_down_to_a_success_rate() -> None:
    made = world({"webarena": 0.1, "workarena": 0.1}, n=1000)
    found = transport(made, 0, TARGET, 0.95, 0.1)
    assert found.allowed
    share, margin = found.least_success_rate, 0.1
    assert share is not None

    def limit(of: object, trials: object) -> tuple[float, float]:
        clusters = cluster_sums(np.c_[of], np.c_[trials], made.task, made.benchmark)
        rates = rate_sums(clusters)
        return float(lower_limits(rates, 0.025)[0]), float(upper_limits(rates, 0.025)[0])

    success, accepted = made.success, made.accepted[:, 0]
    true = limit(accepted & success, success)[0] - margin
    false = limit(accepted & ~success, ~success)[1] + margin
    assert true * share / (true * share + false * (1 - share)) == pytest.approx(0.7)


@pytest.mark.slow
def test_few_labels_that_show_no_difference_show_no_equivalence_either() -> None:
    """The rates differ widely (0.05 and 0.3), and a test of homogeneity cannot tell."""
    refused = 0
    for seed in range(20):
        found = transport(world({"a": 0.05, "b": 0.3}, n=24, seed=seed), 0, TARGET, 0.95, 0.1)
        refused += not found.allowed
        if (
            found.false_positive_rate.p_value is not None
            and found.false_positive_rate.p_value > 0.05
        ):
            assert "was not shown to be the same" in found.reason
    assert refused == 20


@pytest.mark.slow
def test_rates_that_differ_by_the_margin_pass_at_most_as_often_as_alpha() -> None:
    passed = [
        found is not None and found <= 0.1
        for seed in range(120)
        for made in [world({"a": 0.1, "b": 0.1 + 0.1}, n=400, seed=seed)]
        for failed in [~made.success[:, None]]
        for found in [largest_difference(made, made.accepted, failed, 0.05)]
    ]
    assert np.mean(passed) <= 0.05 + 3 * (0.05 * 0.95 / 120) ** 0.5


def test_the_largest_difference_is_that_of_all_pairs_by_the_limits_of_each() -> None:
    """The exact binomial's limits, as every trajectory is a task, combined as MOVER does."""
    from scipy.stats import beta

    made = world({"a": 0.05, "b": 0.2, "c": 0.1})
    failed, ends = ~made.success, []
    for name in "abc":
        here = failed & (made.benchmark == name)
        n, k = int(here.sum()), int(made.accepted[here, 0].sum())
        ends.append((beta.ppf(0.05, k, n - k + 1), k / n, beta.ppf(0.95, k + 1, n - k)))
    expected = max(
        (one[1] - other[1]) + np.hypot(one[2] - one[1], other[1] - other[0])
        for one in ends
        for other in ends
        if one is not other
    )
    found = largest_difference(made, made.accepted, failed[:, None], 0.05)
    assert found == pytest.approx(expected, abs=1e-6)


def test_the_least_success_rate_is_where_the_precision_is_the_target() -> None:
    assert least_success_rate(0.2, 0.8, 0.7) == pytest.approx(0.14 / 0.38)
    assert least_success_rate(0.0, 0.0, 0.7) == 1.0


def test_a_bound_on_false_positives_has_to_hold_with_the_margin_added() -> None:
    made = world({"a": 0.1, "b": 0.1}, n=1000)
    limit = transport(made, 0, TARGET, 0.95, 0.1).false_positive_limit
    assert limit is not None
    for bound, is_allowed in ((limit, True), (limit - 0.001, False)):
        target = Target(kind="false-positive-rate", rate=bound)
        found = transport(made, 0, target, 0.95, 0.1)
        assert found.allowed is is_allowed
        assert found.least_success_rate is None
        assert found.reason.startswith("the false-positive rate may reach") is not is_allowed


@pytest.mark.parametrize("names", [["webarena"], []])
def test_one_benchmark_says_nothing_about_another(names: list[str]) -> None:
    found = transport(world(dict.fromkeys(names or ["a"], 0.1)), 0, TARGET, 0.95, 0.1)
    assert not found.allowed
    assert "single benchmark" in found.reason


def test_true_positive_rates_that_differ_refuse_as_well() -> None:
    made = world({"a": 0.1, "b": 0.1})
    drop = made.success & (made.benchmark == "b")
    made.accepted[drop, 0] &= np.arange(drop.sum()) % 2 == 0
    found = transport(made, 0, TARGET, 0.95, 0.1)
    assert "true-positive rate differs" in found.reason


@pytest.mark.parametrize(
    ("least", "limit", "obstacle"),
    [
        (0.87, 0.0, "at least 87.0 % of the rollouts succeed: its verdicts there show 86.1 %"),
        (0.86, 0.0, ""),
        # Of the accepted share of 0.861, 0.5 may be failures: (0.861 - 0.5) / (1 - 0.5).
        (0.73, 0.5, "at least 73.0 % of the rollouts succeed: its verdicts there show 72.2 %"),
        (0.9, 1.0, ""),
    ],
)
def test_a_choice_transfers_where_its_verdicts_show_enough_successes(
    least: float, limit: float, obstacle: str
) -> None:
    """All 20 tasks are accepted: the share is at least 0.05 ^ (1 / 20), 0.861."""
    allowed = transport(world(dict.fromkeys("ab", 0.1), n=1000), 0, TARGET, 0.95, 0.1)
    limits = {"least_success_rate": least, "false_positive_limit": limit}
    judgments = [said(n, True, score=1.0) for n in range(20)]
    (found,) = transfer_obstacles(
        allowed.model_copy(update=limits), Rule(judges=("judge",)), 1.0, judgments, 0.95
    ).values()
    assert found.removeprefix("and it transfers only where ") == obstacle
