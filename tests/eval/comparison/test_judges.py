"""Judges against each other: paired differences, McNemar, Holm, and who is told apart."""

from __future__ import annotations

import numpy as np
import pytest

from tests.eval.cases import failed, key, label, said
from trajudge.annotations import Labels
from trajudge.eval.scoring.comparison import _ties
from trajudge.eval.scoring.compute import score
from trajudge.eval.scoring.records import Comparison, MetricDifference, ScoreReport
from trajudge.judges.model import Judgment, Status
from trajudge.stats.comparison import holm

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
