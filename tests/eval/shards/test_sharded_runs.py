"""Workers that share a run, killed or not, leave the bytes of a run on one machine."""

from __future__ import annotations

import secrets
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import orjson
import pytest

from tests.eval.shards.s3 import BUCKET
from tests.eval.shards.sharing import (
    RUNS,
    check_same,
    ended,
    has_seen,
    merged,
    requests,
    words,
    worker,
)
from tests.eval.test_inputs import tree
from tests.llm_server import LlmServer
from tests.waiting import wait_until
from trajudge.eval.cli import main
from trajudge.eval.runs.workers import workers_for
from trajudge.eval.shards.claims import ShardClaims
from trajudge.eval.shards.objects.opening import open_store


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["folder", "s3"])
def test_two_workers_leave_the_bytes_of_one_machine(
    kind: str,
    server: LlmServer,
    alone: Path,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = str(tmp_path / "run")
    if kind == "s3":
        run = f"s3://{BUCKET}/{secrets.token_hex(4)}"
        for name, value in request.getfixturevalue("s3").items():
            monkeypatch.setenv(name, value)
    both = [
        worker(run, words(server, tmp_path / f"{n}.sqlite"), "--shard-size", "30") for n in range(2)
    ]
    said = [ended(one) for one in both]
    assert all("all are finished" in text for text in said)
    assert set(requests(server).values()) == {1}, "each prompt was asked once"
    shown = merged(run, tmp_path / "merged")
    assert "0 shards changed hands, 0 replies paid for again" in shown
    check_same(tmp_path / "merged", alone)


@pytest.mark.slow
def test_a_killed_worker_costs_what_was_in_flight(
    server: LlmServer, alone: Path, tmp_path: Path
) -> None:
    run = str(tmp_path / "run")
    own = ("--shard-size", "30", "--claim", "1.5")
    killed = 0
    for n in range(3):
        enough = len(server.seen) + 20
        first = worker(run, words(server, tmp_path / f"killed{n}.sqlite"), *own)
        wait_until(partial(has_seen, server, enough), first)
        first.send_signal(signal.SIGKILL)
        killed += first.wait() == -signal.SIGKILL
    assert killed == 3
    ended(worker(run, words(server, tmp_path / "last.sqlite"), *own))
    again = sum(requests(server).values()) - len(requests(server))
    most = killed * workers_for(4)  # asked, or answered and on its way into the store
    assert again <= most, "no more than was in flight at each kill"
    shown = merged(run, tmp_path / "merged")
    assert "0 replies paid for again" in shown, "what was answered was not asked again"
    assert " from the cache" not in shown, "what a killed worker had asked was paid by this run"
    check_same(tmp_path / "merged", alone)


@pytest.mark.slow
def test_an_interrupted_worker_gives_its_shard_back(server: LlmServer, tmp_path: Path) -> None:
    run = str(tmp_path / "run")
    first = worker(run, words(server, tmp_path / "a.sqlite"), "--shard-size", "60")
    wait_until(partial(has_seen, server, 10), first)
    first.send_signal(signal.SIGINT)
    assert "start a worker again" in ended(first, 130)
    begun = time.monotonic()
    ended(worker(run, words(server, tmp_path / "b.sqlite")))
    assert time.monotonic() - begun < 30, "the claim of 60 s was not waited for"
    assert set(requests(server).values()) == {1}


@pytest.mark.slow
def test_a_worker_whose_shard_is_taken_over_goes_on_with_the_next(
    server: LlmServer, alone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Calls wait for their turn when the shard is lost.
    monkeypatch.setattr(server, "latency", lambda _: 0.5 if len(server.seen) < 20 else 0.0)
    run, own = tmp_path / "run", ("--shard-size", "45", "--claim", "1")
    first = worker(str(run), words(server, tmp_path / "replies.sqlite"), *own)
    wait_until(partial(has_seen, server, 10), first)
    other = ShardClaims(open_store(str(run)), "other", 0.5, now=lambda: time.time() + 1.1)
    assert other.claim("00000"), "by a clock that is ahead the claim has run out"
    assert "shard 00000: another worker has taken it over" in ended(first)
    assert "1 shard changed hands" in merged(str(run), tmp_path / "merged")
    check_same(tmp_path / "merged", alone)


@pytest.mark.slow
def test_workers_keep_one_budget(server: LlmServer, tmp_path: Path) -> None:
    run = str(tmp_path / "run")
    prices = tmp_path / "prices.toml"
    prices.write_text('[models."gpt-4o"]\ninput = 2.5\noutput = 10.0\n')
    limit = ["--max-cost", "0.2", "--max-tokens", "300", "--prices", str(prices)]
    both = [
        worker(run, [*words(server, tmp_path / f"{n}.sqlite"), *limit], "--shard-size", "20")
        for n in range(2)
    ]
    said = [ended(one, 1) for one in both]
    assert all("have leased all of --max-cost" in text for text in said)
    held = orjson.loads((tmp_path / "run" / "limits" / "dollars.json").read_bytes())
    assert 0 < sum(held.values()) <= 0.2
    assert 0 < len(server.seen) < RUNS


@pytest.mark.slow
def test_workers_keep_one_rate(server: LlmServer, tmp_path: Path) -> None:
    run = str(tmp_path / "run")
    limit = ["--rpm", "900"]
    begun = time.monotonic()
    both = [
        worker(run, [*words(server, tmp_path / f"{n}.sqlite"), *limit], "--shard-size", "20")
        for n in range(2)
    ]
    for one in both:
        ended(one)
    seconds = time.monotonic() - begun
    assert seconds >= (RUNS - 2) * 60 / 900
    assert len(server.seen) == RUNS


def test_mistakes_are_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def said(code: int, *command: str) -> str:
        assert main(["run", *command]) == code
        shown = capsys.readouterr()
        return shown.out + shown.err

    run, out = str(tmp_path / "run"), str(tmp_path / "merged")
    share = ("work", "--shared", run, "--judge", "heuristic", "--data", "sample")
    merging = ("merge", "--shared", run, "--out", out)
    assert "name what" in said(2, *merging)
    said(0, *share, "--limit", "30", "--shard-size", "20")
    other = said(2, *share, "--limit", "40")
    assert f"error: {run}: holds a run with selection" in other
    assert "one --judge" in said(2, *share, "--judge", "rule-based")
    assert "takes no --out" in said(2, *share, "--out", "x")
    shard = tmp_path / "run" / "shards" / "00001"
    with without(shard / "done.json"):
        assert "1 of 2 shards are not finished, workers: none at work" in said(2, *merging)
    (part,) = shard.glob("*.judgments.jsonl.zst")
    with without(part):
        damaged = ("merge", "--shared", run, "--out", str(tmp_path / "damaged"))
        assert "is damaged or missing: remove shards/00001/done.json" in said(2, *damaged)
    before = tree(tmp_path / "run")
    said(0, *merging)
    assert tree(tmp_path / "run") == before
    assert "holds a run already" in said(2, *merging)


@contextmanager
def without(path: Path) -> Iterator[None]:
    content = path.read_bytes()
    path.unlink()
    yield
    path.write_bytes(content)
