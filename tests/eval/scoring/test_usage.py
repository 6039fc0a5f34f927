"""Usage and cost of a judge's calls: each distinct request once, each unrecorded one by itself."""

from __future__ import annotations

from tests.eval.cases import call, said
from trajudge.eval.scoring.usage import judge_usage
from trajudge.eval.store.table import JudgmentTable


def test_a_request_that_judgments_share_counts_once() -> None:
    shared = call(0.25, request="a" * 64)
    used = judge_usage(
        "judge", JudgmentTable.of([said(n, True, calls=(shared,)) for n in range(3)])
    )
    assert (used.calls, used.cost, used.usage.output) == (1, 0.25, 10)


def test_calls_whose_request_is_not_recorded_count_each() -> None:
    published = [said(n, True, calls=(call(None, request=""),)) for n in range(3)]
    used = judge_usage("judge", JudgmentTable.of([*published, said(3, True, calls=(call(None),))]))
    assert (used.calls, used.unpriced, used.usage.output) == (4, 4, 40)
