"""Which benchmarks are shown together: those that one source judged together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from trajudge.annotations.agentrewardbench import BENCHMARKS
from trajudge.eval.leaderboard.sources.entries import BoardEntry
from trajudge.trajectories.sample import SAMPLE

AGENTREWARDBENCH = "AgentRewardBench"
BUNDLED = "Bundled sample"


class EntrySuite(NamedTuple):
    """Entries on benchmarks that belong together."""

    name: str
    entries: tuple[BoardEntry, ...]


def suites_of(entries: Sequence[BoardEntry]) -> list[EntrySuite]:
    """Group the entries: two share a suite where they, or others between them, share a benchmark.

    AgentRewardBench is first, the others follow by name.
    """
    groups: list[tuple[set[str], list[int]]] = []
    for number, entry in enumerate(entries):
        benchmarks, members = set(entry.benchmarks), [number]
        # AgentRewardBench's five are one suite, even where no source judged two of them.
        if benchmarks & BENCHMARKS.keys():
            benchmarks |= BENCHMARKS.keys()
        for group in [group for group in groups if group[0] & benchmarks]:
            benchmarks |= group[0]
            members = group[1] + members
            groups.remove(group)
        groups.append((benchmarks, members))
    suites = [_named([entries[number] for number in sorted(members)]) for _, members in groups]
    return sorted(suites, key=lambda suite: (suite.name != AGENTREWARDBENCH, suite.name))


def _named(entries: list[BoardEntry]) -> EntrySuite:
    benchmarks = set[str]().union(*(entry.benchmarks for entry in entries))
    specs = {spec for entry in entries for spec in entry.source.data}
    if benchmarks <= BENCHMARKS.keys():
        return EntrySuite(AGENTREWARDBENCH, tuple(entries))
    name = BUNDLED if specs == {SAMPLE} else ", ".join(sorted(benchmarks))
    return EntrySuite(name, tuple(entries))
