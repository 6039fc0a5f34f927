"""The filter grammar keeps exactly the rows that a reader of the records would keep."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.eval.cases import key, said
from tests.eval.data.view_runs import judgments, write
from trajudge.annotations.model import Label
from trajudge.eval.sources import read_run
from trajudge.eval.store.filters import (
    FIELDS,
    Described,
    Filter,
    FilterError,
    FilterTerm,
    JudgmentView,
    parse_filter,
    read_view,
)
from trajudge.judges.model import Judgment


def kept(view: JudgmentView, text: str) -> list[int]:
    rows: list[int] = np.flatnonzero(parse_filter(text).judgments(view)).tolist()
    return rows


Test = Callable[[Judgment, Label | None, int], bool]


def truth(label: Label | None) -> bool | None:
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
def test_a_filter_keeps_what_it_names(read: JudgmentView, text: str, test: Test) -> None:
    wanted = []
    for place, judgment in enumerate(judgments()):
        (label, *_) = (*read.opinions(judgment.key), None)
        task = int(judgment.key.task_id.rpartition(".")[2])
        if test(judgment, label, task):
            wanted.append(place)
    assert kept(read, text) == wanted


def test_trajectories_are_those_on_which_one_judgment_is_all_that(read: JudgmentView) -> None:
    chosen = parse_filter("judge:a success:yes expert:no").trajectories(read)
    assert {key.task_id for key in read.keys.at(chosen)} == {"webarena.6", "webarena.8"}


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


def test_every_example_is_understood(read: JudgmentView) -> None:
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
def test_any_text_is_a_filter_or_a_sentence(read: JudgmentView, text: str) -> None:
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
    assert len(kept(read_view(folder), "judge:a wrong:fp")) == wrong == 2


def test_text_is_found_in_reasoning_goals_and_answers_whatever_its_case(tmp_path: Path) -> None:
    reasons = ["Order 4711 was refunded", "to the café's account", "nothing; 'quoted' \"here\""]
    far = "x " * 300
    lines = [said(n, True, judge="a", reasoning=far + text) for n, text in enumerate(reasons)]
    view = read_view(write(tmp_path / "run", lines))
    assert kept(view, "refund") == kept(view, '"ORDER 47"') == [0]
    assert kept(view, '"order refunded"') == []
    assert kept(view, "cafe") == [1]
    assert kept(view, "-cafe") == [0, 2]
    for text in ('"quoted\' \\"here"', "'*", '"\\"*"', '"a\0b"', '"reasoning:x"'):
        kept(view, text)
    assert kept(view, '"quoted\' \\"here"') == [2]
    described = {key(1): Described(far + "buy a giraffe", far + "\ud800 bought it", 3)}
    assert kept(view, "giraffe") == kept(view, "steps:3") == []
    view = view.described(described)
    assert kept(view, "giraffe") == kept(view, '"bought it"') == kept(view, "steps:3") == [1]
    short = read_view(tmp_path / "run", longest=160)
    assert kept(short, "refund") == []
