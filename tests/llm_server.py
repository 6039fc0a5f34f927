"""A small, fast model server on loopback, for tests and benchmarks: OpenAI and Anthropic.

In a test (its own thread, so synchronous and asynchronous tests use it alike)::

    with LlmServer(latency=0.2, script=at({0: "429"})) as server:
        ...  # server.url, server.stats, server.seen

On its own: ``python -m tests.llm_server --port 0 --latency 0.2 --fault 429=0.05`` prints its URL;
``GET /__stats`` tells the counters. ``tests.llm_replies.FAULTS`` lists the faults.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

import orjson

from tests.http_thread import announce
from tests.llm_http import Connection
from tests.llm_limits import Bucket
from tests.llm_replies import (
    FAULTS,
    Incoming,
    Outgoing,
    Protocol,
    answer,
    rate_limited,
    verdict_text,
    with_usage,
)

ROOT = Path(__file__).parents[1]
PATHS: dict[str, Protocol] = {
    "/chat/completions": "openai",
    "/messages": "anthropic",
    "/invoke": "anthropic",
    ":rawPredict": "anthropic",
}

Script = Callable[[Incoming], str | None]
"""Names the fault of a request, or None to answer it."""


def at(faults: Mapping[int, str]) -> Script:
    """Faults by the request's ordinal, from 0."""
    return lambda incoming: faults.get(incoming.ordinal)


def always(fault: str) -> Script:
    """The same fault for every request."""
    return lambda incoming: fault


def share(faults: Mapping[str, float], seed: int = 0) -> Script:
    """Each fault for its share of the requests, drawn with a seed."""
    rng = random.Random(seed)

    def choose(incoming: Incoming) -> str | None:
        draw = rng.random()
        for fault, part in faults.items():
            if draw < part:
                return fault
            draw -= part
        return None

    return choose


@dataclass
class Stats:
    """Counters. ``refused`` are 429s; ``failed`` all other faults; ``duplicates`` requests whose
    body had been seen before, ``answered_again`` those whose body had been answered before."""

    requests: int = 0
    answered: int = 0
    refused: int = 0
    failed: int = 0
    in_flight: int = 0
    max_in_flight: int = 0
    duplicates: int = 0
    answered_again: int = 0


