"""Small made-up trajectories, labels and judgments for the tests of eval."""

from __future__ import annotations

from itertools import count
from typing import Any

from trajudge.annotations import Label, Labels
from trajudge.eval.scoring.observations import Observations, Predictions, ReferenceLabels
from trajudge.eval.scoring.records import LabelName, Missing
from trajudge.eval.store.table import JudgmentTable
from trajudge.judges.model import Call, Judgment, Status, Usage
from trajudge.trajectories.model import TrajectoryKey


def key(task: object, benchmark: str = "webarena", agent: str = "agent") -> TrajectoryKey:
    return TrajectoryKey(benchmark=benchmark, agent=agent, task_id=f"{benchmark}.{task}")


def label(task: object, success: bool | None, **fields: Any) -> Label:
    place = key(task, fields.pop("benchmark", "webarena"))
    return Label(key=place, raw_task_id=place.task_id, annotator="A", success=success, **fields)


def said(task: object, success: bool | None, **fields: Any) -> Judgment:
    place = key(task, fields.pop("benchmark", "webarena"))
    fields = {"judge": "judge", "status": Status.OK} | fields
    return Judgment(key=place, success=success, **fields)


def failed(task: object, status: Status, **fields: Any) -> Judgment:
    return said(task, None, status=status, detail="because", **fields)


_requests = count()


def call(cost: float | None = 0.01, **fields: Any) -> Call:
    """A call of a request that no other has, unless ``request`` names one."""
    usage = Usage(input=100, cache_read=20, output=10)
    values = {
        "stage": "verdict",
        "request": f"{next(_requests):015x}".ljust(64, "0"),
        "rung": "full",
        "finish": "stop",
    }
    return Call(**(values | {"usage": usage, "cost": cost, "text": "yes"} | fields))


def observe(
    judgments: list[Judgment], labels: Labels, missing: Missing, question: LabelName = "success"
) -> Observations:
    """The observations of one judge, without rewards."""
    table = JudgmentTable.of(judgments)
    reference = ReferenceLabels.of(table.keys, labels, {})
    return Predictions.of(judgments[0].judge, table, reference).observe(question, missing)
