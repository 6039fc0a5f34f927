"""What the server counts, as Prometheus reads it."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate

from trajudge.rewards.reward import Reward

_SECONDS = (0.005, 0.02, 0.1, 0.5, 1, 2, 5, 10, 30, 60, 180)
_VALUES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


class Histogram:
    """Counts of values at most as large as each bound, with their number and sum."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self._counts = [0] * len(bounds)
        self._sum = 0.0
        self._number = 0

    def add(self, value: float) -> None:
        """Count a value."""
        self._number += 1
        self._sum += value
        if (place := bisect_left(self._bounds, value)) < len(self._counts):
            self._counts[place] += 1

    def lines(self, name: str) -> Iterator[str]:
        """Write it in the text format of Prometheus."""
        yield f"# TYPE {name} histogram"
        for bound, count in zip(self._bounds, accumulate(self._counts), strict=True):
            yield f'{name}_bucket{{le="{bound:g}"}} {count}'
        yield f'{name}_bucket{{le="+Inf"}} {self._number}'
        yield f"{name}_sum {self._sum:.6f}"
        yield f"{name}_count {self._number}"


class ServerMetrics:
    """Counts of rewards by status, abstention and cache; how long they took; their values and
    their cost in US dollars."""

    def __init__(self) -> None:
        self._rewards: Counter[tuple[str, str, str]] = Counter()
        self._seconds = Histogram(_SECONDS)
        self._values = Histogram(_VALUES)
        self._cost = 0.0
        self._of_unknown_cost = 0
        self.refused = 0

    def add(self, reward: Reward) -> None:
        """Count a reward that was given."""
        status = "" if reward.status is None else reward.status.value
        self._rewards[status, reward.abstained, str(reward.cached).lower()] += 1
        self._seconds.add(reward.seconds)
        if reward.value is not None:
            self._values.add(reward.value)
        if not reward.cached and reward.status is not None:
            self._cost += reward.cost or 0.0
            self._of_unknown_cost += reward.cost is None

    def text(self, gauges: Mapping[str, float]) -> str:
        """Write everything; ``gauges`` are what stands at this moment, by name."""
        lines = ["# TYPE trajudge_rewards_total counter"]
        for (status, abstained, cached), count in sorted(self._rewards.items()):
            labels = f'status="{status}",abstained="{abstained}",cached="{cached}"'
            lines.append(f"trajudge_rewards_total{{{labels}}} {count}")
        lines += ["# TYPE trajudge_requests_refused_total counter"]
        lines += [f"trajudge_requests_refused_total {self.refused}"]
        lines += ["# TYPE trajudge_cost_dollars_total counter"]
        lines += [f"trajudge_cost_dollars_total {self._cost:.6f}"]
        lines += ["# TYPE trajudge_rewards_of_unknown_cost_total counter"]
        lines += [f"trajudge_rewards_of_unknown_cost_total {self._of_unknown_cost}"]
        lines += self._seconds.lines("trajudge_reward_seconds")
        lines += self._values.lines("trajudge_reward_value")
        for name, value in gauges.items():
            lines += [f"# TYPE trajudge_{name} gauge", f"trajudge_{name} {value:g}"]
        return "\n".join(lines) + "\n"
