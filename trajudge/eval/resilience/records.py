"""A run with its figures, an arm of runs, and the pairs of runs with and without faults."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

CLEAN = "clean"
LATENCY_PARTS = ("model", "site", "injected", "proxy", "agent")


class PairKey(NamedTuple):
    """What a run shares with its pair. ``attempt`` tells seeds of one task apart."""

    task: str
    agent: str
    attempt: int


class MetFault(NamedTuple):
    """A fault in a run: how many page loads it was planned at, fired at and recovered from."""

    fault: str
    planned: int
    fired: int
    recovered: int
    means: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class RunFigures:
    """What a run cost and which faults it met. None is what is not known: never 0.

    ``tokens`` are all of prompt and reply, ``latency`` seconds by part.
    """

    page_loads: int | None
    model_calls: int | None
    tokens: int | None
    dollars: float | None
    seconds: float | None
    latency: Mapping[str, float]
    faults: tuple[MetFault, ...] = ()


@dataclass(frozen=True, kw_only=True)
class FaultRun(RunFigures):
    """A run and what it cost; ``success`` None is open. ``stalled``: an action or a page took
    longer than the browser waits, as on a busy machine."""

    key: PairKey
    success: bool | None
    side_effect: bool | None = None
    steps: int | None = None
    stalled: bool = False

    @property
    def fired(self) -> int:
        """How often a fault of the plan fired."""
        return sum(met.fired for met in self.faults)


@dataclass(frozen=True)
class FaultSpan:
    """What a plan says of one fault."""

    id: str
    kind: str
    policy: str
    accessibility: str = ""

    @property
    def described(self) -> str:
        return f"{self.kind}, {self.accessibility}" if self.accessibility else self.kind


@dataclass(frozen=True)
class ExperimentArm:
    """The runs under one plan; their trajectories, if they have any, are in
    ``folders``."""

    name: str
    runs: Sequence[FaultRun]
    faults: tuple[FaultSpan, ...] = ()
    folders: tuple[str, ...] = ()

    @property
    def by_key(self) -> Mapping[PairKey, FaultRun]:
        return {run.key: run for run in self.runs}


class FaultPair(NamedTuple):
    """The same task by the same agent, without faults and with them."""

    clean: FaultRun
    faulted: FaultRun


@dataclass(frozen=True)
class FaultExperiment:
    """A clean arm and the faulted ones; ``notes`` say what is missing."""

    clean: ExperimentArm
    faulted: Sequence[ExperimentArm]
    notes: tuple[str, ...] = ()

    @property
    def agents(self) -> list[str]:
        """Names of the agents that have runs, sorted."""
        return sorted({run.key.agent for arm in self.arms for run in arm.runs})

    @property
    def arms(self) -> list[ExperimentArm]:
        return [self.clean, *self.faulted]

    def pairs(self, arm: ExperimentArm, agent: str | None = None) -> list[FaultPair]:
        """Return the pairs of an arm whose outcomes are known on both sides."""
        return list(self._pairs(arm, agent))

    def _pairs(self, arm: ExperimentArm, agent: str | None) -> Iterator[FaultPair]:
        clean = self.clean.by_key
        for run in arm.runs:
            pair = clean.get(run.key)
            known = pair is not None and pair.success is not None and run.success is not None
            if known and pair is not None and agent in (None, run.key.agent):
                yield FaultPair(pair, run)


def span_of(fault: Mapping[str, Any]) -> FaultSpan:
    """Read a fault of a plan's JSON; a policy may be written as text or as an object."""
    policy = fault.get("policy", "")
    kind = str(fault.get("kind", ""))
    shown = policy if isinstance(policy, str) else str(policy)
    accessible = str(fault.get("accessibility", "full")) if kind == "popup" else ""
    return FaultSpan(str(fault.get("id", "")), kind, shown, accessible)
