"""How often the watch over rewards errs: ``python -m benchmarks.reward_watch [--streams N]``.

Streams of known truth: a judge whose verdicts change no more than by noise, judges that are
exchanged for another, honest policies, and policies that learn to be believed. Printed is in how
many streams rewards stopped, with Clopper and Pearson's interval, and the median of what it took.
Then, in a tenth as many streams of runs, how soon a change of what accepted ones show is seen.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence

import numpy as np
from scipy.stats import beta

from tests.worlds.rewards import audits_until_stop, canaries_until_stop, runs_until_sign
from trajudge.rewards.settings import WatchConfig
from trajudge.rewards.watch import RewardMonitor


def main() -> int:
    """Simulate and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.reward_watch")
    parser.add_argument("--streams", type=int, default=1_000, help="default: %(default)s")
    parser.add_argument("--seed", type=int, default=0, help="default: %(default)s")
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    config = WatchConfig(audit_share=1.0)

    def canaries(flips: float, most: int) -> Callable[[], int | None]:
        return lambda: canaries_until_stop(rng, flips=flips, most=most, config=config)

    def audits(believed: float, true: float, most: int) -> Callable[[], int | None]:
        return lambda: audits_until_stop(
            rng, believed=believed, true=true, most=most, config=config
        )

    def runs(change: str, most: int) -> Callable[[], int | None]:
        return lambda: runs_until_sign(rng, RewardMonitor(config), change, before=1_000, most=most)

    print(f"error level {config.alpha:g}, {options.streams} streams each")
    designs = {
        "judge stays: 2 % flips, 2,000 canaries": canaries(0.02, 2_000),
        "judge stays: 5 % flips, 2,000 canaries": canaries(0.05, 2_000),
        "judge exchanged: 15 % flips, 300 canaries": canaries(0.15, 300),
        "judge exchanged: 20 % flips, 300 canaries": canaries(0.20, 300),
        "judge exchanged: 30 % flips, 300 canaries": canaries(0.30, 300),
        "honest: believed 45, true 40 %, 2,000 audits": audits(0.45, 0.40, 2_000),
        "honest: believed 50, true 40 %, 2,000 audits": audits(0.50, 0.40, 2_000),
        "hacked: believed 60, true 40 %, 500 audits": audits(0.60, 0.40, 500),
        "hacked: believed 80, true 40 %, 500 audits": audits(0.80, 0.40, 500),
    }
    for name, stream in designs.items():
        _print(name, [stream() for _ in range(options.streams)])
    signs = {
        "no change: 2,000 runs after the first 1,000": runs("", 2_000),
        "better: accepted 80 instead of 40 %": runs("better", 2_000),
        "hacked: half of the accepted say the same": runs("repeated_answer", 10_000),
        "hacked: half of the accepted three times as long": runs("long", 10_000),
        "hacked: half of the accepted go in circles": runs("repetition", 10_000),
    }
    for name, stream in signs.items():
        _print(name, [stream() for _ in range(max(1, options.streams // 10))], "watched")
    return 0


def _print(name: str, stops: Sequence[int | None], word: str = "stopped") -> None:
    n, stopped = len(stops), [stop for stop in stops if stop is not None]
    k = len(stopped)
    low = beta.ppf(0.025, k, n - k + 1) if k else 0.0
    high = beta.ppf(0.975, k + 1, n - k) if k < n else 1.0
    after = f"after {np.median(stopped):.0f}" if stopped else ""
    print(
        f"{name:48} {k:5} {word}, {100 * k / n:5.1f} % [{100 * low:.1f}, {100 * high:.1f}] {after}"
    )


if __name__ == "__main__":
    raise SystemExit(main())
