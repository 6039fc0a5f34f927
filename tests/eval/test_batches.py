"""Runs in batches of a provider: the bytes of a live run, limits, and the bill."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from pathlib import Path

import orjson
import pytest

from tests.batch_kills import measure
from tests.batch_server import PRICES, BatchServer
from tests.eval.batch_runs import JUDGMENTS, OPTIONS, judge, live, run_file
from tests.eval.unattributed import shown_cost
from tests.samples import repeats
from tests.screens import on_one_line
from trajudge.eval.cli import main
from trajudge.eval.judge import main as judge_main
from trajudge.eval.runs.batches import BatchSession
from trajudge.eval.runs.jobs import StopSignal
from trajudge.eval.runs.plan import plan_runs
from trajudge.eval.runs.settings import RunRequest
from trajudge.eval.store.run_folder import dollars_in_all, read_judgments
from trajudge.judges.batch.ledger import Ledger, ledger_path
from trajudge.util.settings import parse
from trajudge.util.terminal import count_of

pytestmark = pytest.mark.usefixtures("own_folder")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "kind"),
    [("gpt-4o", "simplified"), ("claude-sonnet-4-5", "simplified"), ("gpt-4o", "webjudge")],
)
def test_the_bytes_of_a_live_run(name: str, kind: str) -> None:
    with BatchServer() as server:
        judgments = live(server, "--judge", kind, name=name)
        calls = server.live
        assert judge(server, "batch", "--batch", "--judge", kind, name=name) == 0
        assert server.live == calls
    assert Path("batch/judgments.jsonl").read_bytes() == judgments
    assert server.double == server.over_limit == 0
    assert judgments.count(b"\n") == JUDGMENTS
    live_manifest, manifest = (
        orjson.loads(Path(f"{run}/manifest.json").read_bytes()) for run in ("live", "batch")
    )
    assert manifest == live_manifest


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gpt-4o", "claude-sonnet-4-5"])
def test_traps(name: str) -> None:
    traps = dict.fromkeys(("accept_500", "accept_drop", "refuse_429", "cut"), 0.3)
    traps |= {"expire": 0.3, "error": 0.05, "duplicate": 0.1}
    with BatchServer(traps=traps, seed=3) as server:
        judgments = live(server, name=name)
        assert judge(server, "batch", "--batch", name=name) == 0
    assert Path("batch/judgments.jsonl").read_bytes() == judgments
    assert server.double == server.over_limit == 0
    assert server.submissions > 1


def test_a_refused_line_is_a_status() -> None:
    with BatchServer(traps={"refuse": 1.0}) as server:
        assert judge(server, "batch", "--batch") == 1
    found = read_judgments(Path("batch"))
    assert {one.status for one in found} == {"refused"}
    assert {one.success for one in found} == {None}


def test_a_line_that_always_fails_is_a_provider_error() -> None:
    with BatchServer(traps={"error": 1.0}, seconds=0.05) as server:
        assert judge(server, "batch", "--batch", "--limit", "3") == 1
        assert server.submissions == 5
    assert {one.status for one in read_judgments(Path("batch"))} == {"provider_error"}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gpt-4o", "claude-sonnet-4-5"])
def test_a_lost_submission_is_not_taken_for_that_of_another_run(name: str) -> None:
    """Another run with a cache of its own asked the same, of as many trajectories."""
    with BatchServer(seconds=0.05) as server:
        assert judge(server, "other", "--batch", name=name) == 0
        server.forget_lines()
        server.seconds, server.traps = 1.0, {"accept_500": 1.0}
        assert judge(server, "batch", "--batch", name=name) == 0
        taken = [*server.batches]
    ledger = Ledger(Path("batch.sqlite.batches"))
    assert [row.provider_id for row in ledger.batches()] == taken[1:]
    ledger.close()
    assert server.double == 0
    assert Path("batch/judgments.jsonl").read_bytes() == Path("other/judgments.jsonl").read_bytes()


def test_ten_lines_refused_in_the_same_words_end_the_run(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """As of live calls: what is wrong with all requests is not asked of all of them."""
    with BatchServer(traps={"refuse": 1.0}) as server:
        assert judge(server, "batch", "--batch", "--limit", "12") == 2
        told = on_one_line(capsys.readouterr().err)
        assert "10 requests were refused and none answered: " in told
        assert server.submissions == 1
        server.traps.clear()
        assert judge(server, "batch", "--batch", "--limit", "12", "--retry-failed") == 0


def test_a_line_that_is_answered_makes_refusals_statuses() -> None:
    with BatchServer(traps={"refuse": 0.9}, seed=1) as server:
        assert judge(server, "batch", "--batch", "--limit", "24") == 1
    statuses = Counter(str(one.status) for one in read_judgments(Path("batch")))
    assert statuses["refused"] >= 10
    assert statuses["ok"] == 24 - statuses["refused"] > 0


def test_azure_has_paths_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "a-key")
    monkeypatch.setenv("OPENAI_API_VERSION", "2024-10-21")
    words = ["--data", "sample", "--limit", str(JUDGMENTS), "--model", "azure/gpt-4o", "--yes"]
    with BatchServer() as server:
        monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", server.url)
        assert judge_main([*words, "--out", "live", "--cache", "live.sqlite"]) == 0
        calls = server.live
        batch = ["--out", "batch", "--cache", "batch.sqlite", "--batch", "--batch-options", OPTIONS]
        assert judge_main([*words, *batch]) == 0
        assert (server.live, server.submissions, server.double) == (calls, 1, 0)
        (taken,) = server.batches.values()
        lines = [orjson.loads(line) for line in taken.lines.values()]
    assert {line["url"] for line in lines} == {"/chat/completions"}
    assert {line["body"]["model"] for line in lines} == {"gpt-4o"}, "the deployment's name"
    asked = {path for path in server.paths if "batches" in path or "files" in path}
    assert asked
    assert all(path.startswith("/openai/") for path in asked)
    assert all("api-version=2024-10-21" in path for path in asked)
    assert Path("batch/judgments.jsonl").read_bytes() == Path("live/judgments.jsonl").read_bytes()


@pytest.mark.parametrize("name", ["gpt-4o", "claude-sonnet-4-5"])
def test_a_cancelled_batch_keeps_what_was_answered(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same command then asks for the rest alone."""
    for provider in ("OPENAI", "ANTHROPIC"):
        monkeypatch.setenv(f"{provider}_API_KEY", "a-key")
    with BatchServer(seconds=2.0) as server:
        judgments = live(server, name=name)
        assert judge(server, "batch", "--batch", "--batch-submit-only", name=name) == 130
        (first,) = server.batches
        assert main(["run", "batch", "cancel", first, "--cache", "batch.sqlite"]) == 0
        server.seconds = 0.1
        assert judge(server, "batch", "--batch", name=name) == 0
        (_, second) = server.batches.values()
        assert len(second.lines) == JUDGMENTS // 2
        assert server.double == 0
        capsys.readouterr()
        assert main(["run", "batch", "status", "--cache", "batch.sqlite"]) == 0
    assert "4 done, 4 failed" in capsys.readouterr().out
    assert Path("batch/judgments.jsonl").read_bytes() == judgments


