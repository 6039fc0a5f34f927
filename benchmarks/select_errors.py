"""How often ``eval.select`` lets a judge through that lies exactly at the target, and its power.

``python -m benchmarks.select_errors`` draws labelled trajectories of one candidate named beforehand
from worlds whose truth is known, over a grid of cluster designs, and prints how often the test at
5 % errs, with Monte Carlo errors, and how often a judge that is 0.1 better passes. "plain" is the
test without its corrections (the exact binomial and the cluster-robust t, the larger p), on the
same draws. A third figure is the power of the plain test at the smaller level at which it, too,
would keep 5.5 % on the whole grid: what the same guarantee costs without the corrections.

No valid test can keep the plain test's power: a sample in which no task that fails throughout was
drawn looks the same in a world that has such tasks, at the target, and in an independent, better
one. Whoever rejects on it often enough to keep that power in the second also rejects in the first,
as often as the plain test does; with few tasks of many runs most power is lost.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import product
from typing import Literal, NamedTuple

import numpy as np
from scipy import special

from trajudge.eval.select.rates import (
    RateSums,
    TaskSums,
    binomial_p,
    p_values,
    rate_sums,
)
from trajudge.stats.intervals import Floats, Ints

ALPHA, ALLOWED, BETTER = 0.05, 0.055, 0.1

Dependence = Literal["all-or-nothing", "beta", "judge", "size"]
Runs = int | Literal["1 to 20", "2 to 60"]


class Design(NamedTuple):
    """``tasks`` in ``benchmarks``, ``runs`` of each: as many, any number of 1 to 20, or 2 to 60 as
    sites have (evenly spread logarithms). ``all-or-nothing``: with probability
    ``correlation`` all accepted runs of a task succeed or fail together. ``beta``: a task's rate is
    drawn from a beta distribution with that intraclass correlation. ``judge``: so is the rate at
    which its runs succeed (0.4 on average), and a judge accepts 0.8 of the successes and as many
    failures as make its precision; ``acceptance`` is the share accepted elsewhere. ``size``: as
    all-or-nothing with precision by task, which is the higher the fewer runs are accepted: its odds
    change by a factor of e with each standard deviation."""

    dependence: Dependence
    benchmarks: int
    tasks: int
    runs: Runs
    correlation: float
    acceptance: float
    target: float


class Cell(NamedTuple):
    """Rates of rejection in one design: at the target, and ``BETTER`` above it (None: that is 1 or
    more)."""

    design: Design
    plain: float
    now: float
    plain_power: float | None
    power: float | None
    strict_power: float | None


def grid(tasks: Iterable[int] = (16, 24, 40, 100, 300)) -> Iterator[Design]:
    """Every design; those that are the same world under two names once."""
    kinds: tuple[Dependence, ...] = ("all-or-nothing", "beta", "judge", "size")
    sizes: tuple[Runs, ...] = (1, 3, 12, "1 to 20", "2 to 60")
    clusters = product(kinds, (1, 5, 20), tuple(tasks), sizes)
    rates = product((0.0, 0.2, 0.5), (0.15, 0.5, 0.9), (0.7, 0.8, 0.9, 0.95))
    for (kind, benchmarks, count, runs), rest in product(clusters, rates):
        design = Design(kind, benchmarks, count, runs, *rest)
        alone = design.runs == 1 and (design.correlation or design.dependence == "beta")
        same = design.dependence == "beta" and not design.correlation
        named = design.dependence == "judge" and design.acceptance != 0.5
        sized = design.dependence == "size" and (runs == 1 or runs == "2 to 60")
        if not (alone or same or named or sized):
            yield design


def draw(design: Design, precision: float, size: int, rng: np.random.Generator) -> TaskSums:
    """``size`` worlds at once: columns hits | trials by task (tasks, 2 * size)."""
    shape = (design.tasks, size)
    hits: Ints
    trials: Ints
    if design.dependence == "judge":
        hits, trials = _judged(design, precision, shape, rng)
    else:
        runs = _runs(design, shape, rng)
        trials = np.asarray(rng.binomial(runs, design.acceptance, shape), np.int64)
        if design.dependence == "beta":
            each = _beta(precision, design.correlation, shape, rng)
            hits = np.asarray(rng.binomial(trials, each), np.int64)
        else:
            rate = np.full(shape, precision)
            if design.dependence == "size":
                rate = _rate_by_size(trials, precision)
            together = rng.random(shape) < design.correlation
            shared = np.where(rng.random(shape) < rate, trials, 0)
            hits = np.where(together, shared, rng.binomial(trials, rate))
    sizes = [len(part) for part in np.array_split(np.arange(design.tasks), design.benchmarks)]
    table = np.concatenate([hits, trials], axis=1).astype(float)
    picked = ((rng.random(trials.shape) * trials < hits) & (trials > 0)).sum(axis=0)
    return TaskSums(
        table, np.array([each for each in sizes if each], dtype=np.int64), picked.astype(float)
    )


def _rate_by_size(trials: Ints, precision: float) -> Floats:
    """Success rates (tasks, size) that fall with the number of trials; over trials their mean is
    ``precision``."""
    spread = (trials - trials.mean()) / trials.std()
    low, high = -20.0, 20.0
    for _ in range(50):
        middle = (low + high) / 2
        rate = special.expit(middle - spread)
        reached = (rate * trials).sum() / trials.sum() >= precision
        low, high = (low, middle) if reached else (middle, high)
    return np.asarray(rate)


def _runs(design: Design, shape: tuple[int, int], rng: np.random.Generator) -> Ints:
    """Runs of every task in every world, (tasks, size)."""
    if design.runs == "1 to 20":
        return rng.integers(1, 21, shape)
    if design.runs == "2 to 60":
        sites = np.geomspace(2, 60, design.tasks).round().astype(np.int64)
        return np.broadcast_to(sites[:, None], shape)
    return np.full(shape, design.runs)


def _beta(
    mean: float, correlation: float, shape: tuple[int, int], rng: np.random.Generator
) -> Floats:
    if not correlation:
        return np.full(shape, mean)
    total = (1 - correlation) / correlation
    return np.asarray(rng.beta(mean * total, (1 - mean) * total, shape))


def _judged(
    design: Design, precision: float, shape: tuple[int, int], rng: np.random.Generator
) -> tuple[Ints, Ints]:
    rate, kept = 0.4, 0.8
    wrong = kept * rate * (1 - precision) / (precision * (1 - rate))
    runs = _runs(design, shape, rng)
    successes = rng.binomial(runs, _beta(rate, design.correlation, shape, rng))
    hits = np.asarray(rng.binomial(successes, kept), np.int64)
    return hits, hits + rng.binomial(runs - successes, wrong)


def plain_p(rates: RateSums, bound: float) -> Floats:
    """P-values of the exact binomial and of the uncorrected cluster t, the larger of the two."""
    at = np.full(rates.hits.shape, bound)
    spread = np.sqrt(rates.variance(at))
    excess = rates.hits - at * rates.trials
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(spread > 0, excess / spread, np.where(excess > 0, np.inf, -np.inf))
    tail = special.stdtr(np.where(rates.df > 0, rates.df, np.nan), -t)
    tails = (binomial_p(rates.hits, rates.trials, at), np.where(np.isnan(tail), 1.0, tail))
    return np.maximum(*tails)


def measure(designs: Sequence[Design], size: int, seed: int) -> tuple[list[Cell], float]:
    """The cells, and the level at which the plain test errs at most ``ALLOWED`` in all of them."""
    worlds = np.random.SeedSequence(seed).spawn(2 * len(designs))
    errors, level = [], ALPHA
    for design, world in zip(designs, worlds[::2], strict=True):
        rates = rate_sums(draw(design, design.target, size, np.random.default_rng(world)))
        before = plain_p(rates, design.target)
        now = p_values(rates, design.target)
        level = min(level, float(np.quantile(before, ALLOWED, method="lower")))
        errors.append((float((before <= ALPHA).mean()), float((now <= ALPHA).mean())))
    cells = []
    for design, world, (before_, now_) in zip(designs, worlds[1::2], errors, strict=True):
        powers: tuple[float | None, float | None, float | None] = (None, None, None)
        if design.target + BETTER < 1:
            better = np.random.default_rng(world)
            rates = rate_sums(draw(design, design.target + BETTER, size, better))
            plain, new = plain_p(rates, design.target), p_values(rates, design.target)
            powers = (
                float((plain <= ALPHA).mean()),
                float((new <= ALPHA).mean()),
                float((plain < level).mean()),
            )
        cells.append(Cell(design, before_, now_, *powers))
    return cells, level


def summary(cells: Sequence[Cell], size: int, level: float) -> Iterator[str]:
    """The grid by dependence, runs and correlation, then power."""
    error = (ALPHA * (1 - ALPHA) / size) ** 0.5
    yield (
        f"{len(cells)} designs, {size} worlds each: Monte Carlo error of a rate of 5 % "
        f"{100 * error:.2f} points"
    )
    yield "type-I error at 5 %, largest of the designs in a row (mean)"
    yield f"{'':38}{'plain':>16}{'now':>16}  designs"
    rows = [(c.design.dependence, c.design.runs, c.design.correlation) for c in cells]
    for row in dict.fromkeys(rows):
        mine = [cell for cell, each in zip(cells, rows, strict=True) if each == row]
        name = f"{row[0]}, runs {row[1]}, correlation {row[2]:g}"
        both = _largest(c.plain for c in mine) + _largest(c.now for c in mine)
        yield f"{name:38}{both}{len(mine):9}"
    for kind, rates in (("plain", [c.plain for c in cells]), ("now", [c.now for c in cells])):
        over = sum(rate > ALLOWED for rate in rates)
        worst = cells[int(np.argmax(rates))].design
        yield (
            f"{kind}: {over} of {len(cells)} designs above {100 * ALLOWED:g} %, the worst "
            f"{100 * max(rates):.2f} % +- {100 * error:.2f}: {_shown(worst)}"
        )
    yield from _power(cells, size, level)


def _largest(rates: Iterable[float]) -> str:
    found = [100 * rate for rate in rates]
    return f"{max(found):8.2f} ({np.mean(found):.2f})".rjust(16)


def _shown(design: Design) -> str:
    return (
        f"{design.dependence}, {design.benchmarks} benchmarks, {design.tasks} tasks x "
        f"{design.runs}, correlation {design.correlation:g}, accepted {design.acceptance:g}, "
        f"target {design.target:g}"
    )


def _power(cells: Sequence[Cell], size: int, level: float) -> Iterator[str]:
    yield f"power {BETTER:g} above the target, where that is below 1 (same draws), mean in percent"
    yield f"{'':38}{'plain':>8}{'now':>8}{'plain at ' + f'{100 * level:.2g} %':>18}  designs"
    parts: dict[str, Callable[[Cell], bool]] = {
        f"the plain test errs at most {100 * ALLOWED:g} %": lambda c: c.plain <= ALLOWED,
        "it errs more often": lambda c: c.plain > ALLOWED,
        "fewer than 100 tasks": lambda c: c.design.tasks < 100,
        "100 tasks and more": lambda c: c.design.tasks >= 100,
        "one run a task": lambda c: c.design.runs == 1,
    }
    for name, chosen in parts.items():
        mine = [c for c in cells if c.power is not None and chosen(c)]
        if mine:
            powers = np.array([(c.plain_power, c.power, c.strict_power) for c in mine], float)
            before, now, strict = 100 * powers.mean(axis=0)
            yield f"{name:38}{before:8.1f}{now:8.1f}{strict:18.1f}{len(mine):9}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the grid; the exit code (1: some design is above 5.5 % by more than noise)."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.select_errors")
    parser.add_argument("--worlds", type=int, default=10_000, help="a design (default: 10000)")
    parser.add_argument("--part", type=int, default=1, help="every Nth design (default: all)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--designs", action="store_true", help="print every design as well")
    options = parser.parse_args(arguments)
    cells, level = measure(list(grid())[:: options.part], options.worlds, options.seed)
    for cell in cells if options.designs else ():
        sys.stdout.write(f"{100 * cell.plain:6.2f}{100 * cell.now:6.2f}  {_shown(cell.design)}\n")
    sys.stdout.write("\n".join(summary(cells, options.worlds, level)) + "\n")
    noise = 4 * (ALLOWED * (1 - ALLOWED) / options.worlds) ** 0.5
    return int(max(cell.now for cell in cells) > ALLOWED + noise)


if __name__ == "__main__":
    sys.exit(main())
