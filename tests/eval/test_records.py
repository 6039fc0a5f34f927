"""What a verdict rests on is kept beside the judgments, and not in them."""

from __future__ import annotations

import json
from pathlib import Path

from tests.judges.runs import mug_run
from trajudge.eval.store.run_folder import (
    JUDGMENTS,
    RECORDS,
    JudgmentJournal,
    read_judgments,
    record_path,
)
from trajudge.eval.store.table import KeyColumns
from trajudge.judges.model import Judgment, Status


def judgment(**changes: object) -> Judgment:
    made = Judgment(key=mug_run().key, judge="j", status=Status.OK, success=True)
    return made.model_copy(update=changes)


def test_a_record_is_a_file_of_its_own(tmp_path: Path) -> None:
    record = {"rubric": ["a \ud800 surrogate"], "votes": [True, None]}
    with JudgmentJournal(tmp_path) as journal:
        journal.add(judgment(record=record))
        journal.finish(KeyColumns.of([mug_run().key]))
    (file,) = (tmp_path / RECORDS).iterdir()
    assert file.name == "shop,scripted,shop.1,0,0.json"
    assert json.loads(file.read_text(encoding="utf-8")) == record
    assert "record" not in json.loads((tmp_path / JUDGMENTS).read_text(encoding="utf-8"))
    assert read_judgments(tmp_path) == [judgment()]


def test_judges_that_keep_nothing_make_no_folder(tmp_path: Path) -> None:
    with JudgmentJournal(tmp_path) as journal:
        journal.add(judgment())
    assert not (tmp_path / RECORDS).exists()


def test_names_stay_apart_and_within_the_file_systems_limit(tmp_path: Path) -> None:
    key = mug_run().key
    tasks = ["a/b", "a,b", "x" * 400, "x" * 401, "ü" * 300, ".."]
    keys = [key.model_copy(update={"task_id": task}) for task in tasks]
    paths = {record_path(tmp_path, judgment(key=one)) for one in keys}
    assert len(paths) == len(tasks)
    assert all(path.parent == tmp_path / RECORDS and len(path.name) < 240 for path in paths)
