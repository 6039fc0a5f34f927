"""How hard a task is: the complementary log-log model of WebArena Verified, section 4.5.

Success needs a hazard to strike within the steps taken: P = 1 - exp(-H) with
log H = log(1 + steps) + mu + ability(agent) - difficulty(task) + site + template + category
+ step bin + delta * out of budget. Priors are appendix B's; mu ~ N(-2, 2), which it leaves open.

The paper samples with NUTS, as ``eval.stats.difficulty.hazard_nuts`` does. This is the stated
approximation: penalised likelihood (the posterior mode of the effects and a normal around it, its
centre moved for skewness), the four scales set by expectation-maximisation under their half-normal
priors. It takes seconds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg

from trajudge.eval.stats.blas import one_thread
from trajudge.eval.stats.difficulty.attempts import Attempts
from trajudge.eval.stats.difficulty.hazard_design import Design, build_design, reference_rows
from trajudge.eval.stats.interval import Floats

MU, ABILITY_SD, DIFFICULTY_SD, DELTA_SD = (-2.0, 2.0), 0.8, 1.0, 0.5
SCALE_PRIORS = {"site": 0.5, "template": 0.5, "category": 0.5, "bin": 0.3}
MAX_CYCLES, TOLERANCE, FLOOR = 60, 3e-3, 0.01

PENALISED = "penalised likelihood, an approximation of sampling with NUTS"


@dataclass(frozen=True, eq=False)
class HazardFit:
    """Log hazard at reference steps for the average agent: mean and standard deviation (T,).

    ``ability`` (A,) sums to zero; ``difficulty`` (T,) is larger where harder; ``scales`` are the
    fitted standard deviations; ``converged`` tells whether the fit may be trusted, ``notes`` why
    not. ``method`` names how it was fitted. ``draws`` (D, T) of the log hazard, where it was
    sampled, take the place of the normal.
    """

    log_hazard: Floats
    log_hazard_sd: Floats
    ability: Floats
    difficulty: Floats
    delta: float
    scales: dict[str, float]
    converged: bool
    method: str = PENALISED
    notes: tuple[str, ...] = ()
    draws: Floats | None = None


def fit_hazard(attempts: Attempts) -> HazardFit:
    """Fit the model to single-site attempts."""
    design = build_design(attempts)
    y = attempts.success.astype(float)
    mean = np.zeros(design.matrix.shape[1])
    mean[design.blocks["mu"]] = MU[0]
    with one_thread():
        scales, effects, covariance, converged = _settle(design, y, mean)
        effects = effects + _skewness_shift(design, y, effects, covariance)
    where = reference_rows(attempts, design)
    location = where @ effects + np.log1p(attempts.reference_steps())[attempts.site]
    spread = np.sqrt(np.asarray((where @ covariance * where.toarray()).sum(axis=1)).ravel())
    return HazardFit(
        log_hazard=np.asarray(location),
        log_hazard_sd=spread,
        ability=design.contrasts @ effects[design.blocks["ability"]],
        difficulty=effects[design.blocks["difficulty"]],
        delta=float(effects[design.blocks["delta"]][0]),
        scales=scales,
        converged=converged,
        notes=() if converged else ("the fit's scales had not settled",),
    )


def _settle(
    design: Design, y: Floats, mean: Floats
) -> tuple[dict[str, float], Floats, Floats, bool]:
    """Expectation-maximisation on the log scales, extrapolated as SQUAREM does.

    Each cycle takes two plain steps and a longer one along their trend (Varadhan and Roland
    2008): plain steps crawl where a scale tends to zero, which ``FLOOR`` stops.
    """
    effects = mean

    def improve(log_scales: Floats) -> tuple[Floats, Floats]:
        nonlocal effects
        scales = dict(zip(SCALE_PRIORS, np.exp(log_scales).tolist(), strict=True))
        precision = _prior_precision(design, scales)
        effects, covariance = _mode(design, y, mean, precision, effects)
        updated = [
            _scale(effects[design.blocks[name]], covariance, design.blocks[name], prior)
            for name, prior in SCALE_PRIORS.items()
        ]
        return np.log(np.maximum(updated, FLOOR)), covariance

    here, converged = np.log(list(SCALE_PRIORS.values())), False
    for _ in range(MAX_CYCLES):
        once, covariance = improve(here)
        if converged := bool(np.abs(once - here).max() < TOLERANCE):
            break
        twice, _ = improve(once)
        trend, bend = once - here, twice - 2 * once + here
        ratio = np.linalg.norm(trend) / np.maximum(np.linalg.norm(bend), 1e-12)
        size = float(np.clip(ratio, 1.0, 20.0))
        here = np.clip(here + 2 * size * trend + size**2 * bend, np.log(FLOOR), np.log(10.0))
    scales = dict(zip(SCALE_PRIORS, np.exp(here).tolist(), strict=True))
    return scales, effects, covariance, converged


def log_likelihood(log_hazard: Floats, y: Floats) -> float:
    """Sum of log P(y), stable for tiny and huge hazards; shapes (N,)."""
    hazard = np.exp(np.minimum(log_hazard, 30))
    with np.errstate(divide="ignore"):
        success = np.log(-np.expm1(-hazard))
    return float(np.where(y > 0, success, -hazard).sum())


def derivatives(log_hazard: Floats, y: Floats) -> tuple[Floats, Floats]:
    """First derivative and negative second derivative of log P(y) by the log hazard, (N,)."""
    hazard = np.exp(np.clip(log_hazard, -30, 30))
    with np.errstate(over="ignore"):
        grown = np.expm1(hazard)
        ratio = hazard / grown
        bend = ratio * (hazard * (1 + 1 / grown) - 1)
    return np.where(y > 0, ratio, -hazard), np.where(y > 0, bend, hazard)


def _skewness_shift(design: Design, y: Floats, mode: Floats, covariance: Floats) -> Floats:
    """First-order distance from the posterior's mode to its mean (Lindley 1980), (P,).

    An agent's failure bounds a task's hazard from above only, so posteriors lean towards hard
    and their modes alone would call too few tasks hard.
    """
    predictor, h = design.offset + design.matrix @ mode, 1e-3
    above, below = derivatives(predictor + h, y)[1], derivatives(predictor - h, y)[1]
    third = (below - above) / (2 * h)
    variance = design.matrix.multiply(design.matrix @ covariance).sum(axis=1)
    return np.asarray(covariance @ (design.matrix.T @ (third * np.asarray(variance).ravel())) / 2)


def _mode(
    design: Design, y: Floats, mean: Floats, precision: Floats, start: Floats
) -> tuple[Floats, Floats]:
    """Posterior mode by damped Newton steps, and the inverse of the curvature there."""

    def objective(effects: Floats) -> float:
        gap = effects - mean
        predictor = design.offset + design.matrix @ effects
        return log_likelihood(predictor, y) - float(precision @ gap**2) / 2

    effects, value = start, objective(start)
    for _ in range(50):
        factor, gradient = _curvature(design, y, mean, precision, effects)
        step = linalg.cho_solve(factor, gradient)
        size = 1.0
        while (trial := objective(effects + size * step)) < value and size > 1e-6:
            size /= 2
        effects, gain, value = effects + size * step, trial - value, trial
        if gain < 1e-8 * abs(value) + 1e-10:
            break
    factor, _ = _curvature(design, y, mean, precision, effects)
    return effects, linalg.cho_solve(factor, np.eye(len(effects)))


def _curvature(
    design: Design, y: Floats, mean: Floats, precision: Floats, effects: Floats
) -> tuple[tuple[Floats, bool], Floats]:
    """Cholesky factor of the negative Hessian, and the gradient."""
    first, second = derivatives(design.offset + design.matrix @ effects, y)
    gradient = design.matrix.T @ first - precision * (effects - mean)
    weighted = design.matrix.multiply(second[:, None]).tocsr()
    hessian = (design.matrix.T @ weighted).toarray() + np.diag(precision)
    return linalg.cho_factor(hessian), np.asarray(gradient)


def _scale(effects: Floats, covariance: Floats, block: slice, prior: float) -> float:
    """Mode of a normal's scale under a half-normal prior, given the effects' second moments."""
    total = float(effects @ effects + np.diag(covariance)[block].sum())
    n = len(effects)
    return float(np.sqrt(prior**2 * (np.sqrt(n**2 + 4 * total / prior**2) - n) / 2))


def _prior_precision(design: Design, scales: dict[str, float]) -> Floats:
    deviations = {
        "mu": MU[1],
        "ability": ABILITY_SD,
        "difficulty": DIFFICULTY_SD,
        "delta": DELTA_SD,
        **scales,
    }
    precision = np.empty(design.matrix.shape[1])
    for name, block in design.blocks.items():
        precision[block] = deviations[name] ** -2.0
    return precision
