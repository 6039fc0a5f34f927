"""The first screen against a server that keeps the bill: what was paid for failed attempts and for
replies that were replaced is shown on top of the cost of the judgments."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.eval.judge_command import SAMPLE, model, statuses
from tests.eval.unattributed import RubricTill, Till, shown_cost
from tests.llm_server import LlmServer
from tests.screens import on_one_line

pytestmark = pytest.mark.usefixtures("own_folder")


@pytest.fixture
def prices() -> list[str]:
    Path("prices.toml").write_text('[models."gpt-4o"]\ninput = 250.0\noutput = 1000.0\n')
    return ["--prices", "prices.toml", "--max-failures", "100%"]


@pytest.mark.slow
@pytest.mark.parametrize("limit", [["--yes"], ["--max-cost", "1000"]])
def test_the_screen_accounts_for_every_dollar_of_the_bill(
    limit: list[str], prices: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    till = Till()
    with LlmServer(text=till) as server:
        assert model(server, *prices, *limit) == 0
        judgments, unattributed = shown_cost(capsys.readouterr().out)
        assert unattributed > 0
        assert judgments + unattributed == pytest.approx(sum(till.charged), abs=2e-4)
        till.is_sound = True
        first = sum(till.charged)
        assert model(server, *prices, *limit, "--retry-failed") == 0
        later, more = shown_cost(capsys.readouterr().out)
        assert sum(till.charged) > first
        assert more > unattributed, "of the replies that could not be read, too"
        assert later + more == pytest.approx(sum(till.charged), abs=2e-4)
        assert model(server, *prices, *limit, "--full") == 0
        assert f"${more:.4f} more for failed attempts" in capsys.readouterr().out


def test_a_run_of_which_nothing_failed_tells_of_no_more(
    prices: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    till = Till(is_sound=True)
    with LlmServer(text=till) as server:
        assert model(server, *prices, "--yes", "--limit", "3") == 0
        judgments, unattributed = shown_cost(capsys.readouterr().out)
        assert judgments == pytest.approx(sum(till.charged), abs=1e-4)
        assert unattributed == 0
        again = ["--out", "again"]
        assert model(server, *prices, "--yes", "--limit", "3", *again) == 0, "from the cache"
        assert " more for " not in capsys.readouterr().out


# The criteria of a task are written once, whichever agents tried it.
RUBRIC = ["--judge", "rubric", "--yes"]


@pytest.mark.slow
def test_a_request_that_several_judgments_share_is_paid_and_counted_once(
    prices: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    till = RubricTill()
    with LlmServer(text=till, latency=0.05) as server:
        assert model(server, *prices, *RUBRIC) == 0
        shown = capsys.readouterr().out
        assert sum(shown_cost(shown)) == pytest.approx(sum(till.charged), abs=2e-4)
        count = len(till.charged)
        assert f", {count} calls, " in on_one_line(shown)
        assert model(server, *prices, *RUBRIC, "--out", "again") == 0
        again = on_one_line(capsys.readouterr().out)
        assert len(till.charged) == count
    worth = re.search(rf"Cost: \$0\.0000, {count} calls \({count} .* worth \$([\d.]+)\)", again)
    assert worth, again
    assert float(worth[1]) == pytest.approx(sum(till.charged), abs=2e-4)


@pytest.mark.slow
def test_a_shared_reply_that_could_not_be_read_is_asked_for_again_once(
    prices: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    till = RubricTill(sound=False)
    with LlmServer(text=till) as server:
        # One after the other: nothing is under way at the same time.
        one = [*prices, *RUBRIC, "--concurrency", "1", "--repair", "0"]
        assert model(server, *one) == 0
        assert len(till.criteria) == len(set(till.criteria)) < SAMPLE
        till.sound = True
        first = len(till.criteria)
        capsys.readouterr()
        assert model(server, *one, "--retry-failed") == 0
    assert len(till.criteria) == 2 * first
    assert {*statuses()} == {"ok"}
    assert sum(shown_cost(capsys.readouterr().out)) == pytest.approx(sum(till.charged), abs=3e-4)
