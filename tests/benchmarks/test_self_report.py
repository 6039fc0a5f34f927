"""The audit of a self-report, counted a second time from the files."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from benchmarks.self_report import rows


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
