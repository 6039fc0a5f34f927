"""Do the intervals of ``trajudge robust`` hold what they promise, and how long does it take?

``python -m benchmarks.robustness`` simulates judges whose behaviour is known (``--simulations``,
2,000 by default): tasks differ, runs of a task agree more than others. It prints how often each
interval covers the truth, and how often the lower limit of the worst case lies below it. Then it
times the measurement of 100,000 verdicts on variants and the expansion of 40 perturbations. Exit
code 1 if an interval covers less than 93 %.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping
from statistics import median
from time import perf_counter

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from trajudge.robustness.apply import apply
from trajudge.robustness.catalogue import chosen
from trajudge.robustness.measures.differences import RateDifference
from trajudge.robustness.measures.overall import overall_rates, undetectable
from trajudge.robustness.measures.pairs import IDENTITY, PerturbedPairs
from trajudge.robustness.measures.rates import RobustnessRate, all_rates, rates_of
from trajudge.robustness.measures.report import THREATS
from trajudge.robustness.measures.worst_case import worst_case
from trajudge.robustness.model import NotApplicable, Relation
from trajudge.robustness.sources import subjects
from trajudge.robustness.suite import CORE
from trajudge.robustness.validity import problems
from trajudge.trajectories.model import TrajectoryKey

Floats = NDArray[np.float64]
TASKS, RUNS = 50, 3
ATTACKS = 6
# Of a judge: accepts a success, accepts a failure, takes an attack's bait, its twin's, flips.
RECALL, FALSE, FOOLED, TWIN, NOISE = 0.8, 0.15, 0.35, 0.1, 0.12
SUCCESSES = 0.4
SPREAD = 4.0  # of a Beta distribution over tasks: its two parameters add up to this


def by_task(rng: Generator, mean: float, tasks: int, runs: int) -> Floats:
    """Draw indicators (T·R,) whose chance differs between tasks."""
    chance = rng.beta(SPREAD * mean, SPREAD * (1 - mean), tasks)
    return np.asarray(rng.random((tasks, runs)) < chance[:, None], float).ravel()


def simulated(rng: Generator, tasks: int = TASKS, runs: int = RUNS) -> list[PerturbedPairs]:
    """Draw a judge's verdicts on the runs, asked again, under equal attacks and their twin."""
    n = tasks * runs
    task = np.repeat(np.arange(tasks), runs)
    truth = by_task(rng, SUCCESSES, tasks, runs)
    yes, no = by_task(rng, RECALL, tasks, runs), by_task(rng, FALSE, tasks, runs)
    clean = np.where(truth == 1, yes, no)
    keys = tuple(TrajectoryKey(benchmark="b", agent="a", task_id=str(i)) for i in range(n))

    def pairs(name: str, perturbed: Floats, *, again: bool = False) -> PerturbedPairs:
        return PerturbedPairs(
            name, Relation.KEEP, clean, perturbed, truth, task, keys, is_drawn_again=again
        )

    def under(mean: float) -> Floats:
        won = by_task(rng, mean, tasks, runs)
        return np.where((truth == 0) & (clean == 0), won, clean)

    def flipped(mean: float) -> Floats:
        return np.abs(clean - by_task(rng, mean, tasks, runs))

    attacks = [pairs(f"attack-{number}", under(FOOLED)) for number in range(ATTACKS)]
    twin = pairs("twin", under(TWIN))
    harmless = pairs("harmless", flipped(NOISE))
    return [pairs(IDENTITY, flipped(NOISE), again=True), harmless, twin, *attacks]


