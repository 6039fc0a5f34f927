"""Labels out of a queue and into one, through the commands."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from tests.annotations.queues import answers, disputed, item, queue
from trajudge.annotations import open_annotations, primary_labels
from trajudge.annotations.model import Role
from trajudge.annotations.queue import LabelQueue, QueueItem
from trajudge.annotations.queue_files import import_labels, queue_annotations
from trajudge.annotations.sources import agentrewardbench
from trajudge.annotations.store import annotation_line
from trajudge.eval.cli import main
from trajudge.eval.labelling.frame import Frame, write_frame
from trajudge.trajectories import store as trajectories
from trajudge.trajectories.model import Step, Trajectory


def test_an_export_is_read_by_our_own_readers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store, _, _, judge = disputed(tmp_path / "queue")
    store.adjudicate(judge, 1, answers("no"), "the basket is empty", "x")
    words = ["label", "export", str(store.folder), "--out", str(tmp_path / "out")]
    assert main([*words, "--layout", "agentrewardbench"]) == 0
    labels = open_annotations(f"trajudge:{tmp_path / 'out/labels.jsonl'}")
    assert labels == queue_annotations(store)
    assert primary_labels(labels)[labels[0].key].role is Role.ADJUDICATED
    opinions = agentrewardbench.load(tmp_path / "out/annotations.csv")
    assert [(x.annotator, x.role, x.success, x.optimality) for x in opinions] == [
        ("a", Role.PRIMARY, True, 3),
        ("b", Role.SECONDARY, False, 3),
        ("a", Role.PRIMARY, True, 3),
    ]
    items = [json.loads(line) for line in (tmp_path / "out/items.jsonl").open()]
    assert [each["inclusion_probability"] for each in items] == [0.5, 0.5]
    kinds = [json.loads(line).get("kind") for line in (tmp_path / "out/events.jsonl").open()]
    assert kinds.count("submitted") == 3
    assert kinds.count("adjudicated") == 1
    assert [label.inclusion_probability for label in labels] == [0.5] * 4


def test_labels_are_imported_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store, *_ = disputed(tmp_path / "queue")
    out = str(tmp_path / "out")
    assert main(["label", "export", str(store.folder), "--out", out]) == 0
    fresh = queue(tmp_path / "fresh", [item(0, wanted=2), item(5)])
    words = ["label", "import", str(fresh.folder), "--annotations", f"trajudge:{out}/labels.jsonl"]
    assert main(words) == main(words) == 0
    shown = capsys.readouterr().out
    assert "2 labels taken, 1 left out\n0 labels taken, 3 left out" in shown
    assert queue_annotations(fresh) == queue_annotations(store)[:2]
    assert import_labels(fresh, [(None, "a", answers(), b"x"), (99, "a", answers(), b"y")]) == (
        0,
        2,
    )
    assert main(["label", "people", str(fresh.folder)]) == 0
    assert "a (annotator): 1 labelled" in capsys.readouterr().out


def test_agreement_of_a_queue_is_that_of_its_export(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store, *_ = disputed(tmp_path / "queue")
    keys = [each.key for _, each in store.items()]
    nothing = np.full((len(keys), 1), np.nan)
    chances = np.full(len(keys), 0.5)
    write_frame(store.folder, Frame(keys, ["j"], nothing, nothing, nothing[:, 0], chances))
    main(["label", "export", str(store.folder), "--out", str(tmp_path / "out")])
    shown = []
    for words in ([str(store.folder)], ["--annotations", str(tmp_path / "out/labels.jsonl")]):
        capsys.readouterr()
        assert main(["label", "estimate", *words, "--json"]) == 0
        shown.append(json.loads(capsys.readouterr().out)["agreement"])
    assert shown[0] == shown[1] != []
    single = queue(tmp_path / "single", [item(0)])
    assert main(["label", "estimate", str(single.folder)]) == 2
    assert main(["label", "estimate"]) == 2


def exported(folder: Path, layout: str) -> tuple[LabelQueue, Path]:
    """A queue of three trajectories, two labels wanted of the first, and its tasks elsewhere."""
    runs = [
        Trajectory(
            key=item(number).key,
            raw_task_id="r",
            goal=f"Buy mug {number}",
            steps=(Step(index=0, reasoning="I see it.", action="click('7')"), Step(index=1)),
            answer="Done",
        )
        for number in range(3)
    ]
    trajectories.write(folder / "data", runs)
    items = [item(0, wanted=2), item(1), item(2)]
    made = queue(folder / "queue", items, data=(f"trajudge:{folder / 'data'}",))
    out = folder / "out"
    words = ["label", "export", str(made.folder), "--out", str(out), "--layout", layout]
    assert main(words) == 0
    return made, out


def test_label_studio_labels_what_a_queue_asks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The fields are those of labelstud.io/guide/task_format."""
    made, out = exported(tmp_path, "label-studio")
    view = ElementTree.parse(out / "label-studio.xml")
    choices = {each.get("name"): each.get("toName") for each in view.iter("Choices")}
    texts = {each.get("name"): each.get("value") for each in view.iter("Text")}
    assert set(choices) == {"success", "side_effect", "repetition", "optimality"}
    tasks = json.loads((out / "label-studio.json").read_bytes())
    assert {name: f"${name}" for name in tasks[0]["data"] if name != "item"} == texts
    assert tasks[0]["data"]["steps"] == "1.\nI see it.\nclick('7')"
    assert "agent-a" not in json.dumps(tasks)

    def annotation(by: object, success: str, **fields: object) -> dict[str, object]:
        values = {"success": success, "side_effect": "no", "repetition": "no", "optimality": "4"}
        result: list[dict[str, object]] = [
            {
                "id": name,
                "from_name": name,
                "to_name": choices[name],
                "type": "choices",
                "value": {"choices": [value]},
            }
            for name, value in values.items()
        ]
        note = {"from_name": "comment", "to_name": "steps", "type": "textarea"}
        result.append({**note, "value": {"text": ["seen"]}})
        whole = {"id": 1, "result": result, "completed_by": by, "was_cancelled": False}
        return {**whole, "lead_time": 4.5, **fields}

    done = [
        {**tasks[0], "id": 11, "annotations": [annotation(7, "yes"), annotation(8, "no")]},
        {**tasks[1], "id": 12, "annotations": [annotation({"email": "ann@x.org"}, "unsure")]},
        {**tasks[2], "id": 13, "annotations": [annotation(7, "yes", was_cancelled=True)]},
    ]
    file = tmp_path / "export.json"
    file.write_text(json.dumps(done))
    capsys.readouterr()
    take = ["label", "import", str(made.folder), "--layout", "label-studio"]
    assert main([*take, "--annotations", str(file)]) == 0
    assert capsys.readouterr().out == "3 labels taken, 0 left out\n"
    assert main([*take, "--annotations", str(file)]) == 0
    assert capsys.readouterr().out == "0 labels taken, 3 left out\n"
    labels = queue_annotations(made)
    assert [(x.annotator, x.success, x.optimality, x.comment) for x in labels] == [
        ("7", True, 4, "seen"),
        ("8", False, 4, "seen"),
        ("ann@x.org", None, 4, "seen"),
    ]
    assert {(x.seconds, x.inclusion_probability) for x in labels} == {(4.5, 0.5)}
    for text, sentence in (
        ("{}", "is not a JSON export of Label Studio"),
        (json.dumps([{**done[0], "annotations": [annotation(7, "maybe")]}]), "item 1: success is"),
    ):
        file.write_text(text)
        assert main([*take, "--annotations", str(file)]) == 2
        assert sentence in capsys.readouterr().err


