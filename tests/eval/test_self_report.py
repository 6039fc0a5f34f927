"""The audit of a self-report, counted a second time from the files."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import pytest

from trajudge.annotations import open_annotations
from trajudge.annotations.published import open_verdicts
from trajudge.eval.baselines import claims_success
from trajudge.stats.intervals import wilson
from trajudge.trajectories.loaders import open_source
from trajudge.trajectories.model import Trajectory

Row = tuple[str, str, str]


def rows(answers: str, labels: str) -> list[Row]:
    """One row a rate: its name, itself with Wilson's 95 % interval, and on how many tasks."""
    judged = {one.key.task_id: bool(one.success) for one in open_verdicts(answers)}
    runs = [run for run in open_source(answers) if isinstance(run, Trajectory)]
    claimed = {run.key.task_id: claims_success(run) for run in runs}
    people: dict[str, dict[str, bool]] = defaultdict(dict)
    for label in open_annotations(labels):
        people[label.key.task_id][label.key.agent] = bool(label.success)
    shared = [task for task in judged if task in people]
    unsolved = [task for task in shared if not any(people[task].values())]
    found = [
        _row("the publisher's judge: success", judged.values()),
        _row("the answer claims success", claimed.values()),
        _row("judge and claim agree", (judged[task] == claimed[task] for task in judged)),
        _row("judge: success, tasks that people labelled", (judged[task] for task in shared)),
        _row("judge: success, none of the six succeeded", (judged[task] for task in unsolved)),
    ]
    agents = sorted({agent for task in shared for agent in people[task]})
    return found + [
        _row(f"people: {agent}", (people[task][agent] for task in shared)) for agent in agents
    ]


def _row(name: str, values: Iterable[bool]) -> Row:
    kept = [*values]
    interval = wilson(sum(kept), len(kept))
    low, high = 100 * float(interval.low), 100 * float(interval.high)
    return name, f"{100 * sum(kept) / len(kept):.1f} [{low:.1f}, {high:.1f}]", str(len(kept))


@pytest.mark.real_data
def test_the_rates_are_those_of_the_files(real_data: Path) -> None:
    answers, labels = real_data / "browser_use_om2w", real_data / "online-mind2web"
    found = {
        name: (cell.split(" ")[0], tasks)
        for name, cell, tasks in rows(*map(str, (answers, labels)))
    }
    judged = {
        row["task_id"]: row["judge"]["score"] == 100
        for row in map(json.loads, (answers / "results.jsonl").open())
    }
    people = {row["task_id"]: row for row in json.loads((labels / "human_label.json").read_text())}
    shared = judged.keys() & people.keys()
    marks = [name for name in people[next(iter(shared))] if name.endswith("_human_label")]
    unsolved = [task for task in shared if all(people[task][name] != "1" for name in marks)]
    assert found["the publisher's judge: success"] == ("97.0", "300")
    accepted = 100 * sum(judged[task] for task in unsolved) / len(unsolved)
    where = "judge: success, none of the six succeeded"
    assert found[where] == (f"{accepted:.1f}", str(len(unsolved)))
    operator = 100 * sum(people[t]["Operator_human_label"] == "1" for t in shared) / len(shared)
    assert found["people: Operator"] == (f"{operator:.1f}", str(len(shared)))


@pytest.mark.real_data
def test_the_guide_tells_what_is_measured(real_data: Path) -> None:
    guide = Path(__file__).parents[2] / "docs" / "data.md"
    text = " ".join(guide.read_text(encoding="utf-8").split())
    (told,) = re.findall(r"### A self-report, audited (.*?) ## ", text)
    answers, labels = real_data / "browser_use_om2w", real_data / "online-mind2web"
    found = {name: cell for name, cell, _ in rows(*map(str, (answers, labels)))}
    people = [cell for name, cell in found.items() if name.startswith("people: ")]
    best = max(people, key=lambda cell: float(cell.split()[0]))
    whole = ("the publisher's judge: success", "judge: success, none of the six succeeded")
    alone = (
        *("judge: success, tasks that people labelled", "the answer claims success"),
        "judge and claim agree",
    )
    measured = {*(found[name] for name in whole), best, *(found[name].split()[0] for name in alone)}
    stated = re.findall(r"(\d+\.\d) %(?: (\[[\d., ]+\]))?", told)
    assert {f"{share} {limits}".strip() for share, limits in stated} == measured
