"""A run's judgments as columns and by offset: what they hold is what validation reads."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.eval.cases import call, failed, key, said
from trajudge.eval.scoring.compute import score
from trajudge.eval.store.run_folder import (
    CALLS,
    JUDGMENTS,
    judgment_line,
    ledger_lines,
)
from trajudge.eval.store.table import (
    JudgmentTable,
    OpenedFile,
    concatenate,
    decode_fields,
    read_run_judgments,
)
from trajudge.judges.model import Judgment, Status
from trajudge.util.errors import UserError


def read(folder: Path) -> JudgmentTable:
    return read_run_judgments(folder / JUDGMENTS, folder / CALLS)


def made() -> list[Judgment]:
    calls = (
        call(0.25, seconds=2.0, request="a" * 64),
        call(None, stage="second", request="b" * 64),
    )
    return [
        said(3, True, calls=calls, score=0.5, process=False, failure_step=0),
        failed(1, Status.REFUSED),
        said("resized.2", False, benchmark="visualwebarena", scores={"second_asked": 0.0}),
        said(
            3, False, sample=1, side_effect=True, calls=(call(rung="tail-heavy", request="c" * 64),)
        ),
    ]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / JUDGMENTS).write_bytes(b"".join(map(judgment_line, made())))
    (tmp_path / CALLS).write_bytes(b"".join(line for j in made() for line in ledger_lines(j)))
    return tmp_path


def equal(one: JudgmentTable, other: JudgmentTable) -> None:
    assert list(one.keys) == list(other.keys)
    assert one.judges == other.judges
    assert one.calls.stages == other.calls.stages
    for name in ("judge", "sample", "status", "rung", "verdicts", "score", "second_asked"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    for name in ("judgment", "stage", "cost", "seconds", "usage"):
        np.testing.assert_array_equal(getattr(one.calls, name), getattr(other.calls, name))


def test_records_and_columns_are_those_that_were_written(folder: Path) -> None:
    judgments = read(folder)
    assert list(judgments) == made()
    assert [judgments[place] for place in (3, 0, -1)] == [made()[place] for place in (3, 0, -1)]
    assert judgments[1:3] == made()[1:3]
    equal(judgments, JudgmentTable.of(made()))


def test_some_of_them_keep_their_calls(folder: Path) -> None:
    rows = np.array([3, 0])
    equal(read(folder).at(rows), JudgmentTable.of([made()[row] for row in rows]))
    mask = np.array([False, True, True, False])
    assert list(read(folder).at(mask)) == made()[1:3]


def test_several_runs_stand_behind_each_other_under_their_names(folder: Path) -> None:
    both = concatenate([read(folder), read(folder).renamed({"judge": "other"})])
    wanted = [*made(), *(j.model_copy(update={"judge": "other"}) for j in made())]
    assert list(both) == wanted
    equal(both, JudgmentTable.of(wanted))


def test_a_file_that_another_replaces_stays_readable_as_it_was(folder: Path) -> None:
    judgments = read(folder)
    (folder / "new").write_bytes(judgment_line(made()[1]))
    (folder / "new").replace(folder / JUDGMENTS)
    assert judgments[3] == made()[3]


def test_a_bad_line_is_named(folder: Path) -> None:
    with (folder / JUDGMENTS).open("ab") as file:
        file.write(b'{"key": 1}\n')
    with pytest.raises(UserError, match=r"judgments\.jsonl, line 5: key"):
        read(folder)


@pytest.mark.parametrize("value", ["7.0", "-0.5", "NaN", "1e400"])
def test_a_score_that_is_no_probability_is_named_with_its_line(folder: Path, value: str) -> None:
    """A file that another tool wrote; JSON of Python's ``json`` may hold NaN."""
    line = judgment_line(said(4, True, score=0.5)).replace(
        b'"score":0.5', f'"score":{value}'.encode()
    )
    with (folder / JUDGMENTS).open("ab") as file:
        file.write(line)
    with pytest.raises(UserError, match=r"judgments\.jsonl, line 5: score is (7|-0|nan|inf).*mend"):
        read(folder)


@settings(max_examples=60, deadline=None)
@given(
    st.fixed_dictionaries(
        {
            "success": st.sampled_from([True, False, None, 1, 0, "yes", "x"]),
            "score": st.sampled_from([None, 0, 1, 0.5, 1.5, -0.5, "0.5", "x", True]),
            "optimality": st.sampled_from([None, 0, 1, 4, 5]),
            "failure_step": st.sampled_from([None, 0, -1]),
            "sample": st.sampled_from([0, 1, 1.0, -1, "2", None]),
            "reasoning": st.sampled_from(["", "é\u2028", 1, None]),
            "unknown": st.sampled_from([None, 1]),
        }
    ),
    st.sampled_from([0, 1, -1, "1", 1.0]),
)
def test_the_quick_decoder_takes_nothing_that_validation_refuses(
    changed: dict[str, object], attempt: object
) -> None:
    line = orjson.loads(judgment_line(said(1, True)))
    if changed["unknown"] is None:
        changed.pop("unknown")
    line |= changed
    line["key"]["attempt"] = attempt
    content = orjson.dumps(line)
    try:
        wanted: Judgment | None = Judgment.model_validate_json(content)
    except ValueError:
        wanted = None
    try:
        fields = decode_fields(content)
    except ValueError:
        assert wanted is None
        return
    assert wanted is not None
    for name in ("success", "score", "sample", "reasoning", "judge", "status"):
        assert getattr(fields, name) == getattr(wanted, name)
        assert type(getattr(fields, name)) is type(getattr(wanted, name))
    assert fields.key.attempt == wanted.key.attempt
    assert key(1) == wanted.key or wanted.key.attempt


def test_scoring_makes_no_record_of_a_judgment(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = score(list(read(folder)), {}, rewards={})
    judgments = read(folder)
    monkeypatch.delattr(OpenedFile, "record")
    assert score(judgments, {}, rewards={}) == wanted
