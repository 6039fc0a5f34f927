"""Recorded runs in which faults fired."""

from __future__ import annotations

from trajudge.eval.resilience.reading import FaultRun, FaultSpan, MetFault, PairKey

TASKS = [f"t{number}" for number in range(36)]
BUSY = FaultSpan("busy", "status", "random(1)")


def run(
    task: str, success: bool | None, *met: MetFault, agent: str = "a", **more: float
) -> FaultRun:
    figures = {"steps": 5, "tokens": 100, "dollars": 0.01, "seconds": 4.0} | more
    return FaultRun(
        key=PairKey(task, agent, 0),
        success=success,
        side_effect=False,
        steps=int(figures["steps"]),
        page_loads=3,
        model_calls=2,
        tokens=int(figures["tokens"]),
        dollars=figures["dollars"],
        seconds=figures["seconds"],
        latency={"model": 1.0, "site": 1.0, "injected": 0.0, "proxy": 0.0, "agent": 2.0},
        faults=met,
    )


def fired(recovered: int = 1, means: str = "reloaded", times: int = 1) -> MetFault:
    return MetFault("busy", times, times, recovered, (means,) * times)
