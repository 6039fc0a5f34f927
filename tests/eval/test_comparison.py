"""Judges against each other and against the rule: paired differences, McNemar, Holm."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.eval.cases import failed, key, label, said
from trajudge.annotations import Labels
from trajudge.eval.scoring.comparison import _ties
from trajudge.eval.scoring.compute import score
from trajudge.eval.scoring.records import Comparison, MetricDifference, Ranking, ScoreReport
from trajudge.judges.model import Judgment, Status
from trajudge.stats import comparison
from trajudge.stats.comparison import TaskRuns, holm, improvement, mcnemar_by_task
from trajudge.stats.intervals import Bools, clustered_differences
from trajudge.trajectories.model import TrajectoryKey

N = 120
LABELS: Labels = {key(i): label(i, i % 2 == 0) for i in range(N)}


def judge(name: str, wrong: int) -> list[Judgment]:
    """A judge that errs on the first ``wrong`` tasks."""
    return [said(i, (i % 2 == 0) != (i < wrong), judge=name) for i in range(N)]


def compared(*judgments: list[Judgment], labels: Labels = LABELS) -> ScoreReport:
    said_all = [j for judge in judgments for j in judge]
    return score(said_all, labels, rewards={})


def difference(found: Comparison, metric: str, first: str, second: str) -> MetricDifference:
    (one,) = [
        d for d in found.differences if (d.metric, d.first, d.second) == (metric, first, second)
    ]
    return one


def test_a_clearly_better_judge_is_told_apart_and_an_equal_one_is_not() -> None:
    found = compared(judge("good", 4), judge("as good", 5), judge("bad", 60)).comparison
    for ranking in found.rankings:
        assert ranking.judges == ("good", "as good", "bad")
        assert ranking.ties == (("good", "as good"),)
        assert ranking.apart == (("as good", "bad"), ("bad", "good"))
    one = difference(found, "precision", "bad", "good")
    assert one.difference == pytest.approx(0.5 - 58 / 60)
    assert one.low is not None
    assert one.high is not None
    assert one.low < 0.5 - 58 / 60 < one.high < 0


def test_holm_is_over_all_pairs_of_one_metric() -> None:
    found = compared(judge("a", 4), judge("b", 12), judge("c", 20)).comparison
    for metric in ("precision", "recall", "f1"):
        these = [d for d in found.differences if d.metric == metric]
        assert len(these) == 3
        raw = [np.nan if d.p is None else d.p for d in these]
        assert [d.p_holm for d in these] == pytest.approx(holm(raw))


def test_mcnemar_counts_who_alone_is_right() -> None:
    (test,) = compared(judge("a", 2), judge("b", 10)).comparison.discordances
    assert (test.only_first_right, test.only_second_right, test.n) == (8, 0, N)
    assert test.p == pytest.approx(2 / 2**8)


def test_a_pair_is_compared_on_what_both_judged() -> None:
    found = compared(judge("a", 4)[:50], judge("b", 4)[30:]).comparison
    assert {d.n for d in found.differences} == {20}
    nothing = compared(judge("a", 4)[:30], judge("b", 4)[30:]).comparison
    assert {(d.n, d.difference, d.p_holm) for d in nothing.differences} == {(0, None, None)}
    assert "judged by both" in nothing.differences[0].note
    assert nothing.discordances[0].p == 1


def test_one_task_has_differences_without_interval_and_says_why() -> None:
    found = compared([said(0, True, judge="a")], [said(0, False, judge="b")]).comparison
    recall = difference(found, "recall", "a", "b")
    assert (recall.low, recall.p_holm) == (None, None)
    assert "one task only" in recall.note
    assert "a denominator is zero" in difference(found, "precision", "a", "b").note


def test_failed_judgments_leave_the_comparison_only_under_exclude() -> None:
    one = judge("a", 4)
    other = [failed(0, Status.REFUSED, judge="b"), *judge("b", 4)[1:]]
    sizes = {
        missing: score([*one, *other], LABELS, rewards={}, missing=missing)
        .comparison.differences[0]
        .n
        for missing in ("negative", "exclude", "agentrewardbench")
    }
    assert sizes == {"negative": N, "exclude": N - 1, "agentrewardbench": N}


def test_a_judge_has_the_same_digits_whoever_stands_beside_it() -> None:
    alone = compared(judge("a", 10))
    beside = compared(judge("a", 10), judge("b", 30))
    assert alone.scores == tuple(s for s in beside.scores if s.judge == "a")
    assert compared(judge("a", 10)) == alone


def three_labels(name: str, wrong: int) -> list[Judgment]:
    """Right about side effects and repetition on all tasks but the first ``wrong`` of two
    benchmarks."""
    return [
        said(
            i,
            i % 2 == 0,
            judge=name,
            benchmark=benchmark,
            side_effect=(i % 3 == 0) != (i < wrong),
            repetition=(i % 5 == 0) != (i < wrong // 4),
        )
        for benchmark in ("webarena", "workarena")
        for i in range(N)
    ]


THREE: Labels = {
    key(i, benchmark): label(
        i, i % 2 == 0, benchmark=benchmark, side_effect=i % 3 == 0, repetition=i % 5 == 0
    )
    for benchmark in ("webarena", "workarena")
    for i in range(N)
}


def test_judges_are_compared_on_every_label_that_both_were_asked_for() -> None:
    asked = [*three_labels("good", 4), *three_labels("bad", 60)]
    success_only = [
        said(i, i % 2 == 0, judge="plain", benchmark=b)
        for b in ("webarena", "workarena")
        for i in range(N)
    ]
    found = score([*asked, *success_only], THREE, rewards={}).comparison
    judges = {(r.label, r.metric): r.judges for r in found.rankings}
    assert {label for label, _ in judges} == {"success", "side_effect", "repetition"}
    assert set(judges["success", "precision"]) == {"good", "bad", "plain"}
    assert judges["side_effect", "precision"] == ("good", "bad")
    apart = {(r.label, r.metric) for r in found.rankings if r.apart}
    assert ("side_effect", "precision") in apart
    assert ("success", "precision") not in apart
    assert {(d.label, d.n) for d in found.discordances} == {
        ("success", 2 * N),
        ("side_effect", 2 * N),
        ("repetition", 2 * N),
    }


def test_where_asked_for_judges_are_compared_on_every_benchmark_with_its_own_correction() -> None:
    said_all = [*three_labels("good", 4), *three_labels("bad", 60)]
    scores = score(said_all, THREE, rewards={}, compared="benchmark")
    found = scores.comparison
    assert {d.benchmark for d in found.differences} == {"overall", "webarena", "workarena"}
    of_webarena = [d for d in found.differences if d.benchmark == "webarena"]
    assert {d.n for d in of_webarena} == {N}
    alone = score(
        [j for j in said_all if j.key.benchmark == "webarena"],
        THREE,
        rewards={},
    ).comparison
    assert [d.model_copy(update={"benchmark": "overall"}) for d in of_webarena] == list(
        alone.differences
    )
    plain = score(said_all, THREE, rewards={}).comparison
    assert {d.benchmark for d in plain.differences} == {"overall"}
    assert plain.differences == tuple(d for d in found.differences if d.benchmark == "overall")


def test_one_benchmark_alone_is_compared_once() -> None:
    judgments = [*judge("a", 4), *judge("b", 40)]
    both = [
        score(judgments, LABELS, rewards={}, compared=each) for each in ("overall", "benchmark")
    ]
    assert both[0].comparison == both[1].comparison


def test_two_tasks_say_nothing_of_the_next_however_clear_they_are() -> None:
    few: Labels = {key(i): label(i, True) for i in range(2)}
    right, wrong = (
        [said(i, it, judge=name) for i in range(2)] for name, it in (("a", True), ("b", False))
    )
    recall = difference(compared(right, wrong, labels=few).comparison, "recall", "a", "b")
    assert recall.difference == 1.0
    assert recall.low is not None
    assert recall.low < 0
    assert recall.p is not None
    assert recall.p > 0.1
    many: Labels = {key(i): label(i, True) for i in range(40)}
    right, wrong = (
        [said(i, it, judge=name) for i in range(40)] for name, it in (("a", True), ("b", False))
    )
    sure = compared(right, wrong, labels=many).comparison
    p = difference(sure, "recall", "a", "b").p_holm
    assert p is not None
    assert p < 0.001
    assert next(r for r in sure.rankings if r.metric == "recall").apart == (("a", "b"),)


def test_ties_are_written_with_as_many_names_and_half_as_many_groups_as_are_asked_for() -> None:
    ties = (("a", "b"), ("b", "c", "d"), ("d", "e"))
    ranking = Ranking(metric="precision", judges=tuple("abcde"), ties=ties, apart=())
    assert ranking.tied() == "a and b; b, c and d; d and e"
    assert ranking.tied(4) == "a and b; b, c and d; and 1 more group"
    assert ranking.tied(1) == ranking.tied(2) == "a and b; and 2 more groups"


def test_judges_that_agree_everywhere_are_not_told_apart() -> None:
    same = compared(judge("a", 4), judge("b", 4)).comparison
    for d in same.differences:
        assert (d.difference, d.low, d.p_holm) == (0.0, None, 1.0)


def test_one_judge_is_compared_with_nobody() -> None:
    assert compared(judge("a", 3)).comparison == Comparison()


def test_among_many_judges_clear_differences_are_still_told_apart() -> None:
    found = score(
        [j for n in range(10) for j in judge(f"judge {n}", 60 if n else 0)],
        LABELS,
        rewards={},
    ).comparison
    for ranking in found.rankings:
        assert ranking.judges[0] == "judge 0"
        assert ranking.apart == tuple(("judge 0", f"judge {n}") for n in range(1, 10))
        assert ranking.ties == (tuple(f"judge {n}" for n in range(1, 10)),)


def test_judges_that_do_not_differ_are_tied_though_one_between_them_differs_from_both() -> None:
    """Which happens where it was scored on other trajectories."""
    assert _ties(["a", "b", "c"], {("a", "b"), ("c", "b")}) == [("a", "c")]
    assert _ties(["a", "b", "c"], {("c", "a")}) == [("a", "b"), ("b", "c")]


def judged_by_both(wrong: int) -> ScoreReport:
    """A judge wrong on the first ``wrong`` tasks beside a rule wrong on every fifth; three agents
    on each task."""
    places = [key(i // 3, agent="abc"[i % 3]) for i in range(N)]
    truth = {place: (i // 3) % 2 == 0 for i, place in enumerate(places)}
    labels = {p: label(0, good).model_copy(update={"key": p}) for p, good in truth.items()}
    rewards: dict[TrajectoryKey, float | None] = {
        place: float(good != (i // 3 % 5 == 0)) for i, (place, good) in enumerate(truth.items())
    }
    judgments = [
        said(0, good != (i // 3 < wrong)).model_copy(update={"key": place})
        for i, (place, good) in enumerate(truth.items())
    ]
    return score(judgments, labels, rewards=rewards)


def overall(scores: ScoreReport, metric: str) -> MetricDifference:
    return next(
        d for d in scores.against_baseline if d.benchmark == "overall" and d.metric == metric
    )


def test_a_judge_is_told_apart_from_the_rule_on_the_same_trajectories() -> None:
    found = overall(judged_by_both(wrong=1), "f1")
    assert (found.first, found.second, found.n) == ("judge", "rule-based", N)
    assert found.low is not None
    assert found.low > 0
    assert found.p is not None
    assert found.p < 0.05
    same = overall(judged_by_both(wrong=8), "precision")
    assert same.low is not None
    assert same.high is not None
    assert same.low < 0 < same.high


def test_the_interval_of_a_difference_of_independent_rates_is_newcombes() -> None:
    """Newcombe 1998, method 10: 56/70 and 48/80 give 0.0524 to 0.3339."""
    first, second = np.arange(150) < 56, (np.arange(150) >= 70) & (np.arange(150) < 118)
    one = np.arange(150) < 70
    found = clustered_differences([first, second], [one, ~one], [150])
    expected = (0.0524, 0.3339)
    assert (found.interval.low, found.interval.high) == pytest.approx(expected, abs=0.006)
    assert 0.005 < found.p_value < 0.012


def test_the_p_value_says_what_the_interval_says() -> None:
    rng = np.random.default_rng(5)
    trials = np.full((2, 500, 30), 4.0)
    hits = rng.binomial(4, rng.beta(2, 2, (1, 500, 30)) * np.ones((2, 1, 1))).astype(float)
    found = clustered_differences(hits, trials, [30])
    excluded = (found.interval.low > 0) | (found.interval.high < 0)
    assert (excluded == (found.p_value < 0.05)).all()
    assert 0.02 < excluded.mean() < 0.08  # the level, where there is no difference


def test_the_probability_of_improvement_against_all_pairs_of_runs() -> None:
    """Agarwal et al. 2021: the mean over tasks of the Mann-Whitney share, ties half."""
    rng = np.random.default_rng(2)
    x, y, task = rng.random(60) < 0.6, rng.random(60) < 0.4, np.repeat(np.arange(15), 4)
    shares = [
        np.mean([(a > b) + 0.5 * (a == b) for a in x[task == t] for b in y[task == t]])
        for t in range(15)
    ]
    found = improvement(x, y, TaskRuns.of(task))
    assert found.estimate == pytest.approx(np.mean(shares))
    half = 2.145 * np.std(shares, ddof=1) / 15**0.5
    assert found.high - found.low == pytest.approx(2 * half, rel=1e-3)
    one = improvement(np.array([True]), np.array([False]), TaskRuns.of([0]))
    assert np.isnan(one.low)


@pytest.mark.slow
@given(st.lists(st.sampled_from([0.0, 0.001, 0.01, 0.02, 0.04, 0.3, 1.0]), max_size=8))
def test_holm_rejects_what_stepping_down_rejects(p_values: list[float]) -> None:
    """At every level: in ascending order, until the first p above level / (tests left)."""
    for level in (0.0101, 0.0501, 0.101):
        rejected = set()
        for done, i in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
            if p_values[i] > level / (len(p_values) - done):
                break
            rejected.add(i)
        assert {i for i, p in enumerate(holm(p_values)) if p <= level} == rejected


def test_holm_leaves_out_what_was_not_tested() -> None:
    np.testing.assert_allclose(holm([0.01, np.nan, 0.04]), [0.02, np.nan, 0.04])
    assert holm([]).shape == (0,)


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=60))
def test_mcnemar_of_tasks_with_one_run_is_the_exact_binomial_test(
    pairs: list[tuple[bool, bool]],
) -> None:
    first, second = np.array(pairs).T
    found = mcnemar_by_task(first, second, TaskRuns.of(np.arange(len(pairs))))
    assert found == pytest.approx(binomial(first, second))


def binomial(first: Bools, second: Bools) -> float:
    """McNemar's exact test, as if all runs were independent."""
    from scipy.stats import binomtest

    apart = first != second
    hits = int((first & apart).sum())
    return float(binomtest(hits, int(apart.sum())).pvalue) if apart.any() else 1.0