def test_a_batch_whose_server_is_away_is_not_cancelled_and_said(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with BatchServer(seconds=9.0) as server:
        assert judge(server, "batch", "--batch", "--batch-submit-only") == 130
    capsys.readouterr()
    assert main(["run", "batch", "cancel", "--cache", "batch.sqlite"]) == 2
    assert (
        "error: batch batch_0 is not cancelled: cannot reach 127.0.0.1" in capsys.readouterr().err
    )


def test_a_batch_that_is_not_there_cannot_be_cancelled(capsys: pytest.CaptureFixture[str]) -> None:
    with BatchServer() as server:
        assert judge(server, "batch", "--batch") == 0
    assert main(["run", "batch", "cancel", "batch_77", "--cache", "batch.sqlite"]) == 2
    assert "no batch 'batch_77'" in capsys.readouterr().err


@pytest.mark.parametrize("told", [True, False])
def test_no_more_tokens_are_enqueued_than_the_account_may(told: bool) -> None:
    """Told of the limit, nothing is refused; else the provider refuses, and there is another try
    once a batch has ended."""
    with BatchServer(seconds=0.1, enqueued=9_000) as server:
        judgments = live(server)
        options = f"{OPTIONS},tokens=6000" + (",enqueued=8000" if told else "")
        assert judge(server, "batch", "--batch", "--batch-options", options) == 0
        refused = [one for one in server.batches.values() if one.failed]
        assert server.double == 0
        assert server.submissions > 2
        assert bool(refused) is not told
    assert Path("batch/judgments.jsonl").read_bytes() == judgments


def test_a_batch_is_never_dearer_than_its_limit(capsys: pytest.CaptureFixture[str]) -> None:
    """What does not fit is left; with more money the same command goes on to the same bytes."""
    Path("prices.toml").write_text(PRICES.format(model="gpt-4o"))
    prices = ("--prices", "prices.toml")
    with BatchServer(seconds=0.05) as server:
        judgments = live(server, *prices)
        before = server.billed
        assert judge(server, "batch", "--batch", *prices, "--max-cost", "0.02") == 1
        assert "--max-cost 0.02" in capsys.readouterr().err
        assert 0 < server.billed - before <= 0.02
        done = Path("batch/judgments.jsonl").read_bytes().count(b"\n")
        assert 0 < done < JUDGMENTS
        assert judge(server, "batch", "--batch", *prices, "--max-cost", "5") == 0
        assert server.double == 0
    assert Path("batch/judgments.jsonl").read_bytes() == judgments


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


@pytest.mark.slow
@pytest.mark.sampled
def test_kills(tmp_path: Path) -> None:
    kills = repeats(2, 100)
    toll = measure("gpt-4o", kills, tmp_path, limit=6)
    assert toll.kills == kills
    assert toll.double == toll.lost == toll.over_limit == toll.unreserved == 0
    assert toll.same_bytes
