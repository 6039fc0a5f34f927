"""Kill runs in batches, against a provider full of traps.

The real command judges the bundled sample in batches and is killed at random moments until it was
killed N times (a run that comes to its end begins again in a new folder with a new cache). The
provider is ``tests.batch_server``: it takes submissions and answers 500 or drops the connection,
refuses some, lets lines expire or fail, answers lines twice and out of order, and cuts downloads.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tests.batch_server import PRICES, BatchServer
from trajudge.judges.batch.ledger import Ledger

ROOT = Path(__file__).parents[1]
OPTIONS = "lines=50000,bytes=200000000,poll=0.1,grace=1.0"
REQUESTS = 6  # of a process to the provider at most, before it is killed
MOMENT = 0.3  # seconds at most after them: between two requests, or on the way of one
TRAPS = {
    "accept_500": 0.15,
    "accept_drop": 0.15,
    "refuse_429": 0.1,
    "cut": 0.2,
    "expire": 0.1,
    "error": 0.05,
    "duplicate": 0.01,
}


class Toll(NamedTuple):
    """What came of the kills: ``double`` submissions of a line, replies that were ``lost`` (live
    calls in place of them, or judgments without), files ``over_limit``, moments at which less money
    was reserved and paid than billed (``unreserved``)."""

    kills: int
    runs: int
    submissions: int
    lines: int
    double: int
    lost: int
    over_limit: int
    unreserved: int
    same_bytes: bool


class Judging:
    """The real command against a server, in a folder of its own."""

    def __init__(self, server: BatchServer, folder: Path, model: str, limit: int | None) -> None:
        folder.mkdir(parents=True)
        self.folder, self.cache = folder, folder / "replies.sqlite"
        prices = folder / "prices.toml"
        prices.write_text(PRICES.format(model=model))
        root = server.url if model.startswith("claude") else f"{server.url}/v1"
        self.words = [
            *(sys.executable, "-m", "eval.judge", "--data", "sample", "--model", model),
            *("--base-url", root, "--prices", str(prices), "--cache", str(self.cache)),
            *("--out", "run", "--yes", *(("--limit", str(limit)) if limit else ())),
        ]

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        return subprocess.Popen(
            [*self.words, *words],
            cwd=self.folder,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )

    def finish(self, *words: str) -> None:
        process = self.start(*words)
        _, shown = process.communicate()
        assert process.returncode == 0, shown.decode()

    def judgments(self) -> bytes:
        return (self.folder / "run" / "judgments.jsonl").read_bytes()

    def dollars(self) -> float:
        """Reserved and paid so far, by the ledger."""
        path = self.cache.with_name(self.cache.name + ".batches")
        if not path.is_file():
            return 0.0
        ledger = Ledger(path)
        try:
            run = str((self.folder / "run").resolve())
            reserved = sum(ledger.reserved(run).values())
            return reserved + sum(line.dollars or 0.0 for line in ledger.paid(run))
        finally:
            ledger.close()


BATCH = ("--batch", "--batch-options", OPTIONS)


def measure(model: str, kills: int, folder: Path, limit: int | None = None, seed: int = 0) -> Toll:
    """Kill the command so many times, over as many runs as it takes."""
    rng = np.random.default_rng(seed)
    server = BatchServer(traps=TRAPS, seed=seed, seconds=0.6)
    with server:
        live = Judging(server, folder / "live", model, limit)
        live.finish()
        live_calls, expected = server.live, live.judgments()
        done = runs = unreserved = 0
        same = True
        while done < kills:
            judging = Judging(server, folder / f"run-{runs}", model, limit)
            runs += 1
            billed = server.billed
            server.forget_lines()
            for _ in _kills(judging, server, rng, kills - done):
                done += 1
                unreserved += judging.dollars() < server.billed - billed - 1e-9
            judging.finish(*BATCH)
            unreserved += judging.dollars() < server.billed - billed - 1e-9
            same &= judging.judgments() == expected
        taken = sum(server.taken.values()) + server.forgotten
    return Toll(
        kills=done,
        runs=runs,
        submissions=server.submissions,
        lines=taken,
        double=server.double,
        lost=server.live - live_calls,
        over_limit=server.over_limit,
        unreserved=unreserved,
        same_bytes=same,
    )


def _kills(
    judging: Judging, server: BatchServer, rng: np.random.Generator, most: int
) -> Iterator[int]:
    """Start and kill the command until it comes to its end, or was killed often enough."""
    for number in range(most):
        process = judging.start(*BATCH)
        until = server.requests + int(rng.integers(0, REQUESTS + 1))
        while server.requests < until and process.poll() is None:
            time.sleep(0.002)
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=float(rng.uniform(0, MOMENT)))
        ended = process.poll() is not None
        process.kill()
        _, shown = process.communicate()
        if ended:
            assert process.returncode == 0, shown.decode()
            return
        yield number