def test_argilla_labels_what_a_queue_asks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The fields are those of ``Record.to_dict`` of argilla 2, as ``records.to_json`` writes."""
    made, out = exported(tmp_path, "argilla")
    records = json.loads((out / "argilla.json").read_bytes())
    assert set(records[0]) == {"id", "fields", "metadata", "suggestions", "responses", "vectors"}
    assert records[0]["fields"]["goal"] == "Buy mug 0"
    assert "agent-a" not in json.dumps(records)
    users = ("6f1e", "9a2b")
    records[0]["responses"] = {
        name: [{"value": value, "user_id": user} for user in users]
        for name, value in (
            ("success", "yes"),
            ("side_effect", "no"),
            ("repetition", "no"),
            ("optimality", "2"),
        )
    }
    records[1]["responses"] = {"success": [{"value": "no", "user_id": "6f1e", "status": "draft"}]}
    file = tmp_path / "export.json"
    file.write_text(json.dumps([{**record, "_server_id": "x"} for record in records]))
    capsys.readouterr()
    take = ["label", "import", str(made.folder), "--layout", "argilla"]
    assert main([*take, "--annotations", str(file)]) == 0
    assert capsys.readouterr().out == "2 labels taken, 0 left out\n"
    labels = queue_annotations(made)
    assert [(x.annotator, x.role, x.success, x.optimality) for x in labels] == [
        ("6f1e", Role.PRIMARY, True, 2),
        ("9a2b", Role.SECONDARY, True, 2),
    ]


def test_tasks_elsewhere_need_the_trajectories(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = queue(tmp_path / "queue", [item(0)])
    words = ["label", "export", str(made.folder), "--layout", "argilla"]
    assert main([*words, "--out", str(tmp_path / "out")]) == 2
    assert "are not in the data of the queue" in capsys.readouterr().err


def test_columns_that_a_queue_did_not_ask_for_are_not_made_up(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = queue(tmp_path / "queue", [item(0)], questions=("success",))
    words = ["label", "export", str(store.folder), "--layout", "agentrewardbench"]
    assert main(words) == 2
    assert "need all four questions" in capsys.readouterr().err


def test_a_label_without_news_keeps_its_bytes(tmp_path: Path) -> None:
    line = (
        b'{"key":{"benchmark":"webarena","agent":"x","task_id":"1","attempt":0},"raw_task_id":"1",'
        b'"annotator":"a","role":"primary","success":true,"side_effect":null,"repetition":null,'
        b'"optimality":4,"split":null}\n'
    )
    (tmp_path / "labels.jsonl").write_bytes(
        b'{"format":"trajudge-annotations","version":1}\n' + line
    )
    (read,) = open_annotations(str(tmp_path / "labels.jsonl"))
    assert annotation_line(read) == line


def test_the_benchmarks_own_file_is_written_back_as_it_was(real_data: Path, tmp_path: Path) -> None:
    """Through a queue: every column of all 1,408 rows but for a blank before a name."""
    source = real_data / "agentrewardbench" / "annotations.csv"
    annotations = agentrewardbench.load(source)
    agentrewardbench.write_annotations(tmp_path / "annotations.csv", annotations)
    written = list(csv.reader((tmp_path / "annotations.csv").open(newline="")))
    original = [[cell.strip() for cell in row] for row in csv.reader(source.open(newline=""))]
    assert written == original
    doubled = annotations[:300]
    wanted = {x.key: sum(y.key == x.key for y in doubled) for x in doubled}
    raw = {x.key: x.raw_task_id for x in reversed(doubled)}
    items = [
        QueueItem(key=key, raw_task_id=raw[key], wanted=count, position=place)
        for place, (key, count) in enumerate(wanted.items())
    ]
    store = queue(tmp_path / "queue", items)
    words = ["--annotations", f"agentrewardbench:{source}"]
    assert main(["label", "import", str(store.folder), *words]) == 0
    out = str(tmp_path / "out")
    main(["label", "export", str(store.folder), "--out", out, "--layout", "agentrewardbench"])
    exported = list(csv.reader((tmp_path / "out/annotations.csv").open(newline="")))
    taken = {tuple(row) for row in exported[1:]}
    assert len(taken) >= len(wanted)
    assert taken <= {tuple(row) for row in original[1:]}
