"""Difficulty of tasks, and subsets of hard ones (WebArena Verified, section 4.5 and appendix B).

``attempts`` encodes the runs of several agents, ``fit_hazard`` fits the model by penalised
likelihood (an approximation of the paper's sampling), ``select_hard`` selects the hardest tasks of
each category, and ``validate_subset`` compares agents on them and on all tasks.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray
from scipy import linalg, sparse

from trajudge.stats.intervals import Bools, Floats, Ints, one_thread

BIN_STARTS = np.array([1, 3, 6, 11, 21])

"""First step count of every bin: 1-2, 3-5, 6-10, 11-20, 21 to the cap."""


@dataclass(frozen=True, eq=False)
class Attempts:
    """One run per (agent, task). ``agent``, ``task``, ``steps``, ``success``, ``exhausted``: (N,).

    ``exhausted``: the steps reached the cap, whatever the outcome. Codes index the names; ``site``,
    ``template`` and ``category`` (T,) belong to the tasks.
    """

    agent: Ints
    task: Ints
    steps: Ints
    success: Bools
    exhausted: Bools
    site: Ints
    template: Ints
    category: Ints
    agent_names: tuple[object, ...]
    task_names: tuple[object, ...]
    site_names: tuple[object, ...]

    @cached_property
    def agents_per_task(self) -> Ints:
        """The number of agents that attempted each task, (T,)."""
        return np.bincount(self.task, minlength=len(self.task_names))

    def outcomes(self) -> Floats:
        """Success by agent and task (A, T); ``nan`` where not attempted."""
        table = np.full((len(self.agent_names), len(self.task_names)), np.nan)
        table[self.agent, self.task] = self.success
        return table

    def reference_steps(self) -> Floats:
        """Return the steps (S,) at which tasks of a site are compared.

        They are the median of its successes if there are at least 30, else the 60th percentile of
        all its attempts; at most the site's 95th percentile, at least 1.
        """
        where = self.site[self.task]
        reference = np.ones(len(self.site_names))
        for s in range(len(self.site_names)):
            steps = self.steps[where == s]
            won = self.steps[(where == s) & self.success]
            typical = np.median(won) if len(won) >= 30 else np.quantile(steps, 0.6)
            reference[s] = max(1.0, min(typical, np.quantile(steps, 0.95)))
        return reference


def attempts(
    agent: ArrayLike,
    task: ArrayLike,
    steps: ArrayLike,
    success: ArrayLike,
    *,
    site: dict[object, object],
    template: dict[object, object],
    category: dict[object, object],
    cap: int = 30,
) -> Attempts:
    """Encode runs (N,); steps are clipped to 1 and ``cap``.

    ``site``, ``template`` and ``category`` map a task's name to its labels. Raises ValueError on a
    second run of one agent at one task, and on a task without labels.
    """
    agents, who = np.unique(np.asarray(agent), return_inverse=True)
    tasks, task_index = np.unique(np.asarray(task), return_inverse=True)
    if len(np.unique(np.column_stack([who, task_index]), axis=0)) < len(who):
        raise ValueError("an agent has two runs of one task: keep one of them")
    names = tuple(tasks.tolist())
    labels = {"site": site, "template": template, "category": category}
    for kind, known in labels.items():
        if missing := [name for name in names if name not in known]:
            raise ValueError(f"task {missing[0]!r} has no {kind}")
    sites, of_site = np.unique([str(site[name]) for name in names], return_inverse=True)
    won = np.asarray(success).astype(bool)
    count = np.clip(np.asarray(steps, dtype=np.int64), 1, cap)
    return Attempts(
        agent=who.ravel(),
        task=task_index.ravel(),
        steps=count,
        success=won,
        exhausted=count == cap,
        site=of_site,
        template=_codes(template, names),
        category=_codes(category, names),
        agent_names=tuple(agents.tolist()),
        task_names=names,
        site_names=tuple(sites.tolist()),
    )


def step_bin(steps: ArrayLike) -> Ints:
    """Bin of a step count, from 0."""
    return np.searchsorted(BIN_STARTS, np.asarray(steps), side="right") - 1


def _codes(labels: dict[object, object], names: tuple[object, ...]) -> Ints:
    return np.unique([str(labels[name]) for name in names], return_inverse=True)[1].ravel()


@dataclass(frozen=True, eq=False)
class Design:
    """Columns of the linear predictor: sparse (N, P), blocks by name, and sum-to-zero contrasts."""

    matrix: sparse.csr_matrix
    offset: Floats
    blocks: dict[str, slice]
    contrasts: Floats


def build_design(attempts: Attempts) -> Design:
    """Build the linear predictor of every attempt, appendix B's effects in the formula's order."""
    task, n_agents = attempts.task, len(attempts.agent_names)
    contrasts = linalg.null_space(np.ones((1, n_agents)))
    n = len(task)
    parts = {
        "mu": sparse.csr_matrix(np.ones((n, 1))),
        "ability": sparse.csr_matrix(contrasts[attempts.agent]),
        "difficulty": -_one_hot(task, len(attempts.task_names)),
        "site": _one_hot(attempts.site[task], len(attempts.site_names)),
        "template": _one_hot(attempts.template[task], int(attempts.template.max()) + 1),
        "category": _one_hot(attempts.category[task], int(attempts.category.max()) + 1),
        "bin": _one_hot(step_bin(attempts.steps), len(BIN_STARTS)),
        "delta": sparse.csr_matrix(attempts.exhausted.astype(float)[:, None]),
    }
    ends = np.cumsum([0, *(part.shape[1] for part in parts.values())]).tolist()
    blocks = {name: slice(ends[i], ends[i + 1]) for i, name in enumerate(parts)}
    matrix = sparse.hstack(list(parts.values()), format="csr")
    return Design(matrix, np.log1p(attempts.steps.astype(float)), blocks, contrasts)


def reference_rows(attempts: Attempts, design: Design) -> sparse.csr_matrix:
    """Return the rows of each task (T, P) at its site's reference steps: average agent, budget
    not exhausted."""
    tasks = np.arange(len(attempts.task_names))
    parts = {
        "mu": sparse.csr_matrix(np.ones((len(tasks), 1))),
        "ability": sparse.csr_matrix((len(tasks), len(attempts.agent_names) - 1)),
        "difficulty": -_one_hot(tasks, len(tasks)),
        "site": _one_hot(attempts.site, len(attempts.site_names)),
        "template": _one_hot(attempts.template, int(attempts.template.max()) + 1),
        "category": _one_hot(attempts.category, int(attempts.category.max()) + 1),
        "bin": _one_hot(step_bin(attempts.reference_steps())[attempts.site], len(BIN_STARTS)),
        "delta": sparse.csr_matrix((len(tasks), 1)),
    }
    return sparse.hstack([parts[name] for name in design.blocks], format="csr")


def _one_hot(codes: NDArray[np.int64], size: int) -> sparse.csr_matrix:
    rows = np.arange(len(codes))
    return sparse.csr_matrix((np.ones(len(codes)), (rows, codes)), shape=(len(codes), size))


MU, ABILITY_SD, DIFFICULTY_SD, DELTA_SD = (-2.0, 2.0), 0.8, 1.0, 0.5

SCALE_PRIORS = {"site": 0.5, "template": 0.5, "category": 0.5, "bin": 0.3}

MAX_CYCLES, TOLERANCE, FLOOR = 60, 3e-3, 0.01


@dataclass(frozen=True, eq=False)
class HazardFit:
    """Log hazard at reference steps for the average agent: mean and standard deviation (T,).

    ``ability`` (A,) sums to zero; ``difficulty`` (T,) is larger for harder tasks; ``scales`` are
    the fitted standard deviations; ``converged``: the scales have settled.
    """

    log_hazard: Floats
    log_hazard_sd: Floats
    ability: Floats
    difficulty: Floats
    delta: float
    scales: dict[str, float]
    converged: bool


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
    )


def _settle(
    design: Design, y: Floats, mean: Floats
) -> tuple[dict[str, float], Floats, Floats, bool]:
    """Run expectation-maximisation on the log scales, with SQUAREM's extrapolation.

    Each cycle has two plain steps and a longer one along their trend (Varadhan and Roland 2008):
    plain steps are slow if a scale tends to zero, at which ``FLOOR`` stops it.
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
    """Return the first-order distance from the posterior's mode to its mean (Lindley 1980), (P,).

    An agent's failure bounds a task's hazard only from above, so that posteriors are skewed towards
    hard, and by their modes alone too few tasks would be hard.
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


TIE = 1e-3
"""Hardness probabilities this close count as equal."""


@dataclass(frozen=True, eq=False)
class HardSubset:
    """Selected tasks in order of selection; hardness and reference success of all tasks (T,).

    ``very_easy`` (C,) marks the categories with the lower cap.
    """

    selected: Ints
    hardness: Floats
    reference_success: Floats
    very_easy: Bools


def hardness_probability(fit: HazardFit, hard: float = 0.20) -> Floats:
    """P(reference success <= ``hard``) for every task (T,), equation 4."""
    if not 0 < hard < 1:
        raise ValueError(f"the threshold of hardness must lie between 0 and 1, not {hard!r}")
    threshold = np.log(-np.log1p(-hard))
    return np.asarray(scipy.special.ndtr((threshold - fit.log_hazard) / fit.log_hazard_sd))


def reference_success(fit: HazardFit) -> Floats:
    """Posterior mean of the success of the average agent at reference steps (T,), equation 3."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(31)
    log_hazard = fit.log_hazard[:, None] + fit.log_hazard_sd[:, None] * nodes
    return np.asarray(-np.expm1(-np.exp(log_hazard)) @ weights / weights.sum())


