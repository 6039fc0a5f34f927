"""Sampling the hazard model: it agrees with the penalised fit, repeats, and says when it failed."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.eval.stats.hazard_world import simulate
from tests.eval.test_hard_subset import write_attempts
from trajudge.eval.hard_subset import main
from trajudge.stats.difficulty import (
    HazardFit,
    fit_hazard,
    hardness_probability,
    reference_success,
    select_hard,
)
from trajudge.stats.hazard_nuts import Sampling, fit_hazard_nuts

needs_numpyro = pytest.mark.skipif(
    importlib.util.find_spec("numpyro") is None,
    reason="numpyro is not installed: it comes with the extra bayes",
)
DATA, _ = simulate(0, tasks=60, agents=4)


@pytest.fixture(scope="module")
def sampled() -> HazardFit:
    return fit_hazard_nuts(
        DATA, np.random.default_rng(0), Sampling(chains=2, draws=400, warmup=300)
    )


@needs_numpyro
def test_agrees_with_the_penalised_fit(sampled: HazardFit) -> None:
    from scipy.stats import spearmanr

    penalised = fit_hazard(DATA)
    for number in (hardness_probability, reference_success):
        ours, theirs = number(sampled), number(penalised)
        assert spearmanr(ours, theirs).statistic > 0.9
        assert np.abs(ours - theirs).max() < 0.15
    np.testing.assert_allclose(sampled.ability, penalised.ability, atol=0.2)
    assert sampled.ability.sum() == pytest.approx(0, abs=1e-5)
    assert sampled.converged, sampled.notes


@needs_numpyro
def test_hardness_is_the_share_of_draws_below_the_threshold(sampled: HazardFit) -> None:
    assert sampled.draws is not None
    assert sampled.draws.shape == (2 * 400, 60)
    success = -np.expm1(-np.exp(sampled.draws))
    np.testing.assert_allclose(hardness_probability(sampled, 0.3), (success <= 0.3).mean(axis=0))
    np.testing.assert_allclose(reference_success(sampled), success.mean(axis=0))
    np.testing.assert_allclose(sampled.log_hazard, sampled.draws.mean(axis=0))
    assert len(select_hard(DATA, sampled).selected) > 0


@needs_numpyro
def test_the_same_seed_gives_the_same_draws() -> None:
    data, _ = simulate(1, tasks=12, agents=3)
    few, rngs = Sampling(chains=2, draws=30, warmup=30), [np.random.default_rng(5) for _ in "ab"]
    first, again = (fit_hazard_nuts(data, rng, few).draws for rng in rngs)
    assert first is not None
    np.testing.assert_array_equal(first, again)
    fresh = np.random.default_rng(5).bit_generator.state
    assert rngs[0].bit_generator.state != fresh, "the sampler's seed is drawn from the generator"


@needs_numpyro
def test_too_few_draws_are_noted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = write_attempts(tmp_path / "attempts.csv", tasks=12)
    few = ["--fit", "nuts", "--chains", "2", "--draws", "4", "--resamples", "5"]
    assert main([str(source), *few]) == 0
    printed = capsys.readouterr().out
    assert "fitted by NUTS, 2 chains of 4 draws" in printed
    assert "warning: the largest R-hat" in printed


def test_the_default_is_the_penalised_fit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = write_attempts(tmp_path / "attempts.csv", tasks=30)
    assert main([str(source), "--resamples", "5"]) == 0
    assert "fitted by penalised likelihood" in capsys.readouterr().out


def test_impossible_numbers_of_draws(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = write_attempts(tmp_path / "attempts.csv", tasks=12)
    for wrong in (["--chains", "0"], ["--draws", "3"]):
        assert main([str(source), "--fit", "nuts", *wrong]) == 2
        said = capsys.readouterr().err
        assert all(word in said for word in wrong), said


@pytest.mark.slow
def test_without_numpyro_the_extra_is_named(tmp_path: Path) -> None:
    """In a process of its own, where the import of numpyro fails."""
    source = write_attempts(tmp_path / "attempts.csv", tasks=12)
    code = (
        "import sys; sys.modules['numpyro'] = None\n"
        "from trajudge.eval.hard_subset import main\n"
        f"code = main([{str(source)!r}, '--fit', 'nuts'])\n"
        "assert 'jax' not in sys.modules\n"
        "sys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert done.returncode == 2, done.stderr
    assert "trajudge[bayes]" in done.stderr
    assert done.stdout == ""
