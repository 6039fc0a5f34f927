"""Tables of other people are read as they meant them; what cannot be read is said, never a no."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

from trajudge.util.errors import UserError
from trajudge.util.foreign_table import (
    ForeignTable,
    choose_column,
    holds_scores,
    missing_column,
    named_column,
    parse_columns,
    parse_words,
    read_rows,
    read_verdict,
)

ROWS = [
    ("run", "ok", "who"),
    ("a,b", "yes", "Anna"),
    ('say "x"', "no", ""),
    ("two\nlines", "", "Bo"),
]
RECORDS = [dict(zip(ROWS[0], row, strict=True)) for row in ROWS[1:]]


def _csv(delimiter: str, newline: str = "\n") -> str:
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter, lineterminator=newline).writerows(ROWS)
    return text.getvalue()


def _read(folder: Path, content: str | bytes, name: str = "labels.csv") -> ForeignTable:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_rows(path)


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_a_csv_of_any_delimiter_is_the_same_table(
    tmp_path: Path, delimiter: str, newline: str, mark: bytes
) -> None:
    table = _read(tmp_path, mark + _csv(delimiter, newline).encode())
    assert [table.columns, *table.rows] == [ROWS[0], *ROWS[1:]]
    assert [table.at(row) for row in range(3)] == [
        f"{tmp_path}/labels.csv, line {line}" for line in (2, 3, 4)
    ]


def test_json_lines_parquet_and_frames_are_the_same_table(tmp_path: Path) -> None:
    frame = pd.DataFrame(RECORDS)
    frame.to_parquet(tmp_path / "labels.parquet")
    tables = [
        _read(tmp_path, json.dumps(RECORDS), "labels.json"),
        _read(tmp_path, json.dumps({"version": 2, "labels": RECORDS}, indent=1), "labels.json"),
        _read(tmp_path, "\n".join(map(json.dumps, RECORDS)), "labels.jsonl"),
        _read(tmp_path, "\n".join(map(json.dumps, RECORDS)), "labels.txt"),
        read_rows(tmp_path / "labels.parquet"),
        read_rows(frame),
        read_rows(frame.set_index("run")),
        read_rows(pa.table(frame)),
        read_rows(RECORDS),
        read_rows(iter(RECORDS)),
    ]
    assert [[table.columns, *table.rows] for table in tables] == [[*ROWS]] * len(tables)


def test_missing_values_are_empty_and_whole_numbers_have_no_fraction() -> None:
    frame = pd.DataFrame(
        {"n": [1, None, 0], "b": [True, None, False], "x": [0.5, 2.0, float("nan")]}
    )
    assert read_rows(frame).rows == [("1", "true", "0.5"), ("", "", "2"), ("0", "false", "")]


def test_nested_records_have_dotted_columns(tmp_path: Path) -> None:
    record = {"id": 1, "judge": {"verdict": "no", "reasons": ["a"]}, "human": {"success": True}}
    table = _read(tmp_path, json.dumps(record) + "\n" + json.dumps({"id": 2}), "x.jsonl")
    assert table.columns == ("id", "judge.verdict", "judge.reasons", "human.success")
    assert table.rows == [("1", "no", '["a"]', "true"), ("2", "", "", "")]


def test_a_column_of_one_name_is_a_table(tmp_path: Path) -> None:
    assert _read(tmp_path, "run\na\nb\n").rows == [("a",), ("b",)]


@pytest.mark.parametrize(
    ("content", "name", "what"),
    [
        ("", "t.csv", "holds no table"),
        ("a,b\n1,2\n1,2,3\n", "t.csv", "line 3: has 3 cells, and the header 2 names"),
        ('a,b\n"1,2\n', "t.csv", "line 2: is no line of CSV"),
        ("a,a\n1,2\n", "t.csv", "has 2 columns named 'a'"),
        ("ä\n".encode("latin-1"), "t.csv", "is not UTF-8"),
        ('{"a": 1}\n{"a": \n', "t.jsonl", "line 2: is no JSON object"),
        ("[1, 2]", "t.json", "holds no list of JSON objects"),
        ("[]", "t.json", "holds no list of JSON objects"),
        (b"PAR1 and nothing", "t.parquet", "cannot be read as Parquet"),
        (b"PK\x03\x04", "t.xlsx", "save its table as CSV"),
    ],
)
def test_a_file_that_is_no_table_is_refused_with_its_name(
    tmp_path: Path, content: str | bytes, name: str, what: str
) -> None:
    with pytest.raises(UserError, match=name) as caught:
        _read(tmp_path, content, name)
    assert what in str(caught.value)


def test_a_path_that_is_no_file_and_a_list_of_numbers_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="No such file"):
        read_rows(tmp_path / "absent.csv")
    with pytest.raises(UserError, match="a folder"):
        read_rows(tmp_path)
    with pytest.raises(UserError, match="not of int"):
        read_rows([1, 2])


YES = "yes Y TRUE pass Passed 1 1.0 correct Successful success ok ja richtig sí ✓ Yes."
NO = "no N False fail FAILED 0 0.0 incorrect wrong Unsuccessful failure nein falsch ✗"


@pytest.mark.parametrize("text", YES.split())
def test_words_for_yes(text: str) -> None:
    assert read_verdict(text) == (True, "")


@pytest.mark.parametrize(
    "text",
    [*NO.split(), "not successful", "Not_Correct", "nicht bestanden", " no "],
)
def test_words_for_no(text: str) -> None:
    assert read_verdict(text) == (False, "")


@pytest.mark.parametrize(
    ("text", "reason"),
    [("", "empty"), (" ", "empty"), ("N/A", "unsure"), ("can’t tell", "unsure"), ("?", "unsure")]
    + [(text, "unreadable") for text in ("maybe", "2", "0.5", "-1", "yes and no", "x", "no idea")],
)
def test_what_is_neither_is_never_a_no(text: str, reason: str) -> None:
    assert read_verdict(text) == (None, reason)


def test_words_of_the_user_are_added() -> None:
    words = parse_words("gut=yes, Not great=no")
    assert [read_verdict(one, words).verdict for one in ("GUT", "not great", "ja", "x")] == [
        *(True, False, True, None)
    ]
    with pytest.raises(UserError, match="--words gut=vielleicht"):
        parse_words("gut=vielleicht")
    with pytest.raises(UserError, match="--words gut: write it as WORD=yes or WORD=no"):
        parse_words("gut")


@pytest.mark.parametrize(
    ("cells", "scores"),
    [
        (["0", "1", ""], False),
        (["1.0", "0.0"], False),
        (["0", "1", "2"], True),
        (["0.5"], True),
        (["-1"], True),
        (["yes", "nan"], False),
    ],
)
def test_a_scale_is_no_yes_and_no(cells: list[str], scores: bool) -> None:
    assert holds_scores(cells) == scores


def test_columns_are_found_by_name() -> None:
    table = read_rows([{"Task ID": 1, "Human-Label": 1, "judge.verdict": 0, "judge.why": 0}])
    assert choose_column(table, ("task", "task_id")) == "Task ID"
    assert choose_column(table, ("label", "human_label")) == "Human-Label"
    assert choose_column(table, ("verdict",)) == "judge.verdict"
    assert choose_column(table, ("judge",)) == "judge.verdict"
    assert choose_column(table, ("judge",), taken=["judge.verdict"]) == "judge.why"
    assert choose_column(table, ("run", "gold")) is None
    assert named_column(table, "task_id", "--columns task=task_id") == "Task ID"
    with pytest.raises(
        UserError, match=r"--columns task=task_ids: .* did you mean 'Task ID'.*'judge.why'"
    ):
        named_column(table, "task_ids", "--columns task=task_ids")


def test_a_missing_column_lists_what_each_could_be() -> None:
    rows = [
        {"id": i, "ok": "ja" if i % 3 else "nein", "p": i / 10, "who": "AB"[i % 2], "gap": ""}
        for i in range(9)
    ]
    assert read_rows(rows).at(0) == "the table, row 1"
    for count, more in ((12, ""), (13, "; and 1 more")):
        wide = read_rows([{f"c{n}": "x" for n in range(count)}])
        assert str(missing_column(wide, "label", ("label",))).endswith(f"such as 'x'{more}")
    error = missing_column(read_rows(rows), "label", ("label", "human"))
    assert str(error) == (
        "the table: no column for label (looked for label, human): name one with --columns "
        "label=COLUMN. It has 'id': 9 different numbers, as ids are; 'ok': yes or no (6 yes, "
        "3 no); 'p': numbers from 0 to 0.8; 'who': 2 words (A, B); 'gap': empty"
    )


def test_columns_that_the_user_names() -> None:
    roles = ("judge", "label")
    assert parse_columns("judge=a, judge=b,label=c d", roles) == {
        "judge": ["a", "b"],
        "label": ["c d"],
    }
    assert parse_columns(None, roles) == {}
    with pytest.raises(UserError, match="no role 'lable', did you mean 'label'"):
        parse_columns("lable=x", roles)
    with pytest.raises(UserError, match="no role 'zzz': use some of judge, label"):
        parse_columns("zzz=x", roles)
    with pytest.raises(UserError, match="--columns judge: write it as ROLE=COLUMN"):
        parse_columns("judge", roles)


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_other_delimiters_in_names_and_cells_mislead_nobody(tmp_path: Path, delimiter: str) -> None:
    rows = [
        ("run, name; id", "ok|no"),
        ('say "hi; there"', "yes"),
        ("a,b;c|d", "no"),
        ("x", "a, b, c"),
    ]
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter).writerows(rows)
    table = _read(tmp_path, text.getvalue())
    assert [table.columns, *table.rows] == rows
