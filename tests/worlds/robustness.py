"""Judges whose behaviour under attacks is known: what the limits of ``robust`` must hold."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from trajudge.robustness.model import Relation
from trajudge.robustness.pairs import IDENTITY, PerturbedPairs
from trajudge.robustness.rates import RateDifference, RobustnessRate, rates_of, worst_case
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
