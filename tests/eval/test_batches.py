"""Runs in batches of a provider: the bytes of a live run, limits, and the bill."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from tests.batch_kills import measure
from tests.batch_server import PRICES, BatchServer
from tests.eval.batch_runs import JUDGMENTS, OPTIONS, judge, live, run_file
from tests.eval.unattributed import shown_cost
from tests.judges.adapters.requests import adapter_for, request
from tests.samples import repeats
from tests.screens import on_one_line
from tests.waiting import wait_until
from trajudge.eval.cli import main
from trajudge.eval.judge import main as judge_main
from trajudge.eval.runs.batches import BatchSession
from trajudge.eval.runs.jobs import StopSignal
from trajudge.eval.runs.plan import plan_runs
from trajudge.eval.runs.settings import RunRequest
from trajudge.eval.store.run_folder import dollars_in_all, read_judgments
from trajudge.judges.adapters.anthropic import AnthropicAdapter
from trajudge.judges.adapters.errors import CallFailed, NoAccess, Refused, Retryable
from trajudge.judges.adapters.openai import OpenAIAdapter
from trajudge.judges.batch.anthropic import AnthropicBatches
from trajudge.judges.batch.collect import BatchCollection, Batches, batch_service
from trajudge.judges.batch.ledger import (
    BatchLine,
    BatchRow,
    Ledger,
    LineOutcome,
    PaidLine,
    ledger_path,
)
from trajudge.judges.batch.openai import FileBatches, OpenAIBatches, output_of
from trajudge.judges.batch.service import (
    BatchOptions,
    BatchService,
    LineResult,
    ProviderState,
    batch_options,
    whole,
)
from trajudge.judges.engine.cache import Cache
from trajudge.judges.model import Usage
from trajudge.judges.models import Price
from trajudge.util.errors import UserError
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


PLACE = ("test", "gpt-4o")
REQUESTS = [request(parameters={"seed": seed}) for seed in range(4)]
DOLLAR = Usage(output=1)


@contextmanager
def collecting(options: str = "", *, limit: float | None = None) -> Iterator[Batches]:
    """Yield batches that are written into a folder; an output token costs a dollar."""
    adapter, _ = adapter_for("openai", "http://127.0.0.1:9")
    assert isinstance(adapter, OpenAIAdapter)
    ledger, cache = Ledger(Path("ledger")), Cache(Path("cache"))
    batches = Batches(
        *(ledger, cache, {PLACE: FileBatches(adapter, Path("files"))}),
        {PLACE: batch_options("files", options)},
        {PLACE: Price(input=0.0, output=1e6)},
        limit=limit,
    )
    try:
        yield batches
    finally:
        batches.begin_round(0.0)  # which closes the files of the round
        cache.close()
        ledger.close()


def test_requests_are_taken_in_up_to_the_limit_and_the_dearest_of_the_others_is_told() -> None:
    with collecting(limit=3.0) as batches:
        assert (batches.spent, batches.deferred, batches.grace) == (0.0, 0.0, 900.0)
        batches.begin_round(1.0)
        for one in (*REQUESTS[:2], REQUESTS[0]):
            batches.add(one, DOLLAR, DOLLAR)
        assert (batches.reserved, batches.deferred) == (2.0, 0.0)
        batches.add(REQUESTS[2], DOLLAR, DOLLAR)
        batches.add(REQUESTS[3], DOLLAR, Usage(output=2))
        batches.add(REQUESTS[2], DOLLAR, DOLLAR)
        assert batches.requests == {one.hash for one in REQUESTS[:2]}
        assert (batches.reserved, batches.deferred) == (2.0, 2.0)
    with collecting() as batches:
        for one in REQUESTS:
            batches.add(one, DOLLAR, Usage(output=1_000))
        assert (batches.reserved, batches.deferred) == (4_000.0, 0.0)


def test_as_many_batches_go_out_as_their_tokens_have_room() -> None:
    for options, count in (("lines=1,enqueued=20", 2), ("lines=1,enqueued=19", 1), ("lines=1", 3)):
        with collecting(options) as batches:
            batches.begin_round(0.0)
            for one in REQUESTS[:3]:
                batches.add(one, Usage(output=10), DOLLAR)
            assert not batches.is_full
            assert asyncio.run(batches.submit()) == count
            assert batches.is_full == (count < 3)
            for row in batches.open_rows():
                assert (row.lines, row.tokens, row.duplicates) == (1, 10, 0)
                batches.ledger.release(row.id, "")


def test_a_provider_that_never_has_room_is_asked_twenty_times() -> None:
    class Full(FileBatches):
        async def submit(self, batch: str, lines: object) -> str:
            raise Retryable("full")

    with collecting() as batches:
        adapter = batches.services[PLACE].adapter
        batches.services = {PLACE: Full(adapter, Path("files"))}
        batches.add(REQUESTS[0], DOLLAR, DOLLAR)
        for _ in range(19):
            assert asyncio.run(batches.submit()) == 0
            assert batches.is_full
        with pytest.raises(UserError, match="has no room for a batch though none is under way"):
            asyncio.run(batches.submit())


@pytest.mark.parametrize(("is_full", "pauses"), [(False, 4), (True, 2)])
def test_batches_are_waited_for_or_the_first_where_others_need_its_room(
    is_full: bool, pauses: int
) -> None:
    waited: list[float] = []
    with collecting("lines=1,poll=2") as batches:
        for one in REQUESTS[:2]:
            batches.add(one, DOLLAR, DOLLAR)
        asyncio.run(batches.submit())
        first, second = (row.provider_id for row in batches.open_rows())
        batches.is_full = is_full

        async def pause(seconds: float) -> bool:
            waited.append(seconds)
            if len(waited) in (2, 4):
                run_file(Path(first if len(waited) == 2 else second), "")
            return True

        assert asyncio.run(batches.wait(pause))
    assert waited == [2.0, 3.0, 4.5, 6.75][:pauses]


def test_looks_become_rarer_up_to_thirty_times_the_first_wait() -> None:
    waited: list[float] = []

    async def pause(seconds: float) -> bool:
        waited.append(seconds)
        return len(waited) < 12

    with collecting("poll=2") as batches:
        batches.add(REQUESTS[0], DOLLAR, DOLLAR)
        asyncio.run(batches.submit())
        assert not asyncio.run(batches.wait(pause))
        assert batches.progress == "1 batch: 0 of 1 requests through"
    assert waited == [min(2.0 * 1.5**n, 60.0) for n in range(12)]


def test_a_line_dearer_than_reserved_raises_what_others_reserve_and_is_told_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for limit, overruns, reserved, warnings in (
        (9.0, [1.0], 1.0, 0),
        (9.0, [2.0, 1.5], 3.0, 1),
        (None, [2.0], 2.0, 0),
    ):
        with collecting(limit=limit) as batches:
            for overrun in overruns:
                batches.note((PLACE, BatchCollection(overrun=overrun)))
            batches.add(REQUESTS[0], DOLLAR, DOLLAR)
            assert batches.reserved == reserved
        assert capsys.readouterr().err.count("warning: a line of a batch cost") == warnings


def test_a_request_fails_after_five_attempts_and_ten_such_end_the_run() -> None:
    hashes = [f"{n:064x}" for n in range(10)]
    failed = BatchCollection(failed=dict.fromkeys(hashes, Retryable("no answer")))
    with collecting() as batches:
        batches.note((PLACE, BatchCollection(failed={hashes[0]: None})))
        for _ in range(4):
            batches.note((PLACE, failed))
        assert (batches.failed, batches.error) == ({}, None)
        batches.note((PLACE, failed))
        assert batches.failed == failed.failed
        ended = batches.error
        assert "10 requests were refused and none answered: no answer" in str(ended)
        batches.note((PLACE, BatchCollection()))
        assert batches.error is ended


def test_ten_refusals_of_a_kind_end_the_run_once_they_are_kept() -> None:
    refused = {f"{n:064x}": Refused("not of this") for n in range(9)}
    with collecting() as batches:
        batches.note((PLACE, BatchCollection(answered={**refused})))
        assert batches.error is None
        batches.note((PLACE, BatchCollection(answered={"f" * 64: Refused("not of this")})))
        assert "10 requests were refused and none answered" in str(batches.error)
        with pytest.raises(UserError, match="the key is wrong"):
            batches.note(
                (("other", "m"), BatchCollection(failed={"f": NoAccess("the key is wrong")}))
            )


def test_what_brings_no_result_is_asked_again(capsys: pytest.CaptureFixture[str]) -> None:
    """A line that the output lacks in silence, those with errors in one sentence."""
    for missing, told in ((2, " (and 1 more): "), (1, ": ")):
        with collecting() as batches:
            for one in REQUESTS[: missing + 2]:
                batches.add(one, DOLLAR, DOLLAR)
            asyncio.run(batches.submit())
            (row,) = batches.open_rows()
            run_file(Path(row.provider_id), "")
            output = output_of(row.provider_id)
            answered, _, *others = map(orjson.loads, output.read_bytes().splitlines())
            for line in others:
                line["response"] |= {"status_code": 500, "body": {"error": {"message": "later"}}}
            output.write_bytes(b"\n".join(map(orjson.dumps, [answered, answered, *others])))
            ((place, collection),) = asyncio.run(batches.look())
            batches.ledger.release(row.id, "")
        assert place == PLACE
        assert [*collection.answered] == [answered["custom_id"]]
        assert len(collection.failed) == missing + 1
        assert collection.duplicates == 1
        err = capsys.readouterr().err
        assert err.count("warning: ") == 1
        assert f"later{told}its request is asked again\n" in err


def test_the_state_of_a_file_is_that_of_its_output(capsys: pytest.CaptureFixture[str]) -> None:
    with collecting() as batches:
        service = batches.services[PLACE]
        for one in REQUESTS[:2]:
            batches.add(one, DOLLAR, DOLLAR)
        asyncio.run(batches.submit())
        (row,) = batches.open_rows()
        assert not row.provider_id.endswith("out.jsonl")
        written, output = Path(row.provider_id), output_of(row.provider_id)

        def state() -> ProviderState:
            return asyncio.run(service.state(row.provider_id))

        assert state() == ProviderState(ended=False, through=0, failed="", is_full=False)
        output.write_text("{}\n\n")
        assert state() == ProviderState(ended=False, through=1)
        output.write_text("{}\n{}\n")
        assert state() == ProviderState(ended=True, through=2)
        written.unlink()
        assert state() == ProviderState(ended=True, through=2)
        output.write_text("{\n\n[\n{\n")
        assert asyncio.run(service.results(row.provider_id)) == []
        cut = f"warning: {output} line 1 is cut (and 2 more): its request is asked again\n"
        assert capsys.readouterr().err == cut
        output.unlink()
        gone = "its file is not there any more; start the same command again, which writes it anew"
        assert state() == ProviderState(ended=False, through=0, failed=gone)


def test_what_batches_go_through_which_adapter() -> None:
    chat, _ = adapter_for("openai", "http://127.0.0.1:9")
    messages, _ = adapter_for("anthropic", "http://127.0.0.1:9")
    assert isinstance(messages, AnthropicAdapter)
    assert type(batch_service(chat, "m", None)) is OpenAIBatches
    assert type(batch_service(chat, "m", Path("files"))) is FileBatches
    assert type(batch_service(messages, "m", None)) is AnthropicBatches
    with pytest.raises(UserError, match=r"^--batch-files .chat completions. does not go with m "):
        batch_service(messages, "m", Path("files"))
    messages.name = "bedrock"
    with pytest.raises(UserError, match=r"^--batch does not go with m through .* bedrock: "):
        batch_service(messages, "m", None)


def test_options_go_before_the_table_and_another_server_needs_both_limits() -> None:
    listed = BatchOptions(lines=50_000, bytes=200_000_000, poll=10.0, grace=900.0)
    assert batch_options("openai", None) == listed
    assert batch_options("openai", "tokens=7") == listed.model_copy(update={"tokens": 7})
    own = batch_options("http://host", "lines=3, bytes=4")
    assert (own.lines, own.bytes, own.enqueued) == (3, 4, None)
    for text in ("lines=3", "bytes=4", None):
        with pytest.raises(UserError, match="the limits of batch files at http://host are not"):
            batch_options("http://host", text)
    for text in ("tokens=0", "tokens=inf", "tokens=x", "token=1"):
        with pytest.raises(UserError, match=f"'{text}': write NAME=NUMBER"):
            batch_options("openai", text)


def test_results_are_whole_with_as_many_answers_as_the_provider_counts() -> None:
    results = [LineResult("a", {}), LineResult("a", {}), LineResult("b", None, 500)]
    assert whole(results, 1, "batch") == results
    assert (results[0].expired, results[2].expired) == (False, False)
    with pytest.raises(CallFailed, match=r"^1 of 2 answers of batch batch arrived$"):
        whole(results, 2, "batch")


@pytest.mark.parametrize("name", ["openai", "anthropic"])
def test_a_submission_is_found_again_by_its_own_name(name: str) -> None:
    """Another run has submitted as many lines since; it is not searched for in older batches."""
    service: BatchService
    with BatchServer(seconds=0.0) as server:
        adapter, model = adapter_for(name, server.url)
        service = batch_service(adapter, model, None)

        def submitted() -> tuple[BatchRow, str]:
            row = BatchRow(service.name, "test", model, "", "", lines=1)
            body, parameters = service.adapter.batch_body(request(model))
            line = service.line("0" * 64, body)
            return row, run(service.submit(row.id, [BatchLine("0" * 64, line, parameters, 1, 0.0)]))

        with asyncio.Runner() as runner:
            run = runner.run
            row, provider_id = submitted()
            other, other_id = submitted()
            wait_until(lambda: run(service.state(provider_id)).ended)
            wait_until(lambda: run(service.state(other_id)).ended)
            assert run(service.find(row, ["0" * 64], set())) == provider_id
            assert run(service.find(other, ["0" * 64], set())) == other_id
            assert run(service.find(replace(row, id="1" * 24), ["0" * 64], set())) == ""
            if name == "anthropic":  # has no name of ours until it has ended
                assert run(service.find(row, ["0" * 64], {provider_id})) == ""
                assert run(service.find(replace(row, lines=2), ["0" * 64], set())) == ""
                server.batches[other_id].created = other.intent_at - 890
                assert run(service.find(other, ["0" * 64], {provider_id})) == other_id
                server.batches[other_id].created = row.intent_at - 910
                assert run(service.find(row, ["0" * 64], set())) == ""
            run(adapter.close())


def test_what_lines_have_cost_is_known_reserved_or_unknown() -> None:
    with collecting() as batches:
        row = BatchRow("files", *PLACE, "run", "")
        lines = [BatchLine(one.hash, b"", {}, 1, 0.0) for one in REQUESTS]
        batches.ledger.intend(row, lines)
        first, second, third, free = (line.request for line in lines)
        outcomes = [
            LineOutcome(first, "done", 2.0, is_unpriced=False),
            LineOutcome(second, "failed", 3.0, is_unpriced=True),
            LineOutcome(third, "done", 0.0, is_unpriced=True),
            LineOutcome(free, "done", 0.0, is_unpriced=False),
        ]
        batches.ledger.collected(row.id, outcomes, 0)
        paid = {one.request: one for one in batches.ledger.paid("run")}
    assert paid == {
        first: PaidLine(f"{row.id}-{first}", first, 2.0, is_answered=True),
        second: PaidLine(f"{row.id}-{second}", second, 3.0, is_answered=False),
        third: PaidLine(f"{row.id}-{third}", third, None, is_answered=True),
    }


@pytest.mark.slow
@pytest.mark.sampled
def test_kills(tmp_path: Path) -> None:
    kills = repeats(2, 100)
    toll = measure("gpt-4o", kills, tmp_path, limit=6)
    assert toll.kills == kills
    assert toll.double == toll.lost == toll.over_limit == toll.unreserved == 0
    assert toll.same_bytes
