"""Kill processes that ask a model, to see whether a reply that was received survives ``kill -9``.

A process asks 16 questions at once of a loopback server over HTTP, which answers some and keeps
silent on the others. Once the answers are read the process is killed. What a second round asks
again although it had been answered is lost.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tests.llm_replies import Incoming
from tests.llm_server import LlmServer
from trajudge.judges.adapters.base import AdapterResponse
from trajudge.judges.adapters.openai import HttpAdapter
from trajudge.judges.engine.budget import Budget
from trajudge.judges.engine.cache import Cache
from trajudge.judges.engine.engine import Engine
from trajudge.judges.engine.limits import Limiter
from trajudge.judges.engine.retry import Retry
from trajudge.judges.model import Message, Request, Text

ROOT = Path(__file__).parents[1]
QUESTIONS = 16
SILENCE = 3600.0  # seconds
READ = "read"


class Round(NamedTuple):
    """One kill: how many answers had been read, how many of them were asked for again."""

    answered: int
    lost: int


class TellingAdapter(HttpAdapter):
    """Says on standard output when a reply was read."""

    async def send(self, request: Request) -> AdapterResponse:
        sent = await super().send(request)
        # Said when the engine lets go of the loop for the first time: the reply is safe by then.
        asyncio.get_running_loop().call_soon(_say_read)
        return sent


def _say_read() -> None:
    sys.stdout.write(READ + "\n")
    sys.stdout.flush()


async def ask_all(kind: type[HttpAdapter], url: str, cache: Path, kill: int) -> None:
    """All questions of one round at once."""
    adapter = kind("mock", base_url=f"{url}/v1")
    engine = Engine(
        adapter,
        cache=Cache(cache),
        limiter=Limiter(concurrency=QUESTIONS),
        retry=Retry(np.random.default_rng(0)),
        budget=Budget(lambda model, usage: None),
    )
    await asyncio.gather(
        *(engine.ask(question(adapter.endpoint, kill, i)) for i in range(QUESTIONS))
    )
    await engine.close()


def question(endpoint: str, kill: int, number: int) -> Request:
    text = Text(text=f"Round {kill}, question {number}: did the agent succeed?")
    return Request(endpoint=endpoint, model="mock", messages=(Message(role="user", parts=(text,)),))


class Answering:
    """The server's latency: ``answered`` of the questions at once, silence for the others."""

    def __init__(self) -> None:
        self.answered = 0

    def __call__(self, incoming: Incoming) -> float:
        if self.answered <= 0:
            return SILENCE
        self.answered -= 1
        return 0.0


def kill_once(
    server: LlmServer, answering: Answering, cache: Path, kill: int, rng: np.random.Generator
) -> Round:
    """One process, killed, and what a second round asks of what had been answered."""
    answered = answering.answered = int(rng.integers(1, QUESTIONS + 1))
    command = [sys.executable, "-m", "tests.cache_kills"]
    words = [*command, server.url, str(cache), str(kill)]
    with subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE) as process:
        assert process.stdout
        for _ in range(answered):
            assert process.stdout.readline().strip() == READ.encode()
        process.kill()
    again, answering.answered = server.stats.answered_again, QUESTIONS
    asyncio.run(ask_all(HttpAdapter, server.url, cache, kill))
    return Round(answered, server.stats.answered_again - again)


def measure(kills: int, seed: int = 0) -> list[Round]:
    """So many kills over one cache."""
    rng = np.random.default_rng(seed)
    answering = Answering()
    with (
        tempfile.TemporaryDirectory() as folder,
        LlmServer(latency=answering, record=0) as server,
    ):
        cache = Path(folder) / "replies.sqlite"
        Cache(cache).close()
        return [kill_once(server, answering, cache, kill, rng) for kill in range(kills)]


if __name__ == "__main__":
    address, file, number = sys.argv[1:]
    asyncio.run(ask_all(TellingAdapter, address, Path(file), int(number)))
