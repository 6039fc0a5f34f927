"""Small made-up trajectories, labels and judgments for the tests of eval."""

from __future__ import annotations

from itertools import count
from typing import Any

from trajudge.annotations import Label, Labels
from trajudge.eval.scoring.compute import score
from trajudge.eval.scoring.observations import Observations, Predictions, ReferenceLabels
from trajudge.eval.scoring.records import LabelName, Missing, ScoreReport
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


def small_run() -> ScoreReport:
    """Two judges on the tasks of two agents and two benchmarks, of which two have no label, with
    scores, a second label, failures, and calls that were paid, cached and of unknown price."""
    places = [
        key(n, benchmark, agent)
        for benchmark in ("webarena", "workarena")
        for agent in ("x", "y")
        for n in range(16)
    ]
    used = Usage(input=1000, cache_read=200, cache_write=50, output=100, reasoning=40, image=30)
    calls = (
        call(0.25, stage="plan", usage=used, seconds=2.0),
        call(None, seconds=1.5),
        call(0.5, cached=True),
    )
    labels, judgments = {}, []
    for at, place in enumerate(places):
        name, success, harm = place.task_id, at % 3 == 0, at % 4 == 0
        labels[place] = Label(
            key=place, raw_task_id=name, annotator="A", success=success, side_effect=harm
        )
        careful, hasty = success != (at % 7 == 1), success != (at % 3 == 1)
        judgments += [
            Judgment(
                key=place,
                judge="careful",
                status=Status.OK,
                success=careful,
                side_effect=harm,
                score=(0.9 if careful else 0.1) + at / 1000,
                calls=calls if at == 0 else calls[:1],
            ),
            Judgment(key=place, judge="hasty", status=Status.REFUSED, detail="no")
            if at % 16 == 5
            else Judgment(key=place, judge="hasty", status=Status.OK, success=hasty),
        ]
    rewards = {place: float(at % 6 == 0) for at, place in enumerate(places)}
    labelled = {place: labels[place] for place in places[:-2]}
    return score(judgments, labelled, rewards=rewards, by_agent=True, compared="benchmark")
