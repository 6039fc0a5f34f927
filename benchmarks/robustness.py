"""Do the intervals of ``trajudge robust`` hold what they promise, and how long does it take?

``python -m benchmarks.robustness`` simulates judges whose behaviour is known (``--simulations``,
2,000 by default): tasks differ, runs of a task agree more than others. It prints how often each
interval covers the truth, and how often the lower limits of precision under an attack lie below it,
these in eleven more designs too: few tasks, many attacks, attacks that resemble each other, a judge
that is hardly fooled, runs that agree more or less, few successes, large data. Then it times the
measurement of 100,000 verdicts on variants and the expansion of 40 perturbations. Exit
code 1 if an interval covers less than 93 %.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import median
from time import perf_counter
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from trajudge.robustness.apply import apply, problems
from trajudge.robustness.catalogue import chosen, core_suite
from trajudge.robustness.model import NotApplicable, Relation
from trajudge.robustness.pairs import IDENTITY, PerturbedPairs
from trajudge.robustness.rates import (
    RateDifference,
    RobustnessRate,
    all_rates,
    operating_points,
    overall_rates,
    rates_of,
    undetectable,
    worst_case,
)
from trajudge.robustness.report import THREATS
from trajudge.robustness.subjects import subjects
from trajudge.trajectories.model import TrajectoryKey

Floats = NDArray[np.float64]
TWIN, NOISE = 0.1, 0.12  # a twin's bait is taken; a verdict flips


class Design(NamedTuple):
    """Tasks and runs of each, equal attacks; how often the judge accepts a success, a failure, and
    takes an attack's bait; the share of successes. ``alike``: the two parameters of the Beta
    distribution from which chances are drawn by task add up to it, runs of a task are the more
    alike the less it is. ``shared``: the share of verdicts that all attacks have in common.
    ``benchmarks``: over how many the tasks are spread evenly."""

    tasks: int = 50
    runs: int = 3
    attacks: int = 6
    recall: float = 0.8
    false: float = 0.15
    fooled: float = 0.35
    successes: float = 0.4
    alike: float = 4.0
    shared: float = 0.0
    benchmarks: int = 1

    @property
    def precision(self) -> float:
        """The true precision under an attack."""
        accepted = self.false + (1 - self.false) * self.fooled
        true = self.successes * self.recall
        return true / (true + (1 - self.successes) * accepted)


DESIGN = Design()
OTHERS: Mapping[str, Design] = {
    "25 tasks": Design(tasks=25),
    "12 tasks": Design(tasks=12),
    "5 benchmarks": Design(tasks=30, benchmarks=5),
    "30 attacks": Design(attacks=30),
    "hardly fooled": Design(false=0.05, fooled=0.05),
    "precise judge": Design(100, 1, recall=0.9, false=0.02, fooled=0.1, successes=0.5),
    "runs alike": Design(alike=1.0),
    "runs independent": Design(150, 1, alike=50.0),
    "attacks alike": Design(shared=0.8),
    "few successes": Design(recall=0.5, false=0.3, fooled=0.6, successes=0.2),
    "600 runs": Design(300, 2, attacks=12, shared=0.3),
}


def by_task(rng: Generator, mean: float, design: Design) -> Floats:
    """Draw indicators (T·R,) whose chance differs between tasks."""
    chance = rng.beta(design.alike * mean, design.alike * (1 - mean), design.tasks)
    drawn = rng.random((design.tasks, design.runs)) < chance[:, None]
    return np.asarray(drawn, float).ravel()


def simulated(rng: Generator, design: Design = DESIGN) -> list[PerturbedPairs]:
    """Draw a judge's verdicts on the runs, asked again, under equal attacks and their twin."""
    tasks, runs = design.tasks, design.runs
    n = tasks * runs
    task = np.repeat(np.arange(tasks), runs)
    truth = by_task(rng, design.successes, design)
    yes, no = by_task(rng, design.recall, design), by_task(rng, design.false, design)
    clean = np.where(truth == 1, yes, no)
    keys = tuple(
        TrajectoryKey(benchmark=f"b{i // runs % design.benchmarks}", agent="a", task_id=str(i))
        for i in range(n)
    )

    def pairs(name: str, perturbed: Floats, *, again: bool = False) -> PerturbedPairs:
        return PerturbedPairs(
            name, Relation.KEEP, clean, perturbed, truth, task, keys, is_drawn_again=again
        )

    common = by_task(rng, design.fooled, design)

    def under(mean: float, shared: float = 0.0) -> Floats:
        won = by_task(rng, mean, design)
        won = np.where(rng.random(n) < shared, common, won)
        return np.where((truth == 0) & (clean == 0), won, clean)

    def flipped(mean: float) -> Floats:
        return np.abs(clean - by_task(rng, mean, design))

    attacks = [
        pairs(f"attack-{number}", under(design.fooled, design.shared))
        for number in range(design.attacks)
    ]
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
        "attack success": (attacked.attack_success, DESIGN.fooled),
        "attack success net of the twin": (attacked.net, DESIGN.fooled - TWIN),
    }
    for name, (found, true) in told.items():
        if found.low is not None and found.high is not None:
            yield name, found.low <= true <= found.high
    yield from worst_cases(made, DESIGN, rng)


