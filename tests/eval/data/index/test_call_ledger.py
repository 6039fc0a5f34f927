"""What a run's ledger tells of its calls, beside what was paid."""

from __future__ import annotations

from pathlib import Path

from tests.eval.cases import call, said
from trajudge.eval.store.run_folder import CALLS, JUDGMENTS, ledger_lines, write_judgments
from trajudge.eval.store.table import PAYMENTS, read_run_judgments
from trajudge.judges.engine.budget import Payments
from trajudge.judges.model import Judgment

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
