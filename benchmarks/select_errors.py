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

import numpy as np

from tests.worlds.selection import ALLOWED, ALPHA, BETTER, Cell, Design, grid, measure


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
