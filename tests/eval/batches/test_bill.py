"""The first screen of a run in batches against the provider's bill, whoever collects them."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from tests.batch_server import PRICES, BatchServer
from tests.eval.batches.batch_runs import JUDGMENTS, OPTIONS, judge, run_file
from tests.eval.unattributed import shown_cost
from tests.screens import on_one_line
from trajudge.eval.cli import main
from trajudge.eval.runs.batches import BatchSession
from trajudge.eval.runs.jobs import StopSignal
from trajudge.eval.runs.plan import plan_runs
from trajudge.eval.runs.settings import RunRequest
from trajudge.eval.store.run_folder import dollars_in_all
from trajudge.judges.batch.ledger import Ledger, ledger_path
from trajudge.util.settings import parse
from trajudge.util.terminal import count_of

pytestmark = pytest.mark.usefixtures("own_folder")

RESUME = ["run", "batch", "resume", "--cache", "batch.sqlite"]


@pytest.fixture
def prices() -> list[str]:
    Path("prices.toml").write_text(PRICES.format(model="gpt-4o"))
    return ["--prices", "prices.toml"]


@pytest.mark.parametrize("traps", [{}, {"duplicate": 0.4, "expire": 0.2, "hollow": 0.2}])
@pytest.mark.parametrize("limit", [[], ["--max-cost", "5"]])
def test_the_screen_agrees_with_the_bill(
    traps: dict[str, float],
    limit: list[str],
    prices: list[str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    with BatchServer(seconds=0.05, traps=traps) as server:
        assert judge(server, "batch", "--batch", *prices, *limit) == 0
        bill = server.billed
        assert bool(server.duplicates) == bool(traps)
    assert sum(shown_cost(capsys.readouterr().out)) == pytest.approx(bill, abs=2e-4)
    assert main(["score", "batch"]) == 0
    assert sum(shown_cost(capsys.readouterr().out)) == pytest.approx(bill, abs=2e-4)
    assert main(["score", "batch", "--full"]) == 0
    assert " less for calls that were cheaper in batches" in on_one_line(capsys.readouterr().out)


def test_the_command_collects_at_the_prices_of_the_run(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The table has another price for the model."""
    text = PRICES.format(model="gpt-4o").replace(" = ", " = 1000")
    Path("prices.toml").write_text(text)
    prices = ["--prices", "prices.toml"]
    with BatchServer(seconds=0.0, traps={"duplicate": 0.5}) as server:
        assert judge(server, "batch", "--batch", "--batch-submit-only", *prices) == 130
        assert main(RESUME) == 0
        told = re.search(r"\$([\d.]+) paid", capsys.readouterr().out)
        assert judge(server, "batch", *prices) == 0
        assert server.duplicates
    judgments, beside = shown_cost(capsys.readouterr().out)
    assert told and float(told[1]) == pytest.approx(judgments + beside, abs=2e-4)
    assert beside > 0


def test_a_price_that_the_run_does_not_know_is_told_as_unknown(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The table has a price of this model at its maker's, which this server need not have."""
    with BatchServer(seconds=0.0, traps={"duplicate": 0.5}) as server:
        assert judge(server, "batch", "--batch", "--batch-submit-only") == 130
        assert main(["run", "batch", "status", "--cache", "batch.sqlite"]) == 0
        assert "8 open; at an unknown price" in capsys.readouterr().out
        assert main(RESUME) == 0
        told = capsys.readouterr().out
        assert judge(server, "batch") == 0
    assert "; 8 lines of unknown cost" in told
    assert "$" not in told
    shown = on_one_line(capsys.readouterr().out)
    assert f"Cost: unknown, {JUDGMENTS} calls, " in shown
    assert " more for " not in shown


def test_a_line_that_failed_at_an_unknown_price_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with BatchServer(seconds=0.0, traps={"hollow": 0.5}, seed=1) as server:
        assert judge(server, "batch", "--batch", "--batch-submit-only") == 130
        assert main(RESUME) == 0
        told = capsys.readouterr().out
        server.traps.clear()
        assert judge(server, "batch", "--batch") == 0
    failed = server.hollow
    assert failed > 0
    assert f"{JUDGMENTS - failed} done, {failed} failed; 8 lines of unknown cost" in told
    shown = on_one_line(capsys.readouterr().out)
    more = count_of(failed, "call")
    assert f"; {more} of unknown cost more for failed attempts" in shown


def test_a_model_that_costs_nothing_has_a_known_price(capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is reserved for it, as for one of unknown price."""
    Path("prices.toml").write_text('[models."gpt-4o"]\ninput = 0.0\noutput = 0.0\n')
    with BatchServer(seconds=0.0) as server:
        words = ["--batch", "--batch-submit-only", "--prices", "prices.toml"]
        assert judge(server, "batch", *words) == 130
        assert main(["run", "batch", "status", "--cache", "batch.sqlite"]) == 0
    assert "8 open; at most $0.0000" in capsys.readouterr().out


def test_what_a_retry_reserves_comes_on_top_of_what_its_requests_have_cost(
    prices: list[str],
) -> None:
    """Other runs of the same command have so much less of --max-cost."""
    words = [*prices, "--batch-files", "files", "--max-cost", "5", "--max-failures", "100%"]
    words += ["--repair", "0"]
    with BatchServer() as server:
        assert judge(server, "batch", *words) == 130
        (path,) = Path("files").glob("*.in.jsonl")
        run_file(path, "I cannot say.", is_verdict=False)
        assert judge(server, "batch", *words) == 0
        root = ["--model", "gpt-4o", "--base-url", f"{server.url}/v1", "--limit", str(JUDGMENTS)]
        own = ["--out", "batch", "--cache", "batch.sqlite", "--data", "sample"]
        options = ["--batch-options", OPTIONS, "--retry-failed"]
        request = parse(RunRequest, "trajudge judge", [*root, *own, *words, *options])
        (planned,) = plan_runs(request)
        session = BatchSession(planned, [], StopSignal(), request.batch)
        asyncio.run(session.execute())
    ledger = Ledger(ledger_path(Path("batch.sqlite")))
    run = str(Path("batch").resolve())
    paid = {line.request: line.dollars or 0.0 for line in ledger.paid(run)}
    reserved = ledger.reserved(run)
    ledger.close()
    assert len(paid) == JUDGMENTS and paid.keys() == reserved.keys()
    due = sum(paid.values()) + sum(reserved.values())
    assert dollars_in_all([session.spent]) == pytest.approx(due)
