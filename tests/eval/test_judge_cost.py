"""What a run may cost: predicted, confirmed, bounded."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.eval.judge_command import SAMPLE, model, run, statuses
from tests.llm_server import LlmServer
from trajudge.eval.store.run_folder import paid, read_judgments

pytestmark = pytest.mark.usefixtures("own_folder")


def test_the_budget_ends_the_run_and_the_same_command_goes_on(
    capsys: pytest.CaptureFixture[str],
) -> None:
    prices = Path("prices.toml")
    prices.write_text('[models."gpt-4o"]\ninput = 2.5\noutput = 10.0\n')
    words = ["--prices", str(prices), "--concurrency", "2"]
    with LlmServer() as server:
        assert model(server, *words, "--max-cost", "0.05") == 1
        assert "--max-cost" in capsys.readouterr().err
        some = len(statuses())
        assert 0 < some < SAMPLE
        assert model(server, *words, "--max-cost", "5") == 0
        assert len(statuses()) == server.stats.requests == SAMPLE
    spent = sum(call.cost or 0 for j in read_judgments(Path("run"))[:some] for call in j.calls)
    assert 0 < spent <= 0.05


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
