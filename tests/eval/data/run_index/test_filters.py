"""The filter grammar keeps exactly the rows that a reader of the records would keep."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.eval.data.run_index.runs import judgments, write
from trajudge.annotations.model import Annotation
from trajudge.eval.sources import read_run
from trajudge.eval.store.queries import FIELDS, Filter, FilterError, FilterTerm, parse_filter
from trajudge.eval.store.run_index import RunIndex
from trajudge.judges.model import Judgment


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    with RunIndex(write(tmp_path_factory.mktemp("filters") / "run")).reading(60) as connection:
        yield connection


def kept(connection: sqlite3.Connection, text: str) -> list[int]:
    clause = parse_filter(text).judgments()
    sql = f"select j.id from judgment j join trajectory t on t.id = j.trajectory where {clause.sql}"
    return sorted(row[0] for row in connection.execute(sql, clause.parameters))


Test = Callable[[Judgment, Annotation | None, int], bool]


def truth(label: Annotation | None) -> bool | None:
    return label.success if label else None


def votes(task: int) -> int:
    """How many of three judges are in the minority; ``b`` says yes where both samples do."""
    yes = [task % 2 == 0, False, *([True] if task % 4 == 0 else [])]
    return min(yes.count(True), yes.count(False))


@pytest.mark.parametrize(
    ("text", "test"),
    [
        ("", lambda j, a, t: True),
        ("judge:a", lambda j, a, t: j.judge == "a"),
        ("judge:A", lambda j, a, t: False),
        ("judge:*", lambda j, a, t: True),
        ("-judge:a", lambda j, a, t: j.judge != "a"),
        ("status:refused", lambda j, a, t: j.status == "refused"),
        ("success:yes", lambda j, a, t: j.success is True),
        ("success:none", lambda j, a, t: j.success is None),
        ("-success:yes", lambda j, a, t: j.success is not True),
        ("expert:no", lambda j, a, t: truth(a) is False),
        ("expert:unsure", lambda j, a, t: a is not None and a.success is None),
        ("expert:none", lambda j, a, t: a is None),
        ("rule:yes", lambda j, a, t: t < 7),
        ("rule:none", lambda j, a, t: t == 11),
        ("wrong:fp", lambda j, a, t: j.success is True and truth(a) is False),
        ("wrong:fn", lambda j, a, t: j.success is False and truth(a) is True),
        ("disagree>=1", lambda j, a, t: votes(t) >= 1),
        ("disagree:0", lambda j, a, t: votes(t) == 0),
        ("score:0.25..0.5", lambda j, a, t: j.score is not None and 0.25 <= j.score <= 0.5),
        ("score:..0.5", lambda j, a, t: j.score is not None and j.score <= 0.5),
        ("score:0.5..", lambda j, a, t: j.score is not None and j.score >= 0.5),
        ("score>0.5", lambda j, a, t: j.score is not None and j.score > 0.5),
        ("benchmark:webarena", lambda j, a, t: True),
        ("agent:b*", lambda j, a, t: False),
        ("task:webarena.1*", lambda j, a, t: t in (1, 10, 11)),
        ("task:webarena.?", lambda j, a, t: False),
        ("task:[w]*", lambda j, a, t: False),
        ("cost>0.55", lambda j, a, t: j.judge == "a" and t > 5 and t != 7),
        ("tokens:260", lambda j, a, t: j.judge == "a"),
        ("seconds>=11", lambda j, a, t: j.judge == "a" and t == 11),
        ("sample=1", lambda j, a, t: j.sample == 1),
        ("flag:elided", lambda j, a, t: j.judge == "a" and t % 4 == 0),
        ("flag:repaired", lambda j, a, t: bool(j.fallback)),
        ("steps>1", lambda j, a, t: False),
        ('"reason 3"', lambda j, a, t: j.judge == "a" and t == 3),
        ("50%_!", lambda j, a, t: j.judge == "a"),
        ("50_%", lambda j, a, t: False),
        ('-"Reason"', lambda j, a, t: j.judge != "a"),
        (" judge:b  sample:0\tstatus:ok ", lambda j, a, t: (j.judge, j.sample) == ("b", 0)),
    ],
)  # fmt: skip
def test_a_filter_keeps_what_it_names(read: sqlite3.Connection, text: str, test: Test) -> None:
    labels = {row["id"]: row["expert"] for row in read.execute("select id, expert from judgment")}
    wanted = []
    for place, judgment in enumerate(judgments()):
        expert = labels[place]
        label = None
        if expert is not None:
            success = None if expert == -1 else bool(expert)
            label = Annotation(key=judgment.key, raw_task_id="", annotator="A", success=success)
        task = int(judgment.key.task_id.rpartition(".")[2])
        if test(judgment, label, task):
            wanted.append(place)
    assert kept(read, text) == wanted


def test_trajectories_are_those_on_which_one_judgment_is_all_that(read: sqlite3.Connection) -> None:
    clause = parse_filter("judge:a success:yes expert:no").trajectories()
    sql = f"select task_id from trajectory t where {clause.sql}"
    assert {row[0] for row in read.execute(sql, clause.parameters)} == {
        "webarena.6",
        "webarena.8",
    }


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("juge:a", "there is no field 'juge', did you mean 'judge'?"),
        ("http://x", "put text with a colon into quotation marks"),
        ("status:okay", "use one of ok, unparsable"),
        ("success:maybe", "use one of yes, no, none"),
        ("score:high", "is not a number"),
        ("score:nan", "is not a number"),
        ("score:..", "name an end"),
        ("judge>3", "is not compared by size"),
        ("judge:" + "*a" * 5, "at most 4 stars"),
        ("judge:", "a value is missing"),
        ('"open', "a quotation mark or a value is missing"),
        ('judge:"a"b', "a quotation mark or a value is missing"),
        ("a " * 41, "at most 40 terms"),
        ("a" * 2_001, "at most 2,000 characters"),
    ],
)
def test_a_bad_term_is_one_sentence(text: str, sentence: str) -> None:
    with pytest.raises(FilterError) as caught:
        parse_filter(text)
    assert sentence in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def test_every_example_is_understood(read: sqlite3.Connection) -> None:
    for field in FIELDS.values():
        kept(read, field.example)


_VALUES = st.text(st.characters(blacklist_categories=["Cs"]), min_size=1, max_size=20)
_TERMS = st.builds(
    FilterTerm,
    st.sampled_from(["", "judge", "task"]),
    st.just(":"),
    _VALUES.filter(lambda value: value.count("*") < 5),
    st.booleans(),
)


@given(st.lists(_TERMS, max_size=5))
def test_a_filter_reads_back_what_it_shows(terms: list[FilterTerm]) -> None:
    shown = Filter(tuple(terms))
    assert parse_filter(str(shown)) == shown


@given(st.text(max_size=60) | st.sampled_from([f.example for f in FIELDS.values()]))
def test_any_text_is_a_filter_or_a_sentence(read: sqlite3.Connection, text: str) -> None:
    try:
        kept(read, text)
    except FilterError as error:
        assert str(error)


def test_the_sample_of_the_readers_is_that_of_the_filters(tmp_path: Path) -> None:
    """What the filters find wrong is what scoring counts as wrong, of a judge with one sample."""
    folder = write(tmp_path / "run")
    source = read_run(folder)
    wrong = sum(
        j.judge == "a" and j.success is True and truth(source.labels.get(j.key)) is False
        for j in source.judgments
    )
    with RunIndex(folder).reading() as connection:
        assert len(kept(connection, "judge:a wrong:fp")) == wrong == 2
