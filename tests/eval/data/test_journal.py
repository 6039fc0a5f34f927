from __future__ import annotations

from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.eval.full_disk import no_file_beyond
from trajudge.eval.store.run_folder import CALLS, JUDGMENTS, JudgmentJournal, judgment_line
from trajudge.eval.store.table import KeyColumns
from trajudge.judges.model import Call, Judgment, Status, Usage
from trajudge.trajectories.model import TrajectoryKey
from trajudge.util.errors import UserError

KEYS = [TrajectoryKey(benchmark="b", agent="a", task_id=str(n)) for n in range(6)]


def judgment(number: int, *, status: Status = Status.OK, seconds: float = 0.0) -> Judgment:
    call = Call(
        stage="verdict",
        request=f"{number:064x}",
        rung="full",
        finish="stop",
        usage=Usage(input=10),
        cost=None,
        text="a\nb",
        seconds=seconds,
        cached=seconds == 0,
    )
    return Judgment(key=KEYS[number], judge="j", status=status, success=True, calls=(call,))


def written(folder: Path, numbers: list[int], seconds: float = 0.0) -> bytes:
    folder.mkdir(exist_ok=True)
    with JudgmentJournal(folder) as journal:
        for number in numbers:
            journal.add(judgment(number, seconds=seconds))
        journal.finish(KeyColumns.of(KEYS))
    return (folder / JUDGMENTS).read_bytes()


@given(st.permutations(range(6)))
def test_the_order_of_arrival_and_the_clock_leave_no_trace(
    tmp_path_factory: pytest.TempPathFactory, arrival: list[int]
) -> None:
    folder = tmp_path_factory.mktemp("runs")
    assert written(folder / "one", arrival, 1.5) == written(folder / "two", list(range(6)))


def test_a_line_is_on_its_way_to_the_disk_when_add_returns(tmp_path: Path) -> None:
    with JudgmentJournal(tmp_path) as journal:
        journal.add(judgment(3))
        assert (tmp_path / JUDGMENTS).read_bytes().count(b"\n") == 1
        assert orjson.loads((tmp_path / CALLS).read_bytes())["cached"] is True


@pytest.mark.parametrize("torn", [1, 50, 10_000])
def test_a_line_torn_by_a_kill_is_made_again(tmp_path: Path, torn: int) -> None:
    whole = written(tmp_path, [0, 1, 2])
    with (tmp_path / JUDGMENTS).open("ab") as file:
        file.write((b'{"key":' + b"x" * 70_000)[:torn])
    with JudgmentJournal(tmp_path) as journal:
        assert len(journal.judgments()) == 3
        journal.add(judgment(3))
    assert (tmp_path / JUDGMENTS).read_bytes().startswith(whole)
    with JudgmentJournal(tmp_path) as journal:
        assert len(journal.judgments()) == 4


def test_a_line_that_the_disk_has_no_room_for_leaves_nothing(tmp_path: Path) -> None:
    with JudgmentJournal(tmp_path) as journal:
        journal.add(judgment(0))
        whole = (tmp_path / JUDGMENTS).read_bytes()
        with no_file_beyond(len(whole) + 10), pytest.raises(UserError, match="cannot be written"):
            journal.add(judgment(1))
        assert (tmp_path / JUDGMENTS).read_bytes() == whole
        journal.add(judgment(2))
        assert [j.key for j in journal.judgments()] == [KEYS[0], KEYS[2]]


def test_the_last_judgment_of_a_trajectory_and_sample_counts(tmp_path: Path) -> None:
    with JudgmentJournal(tmp_path) as journal:
        journal.add(judgment(1, status=Status.UNPARSABLE))
        journal.add(judgment(0))
        journal.add(judgment(1, seconds=1.5))
        assert [j.status for j in journal.judgments()] == [Status.OK, Status.OK]
        finished = journal.finish(KeyColumns.of(KEYS))
    assert [j.key for j in finished] == KEYS[:2]
    assert finished[1].calls[0].seconds == 1.5
    assert list(map(judgment_line, finished)) == (tmp_path / JUDGMENTS).read_bytes().splitlines(
        True
    )


def test_a_judgment_of_a_trajectory_that_is_gone_is_named(tmp_path: Path) -> None:
    with JudgmentJournal(tmp_path) as journal:
        journal.add(judgment(5))
        with pytest.raises(UserError, match=r"b/a/5, which the data no longer has"):
            journal.finish(KeyColumns.of(KEYS[:2]))


def test_a_damaged_line_is_named(tmp_path: Path) -> None:
    (tmp_path / JUDGMENTS).write_bytes(b'{"no": "judgment"}\n')
    with pytest.raises(UserError, match=r"judgments\.jsonl, line 1"):
        JudgmentJournal(tmp_path)


def test_a_finished_file_is_left_as_it_is(tmp_path: Path) -> None:
    whole = written(tmp_path, [2, 0, 1])
    before = (tmp_path / JUDGMENTS).stat()
    assert written(tmp_path, []) == whole
    after = (tmp_path / JUDGMENTS).stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
