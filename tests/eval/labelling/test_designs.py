"""What is drawn and what is estimated from it, held by simulation with known truth."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

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
    cross_fitted,
    features,
    fit_logistic,
    vote_share,
)
from trajudge.eval.labelling.settings import Strategy
from trajudge.stats.intervals import Bools, Floats


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
    first = strata[np.argsort(positions)][:50]
    assert (np.abs(np.bincount(first) - [30, 15, 5]) <= 1).all()
    assert double_readings(100, 0.2, rng).sum() == 20


def test_a_regression_finds_the_better_judge_and_survives_one_kind_of_label() -> None:
    people = population(6)
    coefficients = fit_logistic(people.columns, people.truth, np.ones(800))
    assert (coefficients[1:4] > 0).all()
    same = fit_logistic(people.columns, np.ones(800, dtype=bool), np.ones(800))
    assert np.isfinite(same).all()
