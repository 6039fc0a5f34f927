"""The difficulty of tasks: attempts, the hazard model, and a subset of hard ones."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trajudge.stats import difficulty as hazard_model
from trajudge.stats.difficulty import (
    Attempts,
    HazardFit,
    attempts,
    build_design,
    derivatives,
    fit_hazard,
    hardness_probability,
    kendall_tau,
    log_likelihood,
    reference_success,
    select_hard,
    step_bin,
    validate_subset,
)
from trajudge.stats.intervals import Floats


def simulate(seed: int, tasks: int = 200, agents: int = 8) -> tuple[Attempts, Floats]:
    """Attempts on four sites, and every task's true reference success."""
    rng = np.random.default_rng(seed)
    template = np.arange(tasks) // 3
    site = template % 4
    category = site * 100 + rng.integers(0, 5, tasks)
    effects = (
        -4.0
        - rng.normal(0, 1, tasks)
        + rng.normal(0, 0.4, 4)[site]
        + rng.normal(0, 0.5, template.max() + 1)[template]
        + rng.normal(0, 0.5, 500)[category]
    )
    ability = rng.normal(0, 0.8, agents)
    ability -= ability.mean()
    bins = rng.normal(0, 0.2, 5)
    who, what = np.repeat(np.arange(agents), tasks), np.tile(np.arange(tasks), agents)
    steps = rng.integers(1, 31, agents * tasks)
    log_hazard = np.log1p(steps) + effects[what] + ability[who] + bins[step_bin(steps)]
    success = rng.random(agents * tasks) < -np.expm1(-np.exp(log_hazard))
    names = range(tasks)
    data = attempts(
        who,
        what,
        steps,
        success,
        site={t: f"site {site[t]}" for t in names},
        template={t: int(template[t]) for t in names},
        category={t: int(category[t]) for t in names},
    )
    reference = data.reference_steps()[data.site]
    truth = np.log1p(reference) + effects + bins[step_bin(reference)]
    return data, np.asarray(-np.expm1(-np.exp(truth)))


LABELS: dict[object, object] = {"a": 1, "b": 1, "c": 2}


def tried(steps: list[int], success: list[int]) -> Attempts:
    names = ["a", "b", "c"][: len(steps)]
    return attempts(
        ["x"] * len(steps),
        names,
        steps,
        success,
        site=LABELS,
        template=LABELS,
        category=LABELS,
    )


def test_step_bins_are_the_published_ones() -> None:
    assert step_bin([1, 2, 3, 5, 6, 10, 11, 20, 21, 30]).tolist() == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]


def test_steps_are_held_within_one_and_the_cap() -> None:
    assert tried([0, 12, 99], [0, 1, 1]).steps.tolist() == [1, 12, 30]


def test_out_of_budget_does_not_look_at_the_outcome() -> None:
    assert tried([30, 30, 5], [1, 0, 0]).exhausted.tolist() == [True, True, False]


def test_reference_steps() -> None:
    """Few successes: the 60th percentile of all; thirty: the median of the successes."""
    few = tried([2, 4, 10], [1, 0, 0])
    assert few.reference_steps().tolist() == pytest.approx([np.quantile([2, 4], 0.6), 10])
    names = [f"t{i}" for i in range(61)]
    labels: dict[object, object] = dict.fromkeys(names, "s")
    many = attempts(
        ["x"] * 61,
        names,
        [3] * 30 + [20] * 31,
        [1] * 30 + [0] * 31,
        site=labels,
        template=labels,
        category=labels,
    )
    assert many.reference_steps().tolist() == [3]


def test_outcomes_are_open_where_an_agent_did_not_try() -> None:
    data = attempts(
        ["x", "x", "y"],
        ["a", "b", "a"],
        [1, 2, 3],
        [1, 0, 1],
        site=LABELS,
        template=LABELS,
        category=LABELS,
    )
    assert data.outcomes()[1, 0] == 1
    assert np.isnan(data.outcomes()[1, 1])
    assert data.agents_per_task.tolist() == [2, 1]


def test_bad_input_is_refused() -> None:
    with pytest.raises(ValueError, match="two runs"):
        attempts(
            ["x", "x"], ["a", "a"], [1, 1], [0, 1], site=LABELS, template=LABELS, category=LABELS
        )
    with pytest.raises(ValueError, match="'z' has no site"):
        attempts(["x"], ["z"], [1], [0], site=LABELS, template=LABELS, category=LABELS)


