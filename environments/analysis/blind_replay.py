"""Whether recorded actions still succeed where one axis, or every axis, is another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rich.table import Table

from trajudge.environments.agents.protocol import Job
from trajudge.environments.agents.replay import REPLAYER, Replay
from trajudge.environments.agents.script import ORACLE
from trajudge.environments.checks.variation import AXES, Axis, axis_neighbours
from trajudge.environments.model.case import Case
from trajudge.environments.recording.episode import play
from trajudge.environments.recording.recorder import Recorder
from trajudge.eval.stats.intervals.binomial import wilson

CONDITIONS: dict[str, tuple[Axis, ...]] = {
    "same run": (),
    "same": (),
    **{axis: (axis,) for axis in AXES},
    "all": AXES,
}


class Outcome(NamedTuple):
    """Whether a replay under a condition was a success; None: its configuration cannot be."""

    case: str
    condition: str
    success: bool | None


def replay(recorder: Recorder, case: Case) -> Iterator[Outcome]:
    """Yield the outcomes of one case under every condition. Where the next configuration of an axis
    is no sound case, the one after it is taken."""
    actions = recorder.oracles_actions(_job(case, ORACLE), name="o")
    for condition, axes in CONDITIONS.items():
        varied = next(axis_neighbours(case.config, axes), None) if axes else case
        if varied is None:
            yield Outcome(case.id, condition, None)
            continue
        name = "o" if condition == "same run" else condition
        played = play(
            recorder.server,
            recorder.browser,
            _job(varied, REPLAYER),
            lambda _: Replay(actions),
            name=name,
        )
        yield Outcome(case.id, condition, played.finding.labels.success is True)


def _job(case: Case, agent: str) -> Job:
    return Job(config=case.config, agent=agent, goal=case.goal, shortest=case.shortest)


def summary(outcomes: Sequence[Outcome]) -> list[dict[str, object]]:
    """Success by condition with Wilson's interval."""
    rows: list[dict[str, object]] = []
    for condition in CONDITIONS:
        known = [o.success for o in outcomes if o.condition == condition and o.success is not None]
        rate = wilson(sum(known), len(known))
        low, high = float(rate.low), float(rate.high)
        row = {"condition": condition, "n": len(known), "successes": sum(known)}
        rows.append({**row, "low": low, "high": high})
    return rows


def table(rows: Sequence[dict[str, object]]) -> Table:
    table = Table("what differs", "runs", "success", "95 % interval", title="Blind replay")
    for row in rows:
        interval = f"[{100 * float(str(row['low'])):.1f}, {100 * float(str(row['high'])):.1f}] %"
        table.add_row(str(row["condition"]), str(row["n"]), str(row["successes"]), interval)
    return table
