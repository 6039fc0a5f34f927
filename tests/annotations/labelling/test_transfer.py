"""Labels out of a queue and into one, through the commands."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from tests.annotations.labelling.queues import answers, item, queue
from tests.annotations.labelling.test_store import disputed
from trajudge.annotations import open_annotations, primary_labels
from trajudge.annotations.labelling.adjudication import adjudicate
from trajudge.annotations.labelling.records import QueueItem, ReadingId
from trajudge.annotations.labelling.transfer import queue_annotations
from trajudge.annotations.model import Role
from trajudge.annotations.sources import agentrewardbench
from trajudge.annotations.store import annotation_line
from trajudge.eval.cli import main


def test_an_export_is_read_by_our_own_readers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store, _, _, judge = disputed(tmp_path / "queue")
    adjudicate(store, ReadingId(judge, 1), answers("no"), "the basket is empty", "x")
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
    assert main(["label", "people", str(fresh.folder)]) == 0
    assert "a (annotator): 1 labelled" in capsys.readouterr().out


def test_agreement_of_a_queue_is_that_of_its_export(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store, *_ = disputed(tmp_path / "queue")
    assert main(["label", "agreement", str(store.folder)]) == 0
    shown = capsys.readouterr().out
    main(["label", "export", str(store.folder), "--out", str(tmp_path / "out")])
    capsys.readouterr()
    assert main(["run", "agreement", "--annotations", str(tmp_path / "out/labels.jsonl")]) == 0
    assert capsys.readouterr().out == shown
    single = queue(tmp_path / "single", [item(0)])
    assert main(["label", "agreement", str(single.folder)]) == 2


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


@pytest.mark.slow
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
