"""Several samples of a judgment: how often they disagree."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.eval.runs.limited import BAD, judgments, run
from tests.judges.runs import GOOD, mug_run
from tests.llm_replies import Incoming
from tests.llm_server import LlmServer
from tests.screens import on_one_line
from trajudge.eval.scoring.notes import flip_rate, stability_notes
from trajudge.eval.scoring.observations import Predictions, ReferenceLabels
from trajudge.eval.store.table import JudgmentTable
from trajudge.judges.model import Judgment, Status

pytestmark = pytest.mark.usefixtures("own_folder")


def read(made: list[Judgment]) -> tuple[Predictions, JudgmentTable]:
    """What one judge predicted, and the table that it is read from."""
    table = JudgmentTable.of(made)
    return Predictions.of(made[0].judge, table, ReferenceLabels.of(table.keys, {}, {})), table


def test_samples_report_their_flip_rate(capsys: pytest.CaptureFixture[str]) -> None:
    asked: Counter[str] = Counter()

    def second_differs(incoming: Incoming) -> str:
        asked[incoming.prompt] += 1
        return BAD if asked[incoming.prompt] == 2 else GOOD

    with LlmServer(text=second_differs) as server:
        assert run(server, "--model", "m-a", "--samples", "3", "--concurrency", "1") == 0
    flipped, repeated = flip_rate(*read(judgments()))
    assert (flipped, repeated) == (4, 4)
    shown = on_one_line(capsys.readouterr().out)
    assert "samples disagree on 4 of 4 trajectories (flip rate 100.0 %)" in shown


def test_failed_samples_are_no_flips() -> None:
    key = mug_run().key
    made = [
        Judgment(key=key, judge="j", sample=n, status=status, success=success)
        for n, (status, success) in enumerate(
            [(Status.OK, True), (Status.UNPARSABLE, None), (Status.OK, True)]
        )
    ]
    assert flip_rate(*read(made)) == (0, 1)
    assert stability_notes(*read(made[:2])) == [
        "j: 1 of 2 samples failed (unparsable 1); the others of their trajectories count"
    ]
    assert stability_notes(*read(made[1:2])) == []


def test_failed_samples_that_no_other_stands_for_are_those_of_the_coverage() -> None:
    made = [
        Judgment(key=mug_run().key, judge="j", sample=n, status=Status.REFUSED) for n in range(2)
    ]
    assert stability_notes(*read(made)) == []
