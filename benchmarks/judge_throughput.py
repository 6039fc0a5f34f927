"""How fast judgments go through the engine, as ratios against the ideal and against bare clients.

``python -m benchmarks.judge_throughput [--quick] [--only NAME ...] [--out FILE]``

The server is ours, on loopback, in a process of its own. ``ideal`` is N x latency / concurrency,
or N / rate where a limit binds. Bare clients are measured beside the engine in the same run: a
machine's absolute times drift, ratios less.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import tempfile
import time
import urllib.request
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from judges.adapters.base import Adapter
from judges.engine import Asking, Budget, Cache, Engine, Gate, Retry
from judges.model import Message, Text, Usage
from tests.llm_server import spawned

LATENCY = 0.2
PROMPT_BYTES = 20_000
ANSWER = (
    "<reasoning>" + "The last page shows what was asked for. " * 12 + "</reasoning>"
    "<success>Successful</success><side>No</side><optimal>4</optimal><loop>No</loop>"
)


@dataclass
class Row:
    """One measurement. ``ratio`` is wall / ideal; ``cpu_ms`` of this process per judgment."""

    scenario: str
    client: str
    wanted: int
    answered: int
    wall: float
    ideal: float
    ratio: float
    cpu_ms: float
    refusals: int


def prompt(index: int) -> str:
    """A prompt of its own for every judgment, of ``PROMPT_BYTES``."""
    line = f"[{index}] StaticText 'Order {index} was placed', clickable, visible\n"
    return (line * (PROMPT_BYTES // len(line) + 1))[:PROMPT_BYTES]


def parameters() -> dict[str, Any]:
    return {"temperature": 0, "max_tokens": 500}


def scripted_adapter() -> Adapter:
    """A full reply at once, nothing on the wire."""
    from judges.adapters.scripted import ScriptedAdapter

    return ScriptedAdapter(lambda request: ANSWER)


def openai_adapter(url: str, concurrency: int) -> Adapter:
    from judges.adapters.openai import OpenAIAdapter

    return OpenAIAdapter("gpt-4o", base_url=f"{url}/v1", max_connections=2 * concurrency)


# The clients


Each = Callable[[int], Awaitable[bool]]


async def in_turn(count: int, concurrency: int, each: Each) -> int:
    """Run ``each`` for all indices, so many at once; the number that was answered."""
    indices = iter(range(count))
    answered = 0

    async def worker() -> None:
        nonlocal answered
        for index in indices:
            is_answered = await each(index)
            answered += is_answered

    async with asyncio.TaskGroup() as group:
        for _ in range(min(concurrency, count)):
            group.create_task(worker())
    return answered


async def through_engine(adapter: Adapter, count: int, concurrency: int) -> int:
    """Engine, cache on the disk, journal of judgments, parsing: what ``eval.judge`` does."""
    with tempfile.TemporaryDirectory() as folder:
        engine = Engine(
            adapter,
            cache=Cache(Path(folder) / "cache.db"),
            gate=Gate(concurrency=concurrency),
            retry=Retry(np.random.default_rng(0)),
            budget=Budget(lambda model, usage: usage.input * 2.5e-6 + usage.output * 1e-5),
        )
        with (Path(folder) / "judgments.jsonl").open("w") as journal:

            async def judge(index: int) -> bool:
                asking = Asking(
                    engine,
                    "gpt-4o",
                    parameters(),
                    estimate=lambda request: Usage(input=5000, output=500),
                )
                message = Message(role="user", parts=(Text(text=prompt(index)),))
                reply = await asking([message])
                success = "<success>Successful" in reply.text
                calls = [call.model_dump(mode="json") for call in asking.calls]
                journal.write(json.dumps({"key": index, "success": success, "calls": calls}) + "\n")
                journal.flush()
                return True

            try:
                # More tasks than places: the gate, not the tasks, decides how many are sent.
                return await in_turn(count, concurrency + concurrency // 4, judge)
            finally:
                await engine.close()


async def through_sdk(url: str, count: int, concurrency: int, transport: str) -> int:
    """The bare SDK in a loop, with its own retries."""
    import openai

    client = openai.DefaultAioHttpClient() if transport == "aiohttp" else None
    async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="none", http_client=client) as sdk:

        async def judge(index: int) -> bool:
            try:
                completion = await sdk.chat.completions.create(
                    model="gpt-4o",
                    messages=[{"role": "user", "content": prompt(index)}],
                    temperature=0,
                    max_tokens=500,
                )
            except openai.OpenAIError:
                return False
            return bool(completion.choices[0].message.content)

        return await in_turn(count, concurrency, judge)


async def through_http(url: str, count: int, concurrency: int) -> int:
    """Plain aiohttp: the floor that any Python client stands on."""
    import aiohttp
    import orjson

    connector = aiohttp.TCPConnector(limit=concurrency)
    async with aiohttp.ClientSession(connector=connector) as session:

        async def judge(index: int) -> bool:
            message = {"role": "user", "content": prompt(index)}
            body = {"model": "gpt-4o", "messages": [message], **parameters()}
            async with session.post(
                f"{url}/v1/chat/completions",
                data=orjson.dumps(body),
                headers={"content-type": "application/json"},
            ) as response:
                answer = orjson.loads(await response.read())
                return response.status == 200 and bool(answer["choices"])

        return await in_turn(count, concurrency, judge)


# Measuring


def refusals(url: str) -> int:
    with urllib.request.urlopen(f"{url}/__stats") as response:
        return int(json.load(response)["refused"])


def measure(
    scenario: str, client: str, count: int, ideal: float, run: Callable[[], Awaitable[int]]
) -> Row:
    """One run in a loop of its own, after the garbage of the last one is gone."""

    async def timed() -> tuple[int, float, float]:
        wall, cpu = time.perf_counter(), time.process_time()
        answered = await run()
        return answered, time.perf_counter() - wall, time.process_time() - cpu

    gc.collect()
    answered, wall, cpu = asyncio.run(timed())
    return Row(scenario, client, count, answered, wall, ideal, wall / ideal, 1000 * cpu / count, 0)


def served(
    scenario: str,
    options: list[str],
    count: int,
    concurrency: int,
    ideal: float,
    clients: list[str],
) -> Iterator[Row]:
    """The scenario for each client, each against a fresh server; imports are not measured."""
    with spawned() as url:
        openai_adapter(url, 1)
        asyncio.run(through_sdk(url, 1, 1, "default"))
    for client in clients:
        with spawned("--latency", str(LATENCY), *options) as url:
            runs: dict[str, Callable[[], Awaitable[int]]] = {
                "engine, openai SDK": lambda: through_engine(
                    openai_adapter(url, concurrency), count, concurrency
                ),
                "bare SDK": lambda: through_sdk(url, count, concurrency, "default"),
                "bare SDK, aiohttp": lambda: through_sdk(url, count, concurrency, "aiohttp"),
                "plain aiohttp": lambda: through_http(url, count, concurrency),
            }
            row = measure(scenario, client, count, ideal, runs[client])
            row.refusals = refusals(url)
            yield row


@contextmanager
def one_core() -> Iterator[None]:
    """This process and its threads on one core."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def alone(count: int) -> Iterator[Row]:
    """The engine without a server; ideal is 1,500 judgments a second."""
    with one_core():
        yield measure(
            "engine alone, one core",
            "engine, scripted",
            count,
            count / 1500,
            lambda: through_engine(scripted_adapter(), count, 64),
        )


