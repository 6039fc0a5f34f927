"""The hazard model of task difficulty sampled with NUTS, as WebArena Verified does.

Source: section 4.5 and appendix B. Likelihood and priors are those of
``stats.difficulty``; here the scales have their posterior instead of one value,
and hardness is the share of draws below the threshold instead of a normal's tail. Needs the extra
``bayes``; takes minutes where the penalised likelihood takes seconds.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from trajudge.stats.difficulty import (
    ABILITY_SD,
    DELTA_SD,
    DIFFICULTY_SD,
    MU,
    SCALE_PRIORS,
    Attempts,
    Design,
    HazardFit,
    build_design,
    reference_rows,
    step_bin,
)
from trajudge.stats.intervals import Floats

R_HAT_AT_MOST = 1.05

"""Above it the chains disagree too much to be used; the paper asks for 1.01."""

TARGET_ACCEPTANCE = 0.95

"""Shorter steps than the usual 0.8: the posterior narrows where a scale is near zero."""

FEWEST_DRAWS = 4

"""Split R-hat needs two draws in either half of a chain."""


@dataclass(frozen=True)
class Sampling:
    """Kept draws of each chain, after as many ``warmup`` draws are thrown away."""

    chains: int = 4
    draws: int = 1000
    warmup: int = 1000

    def __post_init__(self) -> None:
        if self.chains < 1 or self.draws < FEWEST_DRAWS or self.warmup < 1:
            raise ValueError(f"give a chain, a warm-up draw and {FEWEST_DRAWS} draws at least")


def fit_hazard_nuts(
    attempts: Attempts, rng: np.random.Generator, sampling: Sampling | None = None
) -> HazardFit:
    """Sample the model of single-site attempts; ``rng`` seeds the sampler.

    The fit's numbers are posterior means and standard deviations; its ``draws`` (D, T) are those
    of all chains, chain after chain. ``converged`` is false, and ``notes`` say why, after
    divergent transitions or with an R-hat above ``R_HAT_AT_MOST``. Raises ImportError without
    numpyro.
    """
    chosen = sampling or Sampling()
    numpyro, jax = sampler_packages()
    design = build_design(attempts)
    mcmc = numpyro.infer.MCMC(
        numpyro.infer.NUTS(_model(attempts, design), target_accept_prob=TARGET_ACCEPTANCE),
        num_warmup=chosen.warmup,
        num_samples=chosen.draws,
        num_chains=chosen.chains,
        chain_method="sequential",
        progress_bar=False,
    )
    mcmc.run(jax.random.PRNGKey(int(rng.integers(2**31))), extra_fields=("diverging",))
    by_chain = {
        name: np.asarray(values, dtype=float)
        for name, values in mcmc.get_samples(group_by_chain=True).items()
    }
    divergences = int(np.asarray(mcmc.get_extra_fields()["diverging"]).sum())
    watched = [name for name in by_chain if not name.startswith("raw_")]
    r_hat = _largest_r_hat([by_chain[name] for name in watched])
    draws = {name: values.reshape(-1, *values.shape[2:]) for name, values in by_chain.items()}
    notes = _notes(divergences, r_hat, chosen)
    return _summary(attempts, design, draws, notes, _method(chosen, divergences, r_hat))


def sampler_packages() -> tuple[Any, Any]:
    """Import numpyro and jax. Raises ImportError where the extra ``bayes`` is not installed."""
    numpyro, jax = importlib.import_module("numpyro"), importlib.import_module("jax")
    importlib.import_module("numpyro.infer")
    return numpyro, jax


def _model(attempts: Attempts, design: Design) -> Callable[[], None]:
    """Build the model as numpyro reads it; every block of the design is a site of its name."""
    numpyro, jnp = importlib.import_module("numpyro"), importlib.import_module("jax.numpy")
    normal, half_normal = numpyro.distributions.Normal, numpyro.distributions.HalfNormal
    sizes = {name: block.stop - block.start for name, block in design.blocks.items()}
    codes = {
        "site": attempts.site[attempts.task],
        "template": attempts.template[attempts.task],
        "category": attempts.category[attempts.task],
        "bin": step_bin(attempts.steps),
    }
    won, exhausted = jnp.asarray(attempts.success), jnp.asarray(attempts.exhausted, dtype=float)
    offset, contrasts = jnp.asarray(design.offset), jnp.asarray(design.contrasts)

    def model() -> None:
        def effects(name: str, mean: float, deviation: float) -> Any:
            return numpyro.sample(name, normal(mean, deviation).expand([sizes[name]]).to_event(1))

        ability = contrasts @ effects("ability", 0, ABILITY_SD)
        difficulty = effects("difficulty", 0, DIFFICULTY_SD)
        log_hazard = offset + effects("mu", *MU)[0] + effects("delta", 0, DELTA_SD)[0] * exhausted
        log_hazard += ability[attempts.agent] - difficulty[attempts.task]
        for name, prior in SCALE_PRIORS.items():
            # Effects in units of their scale: with few observations an effect, sampling them
            # directly makes a funnel that NUTS cannot enter.
            scale = numpyro.sample(f"scale_{name}", half_normal(prior))
            raw = numpyro.sample(f"raw_{name}", normal(0, 1).expand([sizes[name]]).to_event(1))
            log_hazard += numpyro.deterministic(name, scale * raw)[codes[name]]
        hazard = jnp.exp(jnp.clip(log_hazard, -30, 30))
        log_success = jnp.log(-jnp.expm1(-hazard))
        numpyro.factor("outcomes", jnp.where(won, log_success, -hazard).sum())

    return model


def _summary(
    attempts: Attempts,
    design: Design,
    draws: dict[str, Floats],
    notes: tuple[str, ...],
    method: str,
) -> HazardFit:
    """Convert the draws of every block (D, size) and scale (D,) to the fit that others read."""
    effects = np.hstack([draws[name] for name in design.blocks])
    where: sparse.csr_matrix = reference_rows(attempts, design)
    log_hazard = (
        np.asarray(where @ effects.T).T + np.log1p(attempts.reference_steps())[attempts.site]
    )
    mean = effects.mean(axis=0)
    return HazardFit(
        log_hazard=log_hazard.mean(axis=0),
        log_hazard_sd=log_hazard.std(axis=0, ddof=1),
        ability=design.contrasts @ mean[design.blocks["ability"]],
        difficulty=mean[design.blocks["difficulty"]],
        delta=float(mean[design.blocks["delta"]][0]),
        scales={name: float(draws[f"scale_{name}"].mean()) for name in SCALE_PRIORS},
        converged=not notes,
        method=method,
        notes=notes,
        draws=log_hazard,
    )


def _largest_r_hat(by_chain: list[Floats]) -> float:
    """Largest split R-hat (Gelman and others 2013) over quantities (chains, draws, ...)."""
    split_r_hat = importlib.import_module("numpyro.diagnostics").split_gelman_rubin
    return max(float(np.max(split_r_hat(values))) for values in by_chain if values.size)


def _method(sampling: Sampling, divergences: int, r_hat: float) -> str:
    return (
        f"NUTS, {sampling.chains} chains of {sampling.draws} draws after {sampling.warmup} of "
        f"warm-up, largest R-hat {r_hat:.3f}, {divergences} divergent transitions"
    )


def _notes(divergences: int, r_hat: float, sampling: Sampling) -> tuple[str, ...]:
    """Say what forbids trusting the draws, and the remedy; empty where nothing does."""
    notes = []
    if divergences:
        total = sampling.chains * sampling.draws
        notes.append(
            f"{divergences} of {total} transitions diverged: the draws may miss a part of the "
            "posterior; compare them with the penalised-likelihood fit"
        )
    if not r_hat <= R_HAT_AT_MOST:
        notes.append(
            f"the largest R-hat is {r_hat:.3f}, above {R_HAT_AT_MOST}: the chains do not agree; "
            "take more draws"
        )
    return tuple(notes)
