"""What a task costs without and with faults: means by agent and arm, as in the paper's figures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from trajudge.eval.resilience.measures import IntervalEstimate, mean, rate
from trajudge.eval.resilience.records import LATENCY_PARTS, FaultExperiment, FaultRun


@dataclass(frozen=True)
class ArmCost:
    """Means over an agent's runs in an arm. ``unknown_usage`` counts runs whose tokens are not
    known: they are left out of ``tokens`` and ``dollars``, not counted as 0."""

    agent: str
    arm: str
    runs: int
    open: int
    success: IntervalEstimate
    side_effects: int
    steps: IntervalEstimate
    page_loads: IntervalEstimate
    model_calls: IntervalEstimate
    tokens: IntervalEstimate
    dollars: IntervalEstimate
    seconds: IntervalEstimate
    latency: dict[str, float | None]
    unknown_usage: int


def costs(experiment: FaultExperiment) -> list[ArmCost]:
    """Compute the means of every agent in every arm, the clean one first."""
    return [
        _cost(agent, arm.name, [run for run in arm.runs if run.key.agent == agent])
        for agent in experiment.agents
        for arm in experiment.arms
        if any(run.key.agent == agent for run in arm.runs)
    ]


def _cost(agent: str, arm: str, runs: Sequence[FaultRun]) -> ArmCost:
    known = [run for run in runs if run.success is not None]
    return ArmCost(
        agent=agent,
        arm=arm,
        runs=len(runs),
        open=len(runs) - len(known),
        success=rate([float(bool(run.success)) for run in known], _tasks(known)),
        side_effects=sum(run.side_effect is True for run in runs),
        steps=_mean(runs, lambda run: run.steps),
        page_loads=_mean(runs, lambda run: run.page_loads),
        model_calls=_mean(runs, lambda run: run.model_calls),
        tokens=_mean(runs, lambda run: run.tokens),
        dollars=_mean(runs, lambda run: run.dollars),
        seconds=_mean(runs, lambda run: run.seconds),
        latency={part: _mean(runs, _latency(part))[0] for part in LATENCY_PARTS},
        unknown_usage=sum(run.tokens is None for run in runs),
    )


def _latency(part: str) -> Callable[[FaultRun], float | None]:
    return lambda run: run.latency.get(part)


def _mean(runs: Sequence[FaultRun], of: Callable[[FaultRun], float | None]) -> IntervalEstimate:
    known = [run for run in runs if of(run) is not None]
    return mean([of(run) or 0.0 for run in known], _tasks(known))


def _tasks(runs: Sequence[FaultRun]) -> list[str]:
    return [run.key.task for run in runs]
