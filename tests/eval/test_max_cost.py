"""--max-cost against a server that keeps the bill; what a run may cost, predicted and confirmed."""

from __future__ import annotations

import io
import re
import time
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.command_words import instead
from tests.eval.cases import call
from tests.eval.judge_command import SAMPLE, model, run, statuses
from tests.eval.killed_command import Command
from tests.eval.till import LONG, OUTPUT, PRICES, Till
from tests.llm_server import LlmServer
from tests.screens import on_one_line
from trajudge.eval.runs.pricing import CostEstimate, confirm, is_unlimited, priced
from trajudge.eval.runs.settings import RunRequest
from trajudge.eval.store.run_folder import paid, read_judgments
from trajudge.judges.calls.settings import CallConfig
from trajudge.judges.model import Usage
from trajudge.util.errors import UserError

pytestmark = pytest.mark.usefixtures("own_folder")


def judge(server: LlmServer, dollars: float, concurrency: int, *words: str) -> int:
    Path("prices.toml").write_text(PRICES)
    own = [
        *("--prices", "prices.toml", "--max-cost", str(dollars), "--max-tokens", str(LONG)),
        *("--concurrency", str(concurrency), "--max-failures", "100%"),
    ]
    return model(server, *instead(own, words))


@pytest.mark.parametrize(("concurrency", "dollars"), [(1, 0.5), (64, 2.0), (256, 2.0)])
def test_long_answers_never_pass_the_limit(
    concurrency: int, dollars: float, capsys: pytest.CaptureFixture[str]
) -> None:
    till = Till()
    with LlmServer(text=till, latency=0.03) as server:
        assert judge(server, dollars, concurrency, "--samples", "2") == 1
    dearest = max(till.charged)
    assert dollars - 2 * dearest < till.bill <= dollars, "kept, and what it allows is used"
    said = on_one_line(capsys.readouterr().err)
    assert f"is left of --max-cost {dollars:g}" in said and "the same command goes on" in said


def test_answers_that_did_not_arrive_are_counted_as_billed() -> None:
    till = Till(cut=2)
    with LlmServer(text=till) as server:
        assert judge(server, 1.0, 32) == 1
    assert 0.8 < till.bill <= 1.0


def test_short_answers_release_what_was_reserved_for_long_ones() -> None:
    till = Till(tokens=200)
    with LlmServer(text=till, latency=0.01) as server:
        assert judge(server, SAMPLE * 0.02, 64) == 0
    assert statuses() == ["ok"] * SAMPLE
    assert till.bill < SAMPLE * 0.02 < SAMPLE * LONG * OUTPUT


def test_a_call_that_fits_no_more_is_never_begun(capsys: pytest.CaptureFixture[str]) -> None:
    till = Till()
    with LlmServer(text=till) as server:
        assert judge(server, 0.05, 8) == 1
    assert till.bill == 0
    said = on_one_line(capsys.readouterr().err)
    assert "$0.0500 is left of --max-cost 0.05" in said and "lower --max-tokens" in said


@pytest.mark.slow
def test_what_was_in_flight_at_a_kill_is_counted_when_the_run_goes_on(tmp_path: Path) -> None:
    """The server charges for answers that nobody was there to receive."""
    till = Till()
    with LlmServer(text=till, latency=60.0) as server:
        words = ["--concurrency", "16", "--limit", "16", "--max-failures", "100%"]
        words += ["--prices", str(tmp_path / "prices.toml"), "--max-tokens", str(LONG)]
        Path("prices.toml").write_text(PRICES)
        command = Command(server, tmp_path / "run", *words, "--max-cost", "0.5")
        killed = command.start()
        while till.bill < 0.4 and killed.poll() is None:
            time.sleep(0.02)
        killed.kill()
        killed.communicate()
        assert 0.4 < till.bill <= 0.5
        _, told = command.start().communicate(timeout=60)
    assert till.bill <= 0.5
    assert "is left of --max-cost 0.5" in on_one_line(told.decode())


FAILING = """
from trajudge import Message, Text, Verdict

asked = 0

async def judge(trajectory, ask):
    global asked
    await ask([Message(role="user", parts=(Text(text=trajectory.goal + str(asked)),))])
    asked += 1
    if asked == 4:
        raise KeyError("goal")
    return Verdict(success=True)
"""


def test_what_a_run_that_failed_has_paid_counts_for_the_next_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The judge fails in its fourth call; the next one may pay what is left of the limit."""
    Path("mine.py").write_text(FAILING)
    till = Till()
    with LlmServer(text=till) as server:
        assert judge(server, 0.5, 1, "--judge", "mine.py", "--judge", "simplified") == 2
    assert "1 of 2 runs failed: mine:gpt-4o: " in capsys.readouterr().err
    assert 0.4 < till.bill <= 0.5


# Whoever asks for it again pays again: the reply of a judgment that failed is not kept for it.
SAME_QUESTION = """
from trajudge import Message, Text
from trajudge.judges.replies import ParseFailure

async def judge(trajectory, ask):
    await ask([Message(role="user", parts=(Text(text=str(trajectory.key)),))])
    raise ParseFailure("no verdict")
