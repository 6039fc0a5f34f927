"""What --max-cost holds against servers that count nothing, or write more than they are allowed."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.batch_server import PRICES as BATCH_PRICES
from tests.batch_server import BatchServer
from tests.eval.batches.batch_runs import JUDGMENTS, judge
from tests.llm_server import LlmServer
from tests.rewards.cases import config, trajectory
from tests.screens import on_one_line
from trajudge.eval.cli import main
from trajudge.eval.judge import main as judge_main
from trajudge.judges.batch.ledger import Ledger, ledger_path
from trajudge.judges.engine.budget import Payments
from trajudge.rewards.rewarder import Rewarder

Change = Callable[[dict[str, Any]], object]
NOTHING: dict[str, Change] = {
    "missing": lambda _: ...,
    "zeros": lambda usage: dict.fromkeys(usage, 0),
    "texts": lambda usage: {name: str(count) for name, count in usage.items()},
}
LONG = {"completion_tokens": 50_000, "total_tokens": 0}
PRICES = '[models."mock"]\ninput = 1000\noutput = 2000\n'
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
    Path("prices.toml").write_text(PRICES)
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
    Path("prices.toml").write_text(PRICES)
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
    prices.write_text(PRICES, encoding="utf-8")
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
    assert notes.count("warning: a line of a batch cost ") == 1
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