def scenarios(count: int) -> dict[str, Callable[[], Iterator[Row]]]:
    ours, peers = ["engine, openai SDK"], ["bare SDK, aiohttp", "bare SDK", "plain aiohttp"]
    at_64, at_256 = count * LATENCY / 64, count * LATENCY / 256
    trouble = ["--fault", "429=0.05", "--fault", "500=0.01", "--fault", "drop=0.005"]
    return {
        "alone": lambda: alone(count),
        "64": lambda: served("latency 0.2 s, 64 at once", [], count, 64, at_64, ours + peers),
        "256": lambda: served("latency 0.2 s, 256 at once", [], count, 256, at_256, ours + peers),
        "rpm": lambda: served(
            "6,000 a minute",
            ["--rpm", "6000"],
            count,
            64,
            max(at_64, count / 100),
            [*ours, "bare SDK, aiohttp"],
        ),
        "slots": lambda: served(
            "48 at once, else 429",
            ["--slots", "48"],
            count,
            64,
            count * LATENCY / 48,
            [*ours, "bare SDK, aiohttp"],
        ),
        "trouble": lambda: served(
            "5 % 429, 1 % 500, 0.5 % dropped",
            trouble,
            count,
            64,
            at_64,
            [*ours, "bare SDK, aiohttp"],
        ),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a quarter of the judgments")
    parser.add_argument("--only", nargs="*", metavar="NAME", help="|".join(scenarios(1)))
    parser.add_argument("--out", type=Path, help="write the rows as JSON")
    options = parser.parse_args()
    count = 325 if options.quick else 1300
    rows = []
    heads = ("scenario", "client", "answered", "wall s", "ideal s", "ratio", "CPU ms", "429s")
    print("{:33}{:20}{:>10}{:>8}{:>9}{:>7}{:>8}{:>6}".format(*heads))
    for name, run in scenarios(count).items():
        if options.only and name not in options.only:
            continue
        for row in run():
            rows.append(row)
            print(
                f"{row.scenario:33}{row.client:20}{f'{row.answered}/{row.wanted}':>10}"
                f"{row.wall:8.2f}{row.ideal:9.2f}{row.ratio:7.2f}{row.cpu_ms:8.2f}{row.refusals:6}",
                flush=True,
            )
    if options.out:
        options.out.write_text(json.dumps([asdict(row) for row in rows], indent=1))


if __name__ == "__main__":
    main()
