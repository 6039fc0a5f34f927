"""Words of whole reasoning, goals and answers, while the run grows and when it is replaced."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.eval.cases import key, said
from tests.eval.data.run_index.runs import write
from trajudge.eval.store.queries import Sorting, judgment_rows, parse_filter
from trajudge.eval.store.run_folder import JUDGMENTS, judgment_line
from trajudge.eval.store.run_index import PART, Described, RunIndex, words_read

pytestmark = pytest.mark.usefixtures("own_folder")
FAR = "x " * 300


def found(index: RunIndex, text: str) -> list[int]:
    with index.reading() as connection:
        chosen = judgment_rows(connection, parse_filter(text), Sorting("place", falling=False))
        return [row.place for row in chosen]


def read_all(index: RunIndex) -> None:
    index.refresh()
    while index.read_words():
        pass


def test_words_behind_the_beginning_are_found_once_they_are_read(tmp_path: Path) -> None:
    reasons = ["Order 4711 was refunded", "to the café's account", "nothing; 'quoted' \"here\""]
    lines = [said(n, True, judge="a", reasoning=FAR + text) for n, text in enumerate(reasons)]
    index = RunIndex(write(tmp_path / "run", lines))
    assert found(index, "refund") == []
    read_all(index)
    assert found(index, "refund") == found(index, '"ORDER 47"') == [0]
    assert found(index, '"order refunded"') == []  # words stand after each other
    assert found(index, "cafe") == [1]
    assert found(index, "-cafe") == [0, 2]
    assert found(index, "order was") == [0]
    hostile = [
        '"quoted \\"here"',
        "'*",
        '"a AND b"',
        '"NEAR(a b)"',
        '"\\"*"',
        '"a\0b"',
        '"reasoning:x"',
    ]
    for text in hostile:
        found(index, text)
    assert found(index, hostile[0]) == [2]


def test_what_is_appended_is_read_and_what_was_replaced_is_forgotten(tmp_path: Path) -> None:
    folder = write(tmp_path / "run", [said(0, True, judge="a", reasoning=FAR + "zebra")])
    index = RunIndex(folder)
    read_all(index)
    with (folder / JUDGMENTS).open("ab") as file:
        file.write(judgment_line(said(1, True, judge="a", reasoning=FAR + "zebras")))
    assert found(index, "zebra") == [0]
    read_all(index)
    assert found(index, "zebra") == [0, 1]
    write(folder, [said(0, True, judge="a", reasoning=FAR + "lion")])
    assert found(index, "zebra") == []
    read_all(index)
    assert found(index, "zebra") == []
    assert found(index, "lion") == [0]


def test_a_large_run_is_read_in_parts(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    count = 2 * PART + 10
    index = RunIndex(
        write(folder, [said(n, True, judge="a", reasoning=f"{FAR} word{n}.") for n in range(count)])
    )
    index.refresh()
    assert index.read_words()
    with index.reading() as connection:
        assert words_read(connection) == (PART, count)
    assert found(index, f"word{PART - 1}") == [PART - 1]
    assert found(index, f"word{PART}") == []
    read_all(RunIndex(folder))  # another process goes on where this one was
    assert found(index, f"word{count - 1}") == [count - 1]


def test_goals_and_answers_are_found_whole_and_noted_once(tmp_path: Path) -> None:
    index = RunIndex(write(tmp_path / "run", [said(n, True, judge="a") for n in range(2)]))
    index.refresh()
    one = Described(key(1), FAR + "buy a giraffe", FAR + "\ud800 bought it", 3)
    for _ in range(2):
        index.describe([one])
    assert found(index, "giraffe") == found(index, '"bought it"') == [1]
    with index.reading() as connection:
        assert (
            connection.execute("select count(*) from told where told match 'giraffe'").fetchone()[0]
            == 1
        )