def outcomes(rng: Generator) -> Iterator[tuple[str, bool]]:
    """Yield of one simulation whether each interval covers what is true."""
    made = simulated(rng)
    by_name = {one.name: one for one in made}
    attacked = rates_of(by_name["attack-0"], by_name, "twin")
    harmless = rates_of(by_name["harmless"], by_name, None)
    told: Mapping[str, tuple[RobustnessRate | RateDifference, float]] = {
        "flips": (harmless.flips, NOISE),
        "excess flips over the identity": (harmless.excess_flips, 0.0),
        "attack success": (attacked.attack_success, FOOLED),
        "attack success net of the twin": (attacked.net, FOOLED - TWIN),
    }
    for name, (found, true) in told.items():
        if found.low is not None and found.high is not None:
            yield name, found.low <= true <= found.high
    attacks = [one for one in made if one.name.startswith("attack")]
    base = by_name[IDENTITY]._replace(perturbed=by_name[IDENTITY].clean)
    worst = worst_case(attacks, base, rng)
    accepted = FALSE + (1 - FALSE) * FOOLED
    true = SUCCESSES * RECALL / (SUCCESSES * RECALL + (1 - SUCCESSES) * accepted)
    if worst.low is not None:
        lows = [one.low for one in worst.attacks if one.low is not None]
        yield "lower limits of all attacks at once", max(lows) <= true
        yield "lower limit of the worst case", worst.low <= true


def coverage(simulations: int, seed: int) -> Mapping[str, float]:
    """Return the share of simulations in which each interval holds."""
    rng = np.random.default_rng(seed)
    held: dict[str, list[bool]] = {}
    for _ in range(simulations):
        for name, covers in outcomes(rng):
            held.setdefault(name, []).append(covers)
    return {name: float(np.mean(found)) for name, found in held.items()}


def measuring(variants: int = 100_000) -> float:
    """Return the seconds of all rates and worst cases of so many verdicts on variants."""
    rng = np.random.default_rng(0)
    runs = 2_500
    one = simulated(rng, tasks=runs // RUNS, runs=RUNS)
    many = [
        one[3 + number % ATTACKS]._replace(name=f"attack-{number}")
        for number in range(variants // len(one[0].clean))
    ]
    began = perf_counter()
    all_rates([one[0], one[2], *many], dict.fromkeys((x.name for x in many), "twin"))
    overall_rates([one[0], *many], [x.name for x in many], [])
    undetectable(many)
    for _ in THREATS:
        worst_case(many, one[0], rng)
    return perf_counter() - began


def expanding(runs: int) -> tuple[int, float, float]:
    """Apply and check 40 perturbations without pictures; return how many variants, the seconds, and
    the median milliseconds of one."""
    known = subjects("sample")
    perturbations = [one for one in chosen(CORE) if "pixels" not in one.name][:40]
    sources = (known.trajectories * (runs // len(known.trajectories) + 1))[:runs]
    took = []
    began = perf_counter()
    for one in perturbations:
        for source in sources:
            start = perf_counter()
            facts = known.facts[source.key]
            made = apply(one, source, facts)
            if not isinstance(made, NotApplicable):
                problems(one, source, made, facts)
                took.append(perf_counter() - start)
    return len(took), perf_counter() - began, 1000 * median(took)


def main() -> int:
    """Simulate, time, print."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--simulations", type=int, default=2000)
    options.add_argument("--runs", type=int, default=1000, help="runs that are expanded")
    options.add_argument("--seed", type=int, default=0)
    chosen_options = options.parse_args()
    found = coverage(chosen_options.simulations, chosen_options.seed)
    print(f"{chosen_options.simulations} simulations, {TASKS} tasks of {RUNS} runs")
    for name, share in found.items():
        print(f"  {name:<34} {100 * share:.1f} %")
    print(f"100,000 verdicts on variants measured in {measuring():.1f} s")
    variants, seconds, each = expanding(chosen_options.runs)
    print(
        f"40 perturbations of {chosen_options.runs} runs: {variants} variants made and checked in "
        f"{seconds:.0f} s, median {each:.2f} ms"
    )
    return int(min(found.values()) < 0.93)


if __name__ == "__main__":
    sys.exit(main())