class LlmServer:
    """The server: ``latency`` in seconds (or a function of the request), ``script`` of faults,
    ``rpm`` requests a minute, ``slots`` admitted at once (else a bare 429), ``text`` a fixed
    answer or a function of the request (that may give a whole ``Outgoing``), ``record`` how many
    requests ``seen`` keeps, ``models`` the list of models, ``props`` llama.cpp's properties,
    ``usage`` how the usage of an answer is changed (to Ellipsis: it has none)."""

    def __init__(
        self,
        *,
        port: int = 0,
        latency: float | Callable[[Incoming], float] = 0.0,
        script: Script | None = None,
        rpm: float | None = None,
        slots: int | None = None,
        whole_seconds: bool = False,
        text: str | Callable[[Incoming], str | Outgoing] | None = None,
        cached_tokens: int = 0,
        record: int = 100,
        models: Sequence[Mapping[str, object]] = ({"id": "mock", "object": "model"},),
        props: Mapping[str, object] | None = None,
        usage: Callable[[dict[str, Any]], object] | None = None,
    ) -> None:
        self.port = port
        self.latency = latency
        self.script = script
        self.bucket = Bucket(rpm) if rpm else None
        self.slots = slots
        self.whole_seconds = whole_seconds
        self.text = text
        self.cached_tokens = cached_tokens
        self.models, self.props = list(models), props
        self.usage = usage
        self.stats = Stats()
        self.seen: deque[Incoming] = deque(maxlen=record)
        self.bodies_seen: set[str] = set()
        self.bodies_answered: set[str] = set()
        self.connections: set[Connection] = set()
        self.connections_made = 0
        self.ready = threading.Event()
        self.failure: OSError | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    # What to answer

    def respond(self, incoming: Incoming) -> Outgoing:
        """The answer, its limit's headers included; counts it as admitted or not."""
        self.count(incoming)
        if self.slots is not None and self.stats.in_flight > self.slots:
            return rate_limited(incoming, {})
        headers: dict[str, str] = {}
        if self.bucket:
            wait = self.bucket.take()
            headers = self.bucket.headers(incoming.protocol, wait, self.whole_seconds)
            if wait:
                return rate_limited(incoming, headers)
        fault = self.script(incoming) if self.script else None
        if fault is not None:
            outgoing = FAULTS[fault](incoming)
        else:
            text = self.text(incoming) if callable(self.text) else self.text
            text = verdict_text(incoming.prompt) if text is None else text
            if not isinstance(text, Outgoing):
                text = answer(incoming, text, cached_tokens=self.cached_tokens)
            outgoing = text
        if self.usage and outgoing.status == 200:
            outgoing = with_usage(outgoing, self.usage)
        outgoing.headers.update(headers)
        return outgoing

    def count(self, incoming: Incoming) -> None:
        self.seen.append(incoming)
        self.stats.requests += 1
        self.stats.duplicates += incoming.digest in self.bodies_seen
        self.stats.answered_again += incoming.digest in self.bodies_answered
        self.bodies_seen.add(incoming.digest)
        self.stats.in_flight += 1
        self.stats.max_in_flight = max(self.stats.max_in_flight, self.stats.in_flight)

    def settle(self, incoming: Incoming, outgoing: Outgoing) -> None:
        """The answer leaves."""
        self.stats.in_flight -= 1
        if outgoing.status == 200 and not outgoing.cut:
            self.stats.answered += 1
            self.bodies_answered.add(incoming.digest)
        elif outgoing.status == 429:
            self.stats.refused += 1
        else:
            self.stats.failed += 1

    def delay(self, incoming: Incoming, outgoing: Outgoing) -> float:
        """Only answers take time; errors come at once."""
        if outgoing.status != 200:
            return 0.0
        return self.latency(incoming) if callable(self.latency) else self.latency

    def handle(
        self, target: str, headers: dict[str, str], body: bytes
    ) -> Outgoing | tuple[Incoming, Outgoing, float]:
        """Route one request: the model calls of both protocols, the models, the counters."""
        path, _, query = target.partition("?")
        if path == "/__stats":
            return Outgoing(200, orjson.dumps(asdict(self.stats)))
        if path.endswith("/models"):
            return Outgoing(200, orjson.dumps({"object": "list", "data": self.models}))
        if path == "/props" and self.props:
            return Outgoing(200, orjson.dumps(self.props))
        protocol = next((name for end, name in PATHS.items() if path.endswith(end)), None)
        if protocol is None:
            return Outgoing(404, b'{"error": {"message": "no such path"}}')
        incoming = Incoming(self.stats.requests, protocol, path, headers, body, query)
        outgoing = self.respond(incoming)
        return incoming, outgoing, self.delay(incoming, outgoing)

    # Running

    async def serve(self, stop: asyncio.Event) -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(
            lambda: Connection(self), "127.0.0.1", self.port, backlog=4096
        )
        self.port = server.sockets[0].getsockname()[1]
        self.ready.set()
        await stop.wait()
        server.close()
        for connection in list(self.connections):
            connection.transport.abort()

    def _run(self) -> None:
        async def main() -> None:
            self.loop, self.stop = asyncio.get_running_loop(), asyncio.Event()
            try:
                await self.serve(self.stop)
            except OSError as failure:
                self.failure = failure
                self.ready.set()

        asyncio.run(main())

    def __enter__(self) -> Self:
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()
        self.ready.wait()
        if self.failure:
            raise self.failure
        return self

    def __exit__(self, *exc: object) -> None:
        self.loop.call_soon_threadsafe(self.stop.set)
        self.thread.join()

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(self, *exc: object) -> None:
        await asyncio.to_thread(self.__exit__)


@contextmanager
def spawned(*options: str) -> Iterator[str]:
    """The server in a process of its own, for measurements; yields its URL."""
    command = [sys.executable, "-m", "tests.llm_server", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdout
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--latency", type=float, default=0.0, help="seconds")
    parser.add_argument("--slow-share", type=float, default=0.0, help="share of slower answers")
    parser.add_argument("--slow-factor", type=float, default=20.0, help="how much slower")
    parser.add_argument("--rpm", type=float, help="requests admitted a minute")
    parser.add_argument("--slots", type=int, help="requests admitted at once")
    parser.add_argument("--whole-seconds", action="store_true", help="round Retry-After up")
    parser.add_argument("--cached-tokens", type=int, default=0)
    parser.add_argument("--answer", help="the same text for every request")
    parser.add_argument("--fault", action="append", default=[], metavar="NAME=SHARE")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = random.Random(options.seed)

    def latency(incoming: Incoming) -> float:
        slow = rng.random() < options.slow_share
        return float(options.latency * (options.slow_factor if slow else 1))

    faults = {name: float(part) for name, _, part in (f.partition("=") for f in options.fault)}
    server = LlmServer(
        port=options.port,
        latency=latency,
        script=share(faults, options.seed) if faults else None,
        rpm=options.rpm,
        slots=options.slots,
        whole_seconds=options.whole_seconds,
        cached_tokens=options.cached_tokens,
        text=options.answer,
        record=0,
    )
    with server:
        announce(server.url)
        server.thread.join()


if __name__ == "__main__":
    main()