def test_mcnemar_by_task_counts_every_way_to_swap_the_judges() -> None:
    """Tasks of which the first is right about three, one, none more than the second, and two
    less."""
    first, second = [1, 1, 1, 1, 1, 0, 0], [0, 0, 0, 0, 1, 1, 1]
    task = ["a", "a", "a", "b", "c", "d", "d"]
    gaps = np.array([3, 1, -2])
    sums = [abs(gaps @ signs) for signs in product((1, -1), repeat=3)]
    share = np.mean([each >= abs(gaps.sum()) for each in sums])
    assert mcnemar_by_task(first, second, TaskRuns.of(task)) == pytest.approx(share)
    # Gaps of two sizes, 2, 2 and -1: four of the eight ways reach 3.
    two = mcnemar_by_task([1, 1, 1, 1, 0], [0, 0, 0, 0, 1], TaskRuns.of([0, 0, 1, 1, 2]))
    assert two == pytest.approx(0.5)


@pytest.mark.parametrize("shift", [0, 10, 40, 4_000])
def test_mcnemar_by_task_is_the_same_by_its_transform(
    shift: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where sums are many, p comes of their Fourier transform."""
    rng = np.random.default_rng(3)
    tasks = TaskRuns.of(np.repeat(np.arange(400), 9))
    first, second = rng.random((2, 3_600)) < 0.7
    second[:shift] = False
    counted = mcnemar_by_task(first, second, tasks)
    monkeypatch.setattr(comparison, "_COUNTED", 0)
    assert mcnemar_by_task(first, second, tasks) == pytest.approx(counted, rel=1e-9, abs=1e-12)


def test_equal_judges_are_not_told_apart_by_runs_of_the_same_tasks() -> None:
    """1,000 pairs of equal judges, each with tasks of its own that it fails: at most 7 % are told
    apart; 20 % and more would be, if runs of a task were independent."""
    rng = np.random.default_rng(2)
    tasks = TaskRuns.of(np.repeat(np.arange(25), 5))
    by_task = alone = 0
    for _ in range(1000):
        skill = rng.beta(0.8, 0.2, (2, 25, 1))
        first, second = (rng.random((2, 25, 5)) < skill).reshape(2, -1)
        by_task += mcnemar_by_task(first, second, tasks) <= 0.05
        alone += binomial(first, second) <= 0.05
    assert by_task <= 70
    assert alone >= 200
