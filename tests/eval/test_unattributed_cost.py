"""What was paid beside the judgments: failed attempts, lost replies, replies of unknown cost."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from contextlib import closing
from math import nan
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.batch_server import PRICES as BATCH_PRICES
from tests.batch_server import BatchServer
from tests.eval.batch_runs import JUDGMENTS, judge
from tests.eval.cases import call, said
from tests.eval.judge_command import SAMPLE, model, statuses
from tests.eval.unattributed import RubricTill, Till, shown_cost
from tests.llm_server import LlmServer
from tests.rewards.cases import config, trajectory
from tests.screens import on_one_line
from trajudge.eval.cli import main
from trajudge.eval.judge import main as judge_main
from trajudge.eval.scoring.records import UnattributedCost
from trajudge.eval.scoring.usage import judge_usage, unattributed_cost
from trajudge.eval.store.table import PAYMENTS, CallColumns, JudgmentTable
from trajudge.judges.batch.ledger import Ledger, ledger_path
from trajudge.judges.engine.budget import Payments
from trajudge.rewards.rewarder import Rewarder


@pytest.fixture
def prices() -> list[str]:
    Path("prices.toml").write_text('[models."gpt-4o"]\ninput = 250.0\noutput = 1000.0\n')
    return ["--prices", "prices.toml", "--max-failures", "100%"]


@pytest.mark.usefixtures("own_folder")
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


@pytest.mark.usefixtures("own_folder")
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


@pytest.mark.usefixtures("own_folder")
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


@pytest.mark.usefixtures("own_folder")
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


CAPTION, VERDICT, UNKEPT = "a" * 64, "b" * 64, "c" * 64


def calls_of(caption: float | None, verdict: float | None) -> CallColumns:
    calls = (call(caption, request=CAPTION, stage="caption"), call(verdict, request=VERDICT))
    return JudgmentTable.of([said(1, True, calls=calls), said(2, True, calls=calls)]).calls


@pytest.fixture
def payments(tmp_path: Path) -> Payments:
    return Payments(tmp_path / PAYMENTS)


def test_failed_attempts_and_replies_of_no_judgment_come_on_top(payments: Payments) -> None:
    calls = calls_of(0.5, 0.25)
    assert unattributed_cost(payments.path, calls) == UnattributedCost()
    payments.paid(CAPTION, 0.5)
    payments.paid(VERDICT, 0.25)
    assert unattributed_cost(payments.path, calls) == UnattributedCost()
    payments.paid(VERDICT, 0.125)
    payments.paid(UNKEPT, 1.0)
    assert unattributed_cost(payments.path, calls) == UnattributedCost(dollars=1.125)
    assert unattributed_cost(payments.path, calls, {UNKEPT: 1.0}) == UnattributedCost(dollars=0.125)


def test_a_reply_in_a_batch_was_cheaper_than_its_judgment_says(payments: Payments) -> None:
    payments.paid(CAPTION, 0.25)
    assert unattributed_cost(payments.path, calls_of(0.5, 0.25)) == UnattributedCost(rebate=0.25)


def test_of_attempts_of_unknown_price_one_is_the_reply(payments: Payments) -> None:
    payments.paid(CAPTION, None)
    payments.paid(VERDICT, 0.25)
    calls = calls_of(None, 0.25)
    assert unattributed_cost(payments.path, calls) == UnattributedCost()
    payments.paid(CAPTION, None)
    payments.paid(UNKEPT, None)
    assert unattributed_cost(payments.path, calls) == UnattributedCost(unpriced=2)
    assert unattributed_cost(payments.path, calls, {UNKEPT: nan}) == UnattributedCost(unpriced=1)


def test_a_reply_that_was_paid_before_its_price_was_forgotten_is_attributed(
    payments: Payments,
) -> None:
    payments.paid(CAPTION, 0.5)
    assert unattributed_cost(payments.path, calls_of(None, 0.25)) == UnattributedCost(presumed=0.5)


Change = Callable[[dict[str, Any]], object]
NOTHING: dict[str, Change] = {
    "missing": lambda _: ...,
    "zeros": lambda usage: dict.fromkeys(usage, 0),
    "texts": lambda usage: {name: str(count) for name, count in usage.items()},
}
LONG = {"completion_tokens": 50_000, "total_tokens": 0}
MOCK_PRICES = '[models."mock"]\ninput = 1000\noutput = 2000\n'
# As OpenRouter lists it: the same price.
LISTED = {"id": "mock", "pricing": {"prompt": "0.001", "completion": "0.002", "request": "0"}}
DATA = ["--data", "sample", "--limit", "30", "--judge", "simplified", "--model", "mock"]
CALLS = ["--context", "100000", "--max-tokens", "100", "--concurrency", "4", "--out", "run"]


def attempts() -> list[dict[str, Any]]:
    lines = Path("run/payments.jsonl").read_bytes().splitlines()
    return [orjson.loads(line) for line in lines if line]


@pytest.mark.usefixtures("own_folder")
@pytest.mark.parametrize("is_listed", [False, True])
@pytest.mark.parametrize("kind", NOTHING)
def test_a_reply_without_usage_costs_what_was_reserved(
    kind: str, is_listed: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("prices.toml").write_text(MOCK_PRICES)
    price = [] if is_listed else ["--prices", "prices.toml"]
    listed = (LISTED,) if is_listed else ({"id": "mock"},)
    with LlmServer(usage=NOTHING[kind], models=listed) as server:
        words = [*DATA, *CALLS, *price, "--base-url", f"{server.url}/v1", "--cache", "c.sqlite"]
        assert judge_main([*words, "--max-cost", "38"]) == 1
        sent = server.stats.requests
        assert judge_main([*words, "--max-cost", "38"]) == 1
        assert server.stats.requests == sent, "an earlier session has reserved it"
    shown = capsys.readouterr()
    screen, notes = on_one_line(shown.out), on_one_line(shown.err)
    reserved = sum(attempt["reserved"] for attempt in attempts())
    assert reserved <= 38
    assert 5 <= sent == len(attempts()) < 15
    # The last session's: while others are under way, a shorter prompt may still fit.
    needed, left = re.findall(r"may cost up to \$([\d.]+) and \$([\d.]+) is left", notes)[-1]
    assert float(needed) > float(left) == pytest.approx(38 - reserved, abs=1e-3)
    (settled,) = re.findall(r"of it reserved for (\d+) replies of unknown cost\)", notes)
    assert sent - 4 < int(settled) <= sent, "said while some of four may be under way"
    assert f"Cost: unknown, {sent} calls ({sent} without the usage" in screen
    assert f"; ${reserved:.4f} counts towards --max-cost for calls of unknown cost" in screen
    assert f"+ {sent} calls of unknown cost" in notes
    for line in Path("run/judgments.jsonl").read_bytes().splitlines():
        (call,) = orjson.loads(line)["calls"]
        assert (call["usage"], call["cost"]) == (None, None)


@pytest.mark.usefixtures("own_folder")
def test_a_server_that_ignores_max_tokens_spends_no_more_than_the_limit(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("prices.toml").write_text(MOCK_PRICES)
    calls = [word.replace("4", "32") if word == "4" else word for word in CALLS]
    with LlmServer(usage=lambda usage: usage | {"completion_tokens": 4000}, latency=0.05) as server:
        words = [*DATA, *calls, "--prices", "prices.toml", "--base-url", f"{server.url}/v1"]
        assert judge_main([*words, "--cache", "c.sqlite", "--max-cost", "60"]) == 1
        requests = server.stats.requests
    shown = capsys.readouterr()
    paid = [one["paid"] for one in attempts() if "paid" in one]
    assert 4 <= len(paid) == requests
    assert 60 - max(paid) < sum(paid) <= 60
    warned = re.findall(r"warning: a reply of mock cost \$(\S+) where at most", shown.err)
    assert warned == [f"{paid[0]:.4f}"], "said once, of the first"


async def rewards(given: Any, count: int, payments: Path) -> list[float | None]:
    async with Rewarder(given, payments=Payments(payments)) as rewarder:
        group = await rewarder.group([trajectory(10 + number) for number in range(count)])
        return [reward.value for reward in group]


def test_rewards_of_unknown_cost_count_as_reserved(tmp_path: Path) -> None:
    prices = tmp_path / "prices.toml"
    prices.write_text(MOCK_PRICES, encoding="utf-8")
    with LlmServer(usage=lambda _: None) as server:
        calls = {"prices": str(prices), "context": 8000, "max_tokens": 100, "max_cost": 1000.0}
        noted = tmp_path / "one.jsonl"
        asyncio.run(rewards(config(server, tmp_path / "one", calls=calls), 1, noted))
        (line,) = noted.read_bytes().splitlines()[1:]
        calls["max_cost"] = 17.5 * orjson.loads(line)["reserved"]
        given = config(server, tmp_path / "forty", calls=calls)
        values = asyncio.run(rewards(given, 40, tmp_path / "forty.jsonl"))
        assert server.stats.requests == 1 + 17
    assert sum(value is not None for value in values) == 17


@pytest.mark.usefixtures("own_folder")
def test_a_batch_whose_lines_cost_more_than_reserved_raises_the_next_reservations(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """webjudge asks three times: the second round reserves what the first has cost."""
    Path("prices.toml").write_text(BATCH_PRICES.format(model="gpt-4o"))
    words = ["--batch", "--judge", "webjudge", "--prices", "prices.toml", "--max-cost", "5"]
    with BatchServer(seconds=0.05, usage=lambda usage: usage | LONG) as server:
        judge(server, "batch", *words)
        rounds = server.submissions
    notes = capsys.readouterr().err
    assert rounds > 1
    (times,) = re.findall(r"warning: a line of a batch cost ([\d.]+) times", notes)
    assert float(times) > 5, "told of the first round, which reserved too little"
    with closing(Ledger(ledger_path(Path("batch.sqlite")))) as ledger:
        first, second, *_ = [ledger.counts(row.id) for row in ledger.batches()]
    dearest = [one["done"].reserved / one["done"].lines for one in (first, second)]
    assert dearest[1] > 5 * dearest[0]


@pytest.mark.usefixtures("own_folder")
def test_lines_of_a_batch_without_usage_count_as_reserved(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("prices.toml").write_text(BATCH_PRICES.format(model="gpt-4o"))
    limit = ["--prices", "prices.toml", "--max-cost", "5"]
    with BatchServer(seconds=0.05, usage=lambda _: None) as server:
        assert judge(server, "batch", "--batch", *limit) == 0
        assert server.billed > 0
    screen = on_one_line(capsys.readouterr().out)
    assert f"Cost: unknown, {JUDGMENTS} calls ({JUDGMENTS} without the usage" in screen
    assert " counts towards --max-cost for calls of unknown cost" in screen
    with closing(Ledger(ledger_path(Path("batch.sqlite")))) as ledger:
        (batch,) = ledger.batches()
    assert main(["run", "batch", "status", batch.id, "--cache", "batch.sqlite"]) == 0
    assert f"; {JUDGMENTS} lines of unknown cost" in on_one_line(capsys.readouterr().out)


def test_calls_of_unknown_requests_are_like_no_other() -> None:
    """Known requests have the numbers from 0."""
    requests = ("", "", "", "0" * 64, f"{1:015x}")
    calls = tuple(call(0.25, request=request) for request in requests)
    table = JudgmentTable.of([said(1, True, calls=calls)])
    assert judge_usage("judge", table).calls == 5
