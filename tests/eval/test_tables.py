"""Tables and figures: precision first and never alone, the papers layout, what a run paid."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.eval.cases import call, failed, key, label, said, small_run
from tests.screens import on_one_line
from trajudge.eval.reporting.sentences import (
    cost_sentence,
    notes,
    percent,
    rate_cell,
    run_cost,
    signed_cell,
    unattributed_sentence,
    with_limits,
    without_estimate,
)
from trajudge.eval.reporting.summary import summary
from trajudge.eval.reporting.tables import (
    agents,
    benchmark_rankings,
    category,
    comparison_screen,
    comparison_tables,
    paper_table,
    plain,
    tables,
)
from trajudge.eval.scoring.compute import score
from trajudge.eval.scoring.records import (
    OVERALL,
    Comparison,
    Counts,
    EstimatedRate,
    MetricDifference,
    Ranking,
    Score,
    ScoreReport,
    UnattributedCost,
)
from trajudge.judges.model import Call, Judgment, Status, Usage
from trajudge.trajectories.model import TrajectoryKey
from trajudge.util.errors import UserError

HERE = Path(__file__).parent


def scored(n: int = 50, *, judge: str = "judge") -> ScoreReport:
    labels = {key(i): label(i, i % 2 == 0, side_effect=False) for i in range(n)}
    rewards: dict[TrajectoryKey, float | None] = {key(i): float(i % 4 == 0) for i in range(n)}
    judgments: list[Judgment] = [
        said(i, i % 3 == 0, side_effect=False, judge=judge, calls=(call(),)) for i in range(n - 1)
    ]
    return score([*judgments, failed(n - 1, Status.REFUSED, judge=judge)], labels, rewards=rewards)


def test_precision_comes_first_with_its_interval_and_the_baseline_beside() -> None:
    title, head, rows, _ = tables(scored())[0]
    assert title == "Success"
    assert head[2:] == ("precision [95 %]", "recall", "F1 [95 %]", "n", "positives")
    assert [row[1].strip() for row in rows[:2]] == ["judge", "rule-based"]
    for row in rows[:2]:
        assert re.fullmatch(r"\d+\.\d \[\d+\.\d, \d+\.\d\]", row[2])
    assert rows[1][2] == "100.0 [75.3, 100.0]"


def test_without_an_accepted_trajectory_there_is_no_precision() -> None:
    rows = {title: rows for title, _, rows, _ in tables(scored())}
    assert {row[2] for row in rows["Side effect"]} == {"–"}


def test_coverage_and_spending_are_shown() -> None:
    text = plain(scored(), wall_seconds=12.34)
    assert "ok 49, refused 1" in text
    assert "$0.4900" in text
    assert "5,880" in text
    assert "wall time of this session: 12.3 s" in text
    assert "judge, Success: 1 failed judgment counted as not accepted" in text


def test_few_positives_are_warned_of() -> None:
    few = [note for note in notes(scored(30)) if "(success" in note]
    assert few[:1] == [
        "warning: only 15 positive labels (success, WebArena); estimates are unreliable"
    ]
    assert not [note for note in notes(scored(50)) if "positive labels (success" in note]
    none = score([said(1, True)], {key(1): label(1, False)}, rewards={})
    assert "warning: no positive label (success, WebArena)" in "".join(notes(none))


def test_an_unknown_price_is_said() -> None:
    judgments = [said(1, True, calls=(call(None), call()))]
    text = plain(score(judgments, {key(1): label(1, True)}, rewards={}))
    assert "$0.0100 + 1 call of unknown cost" in text
    judgments = [said(1, True, calls=(call(None),))]
    assert "unknown" in plain(score(judgments, {}, rewards={}))


def test_every_stage_is_counted_by_itself() -> None:
    calls = (
        call(0.5, stage="caption", usage=Usage(input=1000, image=900, output=80), seconds=2.0),
        call(0.25, usage=Usage(input=50, cache_read=150, output=40, reasoning=30), seconds=1.5),
    )
    found = score([said(1, True, calls=calls)], {}, rewards={})
    rows = {title: rows for title, _, rows, _ in tables(found)}
    [spending] = [rows[title] for title in rows if title.startswith("Usage and cost")]
    assert spending == [
        ("judge", "2", "1,200", "150", "900", "120", "30", "$0.7500", "3.5"),
        ("  caption", "1", "1,000", "0", "900", "80", "0", "$0.5000", "2.0"),
        ("  verdict", "1", "200", "150", "0", "40", "30", "$0.2500", "1.5"),
    ]


def test_what_the_cache_answered_is_told_apart_from_what_was_paid() -> None:
    made = score([said(1, True, calls=(call(0.5, cached=True), call(0.25)))], {}, rewards={})
    assert "$0.2500 + $0.5000 cached" in plain(made)


def test_a_judge_of_one_stage_takes_one_line() -> None:
    found = score([said(1, True, calls=(call(),))], {}, rewards={})
    assert len(tables(found)[-1][2]) == 1


def test_each_judges_baseline_follows_it() -> None:
    labels = {key(1): label(1, True)}
    judgments = [said(1, True, judge="a"), said(1, False, judge="b")]
    found = {
        title: rows for title, _, rows, _ in tables(score(judgments, labels, rewards={key(1): 1}))
    }
    assert [row[0] for row in found["Judges"]] == ["a", "b", "rule-based baseline"]
    names = ["a", "  rule-based", "  difference", "b", "  rule-based", "  difference"]
    assert [row[1] for row in found["Success"]] == names


def test_one_benchmark_alone_is_not_shown_twice() -> None:
    assert "Overall" not in plain(scored())
    labels = {key(1): label(1, True), key(2, "workarena"): label(2, True, benchmark="workarena")}
    judgments = [said(1, True), said(2, True, benchmark="workarena")]
    assert "Overall" in plain(score(judgments, labels, rewards={}))


def test_no_line_is_wider_than_the_screen_and_no_interval_is_broken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    text = plain(scored(judge="judge-" * 12))
    assert max(map(len, text.splitlines())) <= 80
    assert "100.0 [75.3, 100.0]" in text


def test_an_escape_sequence_in_a_name_is_shown_not_obeyed() -> None:
    assert "\x1b" not in plain(scored(judge="\x1b[2Jx"), wall_seconds=1)
    assert r"\x1b[2Jx" in plain(scored(judge="\x1b[2Jx"))


def test_without_labels_there_is_coverage_and_no_empty_table() -> None:
    judgments = [said(n, True, calls=(call(),)) for n in range(3)]
    scores = score(judgments, {}, rewards={})
    assert [table.title for table in tables(scores)] == ["Coverage", "Usage and cost"]
    assert notes(scores) == []


def test_an_empty_run_has_tables_without_rows() -> None:
    assert "Coverage" in plain(score([], {}, rewards={}))


SEEN = {"s": (False, True), "a": (True, False), "both": (True, True)}


def three_judges() -> ScoreReport:
    benchmarks = ("webarena", "workarena")
    labels = {
        key(i, b): label(i, i % 2 == 0, benchmark=b, side_effect=i == 0)
        for b in benchmarks
        for i in range(8)
    }
    judgments: list[Judgment] = [
        said(i, i % 3 == 0, judge=judge, benchmark=b, side_effect=False)
        for judge in SEEN
        for b in benchmarks
        for i in range(8)
    ]
    rewards: dict[TrajectoryKey, float | None] = dict.fromkeys(labels, 0.25)
    return score(judgments, labels, rewards=rewards)


def test_table_1_has_a_row_a_judge_and_precision_by_benchmark() -> None:
    table = paper_table(1, three_judges(), SEEN)
    assert table.head[:2] == ("category", "judge")
    assert table.head[-2:] == ("WebArena [95 %]", "WorkArena [95 %]")
    assert [row[:2] for row in table.rows] == [
        ("Official", "rule-based baseline"),
        ("Simplified (A)", "a"),
        ("Simplified (S)", "s"),
        ("Simplified (A+S)", "both"),
    ]


@pytest.mark.parametrize(
    ("judge", "expected"),
    [
        ("rule-based", "Official"),
        ("aer-c:gpt-4o", "Existing"),
        ("aerv", "Existing"),
        ("nnetnav", "Existing"),
        ("webjudge-7b", "Existing"),
        ("simplified-axtree:gpt-4o", "Simplified (A)"),
        ("simplified-screenshot-success-strict:claude-x", "Simplified (S)"),
        ("simplified-both:m (runs/2)", "Simplified (A+S)"),
        ("gpt-4o-noscreen", "Simplified (A)"),
        ("rubric:gpt-4o", "Other"),
        ("panel", "Other"),
        ("aerial.py", "Other"),
        ("mine", "Other"),
    ],
)
def test_a_judge_has_the_papers_category(judge: str, expected: str) -> None:
    seen = {"gpt-4o-noscreen": (True, False), "rubric:gpt-4o": (True, True)}
    assert category(judge, seen) == expected


def test_table_2_has_both_first_then_tree_then_screenshot() -> None:
    table = paper_table(2, three_judges(), SEEN)
    assert [row[:3] for row in table.rows] == [
        ("yes", "yes", "both"),
        ("yes", "no", "a"),
        ("no", "yes", "s"),
    ]
    with pytest.raises(UserError, match="--representation"):
        paper_table(2, three_judges(), {})


def test_tables_3_and_6_show_expert_judge_and_rule() -> None:
    by_agent, rates = (paper_table(number, three_judges(), {}) for number in (3, 6))
    assert [row[:2] for row in by_agent.rows] == [("agent", judge) for judge in ("a", "both", "s")]
    assert len(by_agent.head) == 2 + 3 * 2
    row = next(r for r in rates.rows if r[:3] == ("Overall", "All", "a"))
    assert [cell.split()[0] for cell in row[3:6]] == ["50.0", "37.5", "25.0"]


def test_tables_7_and_8_have_all_labels_and_the_rule_once() -> None:
    overall, by_benchmark = (paper_table(number, three_judges(), {}) for number in (7, 8))
    assert [row[0] for row in overall.rows] == ["a", "both", "s", "rule-based"]
    assert [row[0] for row in by_benchmark.rows] == ["WebArena"] * 4 + ["WorkArena"] * 4
    assert overall.rows[0][4:7] == ("–", "0.0", "0.0")
    assert set(overall.rows[-1][4:]) == {"–"}


@pytest.mark.parametrize("number", [1, 2, 3, 6, 7, 8])
def test_every_row_is_as_long_as_its_head(number: int) -> None:
    table = paper_table(number, three_judges(), SEEN)
    assert {len(row) for row in table.rows} == {len(table.head)}


JUDGES = tuple(f"webjudge-number-{n}:gpt-4o" for n in range(7))


def ranking(benchmark: str) -> Ranking:
    return Ranking(
        benchmark=benchmark,
        metric="precision",
        judges=JUDGES,
        ties=(JUDGES[:2], JUDGES[2:5]),
        apart=(),
    )


@pytest.mark.parametrize("width", [80, 100])
def test_of_many_judges_the_first_are_named_and_the_others_counted(width: int) -> None:
    rankings = tuple(map(ranking, (OVERALL, "webarena")))
    lines = benchmark_rankings(Comparison(rankings=rankings), width)
    assert max(map(len, lines)) <= width
    shown = on_one_line(" ".join(lines))
    assert "…" not in shown
    assert " more" in shown


@pytest.mark.parametrize("tiny", [-0.0, -1e-4])
def test_no_figure_is_minus_zero(tiny: float) -> None:
    score = Score(
        judge="j", baseline=False, benchmark="b", label="success", n=0, tasks=0, positives=0,
        missing=0, unsure=0, without_reward=0, scored=0,
        counts=Counts(tp=0, fp=0, fn=0, tn=0), precision=None, recall=None, f1=None, accuracy=None,
        npv=None, tnr=None, mcc=None, kappa=tiny, intervals={"kappa": (tiny, 0.5)},
    )  # fmt: skip
    assert rate_cell(score, "kappa") == "0.00 [0.00, 0.50]"
    assert signed_cell(tiny, tiny, 0.1) == "+0.0 [+0.0, +10.0]"
    assert (percent(tiny), with_limits(tiny, (tiny, 0.1))) == ("0.0", "0.0 [0.0, 10.0]")


NOTHING = UnattributedCost()


def sentence(*judgments: Judgment, unattributed: UnattributedCost = NOTHING) -> str:
    scores = score(judgments, {}, rewards={}).model_copy(update={"unattributed_cost": unattributed})
    return cost_sentence(scores)


def with_calls(task: int, *calls: Call) -> Judgment:
    return said(task, True, calls=calls)


def test_a_request_of_several_judgments_counts_once() -> None:
    shared = call(0.5, request="a" * 64)
    mine, yours = with_calls(1, shared, call(0.25)), with_calls(2, shared, call(0.25))
    assert sentence(mine, yours).startswith("Cost: $1.0000, 3 calls, 360 input and 30 output")


def test_calls_whose_request_is_not_known_all_count() -> None:
    """Published judgments do not tell their requests."""
    told = sentence(*(with_calls(task, call(0.5, request="")) for task in (1, 2, 3)))
    assert told.startswith("Cost: $1.5000, 3 calls, 360 input and 30 output")


def test_what_the_cache_answered_was_not_paid() -> None:
    told = sentence(with_calls(1, call(0.5, cached=True), call(0.25)))
    assert told.startswith("Cost: $0.2500, 2 calls (1 from the cache, worth $0.5000), ")
    whole = sentence(with_calls(1, call(0.5, cached=True)))
    assert whole.startswith("Cost: $0.0000, 1 call (1 from the cache, worth $0.5000), ")


def test_a_request_is_paid_if_one_of_its_calls_was() -> None:
    """Its first judgment paid, the second had the reply from the cache."""
    shared = call(0.5, request="a" * 64)
    later = shared.model_copy(update={"cached": True})
    assert sentence(with_calls(1, later), with_calls(2, shared)).startswith(
        "Cost: $0.5000, 1 call, "
    )


def test_calls_of_unknown_price_from_the_cache_have_no_worth() -> None:
    told = sentence(with_calls(1, call(None, cached=True)))
    assert told.startswith("Cost: $0.0000, 1 call (1 from the cache, of unknown cost), ")
    mixed = with_calls(1, call(None, cached=True), call(0.5, cached=True), call(0.25), call(None))
    assert sentence(mixed).startswith(
        "Cost: $0.2500 and 1 call of unknown cost, "
        "4 calls (2 from the cache, worth $0.5000, 1 of unknown cost), "
    )
    assert sentence(with_calls(1, call(None), call(0.5, cached=True))).startswith(
        "Cost: unknown, 2 "
    )


@pytest.mark.parametrize(
    ("judgments", "dollars"),
    [
        ([said(1, True)], 0.0),
        ([said(1, True, judge="verifier@published")], None),
        ([said(1, True, judge="verifier@published", calls=(call(0.5),))], 0.5),
        ([with_calls(1, call(None), call(0.5))], None),
        ([with_calls(1, call(None, cached=True), call(0.25), call(0.5))], 0.75),
    ],
)
def test_the_dollars_of_a_run_are_known_or_not(
    judgments: list[Judgment], dollars: float | None
) -> None:
    cost = run_cost(score(judgments, {}, rewards={}))
    assert cost.dollars == dollars
    assert not dollars or cost.sentence.startswith(f"Cost: ${dollars:.4f}, ")


@pytest.mark.parametrize(("dollars", "is_told"), [(0.00005, True), (0.0000499, False)])
def test_what_is_less_than_four_decimals_show_is_not_told(dollars: float, is_told: bool) -> None:
    for field in ("dollars", "rebate", "presumed"):
        told = unattributed_sentence(UnattributedCost(**{field: dollars}))
        assert told.startswith("$0.0001 ") is is_told and bool(told) is is_told


def test_an_estimate_that_all_agents_lack_is_told_with_its_reason() -> None:
    rate = EstimatedRate(
        judge="j", benchmark="webarena", agent="all", labelled=1, unlabelled=9, labelled_tasks=1,
        estimate=None, expert_only=1.0, judge_only=0.5, effective_labels=None, note="one task",
    )  # fmt: skip
    rows = [rate, *(rate.model_copy(update=u) for u in ({"agent": "x"}, {"estimate": 0.5}))]
    scores = score([], {}, rewards={}).model_copy(update={"estimated_rates": tuple(rows)})
    assert without_estimate(scores) == ["Success rates, WebArena: no estimate by j: one task"]
    assert not without_estimate(scores.model_copy(update={"estimated_rates": tuple(rows[1:])}))


def test_published_verdicts_do_not_tell_what_they_cost() -> None:
    theirs = said(1, True, judge="verifier@published")
    assert sentence(theirs) == "Cost: unknown (published verdicts do not tell their calls)"
    told = sentence(theirs, with_calls(1, call(0.5)))
    assert told.startswith("Cost: $0.5000, 1 call, ")
    assert told.endswith(" output tokens; unknown for 1 published judge")


def test_a_model_that_answered_nothing_was_called_all_the_same() -> None:
    assert sentence(failed(1, Status.PROVIDER_ERROR)) == "Cost: $0 (no call was answered)"
    assert sentence(said(1, True)) == "Cost: $0 (no model was called)"


def test_what_no_judgment_holds_comes_on_top() -> None:
    told = sentence(with_calls(1, call(0.5)), unattributed=UnattributedCost(dollars=0.25))
    assert told.endswith(
        "; $0.2500 more for failed attempts, repeated requests and replies that no judgment holds"
    )


def test_what_nobody_knows_is_told_as_unknown() -> None:
    judgment = with_calls(1, call(0.5))
    told = sentence(judgment, unattributed=UnattributedCost(dollars=0.25, unpriced=2))
    assert "; $0.2500 and 2 calls of unknown cost more for failed attempts" in told
    told = sentence(judgment, unattributed=UnattributedCost(unpriced=1))
    assert "; 1 call of unknown cost more for failed attempts" in told


def test_calls_that_were_cheaper_in_batches_cost_what_was_paid() -> None:
    told = sentence(with_calls(1, call(0.5)), unattributed=UnattributedCost(rebate=0.25))
    assert told.startswith("Cost: $0.2500, 1 call, ")


def test_a_table_of_differences_holds_those_of_its_metric_alone() -> None:
    def difference(metric: str, value: float) -> MetricDifference:
        limits = {"low": value - 0.1, "high": value + 0.1, "p": 0.01, "p_holm": 0.01}
        return MetricDifference(
            metric=metric, first="a", second="b", n=9, difference=value, **limits
        )

    rankings = tuple(
        Ranking(metric=metric, judges=("a", "b"), ties=(), apart=(("a", "b"),))
        for metric in ("precision", "recall")
    )
    differences = (difference("precision", 0.125), difference("recall", 0.5))
    shown = comparison_tables(Comparison(differences=differences, rankings=rankings))
    assert [(table.title.partition(",")[0], len(table.rows)) for table in shown] == [
        ("Difference in precision", 1),
        ("Difference in recall", 1),
        ("Pairwise significance", 2),
    ]
    assert "12.5" in " ".join(map(str, shown[0].rows[0]))
    assert "50.0" in " ".join(map(str, shown[1].rows[0]))


def test_all_that_is_shown_of_a_small_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """The screen, the screen of a comparison, and all tables, as they were read by a person:
    ``careful`` accepts 24 runs, 18 of them rightly, of 21 successes."""
    monkeypatch.setenv("COLUMNS", "100")
    found = small_run()
    shown = [
        summary(found, seconds=12.0),
        comparison_screen(found.comparison, ["warning: w"], option="--annotations KIND:PATH"),
        "\n".join(agents(found, 100)) + "\n",
        plain(found, 12.0),
    ]
    assert "=====\n".join(shown) == (HERE / "small_run.txt").read_text(encoding="utf-8")