def select_hard(
    attempts: Attempts,
    fit: HazardFit,
    *,
    hard: float = 0.20,
    easy: float = 0.85,
    cap: int = 3,
    cap_easy: int = 2,
    min_agents: int = 4,
) -> HardSubset:
    """Select up to ``cap`` of the hardest tasks of each category, hardest categories first.

    A hard task has a reference success of at most ``hard``; a category with a median of at least
    ``easy`` has ``cap_easy`` tasks; candidates are tasks that ``min_agents`` attempted. Among
    equally hard candidates the site with the fewest tasks so far is preferred, then the lower
    reference success, then the order of names. The defaults are the released configuration.
    """
    hardness, success = hardness_probability(fit, hard), reference_success(fit)
    eligible = attempts.agents_per_task >= min_agents
    categories = range(int(attempts.category.max()) + 1)
    medians = np.array([np.median(success[attempts.category == c]) for c in categories])
    very_easy = medians >= easy
    per_site = np.zeros(len(attempts.site_names), dtype=np.int64)
    selected: list[int] = []
    for c in np.argsort(medians, kind="stable"):
        left = np.flatnonzero((attempts.category == c) & eligible).tolist()
        for _ in range(cap_easy if very_easy[c] else cap):
            if not left:
                break
            best = max(hardness[t] for t in left)
            tied = [t for t in left if hardness[t] >= best - TIE]
            task = min(tied, key=lambda t: (per_site[attempts.site[t]], success[t], t))
            selected.append(task)
            per_site[attempts.site[task]] += 1
            left.remove(task)
    return HardSubset(np.array(selected, dtype=np.int64), hardness, success, very_easy)


