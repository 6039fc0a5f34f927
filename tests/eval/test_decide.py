"""The decision: its plan and scores, who qualifies, who is chosen, who ties, and its screen."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from tests.commands import select as main
from tests.eval.cases import call, failed, key, said
from tests.eval.runs_to_select import stacked
from tests.eval.select_world import evidence, plan
from tests.samples import narrow
from tests.screens import on_one_line, one_screen
from trajudge.eval.select.decide import decide
from trajudge.eval.select.decision import Decision
from trajudge.eval.select.evidence import drawn_weights
from trajudge.eval.select.plan import (
    CandidateFamily,
    Prices,
    SelectionPlan,
    Target,
    freeze,
    read_plan,
)
from trajudge.eval.select.scores import (
    Rule,
    accepts,
    default_thresholds,
    judge_scores,
    judgments_hash,
    measured_prices,
    price,
    rule_scores,
)
from trajudge.eval.select.text import screen, text
from trajudge.judges.model import Status
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


REST = "everything: --full"


def test_the_chosen_judge_leads_the_table(width: int) -> None:
    success, accepted = stacked((60, 2, 0), (190, 120, 0), (150, 10, 0))
    found = decide(plan((1.0,), (1.0,), (1.0,)), evidence(success, accepted))
    lines = one_screen(screen(found, rest=REST, width=width), width)
    assert lines[0].startswith("Filter with judge 3 at threshold 1: 150 of the 160 runs")
    head = next(n for n, line in enumerate(lines) if line.startswith("candidate "))
    assert [line.split()[1] for line in lines[head + 1 : head + 4]] == ["3", "1", "2"]
    assert "93.8 [" in lines[head + 1]
    assert lines[-1] == REST


@cache
def of_many() -> Decision:
    success, accepted = stacked(*[(150 - n, 10 + n, 0) for n in range(40)])
    places = [f"benchmark-{n % 20:02}" for n in range(400)]
    return decide(plan(*[(1.0,)] * 40), evidence(success, accepted, benchmark=places))


@pytest.mark.slow
def test_many_candidates_and_benchmarks_take_one_screen(width: int) -> None:
    lines = one_screen(screen(of_many(), rest=REST, width=width), width)
    assert "and 35 more candidates: --full" in lines
    assert any(line.startswith("and ") and "benchmarks" in line for line in lines)


@narrow
@pytest.mark.real_data
def test_the_published_judgments_take_one_screen(
    arb: Path,
    tmp_path: Path,
    width: int,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    labels = f"agentrewardbench:{arb / 'annotations.csv'}"
    words = ["--judgments", str(arb / "judgments"), "--annotations", labels]
    main([*words, "--target-precision", "0.8", "--out", "out"])
    shown = capsys.readouterr().out
    lines = one_screen(shown, width)
    assert " … " not in shown, "a sentence is cut"
    assert not re.search(r"(?<![.\d])\d{4,}", shown.rpartition("All candidates")[0]), shown
    assert lines[0].startswith("No judge is shown to meet the target: at least 80.0 %")
    assert any(line.startswith("webjudge") for line in lines)
    assert "decision.txt" in lines[-1]
    assert max(map(len, Path("out/decision.txt").read_text().splitlines())) <= 110


def figures(sentence: str) -> list[float]:
    return [
        float(number.replace(",", "")) for number in re.findall(r"\d[\d,]*(?:\.\d+)?", sentence)
    ]


def test_the_sentence_of_a_choice_has_the_figures_of_the_file(width: int) -> None:
    success, accepted = stacked((60, 2, 0), (190, 120, 0), (150, 10, 0))
    found = decide(plan((1.0,), (1.0,), (1.0,)), evidence(success, accepted))
    written = json.loads(found.to_json())
    leader = written["findings"][written["chosen"]]
    rate = leader["rate"]
    lines = screen(found, rest=REST, width=1000).splitlines()
    shares = [round(100 * rate[name], 1) for name in ("estimate", "low")]
    assert figures(lines[0])[1:] == [1, rate["hits"], rate["trials"], *shares, 80.0]
    recall = leader["recall"]
    kept = [recall["hits"], recall["trials"], round(100 * recall["estimate"], 1)]
    assert figures(lines[1]) == kept
    assert len(one_screen(screen(found, rest=REST, width=width), width)) <= 40


@pytest.mark.parametrize("kind", ["precision", "false-positive-rate"])
def test_without_a_choice_the_named_target_holds_and_the_next_does_not(kind: str) -> None:
    """What the screen names is tried: a decision with that target chooses, one that is a percent
    stricter does not."""
    success, accepted = stacked((78, 22, 30), (60, 40, 20))
    is_precision = kind == "precision"
    rate = 0.9 if is_precision else 0.1
    target = Target.model_validate({"kind": kind, "rate": rate})
    given = evidence(success, accepted)
    found = decide(plan((1.0,), (1.0,), target=target), given)
    assert found.chosen is None and found.holding_target is not None
    held = found.holding_target

    def chosen(at: float) -> int | None:
        again = Target.model_validate({"kind": kind, "rate": round(at, 2)})
        return decide(plan((1.0,), (1.0,), target=again), given).chosen

    assert chosen(held.rate) is not None
    assert chosen(held.rate + (0.01 if is_precision else -0.01)) is None
    most = "" if is_precision else "at most "
    shown = screen(found, rest=REST, width=1000)
    name = found.findings[held.candidate].name
    assert f"a target of {most}{100 * held.rate:.1f} % would hold, with {name}." in shown
    assert f"a target of {most}{100 * held.rate:.1f} % would hold" in on_one_line(text(found))


def test_a_choice_names_no_other_target() -> None:
    success, accepted = stacked((150, 10, 0))
    assert decide(plan((1.0,)), evidence(success, accepted)).holding_target is None


def test_benchmarks_with_limits_wider_than_sixty_points_are_counted_not_shown() -> None:
    success, accepted = stacked((150, 10, 0))
    places = ["assistantbench"] * 2 + ["webarena"] * (len(success) - 2)
    found = decide(plan((1.0,)), evidence(success, accepted, benchmark=places))
    (chosen,) = found.findings
    wide = [
        part
        for part in chosen.by_benchmark
        if part.rate.estimate is None
        or not part.rate.low
        or part.rate.estimate - part.rate.low > 0.6
    ]
    assert len(wide) == 1
    lines = screen(found, rest=REST, width=100).splitlines()
    assert "and 1 benchmark with too few labels to say: --full" in lines
    assert any(line.startswith("WebArena ") for line in lines)
    assert not any(line.startswith("AssistantBench") for line in lines)


def test_what_is_frozen_is_read_back(tmp_path: Path) -> None:
    file, made = tmp_path / "new" / "candidates.json", plan((1.0, 2 / 3, 0.5), (1.0,))
    freeze(file, made)
    freeze(file, made)
    assert read_plan(file) == made
    assert read_plan(file).hash == made.hash


def test_a_frozen_plan_is_not_changed(tmp_path: Path) -> None:
    file = tmp_path / "candidates.json"
    freeze(file, plan((1.0,)))
    with pytest.raises(UserError, match="holds another plan"):
        freeze(file, plan((1.0,), rate=0.7))
    assert read_plan(file) == plan((1.0,))


@pytest.mark.parametrize("thresholds", [(), (0.5, 0.9), (0.5, 0.5), (1.2,), (0.0,)])
def test_thresholds_go_from_strict_to_loose_within_the_scale(thresholds: tuple[float]) -> None:
    with pytest.raises(ValidationError):
        CandidateFamily(name="f", rule=Rule(judges=("a",)), thresholds=thresholds)


@pytest.mark.parametrize(
    ("kind", "judges"), [("judge", ("a", "b")), ("panel", ("a",)), ("cascade", ("a", "a"))]
)
def test_a_rule_has_as_many_judges_as_its_kind(kind: str, judges: tuple[str, ...]) -> None:
    with pytest.raises(ValidationError):
        Rule.model_validate({"kind": kind, "judges": judges})


def test_two_families_of_one_name_are_refused() -> None:
    one = CandidateFamily(name="f", rule=Rule(judges=("a",)), thresholds=(1.0,))
    with pytest.raises(ValidationError):
        SelectionPlan.model_validate({"target": {"rate": 0.8}, "families": (one, one)})


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"format": 2}', '{"families": 3}'])
def test_a_file_that_is_no_plan_is_one_sentence(tmp_path: Path, content: str) -> None:
    file = tmp_path / "plan.json"
    file.write_text(content)
    with pytest.raises(UserError, match=r"plan\.json"):
        read_plan(file)
    with pytest.raises(UserError, match="cannot be read"):
        read_plan(tmp_path / "none.json")


KEYS = [key(n) for n in range(4)]


def scores(**by_judge: list[float | None]) -> dict[str, dict[TrajectoryKey, float]]:
    return {
        judge: {k: v for k, v in zip(KEYS, values, strict=True) if v is not None}
        for judge, values in by_judge.items()
    }


def test_a_score_goes_before_a_verdict_and_a_failure_accepts_nothing() -> None:
    found = judge_scores(
        [said(0, True, score=0.7), said(1, True), said(2, False), failed(3, Status.REFUSED)]
    )
    assert [found["judge"][k] for k in KEYS] == [0.7, 1, 0, 0]
    assert judge_scores([said(0, True, score=0.7)], "verdict")["judge"][KEYS[0]] == 1


def test_several_samples_are_their_mean_over_those_that_answered() -> None:
    samples = [
        said(0, True, sample=0),
        said(0, True, sample=1),
        said(0, False, sample=2),
        failed(0, Status.UNPARSABLE, sample=3),
    ]
    assert judge_scores(samples)["judge"][KEYS[0]] == pytest.approx(2 / 3)


def test_a_panel_is_the_mean_and_needs_everybody() -> None:
    rule = Rule(kind="panel", judges=("a", "b"))
    found = rule_scores(rule, scores(a=[1, 1, 0, 1], b=[1, 0, 0, None]), KEYS)
    np.testing.assert_equal(found, [1, 0.5, 0, np.nan])
    assert accepts(found, 0.5).tolist() == [True, True, False, False]


def test_thirds_reach_a_rounded_threshold() -> None:
    assert accepts(np.array([1 / 3 + 1 / 3]), 2 / 3).all()


def test_a_cascade_asks_the_last_only_where_the_first_accepts() -> None:
    rule = Rule(kind="cascade", judges=("a", "b"))
    found = rule_scores(rule, scores(a=[1, 1, 0, 0], b=[0.9, 0.2, None, 1]), KEYS)
    np.testing.assert_equal(found, [0.9, 0.2, 0, 0])


def test_a_cascade_with_gaps_is_kept_to_what_everybody_judged() -> None:
    """Trajectories that the first rejects are all known; taking them without those that got
    through and were never judged would make a biased sample."""
    rule = Rule(kind="cascade", judges=("a", "b"))
    found = rule_scores(rule, scores(a=[1, 1, 0, 0], b=[0.9, None, None, 1]), KEYS)
    np.testing.assert_equal(found, [0.9, np.nan, np.nan, 0])


def test_a_judge_without_judgments_is_named() -> None:
    with pytest.raises(UserError, match="no judgments of 'c'"):
        rule_scores(Rule(judges=("c",)), scores(a=[1, 1, 1, 1]), KEYS)


def test_a_cascade_pays_for_the_share_that_reaches_each_judge() -> None:
    made = scores(a=[1, 0, 0, 0], b=[1, 1, 1, 1])
    prices = {"a": 0.01, "b": 0.2}
    paid = {
        kind: price(Rule.model_validate({"kind": kind, "judges": ("a", "b")}), made, KEYS, prices)
        for kind in ("panel", "cascade")
    }
    assert paid["panel"] == pytest.approx(0.21)
    assert paid["cascade"] == pytest.approx(0.01 + 0.2 / 4)
    assert price(Rule(judges=("b",)), made, KEYS, {"b": None}) is None


def test_prices_are_measured_a_trajectory_and_unknown_stays_unknown() -> None:
    judgments = [
        said(0, True, calls=(call(0.01), call(0.03))),
        said(1, True, calls=(call(0.02),)),
        said(0, True, judge="other", calls=(call(None), call(0.1))),
        said(0, True, judge="free"),
    ]
    assert measured_prices(judgments) == {"judge": pytest.approx(0.03), "other": None, "free": 0}


def test_thresholds_are_the_scores_that_occur_at_most_twelve() -> None:
    assert default_thresholds(Rule(judges=("a",)), scores(a=[1, 0, 1, 0])) == (1.0,)
    assert default_thresholds(Rule(judges=("a",)), scores(a=[0.9, 0.6, 0.2, 0.9])) == (0.9, 0.6)
    assert default_thresholds(Rule(judges=("a",)), scores(a=[0.1, 0.1, 0.1, 0.1])) == (1.0,)
    many = {"a": {key(n): n / 500 for n in range(501)}}
    found = default_thresholds(Rule(judges=("a",)), many)
    assert len(found) == 12
    assert (found[0], found[-1]) == (1.0, 0.5)


def test_the_hash_of_judgments_knows_no_order() -> None:
    one, two = said(0, True), said(1, False)
    assert judgments_hash([one, two]) == judgments_hash([two, one])
    assert judgments_hash([one, two]) != judgments_hash([one, said(1, True)])


def made_decision(rate: float) -> Decision:
    """Two thresholds of one judge, and a judge that accepts without regard to success, on 160 runs
    of one benchmark and 80 of another."""
    place = np.arange(240)
    success = place % 2 == 0
    strict = success ^ (place % 10 == 1) ^ (place % 30 == 4)
    accepted = np.stack([strict, strict | (place % 8 == 3), place % 3 != 1], axis=1)
    names = np.where(place < 160, "webarena", "workarena")
    prices = Prices(rollout=0.1, training=0.5, judgments={"judge 1": 0.01, "judge 2": 0.02})
    known = plan((1.0, 0.5), (1.0,), rate=rate, prices=prices)
    return decide(known, evidence(success, accepted, benchmark=names, price=0.01))


def test_all_that_is_shown_of_a_decision() -> None:
    """The whole text and the screen as they were read by a person, of a target that no candidate
    is shown to meet, and of one that the first is: 112 of its 136 runs are true successes."""
    shown = [
        part
        for rate in (0.75, 0.7)
        for made in [made_decision(rate)]
        for part in (f"{text(made, 100)}\n", screen(made, rest="rest", width=100))
    ]
    recorded = Path(__file__).with_name("decisions.txt").read_text(encoding="utf-8")
    assert "=====\n".join(shown) == recorded
