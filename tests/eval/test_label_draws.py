"""Drawn labels and every reader of them, held by simulation with known truth."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from trajudge.annotations.model import Label, SampleFrame
from trajudge.annotations.store import write
from trajudge.eval.audit import Labelled, rank_agents, rule_errors
from trajudge.eval.cli import main
from trajudge.eval.labelling.agreement import label_agreements
from trajudge.eval.labelling.designs import (
    STRATEGIES,
    KnownVerdicts,
    double_readings,
    draw,
    expected_random_widths,
    expected_widths,
    inclusion_probabilities,
    proportional,
    round_robin,
)
from trajudge.eval.labelling.estimates import estimate_precision
from trajudge.eval.labelling.frame import (
    DrawnLabels,
    Frame,
    cross_fitted,
    features,
    fit_logistic,
    vote_share,
)
from trajudge.eval.labelling.settings import Strategy
from trajudge.eval.scoring.compute import score
from trajudge.eval.store.labels import LabelColumns, read_label_columns, refuse_unequal, weights_of
from trajudge.eval.store.run_folder import (
    write_judgments,
    write_labels,
    write_manifest,
    write_rewards,
)
from trajudge.judges.model import Judgment, Status
from trajudge.stats.calibration import fit_calibration, reliability
from trajudge.stats.intervals import Bools, Floats
from trajudge.trajectories.model import TrajectoryKey
from trajudge.util.errors import UserError


class Population(NamedTuple):
    truth: Bools
    known: KnownVerdicts
    columns: Floats


def population(seed: int, size: int = 800) -> Population:
    """Two judges and a rule that err independently, two groups of different difficulty."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 2, size)
    truth = rng.random(size) < np.where(group == 0, 0.5, 0.25)
    error = rng.random((size, 3)) < np.array([0.2, 0.25, 0.15])
    votes = (truth[:, None] != error).astype(float)
    votes[rng.random((size, 3)) < 0.02] = np.nan
    known = KnownVerdicts(vote_share(votes), votes, votes[:, :2] > 0.5, votes[:, 2], group)
    return Population(truth, known, features(votes, np.full((size, 0), np.nan), group))


class Simulation(NamedTuple):
    bias: Floats
    coverage: Floats
    width: Floats
    own_coverage: Floats
    own_width: Floats


def simulate(people: Population, strategy: Strategy, budget: int, times: int) -> Simulation:
    accepted, truth = people.known.accepted, people.truth
    aim = (accepted & truth[:, None]).sum(axis=0) / accepted.sum(axis=0)
    chances = inclusion_probabilities(strategy, budget, people.known)
    rng = np.random.default_rng(5)
    rows = []
    for _ in range(times):
        drawn = draw(chances, people.known.strata, rng)
        labels = DrawnLabels(drawn, truth[drawn], chances[drawn])
        predicted = cross_fitted(people.columns, people.known.probability, labels, rng)
        made = estimate_precision(labels, predicted, accepted)
        both = (made.corrected, made.labels_only)
        rows.append([both[0].estimate - aim, *(x for i in both for x in (i.covers(aim), i.width))])
    bias, covers, width, own_covers, own_width = np.array(rows, dtype=float).mean(axis=0)
    return Simulation(bias, covers, width, own_covers, own_width)


@pytest.mark.slow
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_an_estimate_is_unbiased_whatever_was_preferred(strategy: Strategy) -> None:
    made = simulate(population(1), strategy, 200, 250)
    assert np.abs(made.bias).max() < 0.012
    assert (made.coverage > 0.905).all()
    assert (made.own_coverage > 0.905).all()


