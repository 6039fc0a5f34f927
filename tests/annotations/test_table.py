"""A table of the user's own is joined to trajectories, and what does not fit is counted."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.commands import command
from trajudge.annotations import open_annotations, parse_labels, primary_labels, with_columns
from trajudge.annotations.model import Label
from trajudge.annotations.sources.table import load
from trajudge.trajectories.model import TrajectoryKey
from trajudge.util.errors import UserError

KEYS = [
    TrajectoryKey(benchmark="shop", agent=agent, task_id=f"task-{task}", attempt=attempt)
    for agent in ("a", "b")
    for task in (1, 2)
    for attempt in (0, 1)
]
ONE_EACH = [key for key in KEYS if key.agent == "a" and not key.attempt]


def _load(
    folder: Path, text: str, columns: str = "", keys: Sequence[TrajectoryKey] | None = KEYS
) -> tuple[list[Label], str]:
    path = folder / "labels.csv"
    path.write_text(text)
    return load(path, columns, keys)


def _verdicts(labels: Sequence[Label]) -> dict[str, bool | None]:
    return {str(label.key): label.success for label in labels}


@pytest.mark.parametrize(
    "run",
    [
        *("shop/a/task-2#1", "a/task-2#1", "logs/shop/a/task-2#1.json", r"C:\logs\a\task-2#1.json"),
        "runs/a/task-2#1/history.json",
    ],
)
def test_a_run_is_known_by_its_key_or_its_path(tmp_path: Path, run: str) -> None:
    labels, report = _load(tmp_path, f"run,ok\n{run},no\n")
    assert _verdicts(labels) == {"shop/a/task-2#1": False}
    assert "1 of 1 row joined by run: line 2 is shop/a/task-2#1" in report


def test_a_name_that_fits_several_trajectories_joins_none(tmp_path: Path) -> None:
    labels, report = _load(tmp_path, "run,ok\ntask-1,yes\na/task-1,no\nzzz,yes\n")
    assert _verdicts(labels) == {"shop/a/task-1": False}
    assert (
        "1 row left out, which fit several trajectories, such as line 2: "
        "run 'task-1' fits shop/a/task-1, shop/b/task-1\n"
    ) in report
    assert "1 row of no trajectory, such as line 4: run 'zzz'\n" in report
    assert "7 of 8 trajectories without a label, such as shop/a/task-1#1\n" in report


def test_rows_are_joined_by_task_agent_and_attempt(tmp_path: Path) -> None:
    rows = "".join(f"{key.task_id},{key.agent},{key.attempt},{key.agent == 'a'}\n" for key in KEYS)
    labels, report = _load(tmp_path, "task_id,agent,trial,label\n" + rows)
    assert _verdicts(labels) == {str(key): key.agent == "a" for key in KEYS}
    assert "8 of 8 rows joined by agent, task and attempt" in report
    assert "8 labels (4 successful)" in report


def test_attempts_may_be_counted_from_one(tmp_path: Path) -> None:
    rows = "".join(f"{key.task_id},{key.agent},{key.attempt + 1},yes\n" for key in KEYS)
    labels, report = _load(tmp_path, "task,agent,run,label\n" + rows)
    assert {label.key for label in labels} == {*KEYS}
    assert "attempts are counted from 1 in the table, from 0 in the trajectories" in report


def test_attempts_from_zero_stay_where_one_is_missing(tmp_path: Path) -> None:
    """Attempts 1 alone, of 0 and 1, are those with number 1."""
    labels, report = _load(tmp_path, "task,agent,attempt,label\ntask-1,a,1,yes\n")
    assert _verdicts(labels) == {"shop/a/task-1#1": True}
    assert "counted from" not in report


def test_an_agent_of_another_name_is_left_out_only_if_it_is_the_only_one(tmp_path: Path) -> None:
    table = "task,agent,label\ntask-1,my-agent,yes\n"
    labels, report = _load(tmp_path, table, keys=ONE_EACH)
    assert _verdicts(labels) == {"shop/a/task-1": True}
    assert (
        "the column 'agent' is not used: no trajectory has the agent 'my-agent', they have 'a'"
        in (report)
    )
    with pytest.raises(UserError, match="none of its 2 rows belongs to one of the 2 trajectories"):
        _load(tmp_path, table + "task-1,other,no\n", keys=ONE_EACH)
    with pytest.raises(UserError, match=r"by agent and task .*agent 'my-agent' task 'task-1'"):
        _load(tmp_path, table, "agent=agent", keys=ONE_EACH)


@pytest.mark.parametrize(
    ("columns", "cells", "success"),
    [
        ("Human verdict,seen", "yes,1", True),
        ("mark,reward", "yes,no", True),
        ("mark,verdict", "yes,no", False),  # a name that is known comes first
        ("mark,seen", "yes,no", None),  # two say yes or no
        ("mark,judge", "1,yes", None),  # numbers may be anything, and a judge is no expert
    ],
)
def test_the_only_column_of_yes_and_no_in_words_holds_the_labels(
    tmp_path: Path, columns: str, cells: str, success: bool | None
) -> None:
    table = f"task,{columns}\n1,{cells}\n"
    if success is None:
        with pytest.raises(UserError, match="no column for label"):
            _load(tmp_path, table, keys=None)
    else:
        [label], _ = _load(tmp_path, table, keys=None)
        assert label.success is success


def test_labels_of_a_column_that_no_name_tells_are_no_silent_choice(tmp_path: Path) -> None:
    _, report = _load(tmp_path, "run,needs_login\na/task-1,yes\n")
    assert (
        "warning: no column is named as labels are, 'needs_login' alone says yes or no in words: "
        "name another with --columns label=COLUMN"
    ) in report
    for columns in ("", "label=needs_login"):
        name = "ok" if not columns else "needs_login"
        _, report = _load(tmp_path, f"run,{name}\na/task-1,yes\n", columns)
        assert "warning" not in report


def test_cells_that_are_no_verdict_are_counted_and_never_a_no(tmp_path: Path) -> None:
    cells = ["a/task-1,yes", "a/task-2,maybe", "b/task-1,", "b/task-2,unsure"]
    labels, report = _load(tmp_path, "run,ok\n" + "\n".join(cells))
    assert _verdicts(labels) == {"shop/a/task-1": True, "shop/b/task-2": None}
    assert "1 label (1 successful)\n" in report
    assert "1 cell neither yes nor no, left out (--words WORD=yes,WORD=no), such as " in report
    assert "line 3: 'maybe'\n  1 cell undecided, such as line 5: 'unsure'\n" in report
    assert "1 cell without a verdict, such as line 4: ''\n" in report
    labels, _ = _load(tmp_path, "run,ok\n" + "\n".join(cells), ";maybe=no")
    assert _verdicts(labels)["shop/a/task-2"] is False


def test_a_scale_is_read_where_its_points_are_said(tmp_path: Path) -> None:
    table = "run,grade\na/task-1,3\na/task-2,1\nb/task-1,2\n"
    labels, _ = _load(tmp_path, table, "label=grade;3=yes,2=yes,1=no")
    assert [label.success for label in labels] == [True, False, True]
    with pytest.raises(UserError, match="'grade' holds numbers other than 0 and 1"):
        _load(tmp_path, table, "label=grade;3=yes,1=no")


def test_the_other_questions_and_the_annotator_have_columns(tmp_path: Path) -> None:
    rows = "a/task-1,ja,nein,0,Anna\na/task-1,nein,ja,hm,\n"
    labels, report = _load(tmp_path, "Lauf,Erfolg,Nebenwirkung,loop,rater\n" + rows)
    first, second = labels
    assert (first.success, first.side_effect, first.repetition) == (True, False, False)
    assert (second.success, second.side_effect, second.repetition) == (False, True, None)
    assert (first.annotator, second.annotator) == ("Anna", "expert")
    assert "such as line 3, repetition: 'hm'" in report


def test_several_columns_of_labels_are_several_annotators(tmp_path: Path) -> None:
    text = "run,ann1,ann2,ann3\na/task-1,yes,no,yes\na/task-2,,no,no\n"
    path = tmp_path / "labels.csv"
    path.write_text(text)
    spec = with_columns(str(path), "label=ann1,label=ann2,label=ann3", None)
    annotations = open_annotations(str(spec), KEYS)
    assert [label.annotator for label in annotations] == ["ann1", "ann2", "ann3", "ann2", "ann3"]
    with pytest.raises(UserError, match="--labels-by"):
        primary_labels(annotations)
    majority = primary_labels(annotations, "majority")
    assert [label.success for label in majority.values()] == [True, False]


@pytest.mark.parametrize(
    ("text", "columns", "what"),
    [
        ("a,b\n1,2\n", "", "no column for label (looked for success, "),
        ("ok,b\nyes,2\n", "", "no column for run (looked for run, "),
        ("run,okey\na/task-1,yes\n", "label=okay", "--columns label=okay: .*did you mean 'okey'"),
        ("run,ok\na/task-1,yes\n", "run=run,run=ok", "--columns run=: is given 2 columns"),
        ("run,score\na/task-1,3\n", "label=score", "'score' holds numbers other than 0 and 1"),
        ("run,ok\na/task-1,gut\n", "", "no verdict in 'ok' can be read, .*line 2: 'gut'"),
        ("run,ok\n", "", "labels.csv: has column names and no rows"),
        ("run,ok\nx,yes\n", "", "none of its 1 row belongs to one of the 8 trajectories, by run"),
    ],
)
def test_a_table_that_cannot_be_joined_is_refused(
    tmp_path: Path, text: str, columns: str, what: str
) -> None:
    with pytest.raises(UserError, match=what.replace("(", r"\(")):
        _load(tmp_path, text, columns)


def test_without_trajectories_each_row_keeps_its_own_cells(tmp_path: Path) -> None:
    labels, report = _load(tmp_path, "task,agent,label\n7,x,1\n", keys=None)
    assert (labels[0].key, report) == (TrajectoryKey(benchmark="", agent="x", task_id="7"), "")


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("task,label\n", "labels.csv: has column names and no rows"),
        ("task,agent,label\n7,x,1\n,x,0\n", "labels.csv, line 3: names no task"),
        ("task,attempt,label\n7,1,1\n7,b,0\n", "labels.csv, line 3: the attempt 'b' is no whole"),
    ],
)
def test_without_trajectories_each_row_names_its_run(tmp_path: Path, text: str, what: str) -> None:
    with pytest.raises(UserError, match=what):
        _load(tmp_path, text, keys=None)


def test_a_specification_names_policy_columns_and_path(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_text("run,ok\n")
    spec = with_columns(str(path), "label=ok", "gut=yes")
    assert spec == f"table[label=ok;gut=yes]:{path}"
    named = parse_labels(str(spec))
    assert (named.kind, named.policy, named.path) == ("table", None, path)
    assert str(named._replace(policy="any")) == f"table/any[label=ok;gut=yes]:{path}"
    assert parse_labels(str(path)) == ("table", None, path, "")
    for columns, option in (("lable=ok", "no role 'lable'"), (None, "--words x: write it as")):
        with pytest.raises(UserError, match=option):
            with_columns(str(path), columns, None if columns else "x")
    with pytest.raises(UserError, match="--columns label=ok: name the table of labels"):
        with_columns(None, "label=ok", None)
    with pytest.raises(UserError, match="sample is of kind trajudge"):
        with_columns("sample", "label=ok", None)


def test_a_run_is_scored_against_a_table_and_tells_its_join_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same labels as a table give the same scores as in our own format."""
    labels = primary_labels(open_annotations("sample"))
    rows = [f"{key};{'gut' if one.success else 'schlecht'}" for key, one in labels.items()]
    table = tmp_path / "meine.csv"
    table.write_text("\ufeffLauf;Urteil\r\n" + "\r\n".join(rows), encoding="utf-8")
    words = ["--annotations", str(table), "--words", "gut=yes,schlecht=no"]
    judge, score = command("judge"), command("score")
    judged = ["--judge", "heuristic", "--data", "sample", "--out"]
    assert judge([*judged, str(tmp_path / "ours")]) == 0
    capsys.readouterr()
    assert judge([*judged, str(tmp_path / "table"), *words]) == 0
    told = capsys.readouterr().err
    joined = "130 of 130 rows joined by run"
    assert 0 <= told.index(joined) < told.index("heuristic: judged")
    ours, theirs = (_success_rates(tmp_path / name / "results.csv") for name in ("ours", "table"))
    assert len(ours) == 16
    assert theirs == pytest.approx(ours, nan_ok=True)
    assert score([str(tmp_path / "ours"), *words]) == 0


def _success_rates(path: Path) -> dict[tuple[str, str], float]:
    with path.open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["label"] == "success"]
    return {(row["evaluator"], row["benchmark"]): float(row["f1"] or "nan") for row in rows}