@given(st.floats(-12, 3), st.booleans())
def test_derivatives_are_those_of_the_likelihood(log_hazard: float, success: bool) -> None:
    y, h = np.array([float(success)]), 1e-4
    low, here, high = (log_likelihood(np.array([log_hazard + shift]), y) for shift in (-h, 0.0, h))
    first, second = derivatives(np.array([log_hazard]), y)
    assert first[0] == pytest.approx((high - low) / (2 * h), rel=1e-4, abs=1e-6)
    assert second[0] == pytest.approx(-(high - 2 * here + low) / h**2, rel=1e-2, abs=1e-5)


@pytest.mark.parametrize("log_hazard", [-200.0, -40.0, 8.0, 200.0])
def test_extreme_hazards_stay_finite(log_hazard: float) -> None:
    for y in (0.0, 1.0):
        values = derivatives(np.array([log_hazard]), np.array([y]))
        assert np.isfinite(values).all()


def test_the_mode_is_the_one_a_general_optimiser_finds() -> None:
    from scipy.optimize import minimize

    data, _ = simulate(0, tasks=12, agents=3)
    design = build_design(data)
    y, n = data.success.astype(float), design.matrix.shape[1]
    mean, precision = np.zeros(n), hazard_model._prior_precision(design, hazard_model.SCALE_PRIORS)
    mean[0] = -2

    def loss(effects: np.ndarray) -> float:
        predictor = design.offset + design.matrix @ effects
        return -log_likelihood(predictor, y) + float(precision @ (effects - mean) ** 2) / 2

    ours, covariance = hazard_model._mode(design, y, mean, precision, mean)
    theirs = minimize(loss, mean, method="BFGS", options={"gtol": 1e-8})
    np.testing.assert_allclose(ours, theirs.x, atol=1e-3)
    h, unit = 1e-4, np.eye(n)[0]
    curvature = (loss(ours + h * unit) - 2 * loss(ours) + loss(ours - h * unit)) / h**2
    assert np.linalg.inv(covariance)[0, 0] == pytest.approx(curvature, rel=1e-3)


def test_scales_are_the_mode_under_their_prior() -> None:
    from scipy.optimize import minimize

    effects, prior = np.array([0.3, -0.5, 0.1]), 0.5
    found = hazard_model._scale(effects, np.zeros((3, 3)), slice(0, 3), prior)

    def loss(log_scale: np.ndarray) -> float:
        s = float(np.exp(log_scale[0]))
        return float(3 * np.log(s) + effects @ effects / (2 * s**2) + s**2 / (2 * prior**2))

    best = minimize(loss, [np.log(0.4)], method="Nelder-Mead", options={"xatol": 1e-9})
    assert found == pytest.approx(float(np.exp(best.x[0])), rel=1e-4)


@pytest.mark.parametrize("seed", [0, 1])
def test_ranks_tasks_better_than_raw_success_rates(seed: int) -> None:
    from scipy.stats import spearmanr

    data, truth = simulate(seed)
    fit = fit_hazard(data)
    raw = np.nanmean(data.outcomes(), axis=0)
    assert fit.converged
    ours = spearmanr(reference_success(fit), truth).statistic
    assert ours > spearmanr(raw, truth).statistic + 0.02
    assert fit.ability.sum() == pytest.approx(0, abs=1e-9)


@pytest.mark.slow
def test_hardness_probabilities_are_calibrated() -> None:
    """Over 6 x 300 tasks, of those called hard with probability p about p are hard."""
    said, hard = [], []
    for seed in range(6):
        data, truth = simulate(20 + seed, tasks=300)
        said.append(hardness_probability(fit_hazard(data)))
        hard.append(truth <= 0.2)
    probability, event = np.concatenate(said), np.concatenate(hard)
    assert probability.mean() == pytest.approx(event.mean(), abs=0.03)
    for low, high in ((0, 0.25), (0.25, 0.75), (0.75, 1.01)):
        part = (probability >= low) & (probability < high)
        assert probability[part].mean() == pytest.approx(event[part].mean(), abs=0.06)


def test_all_failed_is_hard_and_finite() -> None:
    data, _ = simulate(0, tasks=20, agents=4)
    failed = Attempts(**{**vars(data), "success": np.zeros_like(data.success)})
    fit = fit_hazard(failed)
    assert np.isfinite(fit.log_hazard).all()
    assert (hardness_probability(fit) > 0.5).all()


def known(log_hazard: list[float], sd: float = 0.3) -> HazardFit:
    n = len(log_hazard)
    return HazardFit(np.array(log_hazard), np.full(n, sd), np.zeros(1), np.zeros(n), 0.0, {}, True)


