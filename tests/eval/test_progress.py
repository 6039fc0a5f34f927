"""Progress tells cost so far, the cost and the time to expect, why it waits, in one row."""

from __future__ import annotations

import io
import json
import logging
import re
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.eval.cases import call, failed, said
from tests.eval.judge_command import model
from tests.llm_server import LlmServer, at
from trajudge.eval.judge import main
from trajudge.eval.runs.progress import Pace, RunProgress
from trajudge.judges.model import Status

Clock = Callable[[float], None]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Time stands still until it is moved on."""
    now = [1000.0]

    def move(seconds: float) -> None:
        now[0] += seconds

    monkeypatch.setattr("trajudge.eval.runs.progress.time.monotonic", lambda: now[0])
    return move


def asked(task: int, cost: float | None = 0.01, *, cached: bool = False) -> object:
    return said(task, True, calls=(call(cost, cached=cached),))


def test_the_line_predicts_cost_and_end(clock: Clock) -> None:
    progress = RunProgress(100, 20, stream=io.StringIO())
    for task in range(10):
        clock(2.0)
        progress.add(asked(task))  # type: ignore[arg-type]
    progress.add(failed(11, Status.REFUSED))
    progress.tell("37 retries")
    line = progress.line()
    assert line.startswith("judged 31/100 (0 cached, 20 from before), failed 1 refused, ")
    assert "$0.10 of about $0.73, 0.6/s" in line  # 69 are left, 11 cost ten cents
    assert "2 min 5 s left (until " in line
    assert line.endswith(", 37 retries")
    fields = progress.fields()
    assert (fields["judged"], fields["total"], fields["from_before"]) == (31, 100, 20)
    ahead = datetime.fromisoformat(fields["ends_at"]) - datetime.now(UTC)
    assert 0 < ahead.total_seconds() <= fields["seconds_left"] == pytest.approx(125, abs=1)


def test_failures_of_earlier_sessions_stand() -> None:
    progress = RunProgress(9, 4, 2, stream=io.StringIO())
    assert "judged 4/9 (0 cached, 4 from before), failed 2 before, " in progress.line()
    progress.add(failed(11, Status.REFUSED))
    assert ", failed 1 refused, 2 before, " in progress.line()
    assert progress.fields()["failed_before"] == 2


def test_what_the_cache_answers_is_no_measure_of_cost(clock: Clock) -> None:
    progress = RunProgress(40, stream=io.StringIO())
    for task in range(10):
        progress.add(asked(task, cached=True))  # type: ignore[arg-type]
    assert progress.predicted_cost is None
    progress.add(asked(11, 0.5))  # type: ignore[arg-type]
    assert progress.predicted_cost == pytest.approx(0.5 * 30)
    progress.add(asked(12, None))  # type: ignore[arg-type]
    assert progress.predicted_cost is None
    assert "$0.50 + 1 call of unknown cost, " in progress.line()


def test_the_pace_is_that_of_the_last_minute(clock: Clock) -> None:
    pace = Pace(1000.0)
    for judged in range(1, 601):
        clock(0.1)
        pace.count(judged)
    assert pace.rate(1060.0) == pytest.approx(10, rel=0.05)
    for judged in range(601, 661):
        clock(1.5)
        pace.count(judged)
    assert pace.rate(1150.0) == pytest.approx(1 / 1.5, rel=0.05)
    assert pace.rate(2000.0) == pytest.approx(0.66), "nothing of late: of all the time"


def test_the_pace_forgets_what_is_more_than_a_minute_ago(clock: Clock) -> None:
    pace = Pace(1000.0)
    clock(10)
    pace.count(100)
    clock(55)
    pace.count(101)
    assert pace.rate(1065.0) == 1 / 55


def test_at_the_end_nothing_is_predicted(clock: Clock) -> None:
    progress = RunProgress(1, stream=io.StringIO())
    clock(2.0)
    progress.add(asked(0, 0.5))  # type: ignore[arg-type]
    line = "judged 1/1 (0 cached, 0 from before), none failed, $0.50, 0.5/s"
    assert progress.line() == line


def test_a_reason_to_wait_is_told_once_and_no_two_lines_within_a_second(clock: Clock) -> None:
    stream = io.StringIO()
    progress = RunProgress(4, stream=stream)
    told = []
    for seconds, waits in ((0.99, "a"), (0.01, "a"), (3, "a"), (3, ""), (0, "b"), (3, "b")):
        clock(seconds)
        progress.tell(waits)
        told.append(stream.getvalue().count("\n"))
    assert told == [0, 1, 1, 1, 2, 2]


@pytest.mark.parametrize(
    ("unread", "remedy", "told"),
    [(4, "ask again", 1), (3, "ask again", 0), (4, "", 0)],
)
def test_a_fifth_of_the_first_answers_that_cannot_be_read_is_told(
    clock: Clock, unread: int, remedy: str, told: int
) -> None:
    stream = io.StringIO()
    progress = RunProgress(100, stream=stream, remedy=remedy)
    for task in range(40):
        status = Status.UNPARSABLE if task < unread or task >= 20 else Status.REFUSED
        progress.add(failed(task, status))
        assert stream.getvalue().count("warning") == (told if task >= 19 else 0)
    sentence = f"warning: {unread} of the first 20 answers cannot be read: ask again"
    assert stream.getvalue().count(sentence) == told


def test_the_log_gets_a_line_each_minute(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    progress = RunProgress(4, stream=io.StringIO())
    with caplog.at_level(logging.INFO):
        for _ in range(240):
            clock(0.5)
            progress.tell("paused until 14:03:22 (429)")
    assert [record.message[-28:] for record in caplog.records] == [
        ", paused until 14:03:22 (429)"[-28:]
    ] * 2


@pytest.mark.usefixtures("own_folder")
def test_the_log_is_one_json_object_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    stderr = sys.stderr
    with LlmServer(script=at({0: "429"})) as server:
        assert model(server, "--limit", "4", "--log-format", "json") == 0
    events = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    kinds = {event["event"] for event in events}
    assert {"note", "progress"} <= kinds <= {"note", "warning", "text", "progress"}
    last = [event for event in events if event["event"] == "progress"][-1]
    assert (last["judged"], last["total"], last["failed"]) == (4, 4, {})
    assert last["run"]
    assert last["cost_is_complete"] is False
    assert datetime.fromisoformat(last["time"]).tzinfo == UTC
    assert sys.stderr is stderr, "it ends with the command"


def test_a_refused_command_is_said_in_json_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--judge", "simplfied", "--log-format", "json"]) == 2
    (event,) = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert event["event"] == "error"
    assert "did you mean 'simplified'" in event["message"]


def test_the_format_may_stand_in_the_config(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "c.yaml").write_text("log-format: json\njudge: simplfied\n")
    assert main(["--config", str(tmp_path / "c.yaml")]) == 2
    assert json.loads(capsys.readouterr().err)["event"] == "error"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("columns", [100, 80, 60])
def test_the_line_never_exceeds_the_terminal(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("TERM", "xterm")
    stream = Terminal()
    with RunProgress(3, stream=stream, name="a-judge:of-a-model/" * 8) as progress:
        progress.add(said(1, True))
        progress.tell("the provider limits the calls")
    shown = re.sub(r"\x1b\[[?0-9;]*[A-Za-z]", "", stream.getvalue())
    rows = re.split(r"[\r\n]+", shown)
    assert any(row.endswith("…") for row in rows)
    assert max(map(len, rows)) <= columns


def test_a_plain_line_is_folded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    stream = io.StringIO()
    with RunProgress(3, stream=stream, name="simplified-axtree-steps:of-a-model") as progress:
        progress.add(said(1, True))
    first, *more = stream.getvalue().splitlines()
    assert first.startswith("simplified-axtree-steps:of-a-model: judged 1/3")
    assert more and all(row.startswith("  ") for row in more)
    assert max(map(len, (first, *more))) <= 60