@pytest.mark.parametrize("strategy", ["random", "ppi"])
def test_a_precision_near_one_is_covered_though_few_labels_show_an_error(
    strategy: Strategy,
) -> None:
    """300 queues of 50 labels, each of its own 600 trajectories: ≥ 93 %, by labels alone, too."""
    rng = np.random.default_rng(4)
    covered = np.zeros((2, 2))
    for _ in range(300):
        truth = rng.random(600) < 0.6
        error = rng.random((600, 2)) < np.where(truth[:, None], 0.1, [0.05, 0.08])
        votes = (truth[:, None] != error).astype(float)
        share, group = vote_share(votes), np.zeros(600, dtype=np.int64)
        known = KnownVerdicts(share, votes, votes > 0.5, np.full(600, np.nan), group)
        chances = inclusion_probabilities(strategy, 50, known)
        drawn = draw(chances, group, rng)
        labels = DrawnLabels(drawn, truth[drawn], chances[drawn])
        columns = features(votes, np.full((600, 0), np.nan), group)
        predicted = cross_fitted(columns, share, labels, rng)
        aim = (known.accepted & truth[:, None]).sum(axis=0) / known.accepted.sum(axis=0)
        made = estimate_precision(labels, predicted, known.accepted)
        covered += [made.corrected.covers(aim), made.labels_only.covers(aim)]
    assert (covered / 300 >= 0.93).all()


def test_ppi_is_narrower_than_random_as_was_expected() -> None:
    people = population(2)
    random, active = (simulate(people, strategy, 150, 100) for strategy in ("random", "ppi"))
    assert (active.width < 0.75 * random.own_width).all()
    chances = inclusion_probabilities("ppi", 150, people.known)
    expected = expected_widths(chances, people.known.probability, people.known.accepted)
    assert (np.abs(expected / active.width - 1) < 0.35).all()
    plain = expected_random_widths(150, people.known.probability, people.known.accepted)
    assert (np.abs(plain / random.own_width - 1) < 0.25).all()


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_probability_is_positive_and_they_add_up_to_the_budget(strategy: Strategy) -> None:
    known = population(3).known
    for budget in (1, 40, 700, 800, 2000):
        chances = inclusion_probabilities(strategy, budget, known)
        assert ((chances > 0) & (chances <= 1)).all()
        assert np.isclose(chances.sum(), min(budget, 800))


def test_a_part_of_the_budget_is_spread_evenly() -> None:
    """A quarter of it; of the disagreement of votes, of which one row has one bit, 65 %."""
    assert proportional(np.array([1.0, 0, 0, 0]), 1).tolist() == [0.8125, *[0.0625] * 3]
    assert proportional(np.array([3.0, 1]), 1).tolist() == [0.6875, 0.3125]
    assert proportional(np.zeros(4), 2).tolist() == [0.5] * 4
    votes = np.array([[1.0, 0], [1, 1]])
    known = KnownVerdicts(np.full(2, 0.5), votes, votes > 0, votes[:, 0], np.zeros(2, np.int64))
    found = inclusion_probabilities("disagreement", 1, known)
    assert found == pytest.approx([0.35 + 0.65 / 2, 0.65 / 2])


def test_each_is_drawn_with_its_probability_and_the_number_is_fixed() -> None:
    rng = np.random.default_rng(0)
    chances = proportional(rng.random(30) ** 3, 8)
    strata = rng.integers(0, 4, 30)
    counts = np.zeros(30)
    for _ in range(4000):
        drawn = draw(chances, strata, rng)
        assert len(drawn) == len(set(drawn.tolist())) == 8
        counts[drawn] += 1
    assert np.abs(counts / 4000 - chances).max() < 0.035


def test_a_full_sample_is_the_truth() -> None:
    people = population(4, size=120)
    everything = np.arange(120)
    made = estimate_precision(
        DrawnLabels(everything, people.truth, np.ones(120)),
        people.known.probability,
        people.known.accepted,
    )
    accepted = people.known.accepted
    aim = (accepted & people.truth[:, None]).sum(axis=0) / accepted.sum(axis=0)
    assert np.allclose(made.corrected.estimate, aim)
    assert np.allclose(made.corrected.width, 0)


def test_the_order_mixes_strata_and_second_readings_are_their_share() -> None:
    rng = np.random.default_rng(0)
    strata = np.repeat([0, 1, 2], [60, 30, 10])
    positions = round_robin(strata, rng)
    assert sorted(positions.tolist()) == list(range(100))
    one = round_robin(np.zeros(100, dtype=np.int64), rng).tolist()
    assert sorted(one) == list(range(100)) != one  # by chance, where there is one stratum
    first = strata[np.argsort(positions)][:50]
    assert (np.abs(np.bincount(first) - [30, 15, 5]) <= 1).all()
    assert double_readings(100, 0.2, rng).sum() == 20