"""


def test_a_request_that_two_runs_paid_for_counts_for_both() -> None:
    Path("one.py").write_text(SAME_QUESTION)
    Path("two.py").write_text(SAME_QUESTION)
    till = Till(tokens=2_000)
    words = ("--max-tokens", "2000", "--limit", "3", "--retry-failed")
    judges = ("--judge", "one.py", "--judge", "two.py")
    with LlmServer(text=till) as server:
        for paid in (3, 9, 15, 21, 24, 24):  # the first time the second judge has the cache's
            judge(server, 0.5, 1, *words, *judges)
            assert len(till.charged) == paid
    assert 0.48 < till.bill <= 0.5


def test_what_the_cache_answers_takes_nothing_of_the_budget_of_a_grid() -> None:
    Path("prices.toml").write_text('[models."gpt-4o"]\ninput = 250.0\noutput = 10.0\n')
    words = ["--prices", "prices.toml", "--limit", "6", "--max-failures", "6", "--repair", "0"]
    with LlmServer() as server:
        assert model(server, *words, "--yes") == 0
        dollars = sum(paid(read_judgments(Path("run"))).values())
        assert dollars > 1
        grid = ["--judge", "simplified", "--judge", "insta", "--out", "grid"]
        assert model(server, *words, *grid, "--max-cost", f"{2 * dollars}") == 0
        assert server.stats.requests == 12


def test_an_unpriced_model_cannot_have_a_budget(capsys: pytest.CaptureFixture[str]) -> None:
    with LlmServer() as server:
        assert model(server, "--max-cost", "1") == 2
        assert server.stats.requests == 0
    assert "price" in capsys.readouterr().err


def test_a_dear_run_that_nobody_can_confirm_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    Path("prices.toml").write_text('[models."gpt-4o"]\ninput = 250.0\noutput = 10.0\n')
    with LlmServer() as server:
        assert model(server, "--prices", "prices.toml") == 2
        assert "predicted to cost $" in capsys.readouterr().err
        assert server.stats.requests == 0
        assert model(server, "--prices", "prices.toml", "--yes") == 0


def test_a_dry_run_needs_no_key_and_makes_no_call(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--model", "gpt-4o", "--dry-run") == 0
    shown = capsys.readouterr().out
    assert f"calls         {SAMPLE}, 0 of them" in shown
    counted = re.findall(r"(?:input|output) tokens +([\d,]+)", shown)
    read, written = (int(number.replace(",", "")) for number in counted)
    price = (read * 2.50 + written * 10.00) / 1e6
    assert f"cost          ${price:.4f}" in shown
    assert not Path("run").exists()


def test_the_price_predicted_is_the_price_of_the_tokens_that_openai_counts(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run's replies are as long as the prediction assumes, so the prompts decide."""
    package = find_spec("litellm")
    if package is None or find_spec("tiktoken") is None:
        pytest.skip("the extra litellm, which brings OpenAI's token table, is not installed")
    tables = Path(str(package.origin)).parent / "litellm_core_utils" / "tokenizers"
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tables))
    import tiktoken

    encoding = tiktoken.get_encoding("cl100k_base")
    assert run("--model", "gpt-4o", "--dry-run") == 0
    shown = capsys.readouterr().out
    predicted = int(shown.split("input tokens")[1].split()[0].replace(",", ""))
    with LlmServer(record=SAMPLE) as server:
        assert model(server) == 0
        used = sum(len(encoding.encode(seen.prompt)) for seen in server.seen)
    assert predicted == pytest.approx(used, rel=0.1)


def test_a_grid_is_priced_as_a_whole(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--judge", "heuristic", "--judge", "simplified", "--model", "gpt-4o"]
    assert run(*words, "--model", "gpt-4o-mini", "--dry-run") == 0
    shown = capsys.readouterr().out
    prices = [float(line.split("$")[1]) for line in shown.splitlines() if "$" in line]
    assert len(prices) == 4
    assert prices[0] == 0 < prices[2] < prices[1]
    assert prices[-1] == pytest.approx(sum(prices[:-1]), abs=2e-4)


def test_a_request_is_priced_once_and_what_the_cache_has_is_not() -> None:
    one, other, cached = call(0.25), call(0.5), call(0.5, cached=True)
    asked: set[str] = set()
    first = priced(2, [one, one, other, cached], asked)
    assert first == CostEstimate(2, 4, 2, Usage(input=200, cache_read=40, output=20), 0.75)
    assert asked == {one.request, other.request}
    assert first.times(4) == CostEstimate(4, 8, 4, first.usage, 1.5)
    assert priced(1, [one], asked) == CostEstimate(1, 1, 1, Usage(), 0)
    assert priced(1, [call(None), call(0.5)], asked).cost is None


def test_what_costs_more_than_a_dollar_is_asked_about(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO())
    assert confirm(1.0) and not capsys.readouterr().err
    with pytest.raises(UserError, match=r"predicted to cost \$1.01: give --max-cost DOLLARS or"):
        confirm(1.01)
    assert confirm(None)
    assert "the price of a model is not known" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("calls", "asks_models", "is_expected"),
    [
        ({}, True, True),
        ({}, False, False),
        ({"yes": True}, True, False),
        ({"max_cost": 0}, True, False),
    ],
)
def test_runs_that_ask_models_are_unlimited_until_a_limit_is_agreed(
    calls: dict[str, Any], asks_models: bool, is_expected: bool
) -> None:
    request = RunRequest(calls=CallConfig(**calls))
    runs = [SimpleNamespace(model=None), SimpleNamespace(model=object() if asks_models else None)]
    assert is_unlimited(request, runs) is is_expected  # type: ignore[arg-type]
