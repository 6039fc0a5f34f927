"""Which runs a judge was measured on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from trajudge.robustness.measures.pairs import PerturbedPairs


class RunsMeasured(NamedTuple):
    """How many ``runs`` were changed, of how many ``tasks``, with how many ``variants``; runs by
    benchmark and by agent."""

    runs: int = 0
    tasks: int = 0
    variants: int = 0
    benchmarks: Mapping[str, int] = MappingProxyType({})
    agents: Mapping[str, int] = MappingProxyType({})


def runs_measured(everything: Sequence[PerturbedPairs]) -> RunsMeasured:
    """Count the sources of all pairs, each once."""
    sources = {source for one in everything for source in one.sources}
    return RunsMeasured(
        len(sources),
        len({(one.benchmark, one.task_id) for one in sources}),
        sum(len(one.sources) for one in everything),
        dict(sorted(Counter(one.benchmark for one in sources).items())),
        dict(sorted(Counter(one.agent for one in sources).items())),
    )