def worst_cases(
    made: Sequence[PerturbedPairs], design: Design, rng: Generator
) -> Iterator[tuple[str, bool]]:
    """Yield whether the lower limits of precision lie below the truth, and the upper above."""
    attacks = [one for one in made if one.name.startswith("attack")]
    base = made[0]._replace(perturbed=made[0].clean)
    worst = worst_case(attacks, base, rng)
    if worst.low is not None:
        lows = [one.low for one in worst.attacks if one.low is not None]
        yield "lower limits of all attacks at once", max(lows) <= design.precision
        yield "lower limit of the worst case", worst.low <= design.precision
    if worst.high is not None:
        yield "upper limit of the worst case", worst.high >= design.precision


def coverage(
    simulations: int, draw: Callable[[], Iterator[tuple[str, bool]]]
) -> Mapping[str, float]:
    """Return the share of simulations in which each interval holds."""
    held: dict[str, list[bool]] = {}
    for _ in range(simulations):
        for name, covers in draw():
            held.setdefault(name, []).append(covers)
    return {name: float(np.mean(found)) for name, found in held.items()}


def in_other_designs(simulations: int, rng: Generator) -> Mapping[str, Mapping[str, float]]:
    """Return the shares for the lower limits of precision by design."""
    return {
        name: coverage(
            simulations,
            lambda design=design: worst_cases(simulated(rng, design), design, rng),  # type: ignore[misc]
        )
        for name, design in OTHERS.items()
    }


def measuring(variants: int = 100_000) -> float:
    """Return the seconds of all rates and worst cases of so many verdicts on variants."""
    rng = np.random.default_rng(0)
    one = simulated(rng, DESIGN._replace(tasks=833))
    many = [
        one[3 + number % DESIGN.attacks]._replace(name=f"attack-{number}")
        for number in range(variants // len(one[0].clean))
    ]
    began = perf_counter()
    all_rates([one[0], one[2], *many], dict.fromkeys((x.name for x in many), "twin"))
    overall_rates([one[0], *many], [x.name for x in many], [], one[0])
    operating_points(many)
    undetectable(many)
    for _ in THREATS:
        worst_case(many, one[0], rng)
    return perf_counter() - began


def expanding(runs: int) -> tuple[int, float, float]:
    """Apply and check 40 perturbations without pictures; return how many variants, the seconds, and
    the median milliseconds of one."""
    known = subjects("sample")
    perturbations = [one for one in chosen(core_suite()) if "pixels" not in one.name][:40]
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
    simulations, rng = chosen_options.simulations, np.random.default_rng(chosen_options.seed)
    found = coverage(simulations, lambda: outcomes(rng))
    print(f"{simulations} simulations, {DESIGN.tasks} tasks of {DESIGN.runs} runs")
    for name, share in found.items():
        print(f"  {name:<36} {100 * share:.1f} %")
    others = in_other_designs(simulations // 4, rng)
    print(
        f"{simulations // 4} simulations of each design, all lower limits at once, the least of "
        "them, and the least upper one"
    )
    for name, shares in others.items():
        print(f"  {name:<36} {', '.join(f'{100 * share:.1f} %' for share in shares.values())}")
    print(f"100,000 verdicts on variants measured in {measuring():.1f} s")
    variants, seconds, each = expanding(chosen_options.runs)
    print(
        f"40 perturbations of {chosen_options.runs} runs: {variants} variants made and checked in "
        f"{seconds:.0f} s, median {each:.2f} ms"
    )
    held = [*found.values(), *(share for each in others.values() for share in each.values())]
    return int(min(held) < 0.93)


if __name__ == "__main__":
    sys.exit(main())
