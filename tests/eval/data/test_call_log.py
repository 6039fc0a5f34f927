"""The ledger of calls: seconds are found again, and only there."""

from __future__ import annotations

from pathlib import Path

from tests.eval.cases import call, said
from trajudge.eval.reporting.results import results_json
from trajudge.eval.scoring.compute import score
from trajudge.eval.store.run_folder import CALLS, JUDGMENTS, judgment_line, ledger_lines, paid
from trajudge.eval.store.table import read_run_judgments
from trajudge.judges.model import Judgment


def judged(seconds: float) -> Judgment:
    calls = (
        call(stage="describe", request="a" * 64, seconds=seconds),
        call(stage="describe", request="a" * 64),
        call(stage="verdict", request="b" * 64, seconds=1.0),
    )
    return said(1, True, calls=calls)


def seconds(judgment: Judgment) -> list[float]:
    return [call.seconds for call in judgment.calls]


def read(folder: Path) -> Judgment:
    (folder / JUDGMENTS).write_bytes(judgment_line(judged(0.0)))
    (judgment,) = read_run_judgments(folder / JUDGMENTS, folder / CALLS)
    return judgment


def test_seconds_of_all_sessions_are_added_up(tmp_path: Path) -> None:
    first, second = judged(2.0), judged(0.5)
    (tmp_path / CALLS).write_bytes(b"".join([*ledger_lines(first), *ledger_lines(second)]))
    assert seconds(read(tmp_path)) == [2.5, 0.0, 2.0]


def test_a_torn_line_and_a_missing_ledger_are_no_harm(tmp_path: Path) -> None:
    assert seconds(read(tmp_path)) == [0.0, 0.0, 0.0]
    lines = b"".join(ledger_lines(judged(2.0)))
    (tmp_path / CALLS).write_bytes(lines + lines[:40])
    assert seconds(read(tmp_path)) == [2.0, 0.0, 1.0]


def test_results_tell_nothing_of_the_execution() -> None:
    written = {results_json(score([judged(s)], {}, rewards={})) for s in (0.0, 2.0)}
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