def pool(site: list[str], category: list[str], agents: int = 4) -> Attempts:
    tasks = list(range(len(site)))
    return attempts(
        np.repeat(np.arange(agents), len(site)),
        np.tile(tasks, agents),
        np.ones(agents * len(site)),
        np.zeros(agents * len(site)),
        site=dict(enumerate(site)),
        template=dict(enumerate(tasks)),
        category=dict(enumerate(category)),
    )


def test_hardness_and_reference_success_are_those_of_draws() -> None:
    fit = known([-3.0, -1.5, 0.5], 0.7)
    draws = np.random.default_rng(0).normal(fit.log_hazard, 0.7, (200_000, 3))
    success = -np.expm1(-np.exp(draws))
    np.testing.assert_allclose(hardness_probability(fit), (success <= 0.2).mean(axis=0), atol=0.005)
    np.testing.assert_allclose(reference_success(fit), success.mean(axis=0), atol=0.003)


def test_every_category_gives_its_hardest_up_to_the_cap() -> None:
    data = pool(["s"] * 7, ["hard"] * 4 + ["easy"] * 3)
    fit = known([-1.0, -4.0, -3.0, -2.0, 3.0, 2.5, 2.0], 0.1)
    found = select_hard(data, fit)
    assert found.selected.tolist() == [1, 2, 3, 6, 5]
    assert found.very_easy.tolist() == [True, False]
    assert found.hardness.tolist() == hardness_probability(fit, 0.2).tolist()


def test_a_category_is_very_easy_from_85_percent() -> None:
    fit = known([np.log(-np.log1p(-0.9))], 0.1)
    assert select_hard(pool(["s"], ["c"]), fit).very_easy.tolist() == [True]
    median = float(reference_success(fit)[0])
    for easy, very_easy in ((median, True), (median + 1e-9, False)):
        found = select_hard(pool(["s"], ["c"]), fit, easy=easy)
        assert found.very_easy.tolist() == [very_easy]


def test_ties_go_to_the_site_with_fewer_tasks() -> None:
    data = pool(["s", "s", "t"], ["c"] * 3)
    found = select_hard(data, known([-4.0, -4.0, -4.0]), cap=2)
    assert sorted(data.site[found.selected].tolist()) == [0, 1]
    # Around the threshold 0.00075 of a log-hazard are 0.0010 of a probability, 0.0008 are 0.0011.
    threshold = np.log(-np.log1p(-0.2))
    for apart, selected in ((0.00075, [0, 2]), (0.0008, [0, 1])):
        fit = known([-4.0, threshold, threshold + apart])
        assert select_hard(data, fit, cap=2).selected.tolist() == selected


def test_tasks_that_few_agents_tried_are_not_candidates() -> None:
    found = select_hard(pool(["s"], ["c"], agents=3), known([-4.0]))
    assert found.selected.tolist() == []


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=2, max_size=12))
def test_kendall_tau_is_scipys(pairs: list[tuple[int, int]]) -> None:
    from scipy.stats import kendalltau

    first, second = (np.array(side) / 5 for side in zip(*pairs, strict=True))
    expected = kendalltau(first, second).statistic
    assert float(kendall_tau(first, second)) == pytest.approx(expected, nan_ok=True)


def test_two_swaps_among_eight_agents_are_the_published_tau() -> None:
    order = np.arange(8.0)
    swapped = order[[1, 0, 3, 2, 4, 5, 6, 7]]
    assert float(kendall_tau(order, swapped)) == pytest.approx(0.857, abs=5e-4)


def test_the_whole_pool_validates_itself() -> None:
    data, _ = simulate(0, tasks=60)
    found = validate_subset(data, np.arange(60), np.random.default_rng(0))
    assert (found.tau, found.mae) == (1, 0)
    assert (found.tau_pass_rate, found.mae_pass_rate) == (1, 1)
    assert found.tau_replicates.shape == (500,)
    exact = validate_subset(
        data, np.arange(60), np.random.default_rng(0), tau_at_least=1.0, mae_at_most=0.0
    )
    assert (exact.tau_pass_rate, exact.mae_pass_rate) == (1, 1)


def test_a_hard_subset_drifts_and_says_so() -> None:
    data, _ = simulate(1, tasks=120)
    subset = select_hard(data, fit_hazard(data))
    found = validate_subset(data, subset.selected, np.random.default_rng(0), n_resamples=200)
    outcomes = data.outcomes()
    gap = outcomes.mean(axis=1) - outcomes[:, subset.selected].mean(axis=1)
    assert found.mae == pytest.approx(np.abs(gap).mean())
    assert found.mae_pass_rate == (found.mae_replicates <= 0.06).mean() < 0.5
    assert found.tau_pass_rate == (found.tau_replicates >= 0.9).mean()
    assert found.tau_replicates.shape == (200,)