def test_the_columns_of_a_regression() -> None:
    votes, scores = np.array([[1, np.nan], [0, 1]]), np.array([[0.75], [np.nan]])
    assert vote_share(votes).tolist() == [0.75, 0.5]  # 1.5 of 2, 1.5 of 3
    assert vote_share(np.array([[np.nan]])).tolist() == [0.5]
    rows = [[1, 0, 0.5, np.log(3), 1, 0], [-1, 1, 0, 0, 0, 1]]
    assert features(votes, scores, np.array([0, 1])) == pytest.approx(np.array(rows))


def test_a_regression_is_that_of_the_penalised_likelihood() -> None:
    """Ridge penalty 2, none on the intercept, and half a label of the other kind."""
    from scipy.optimize import minimize

    people = population(7, size=60)
    columns, n = people.columns, 60
    weights = np.linspace(1, 3, n)
    target = (people.truth * n + 0.5) / (n + 1)

    def loss(coefficients: Floats) -> float:
        z = coefficients[0] + columns @ coefficients[1:]
        each = np.logaddexp(0, z) - target * z
        return float(weights / weights.mean() @ each + (coefficients[1:] ** 2).sum())

    best = minimize(loss, np.zeros(columns.shape[1] + 1), tol=1e-10).x
    assert fit_logistic(columns, people.truth, weights) == pytest.approx(best, abs=1e-3)


@pytest.mark.parametrize(
    ("labelled", "successes", "is_learned"),
    [(20, 1, True), (20, 0, False), (20, 20, False), (19, 9, False)],
)
def test_twenty_labels_of_both_kinds_are_learned_from(
    labelled: int, successes: int, is_learned: bool
) -> None:
    nothing = np.full(len(KEYS), np.nan)
    votes = np.ones((len(KEYS), 1))
    frame = Frame(KEYS, ["judge"], votes, np.full_like(votes, np.nan), nothing, nothing)
    labels = {KEYS[n]: label(n, n < successes, None) for n in range(labelled)}
    assert (frame.learned_probability(labels) is not None) is is_learned
    share = [0.75] * len(KEYS)
    assert (frame.probability(labels).tolist() == share) is not is_learned


def test_no_prediction_rests_on_the_label_of_its_own_trajectory() -> None:
    people, everything = population(8, size=60), np.arange(60)

    def predicted(truth: Bools) -> Floats:
        drawn = DrawnLabels(everything, truth, np.ones(60))
        rng = np.random.default_rng(0)
        return cross_fitted(people.columns, np.full(60, np.nan), drawn, rng)

    first = predicted(people.truth)
    assert not np.isnan(first).any()
    for place in range(5):
        other = predicted(people.truth ^ (everything == place))
        assert other[place] == first[place]
        assert (other != first).any()


def test_a_model_of_fewer_than_ten_labels_predicts_nothing() -> None:
    """Of twelve, each in one of five folds, ten are left to learn from where a fold has two."""
    people = population(9, size=12)
    drawn = DrawnLabels(np.arange(12), people.truth, np.ones(12))
    found = cross_fitted(people.columns, np.full(12, np.nan), drawn, np.random.default_rng(0))
    assert np.isnan(found).sum() == 6


def test_a_regression_finds_the_better_judge_and_survives_one_kind_of_label() -> None:
    people = population(6)
    coefficients = fit_logistic(people.columns, people.truth, np.ones(800))
    assert (coefficients[1:4] > 0).all()
    same = fit_logistic(people.columns, np.ones(800, dtype=bool), np.ones(800))
    assert np.isfinite(same).all()