@dataclass(frozen=True, eq=False)
class SubsetValidation:
    """Agreement of subset and pool, and the share of resamples that meet each threshold."""

    tau: float
    mae: float
    tau_pass_rate: float
    mae_pass_rate: float
    tau_replicates: Floats
    mae_replicates: Floats


def kendall_tau(first: Floats, second: Floats) -> Floats:
    """Return tau-b of paired rates (..., A), corrected for ties; ``nan`` if all of one side are
    equal."""
    i, j = np.triu_indices(first.shape[-1], 1)
    one = np.sign(np.round(first[..., i] - first[..., j], 12))
    two = np.sign(np.round(second[..., i] - second[..., j], 12))
    pairs = np.sqrt((one**2).sum(axis=-1) * (two**2).sum(axis=-1))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray((one * two).sum(axis=-1) / pairs)


def validate_subset(
    attempts: Attempts,
    selected: Ints,
    rng: np.random.Generator,
    *,
    n_resamples: int = 500,
    tau_at_least: float = 0.90,
    mae_at_most: float = 0.06,
) -> SubsetValidation:
    """Compare agents' success on ``selected`` tasks with that on all tasks."""
    n = len(attempts.task_names)
    drawn = rng.integers(0, n, size=(n_resamples, n)) + n * np.arange(n_resamples)[:, None]
    weights = np.bincount(drawn.ravel(), minlength=n_resamples * n).reshape(n_resamples, n)
    taus, errors = _compare(attempts, selected, np.vstack([np.ones(n, dtype=np.int64), weights]))
    return SubsetValidation(
        tau=float(taus[0]),
        mae=float(errors[0]),
        tau_pass_rate=float((taus[1:] >= tau_at_least - 1e-9).mean()),
        mae_pass_rate=float((errors[1:] <= mae_at_most + 1e-9).mean()),
        tau_replicates=taus[1:],
        mae_replicates=errors[1:],
    )


def _compare(attempts: Attempts, selected: Ints, weights: Ints) -> tuple[Floats, Floats]:
    """Return tau and mean absolute error (B,) under task weights (B, T)."""
    outcomes = attempts.outcomes()
    won, tried = np.nan_to_num(outcomes).T, (~np.isnan(outcomes)).astype(float).T
    with np.errstate(invalid="ignore", divide="ignore"):
        full = (weights @ won) / (weights @ tried)
        part = (weights[:, selected] @ won[selected]) / (weights[:, selected] @ tried[selected])
    return kendall_tau(full, part), np.abs(full - part).mean(axis=-1)
