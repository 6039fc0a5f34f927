"""A run that workers share against a server that keeps the bill: the merged run's screen accounts
for every dollar, whoever paid it."""

from __future__ import annotations

import signal
from functools import partial
from pathlib import Path

import orjson
import pytest

from tests.command_words import instead
from tests.eval.shards.sharing import ended, has_seen, merged, words, work, worker
from tests.eval.test_paid_beside import RubricTill, Till, shown_cost
from tests.llm_server import LlmServer
from tests.screens import on_one_line
from tests.waiting import wait_until
from trajudge.eval.cli import main
from trajudge.eval.shards.objects.folder import FolderStore
from trajudge.eval.shards.plan import PLAN
from trajudge.eval.shards.replies import kept_of

OWN = ("--shard-size", "30", "--claim", "1.5")
FAILING = ["--max-failures", "100%"]


@pytest.fixture
def prices(tmp_path: Path) -> list[str]:
    path = tmp_path / "prices.toml"
    path.write_text('[models."gpt-4o"]\ninput = 250.0\noutput = 1000.0\n')
    return ["--prices", str(path)]


def scored_cost(folder: Path, capsys: pytest.CaptureFixture[str]) -> tuple[float, float]:
    capsys.readouterr()
    assert main(["score", str(folder)]) == 0
    return shown_cost(capsys.readouterr().out)


@pytest.mark.slow
@pytest.mark.parametrize("limit", [[], ["--max-cost", "1000"]])
def test_failed_attempts_of_all_workers_are_told(
    limit: list[str], prices: list[str], tmp_path: Path
) -> None:
    till, run = Till(), str(tmp_path / "run")
    with LlmServer(text=till, latency=0.02, record=1_000) as server:
        own = [*prices, *limit, *FAILING]
        both = [
            worker(run, [*words(server, tmp_path / f"{n}.sqlite"), *own], *OWN) for n in range(2)
        ]
        for one in both:
            ended(one)
    judgments, beside = shown_cost(merged(run, tmp_path / "merged"))
    assert beside > 0
    assert judgments + beside == pytest.approx(sum(till.charged), abs=2e-4)


@pytest.mark.slow
def test_what_a_worker_paid_that_was_stopped_or_killed_is_told(
    prices: list[str], tmp_path: Path
) -> None:
    till, run = Till(), str(tmp_path / "run")
    with LlmServer(text=till, latency=0.05, record=1_000) as server:
        for place, number in enumerate((signal.SIGINT, signal.SIGKILL)):
            enough = len(server.seen) + 20
            options = [*words(server, tmp_path / f"{place}.sqlite"), *prices, *FAILING]
            first = worker(run, options, *OWN)
            wait_until(partial(has_seen, server, enough), first)
            first.send_signal(number)
            first.wait()
        before = len(till.charged)
        ended(worker(run, [*words(server, tmp_path / "last.sqlite"), *prices, *FAILING], *OWN))
    assert len(till.charged) > before
    shown = merged(run, tmp_path / "merged")
    judgments, beside = shown_cost(shown)
    assert beside > 0
    assert " from the cache" not in shown
    lost = sum(till.charged) - judgments - beside
    # Nobody knows what became of the calls that were in flight at the kill.
    assert -2e-4 < lost < 6 * max(till.charged)


@pytest.mark.slow
def test_a_request_that_two_workers_paid_counts_for_each(
    prices: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The criteria of a task are written once by each worker, whichever agents tried it."""
    till, run = RubricTill(), str(tmp_path / "run")
    with LlmServer(text=till, latency=0.02, record=2_000) as server:
        own = [*prices, "--judge", "rubric"]
        both = [
            worker(run, [*words(server, tmp_path / f"{n}.sqlite"), *own], *OWN) for n in range(2)
        ]
        for one in both:
            ended(one)
    assert len(till.criteria) > len(set(till.criteria)), "both asked some"
    shown = merged(run, tmp_path / "merged")
    told = shown_cost(shown)
    assert sum(told) == pytest.approx(sum(till.charged), abs=2e-4)
    assert " more for " in on_one_line(shown)
    assert scored_cost(tmp_path / "merged", capsys) == told


def test_workers_of_an_earlier_release_can_read_what_is_kept_in_their_store(
    prices: list[str], tmp_path: Path
) -> None:
    """They take every line for a reply."""
    stores = own, earlier = [tmp_path / name for name in ("own", "earlier")]
    with LlmServer(text=Till(is_sound=True)) as server:
        for store in stores:
            own_words = words(server, tmp_path / f"{store.name}.sqlite")
            options = instead(own_words, [*prices, "--limit", "4"])
            assert main(work(str(store), *options)) == 0
            plan = orjson.loads((store / PLAN).read_bytes())
            if store is own:
                assert plan.pop("payments")
                earlier.mkdir()
                (earlier / PLAN).write_bytes(orjson.dumps(plan))
    kept, readable = (kept_of(FolderStore(store), "00000") for store in stores)
    assert len(kept.replies) == len(kept.payments) == len(readable.replies) == 4
    assert not readable.payments
