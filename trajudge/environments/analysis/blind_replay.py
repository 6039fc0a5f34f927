"""Whether recorded actions still succeed where one axis, or every axis, is another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from trajudge.environments.agents.protocol import Job
from trajudge.environments.agents.replay import REPLAYER, ReplayAgent
from trajudge.environments.agents.script import ORACLE
from trajudge.environments.checks.variation import AXES, Axis, axis_neighbours
from trajudge.environments.model.case import Case
from trajudge.environments.recording.recorder import Recorder
from trajudge.stats.intervals import clustered_limits
from trajudge.util.tables import Table

CONDITIONS: dict[str, tuple[Axis, ...]] = {
    "same run": (),
    "same": (),
    **{axis: (axis,) for axis in AXES},
    "all": AXES,
}


class ReplayOutcome(NamedTuple):
    """Whether a replay under a condition was a success; None: its configuration cannot be."""

    case: str
    condition: str
    success: bool | None


def replay(recorder: Recorder, case: Case) -> Iterator[ReplayOutcome]:
    """Yield the outcomes of one case under every condition. Where the next configuration of an axis
    is no sound case, the one after it is taken. Raises as ``Recorder.play``."""
    actions = recorder.oracles_actions(_job(case, ORACLE), name="o")
    for condition, axes in CONDITIONS.items():
        varied = next(axis_neighbours(case.config, axes), None) if axes else case
        if varied is None:
            yield ReplayOutcome(case.id, condition, None)
            continue
        name = "o" if condition == "same run" else condition
        blind = _job(varied, REPLAYER)
        played = recorder.play_text(blind, lambda _: ReplayAgent(actions), name)
        yield ReplayOutcome(case.id, condition, played.finding.labels.success is True)


def _job(case: Case, agent: str) -> Job:
    return Job(config=case.config, agent=agent, goal=case.goal, shortest=case.shortest)


def summary(outcomes: Sequence[ReplayOutcome]) -> list[dict[str, object]]:
    """Compute success by condition with 95 % limits, scenarios as clusters within applications;
    None where there are not two."""
    rows: list[dict[str, object]] = []
    for condition in CONDITIONS:
        known = [o for o in outcomes if o.condition == condition and o.success is not None]
        successes = [bool(o.success) for o in known]
        apps = [o.case.split(".")[0] for o in known]
        low, high = clustered_limits(successes, [_scenario(o) for o in known], apps)
        row = {"condition": condition, "n": len(known), "successes": sum(successes)}
        rows.append({**row, "low": low, "high": high})
    return rows


def _scenario(outcome: ReplayOutcome) -> str:
    """Return application and scenario: what stands before the six axes in a case's id."""
    return outcome.case.rsplit(".", 6)[0]


def table(rows: Sequence[dict[str, object]]) -> Table:
    cells = []
    for row in rows:
        interval = "–"
        if row["low"] is not None:
            low, high = float(str(row["low"])), float(str(row["high"]))
            interval = f"[{100 * low:.1f}, {100 * high:.1f}] %"
        cells.append((str(row["condition"]), str(row["n"]), str(row["successes"]), interval))
    return Table("Blind replay", ("what differs", "runs", "success", "95 % interval"), cells, 1)
