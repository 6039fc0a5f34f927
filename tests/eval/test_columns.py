"""Judgments, keys, labels and calls as columns: they hold what validated records hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.eval.cases import call, failed, key, label, said
from trajudge.annotations import store
from trajudge.annotations.model import Label, Role, primary_labels
from trajudge.eval.reporting.results import results_json
from trajudge.eval.scoring.compute import score
from trajudge.eval.store.labels import (
    SPLITS,
    LabelColumns,
    RewardColumns,
    RunLabels,
    StoredAnnotations,
    labels_of,
    read_label_columns,
    splits_of,
)
from trajudge.eval.store.run_folder import (
    CALLS,
    JUDGMENTS,
    LABELS,
    REWARDS,
    judgment_line,
    ledger_lines,
    paid,
    read_labels,
    read_rewards,
    write_judgments,
    write_labels,
)
from trajudge.eval.store.table import (
    PAYMENTS,
    JudgmentTable,
    KeyColumns,
    KeyPlaces,
    OpenedFile,
    are_equal,
    concatenate,
    decode_fields,
    first_of_each,
    read_run_judgments,
)
from trajudge.judges.engine.budget import Payments
from trajudge.judges.model import Judgment, Status
from trajudge.trajectories.model import TrajectoryKey
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


KEYS = st.builds(
    TrajectoryKey,
    benchmark=st.sampled_from(["webarena", "workarena", ""]),
    agent=st.sampled_from(["a", "b"]),
    task_id=st.sampled_from(["1", "2", "webarena.3.resized"]),
    attempt=st.sampled_from([0, 1, 2**40]),
)


@given(st.lists(KEYS, unique=True), st.lists(KEYS), st.data())
def test_places_are_those_of_a_dict(
    keys: list[TrajectoryKey], asked: list[TrajectoryKey], data: st.DataObject
) -> None:
    chosen = [place for place in range(len(keys)) if data.draw(st.booleans())]
    known = {keys[place]: place for place in chosen}
    places = KeyPlaces(KeyColumns.of(keys), np.array(chosen, dtype=np.int64))
    assert len(places) == len(known)
    for one in [*asked, *keys]:
        assert places.find(one) == known.get(one)
        assert (one in places) == (one in known)


@given(st.lists(KEYS))
def test_repeats_are_left_out_in_the_order_of_arrival(keys: list[TrajectoryKey]) -> None:
    columns = KeyColumns.of(keys)
    assert [*columns.at(first_of_each(columns))] == list(dict.fromkeys(keys))


def test_equal_keys_have_one_order() -> None:
    first = [TrajectoryKey(benchmark="b", agent="a", task_id=str(n)) for n in range(4)]
    columns = KeyColumns.of(first)
    assert are_equal(columns, KeyColumns.of(first))
    assert are_equal(columns.at([1, 2]), KeyColumns.of(first[1:3]))
    assert not are_equal(columns, KeyColumns.of(first[::-1]))
    assert not are_equal(columns, KeyColumns.of(first[:3]))
    assert not are_equal(KeyColumns.of(first[:3]), columns)


def same_columns(one: LabelColumns | RewardColumns, other: LabelColumns | RewardColumns) -> None:
    assert type(one) is type(other)
    assert list(one.keys) == list(other.keys)
    for name in ("verdicts", "reward"):
        if hasattr(one, name):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


VALUES = st.none() | st.booleans() | st.integers(-1, 5) | st.sampled_from([0.5, "dev", "true", "4"])
FIELDS = st.sampled_from([*Label.model_fields, "other"])


@given(st.dictionaries(FIELDS.filter(lambda name: name != "key"), VALUES, max_size=4))
def test_a_line_is_taken_only_as_validation_takes_it(
    tmp_path_factory: pytest.TempPathFactory, changes: dict[str, Any]
) -> None:
    path = tmp_path_factory.mktemp("labels") / LABELS
    store.write(path, [label(1, None), label(2, True)])
    header, first, second = path.read_bytes().splitlines()
    path.write_bytes(b"\n".join([header, first, orjson.dumps(orjson.loads(second) | changes), b""]))
    taken = read_label_columns(path)
    if taken is not None:
        records = primary_labels(store.load(path))
        assert dict(taken) == records
        same_columns(taken.columns, LabelColumns.of(records))
        write_labels(path.parent, taken)
        assert primary_labels(store.load(path)) == records


@pytest.mark.parametrize(
    "line",
    [
        '{"key":{"benchmark":"w","agent":"a","task_id":"1","attempt":0},"raw_task_id":"1",'
        '"annotator":"A"}',
        '{"key":{"benchmark":"assistantbench","agent":"a","task_id":"x.improved.1","attempt":0},'
        '"raw_task_id":"1","annotator":"A","role":"primary","success":null,"side_effect":null,'
        '"repetition":null,"optimality":null,"split":"dev"}',
        '{"key":{"benchmark":"w","agent":"\\u00e9","task_id":"1","attempt":0},"raw_task_id":"1",'
        '"annotator":"\\u001F","role":"primary","success":null,"side_effect":null,'
        '"repetition":null,"optimality":null,"split":null}',
    ],
    ids=["left out", "not canonical", "escaped"],
)
def test_a_line_that_is_written_otherwise_is_kept(tmp_path: Path, line: str) -> None:
    first = store.annotation_line(label(1, None))
    path = tmp_path / "given.jsonl"
    path.write_bytes(store.header_line() + line.encode() + b"\n" + first)
    labels = read_label_columns(path)
    assert labels is not None
    write_labels(tmp_path, labels)
    assert sorted(store.load(tmp_path / LABELS), key=lambda one: one.key.order) == sorted(
        store.load(path), key=lambda one: one.key.order
    )


def test_labels_of_some_keys_keep_their_order_and_their_splits(tmp_path: Path) -> None:
    given = [label(n, n % 2 == 0).model_copy(update={"split": s}) for n, s in enumerate(SPLITS)]
    store.write(tmp_path / LABELS, given)
    labels = read_label_columns(tmp_path / LABELS)
    assert labels is not None
    annotations = StoredAnnotations(labels)
    assert [*annotations] == given
    assert annotations[1:] == given[1:]
    assert labels_of(annotations) is labels
    some = labels.of(KeyColumns.of([key(2), key(7), key(0)]))
    assert [*some.items()] == [(key(2), given[2]), (key(0), given[0])]
    assert splits_of(some) == splits_of(dict(some)) == {(key(2).benchmark, key(2).task_id): "test"}


def test_other_files_are_left_to_the_reader_of_records(tmp_path: Path) -> None:
    path = tmp_path / LABELS
    twice = [label(1, True), label(1, False)]
    store.write(path, twice)
    assert read_label_columns(path) is None
    assert dict(read_labels(tmp_path)) == {key(1): twice[1]}
    path.write_bytes(path.read_bytes().rstrip())
    assert dict(read_labels(tmp_path)) == {key(1): twice[1]}, "a last line without its newline"
    path.write_bytes(b'{"format":"trajudge-annotations","version":9}\n')
    with pytest.raises(UserError, match="version 9"):
        read_labels(tmp_path)
    (tmp_path / REWARDS).write_bytes(b"{}\n")
    with pytest.raises(UserError, match=r"line 1: .*missing required field `key`"):
        read_rewards(tmp_path)
    lines = [{"key": vars(key(1)), "official_reward": reward} for reward in (0.0, None, 1.0)]
    (tmp_path / REWARDS).write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))
    assert dict(read_rewards(tmp_path)) == {key(1): 1.0}


def test_only_primary_labels_count_and_a_missing_one_is_missing(tmp_path: Path) -> None:
    second = label(1, False).model_copy(update={"role": Role.SECONDARY})
    write_labels(tmp_path, [label(1, True), second, label(2, None)])
    labels = read_labels(tmp_path)
    assert isinstance(labels, RunLabels)
    assert [labels[key(1)].success, len(labels), key(3) in labels] == [True, 2, False]
    with pytest.raises(KeyError):
        labels[key(3)]


def test_rewards_hold_others_that_are_the_same() -> None:
    def columns(rewards: dict[object, float | None]) -> RewardColumns:
        return RewardColumns.of({key(task): reward for task, reward in rewards.items()})

    whole = columns({1: 0.0, 2: None, 3: 1.0})
    assert whole.hold(columns({})) and whole.hold(columns({3: 1.0, 2: None}))
    assert not whole.hold(columns({3: 0.5})) and not whole.hold(columns({2: 0.0}))
    assert not whole.hold(columns({3: 1.0, 4: None})) and not columns({}).hold(whole)


CAPTION, VERDICT = "a" * 64, "b" * 64


def judged(*, cached: bool) -> Judgment:
    calls = (
        call(0.5, request=CAPTION, stage="caption", cached=cached),
        call(0.25, request=VERDICT),
    )
    return said(1, True, calls=calls)


def cached_calls(folder: Path) -> list[bool]:
    write_judgments(folder, [judged(cached=False)])
    table = read_run_judgments(folder / JUDGMENTS, folder / CALLS)
    flags: list[bool] = table.calls.cached.tolist()
    return flags


def write(folder: Path, *sessions: Judgment) -> None:
    (folder / CALLS).write_bytes(b"".join(b"".join(ledger_lines(one)) for one in sessions))


def pay(folder: Path, *paid: tuple[str, float | None]) -> None:
    payments = Payments(folder / PAYMENTS)
    for request, dollars in paid:
        payments.paid(request, dollars)
    payments.close()


def test_a_call_is_cached_if_every_session_had_its_answer(tmp_path: Path) -> None:
    assert cached_calls(tmp_path) == [False, False], "no ledger tells so"
    write(tmp_path, judged(cached=True))
    assert cached_calls(tmp_path) == [True, False]
    write(tmp_path, judged(cached=False), judged(cached=True))
    assert cached_calls(tmp_path) == [False, False], "an earlier session asked"


def test_a_session_that_ended_before_the_judgment_has_paid_for_the_call(tmp_path: Path) -> None:
    write(tmp_path, judged(cached=True))
    pay(tmp_path, (CAPTION, 0.5))
    assert cached_calls(tmp_path) == [False, False]


def test_what_a_session_paid_at_an_unknown_price_is_not_from_the_cache(tmp_path: Path) -> None:
    write(tmp_path, judged(cached=True))
    pay(tmp_path, (CAPTION, None))
    assert cached_calls(tmp_path) == [False, False]


def called_thrice(seconds: float) -> Judgment:
    calls = (
        call(stage="describe", request="a" * 64, seconds=seconds),
        call(stage="describe", request="a" * 64),
        call(stage="verdict", request="b" * 64, seconds=1.0),
    )
    return said(1, True, calls=calls)


def seconds(judgment: Judgment) -> list[float]:
    return [call.seconds for call in judgment.calls]


def read_back(folder: Path) -> Judgment:
    (folder / JUDGMENTS).write_bytes(judgment_line(called_thrice(0.0)))
    (judgment,) = read_run_judgments(folder / JUDGMENTS, folder / CALLS)
    return judgment


def test_seconds_of_all_sessions_are_added_up(tmp_path: Path) -> None:
    first, second = called_thrice(2.0), called_thrice(0.5)
    (tmp_path / CALLS).write_bytes(b"".join([*ledger_lines(first), *ledger_lines(second)]))
    assert seconds(read_back(tmp_path)) == [2.5, 0.0, 2.0]


def test_a_torn_line_and_a_missing_ledger_are_no_harm(tmp_path: Path) -> None:
    assert seconds(read_back(tmp_path)) == [0.0, 0.0, 0.0]
    lines = b"".join(ledger_lines(called_thrice(2.0)))
    (tmp_path / CALLS).write_bytes(lines + lines[:40])
    assert seconds(read_back(tmp_path)) == [2.0, 0.0, 1.0]


def test_results_tell_nothing_of_the_execution() -> None:
    written = {results_json(score([called_thrice(s)], {}, rewards={})) for s in (0.0, 2.0)}
    assert len(written) == 1
    assert '"seconds"' not in written.pop()


def test_a_shared_request_is_paid_once_and_one_from_the_cache_not_at_all() -> None:
    caption, verdict, other = "a" * 64, "b" * 64, "c" * 64
    first = said(1, True, calls=(call(0.5, request=caption), call(0.25, request=verdict)))
    second = said(
        2,
        True,
        calls=(
            call(0.5, request=caption, cached=True),
            call(0.125, request=other, cached=True),
            call(None, request="d" * 64),
        ),
    )
    assert paid([first, second]) == {caption: 0.5, verdict: 0.25}
    assert paid([first, first]) == paid([first])