TASKS, RUNS, BUDGET = 80, 4, 120
KEYS = [
    TrajectoryKey(
        benchmark="own",
        agent=f"agent-{place % 2}",
        task_id=str(place // RUNS),
        attempt=place % RUNS // 2,
    )
    for place in range(TASKS * RUNS)
]


def world(rng: np.random.Generator) -> tuple[Bools, Floats]:
    """Truth (N,) and the verdicts (N, 3) of two judges and a rule, which err by task."""
    task = np.repeat(np.arange(TASKS), RUNS)
    truth = rng.random(len(task)) < 1 / (1 + np.exp(1.1 - 1.2 * rng.normal(size=TASKS)[task]))
    signal = 1.2 * (2 * truth - 1)
    verdicts = [
        signal + 0.5 * rng.normal(size=TASKS)[task] + rng.normal(size=len(task)) > bound
        for bound in (-0.5, 0.3, 0.6)
    ]
    return truth, np.array(verdicts, dtype=float).T


def drawn_labels(strategy: Strategy, votes: Floats, rng: np.random.Generator) -> dict[int, float]:
    """Draw labels as ``label build`` does: places with their inclusion probabilities."""
    share = vote_share(votes)
    strata = (share >= 0.5).astype(np.int64)
    known = KnownVerdicts(share, votes, votes > 0.5, votes[:, 2], strata)
    chances = np.minimum(inclusion_probabilities(strategy, BUDGET, known), 1)
    return {int(place): float(chances[place]) for place in draw(chances, strata, rng)}


def label(place: int, success: bool, chance: float | None) -> Label:
    return Label(
        key=KEYS[place],
        raw_task_id="",
        annotator="x",
        success=success,
        inclusion_probability=chance,
    )


def judgments(votes: Floats) -> list[Judgment]:
    return [
        Judgment(key=key, judge=name, status=Status.OK, success=bool(votes[place, column]))
        for column, name in enumerate(("first", "second"))
        for place, key in enumerate(KEYS)
    ]


@pytest.mark.parametrize(
    "strategy",
    [
        "stratified",
        *(pytest.param(s, marks=pytest.mark.slow) for s in ("disagreement", "ppi", "audit")),
    ],
)
def test_the_rates_of_a_draw_are_those_of_the_whole(strategy: Strategy) -> None:
    rng = np.random.default_rng(5)
    gaps: list[list[float]] = []
    inside: list[list[bool]] = []
    for _ in range(60):
        truth, votes = world(rng)
        labels = {
            KEYS[place]: label(place, bool(truth[place]), chance)
            for place, chance in drawn_labels(strategy, votes, rng).items()
        }
        rewards = dict(zip(KEYS, votes[:, 2].tolist(), strict=True))
        report = score(judgments(votes), labels, rewards=rewards)
        first = next(s for s in report.scores if s.benchmark == "overall" and s.judge == "first")
        rates = next(r for r in report.success_rates if r.benchmark == "overall")
        rule = np.array([rewards[key] > 0.5 for key in labels])
        expert = {key: bool(each.success) for key, each in labels.items()}
        labelled = Labelled.of(expert, labels, weights_of(labels))
        errors = rule_errors(labelled, rule).passed_failures
        shift = rank_agents("own", "rule", labelled, rule).shift
        yes, passes = votes[:, 0] == 1, votes[:, 2] == 1
        found = [
            (rates.expert, rates.intervals["expert"], truth.mean()),
            (first.precision, first.intervals["precision"], truth[yes].mean()),
            (first.recall, first.intervals["recall"], yes[truth].mean()),
            (errors.rate, (errors.low or 0.0, errors.high or 1.0), passes[~truth].mean()),
        ]
        gaps.append([float(value or 0) - aim for value, _, aim in found])
        gaps[-1].append(shift - float(passes.mean() - truth.mean()))
        inside.append([low <= aim <= high for _, (low, high), aim in found])
        assert any("one over its inclusion probability" in line for line in report.remarks)
    error = np.std(gaps, axis=0) / np.sqrt(len(gaps))
    assert (np.abs(np.mean(gaps, axis=0)) < 3 * error).all()
    assert np.mean(inside, axis=0).min() >= 0.91


def test_equal_probabilities_change_no_digit_and_mixed_ones_are_refused() -> None:
    truth, votes = world(np.random.default_rng(1))
    for_chance = {
        chance: {KEYS[place]: label(place, bool(truth[place]), chance) for place in range(60)}
        for chance in (None, 0.2)
    }
    plain, equal = (score(judgments(votes), for_chance[c], rewards={}) for c in (None, 0.2))
    assert plain == equal
    refuse_unequal(for_chance[0.2], "it")
    mixed = {**for_chance[None], KEYS[0]: for_chance[0.2][KEYS[0]]}
    with pytest.raises(UserError, match="1 of 60 labels say with which probability"):
        score(judgments(votes), mixed, rewards={})
    mixed = {**for_chance[0.2], KEYS[0]: label(0, True, 0.4)}
    with pytest.raises(UserError, match="no weights"):
        score(judgments(votes), mixed, rewards={}, missing="agentrewardbench")
    with pytest.raises(UserError, match=r"select: the labels were drawn with unequal prob"):
        refuse_unequal(mixed, "trajudge select")


def test_a_weight_of_two_is_a_trajectory_that_counts_twice() -> None:
    """Calibration and agreement, against the same data with rows repeated."""
    rng = np.random.default_rng(3)
    scores, truth = rng.random(300), rng.random(300) < 0.6
    truth = np.where(rng.random(300) < 0.7, scores > 0.5, truth)
    weights = rng.integers(1, 4, 300).astype(float)
    again = np.repeat(np.arange(300), weights.astype(int))
    for method in ("isotonic", "platt", "log-odds"):
        one = fit_calibration(scores, truth, method, weights)
        other = fit_calibration(scores[again], truth[again], method)
        # Platt's targets count trajectories, which weights of mean 1 leave alone.
        assert one(scores) == pytest.approx(other(scores), abs=0.004)
    first = reliability(scores, truth, np.arange(300), weights=weights)
    second = reliability(scores[again], truth[again], again)
    assert first.rate.estimate == pytest.approx(second.rate.estimate)
    assert first.calibration_error == pytest.approx(second.calibration_error)
    pairs = [
        each
        for place in range(60)
        for each in (
            label(place, place % 2 == 0, 0.2 if place < 30 else 0.4),
            label(place, place % 2 == 0 or place < 30, 0.2 if place < 30 else 0.4).model_copy(
                update={"annotator": "y", "role": "secondary"}
            ),
        )
    ]
    success = label_agreements(pairs)[0]
    assert success.raw == pytest.approx((15 * 2 + 30) / (30 * 2 + 30))


def test_a_run_keeps_how_its_labels_were_drawn(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The columns that are read without records hold what the records do; a frame is said."""
    truth, votes = world(np.random.default_rng(2))
    labels = [label(place, bool(truth[place]), 0.1 + place / 1000) for place in range(100)]
    frame = SampleFrame(size=150, strategy="cascade", filter="accepted by a candidate of plan 12")
    write_manifest(tmp_path, {"judge": "first", "data": "x", "version": "0"})
    write_judgments(tmp_path, [j for j in judgments(votes) if j.judge == "first"])
    write_rewards(tmp_path, {})
    write_labels(tmp_path, labels, frame)
    columns = read_label_columns(tmp_path / "labels.jsonl")
    assert columns is not None
    plain = LabelColumns.of({each.key: each for each in labels})
    by_key = dict(zip(columns.columns.keys, columns.columns.inclusion.tolist(), strict=True))
    assert by_key == dict(zip(plain.keys, plain.inclusion.tolist(), strict=True))
    write_labels(tmp_path, columns, frame)
    assert main(["score", str(tmp_path), "--full", "--baselines", "off"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "drawn from 150 trajectories alone (accepted by a candidate of plan 12)" in shown
    write(tmp_path / "one.jsonl", [labels[0], replace_chance(labels[1])])
    words = ["score", str(tmp_path), "--annotations", f"trajudge:{tmp_path / 'one.jsonl'}"]
    assert main(words) == 2
    assert "name labels of one draw" in capsys.readouterr().err


def replace_chance(one: Label) -> Label:
    return one.model_copy(update={"inclusion_probability": None})
