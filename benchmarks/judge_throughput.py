"""How fast judgments are made, beside bare clients that send prompts of the same size.

``python -m benchmarks.judge_throughput [--quick] [--only NAME ...] [--pairs N] [--out FILE]``

In every round all clients of a scenario take their turn, each against a fresh server of ours on
loopback in a process of its own; the medians over the rounds are printed. ``ideal`` is N x latency
/ concurrency, or N / rate where a limit binds. ``peer`` is the bare client on the same transport:
the wall time over its, and the CPU beyond its, are taken within each round, because a machine's
absolute times drift. CPU is that of the client's process, all threads, per judgment.
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
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import orjson

from tests.llm_server import spawned
from trajudge.eval.runs.jobs import JudgmentJob, StopSignal, judge_all, workers_for
from trajudge.eval.runs.plan import make_model_handle
from trajudge.eval.runs.settings import JudgeConfig, RunRequest
from trajudge.eval.store.run_folder import JudgmentJournal
from trajudge.judges.judging import judge_trajectory
from trajudge.judges.model import Judgment
from trajudge.judges.registry import make_judge, needs_of
from trajudge.trajectories.model import Observation, Step, Trajectory, TrajectoryKey
from trajudge.util.settings import parse

PROMPT_BYTES = 22_800
ANSWER = (
    "<reasoning>" + "The last page shows what was asked for. " * 12 + "</reasoning>"
    "<success>Successful</success><side>No</side><optimal>4</optimal><loop>No</loop>"
)
PARAMETERS = {"temperature": 0, "max_tokens": 500}
STEPS = 10
# What the judge's template takes of the prompt, and the list of steps below.
AROUND_TREE = 6_700
LATENCY = 0.2
ALONE = "alone"
HTTP, OPENAI, SCRIPTED = "judge, http", "judge, openai", "judge, scripted"
SDK, PLAIN = "bare SDK, aiohttp", "plain aiohttp"
PEERS = {HTTP: PLAIN, OPENAI: SDK}
TROUBLE = ("--fault", "429=0.05", "--fault", "500=0.01", "--fault", "drop=0.005")


@dataclass(frozen=True)
class LoadScenario:
    """``server`` are the mock server's options; ``ideal`` in seconds."""

    title: str
    server: Sequence[str]
    concurrency: int
    ideal: float
    clients: Sequence[str]


@dataclass(frozen=True)
class Measurement:
    """One client's turn. ``again`` counts requests that the server had answered before."""

    scenario: str
    client: str
    round: int
    wanted: int
    answered: int
    wall: float
    ideal: float
    cpu_ms: float
    refusals: int
    again: int
    in_flight: int


def tree(index: int, length: int) -> str:
    """An accessibility tree of ``length`` characters, different for every ``index``."""
    line = f"[{index}] StaticText 'Order {index} was placed', clickable, visible\n"
    return (line * (length // len(line) + 1))[:length]


def job(index: int) -> JudgmentJob:
    """A trajectory that the simplified judge renders to ``PROMPT_BYTES``."""
    key = TrajectoryKey(benchmark="made", agent="agent", task_id=f"task.{index}")
    url = f"https://shop.example/orders/{index}?page="
    thought = "The list shows the order that the goal names, so its line is opened next. " * 4
    steps = [
        Step(
            index=number,
            observation=Observation(url=f"{url}{number}"),
            reasoning=thought,
            action=f"click('{number}')",
        )
        for number in range(STEPS)
    ]
    last = Observation(url=url, axtree=tree(index, PROMPT_BYTES - AROUND_TREE))
    steps.append(Step(index=STEPS, observation=last))
    goal = f"Open order {index} and tell me when it was placed."
    item = Trajectory(key=key, raw_task_id=key.task_id, goal=goal, steps=tuple(steps))
    return JudgmentJob(key, item, 0)


async def through_judge(words: list[str], jobs: list[JudgmentJob], concurrency: int) -> int:
    """The simplified judge with engine, cache on the disk and journal, as ``eval.judge`` runs it
    with the options ``words``; how many judgments are ok."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        always = ["--model", "gpt-4o", "--max-tokens", "500", "--cache", str(folder / "cache")]
        asked = parse(
            RunRequest, "trajudge judge", [*always, "--concurrency", str(concurrency), *words]
        )
        model = make_model_handle(JudgeConfig(model=asked.models[0]), asked.calls)
        judge_id, judge = make_judge(
            "simplified", {"max_prompt_tokens": model.max_prompt_tokens, "images": model.images}
        )
        needs = needs_of("simplified")
        engines = model.open_engines(spent=0.0)

        async def judge_one(job: JudgmentJob) -> Judgment:
            assert isinstance(job.item, Trajectory)
            ask = model.ask(engines, job.sample, refresh=())
            return await judge_trajectory(judge_id, judge, job.item, ask, job.sample, needs=needs)

        with JudgmentJournal(folder) as journal:
            try:
                width, stop = workers_for(concurrency), StopSignal()
                await judge_all(iter(jobs), judge_one, width=width, record=journal.add, stop=stop)
            finally:
                await engines.close()
            return int(journal.judgments().ok().sum())


async def in_turn(count: int, concurrency: int, each: Callable[[int], Awaitable[bool]]) -> int:
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


async def through_sdk(url: str, count: int, concurrency: int) -> int:
    """The bare SDK in a loop, with its aiohttp transport and its own retries."""
    import openai

    client = openai.DefaultAioHttpClient()
    async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="none", http_client=client) as sdk:

        async def ask(index: int) -> bool:
            try:
                completion = await sdk.chat.completions.create(
                    model="gpt-4o",
                    messages=[{"role": "user", "content": tree(index, PROMPT_BYTES)}],
                    temperature=0,
                    max_tokens=500,
                )
            except openai.OpenAIError:
                return False
            return bool(completion.choices[0].message.content)

        return await in_turn(count, concurrency, ask)


async def through_http(url: str, count: int, concurrency: int) -> int:
    """Plain aiohttp: the floor that any Python client stands on."""
    import aiohttp

    connector = aiohttp.TCPConnector(limit=concurrency)
    async with aiohttp.ClientSession(connector=connector) as session:

        async def ask(index: int) -> bool:
            message = {"role": "user", "content": tree(index, PROMPT_BYTES)}
            body: dict[str, Any] = {"model": "gpt-4o", "messages": [message], **PARAMETERS}
            async with session.post(
                f"{url}/v1/chat/completions",
                data=orjson.dumps(body),
                headers={"content-type": "application/json"},
            ) as response:
                answer = orjson.loads(await response.read())
                return response.status == 200 and bool(answer["choices"])

        return await in_turn(count, concurrency, ask)


def server_counts(url: str) -> dict[str, int]:
    with urllib.request.urlopen(f"{url}/__stats") as response:
        counts: dict[str, int] = json.load(response)
    return counts


def timed(run: Callable[[], Awaitable[int]]) -> tuple[int, float, float]:
    """Return what was answered, and wall and CPU seconds, in a loop of its own."""

    async def work() -> tuple[int, float, float]:
        wall, cpu = time.perf_counter(), time.process_time()
        answered = await run()
        return answered, time.perf_counter() - wall, time.process_time() - cpu

    gc.collect()
    return asyncio.run(work())


def runner(
    client: str, url: str, jobs: list[JudgmentJob], width: int
) -> Callable[[], Awaitable[int]]:
    """Return the client's whole run against the server at ``url``."""
    if client == PLAIN:
        return partial(through_http, url, len(jobs), width)
    if client == SDK:
        return partial(through_sdk, url, len(jobs), width)
    adapter = client.rpartition(" ")[2]
    return partial(through_judge, ["--base-url", f"{url}/v1", "--adapter", adapter], jobs, width)


def turn(scenario: LoadScenario, client: str, jobs: list[JudgmentJob], number: int) -> Measurement:
    """Run one client of a scenario against a fresh server."""
    with spawned("--latency", str(LATENCY), "--answer", ANSWER, *scenario.server) as url:
        run = runner(client, url, jobs, scenario.concurrency)
        answered, wall, cpu = timed(run)
        counts = server_counts(url)
    return Measurement(
        scenario=scenario.title,
        client=client,
        round=number,
        wanted=len(jobs),
        answered=answered,
        wall=wall,
        ideal=scenario.ideal,
        cpu_ms=1000 * cpu / len(jobs),
        refusals=counts["refused"],
        again=counts["answered_again"],
        in_flight=counts["max_in_flight"],
    )


@contextmanager
def one_core() -> Iterator[None]:
    """Keep this process and its threads on one core."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def without_wire(jobs: list[JudgmentJob], number: int) -> Measurement:
    """Run everything but the wire on one core: the scripted adapter answers at once; ideal is
    1,500 judgments a second."""
    with tempfile.TemporaryDirectory() as folder, one_core():
        script = Path(folder) / "replies.jsonl"
        script.write_text(json.dumps({"text": ANSWER}) + "\n")
        answered, wall, cpu = timed(partial(through_judge, ["--script", str(script)], jobs, 64))
    count = len(jobs)
    title, cost = "no wire, one core", 1000 * cpu / count
    return Measurement(title, SCRIPTED, number, count, answered, wall, count / 1500, cost, 0, 0, 0)


def scenarios(count: int) -> dict[str, LoadScenario]:
    """Return the scenarios with a server, by name."""
    everyone, no_floor = (PLAIN, HTTP, SDK, OPENAI), (HTTP, SDK, OPENAI)
    at_64, at_48 = count * LATENCY / 64, count * LATENCY / 48
    by_rate = max(at_64, count / 100)
    return {
        "64": LoadScenario("64 at once", (), 64, at_64, everyone),
        "256": LoadScenario("256 at once", (), 256, count * LATENCY / 256, everyone),
        "trouble": LoadScenario("5 % 429, 1 % 500, 0.5 % drop", TROUBLE, 64, at_64, no_floor),
        "rpm": LoadScenario("6,000 a minute", ("--rpm", "6000"), 64, by_rate, no_floor),
        "slots": LoadScenario("48 at once, else 429", ("--slots", "48"), 64, at_48, no_floor),
    }


def print_medians(rows: Sequence[Measurement]) -> None:
    """Print a line a client of one scenario, medians over the rounds."""
    for client in dict.fromkeys(row.client for row in rows):
        mine = [row for row in rows if row.client == client]
        peer = {row.round: row for row in rows if row.client == PEERS.get(client)}
        pairs = [(row, peer[row.round]) for row in mine if row.round in peer]
        lost = sum(row.wanted - row.answered for row in mine)
        beside = f"{'':>8}{'':>9}"
        if pairs:
            times = median(row.wall / bare.wall for row, bare in pairs)
            more = median(row.cpu_ms - bare.cpu_ms for row, bare in pairs)
            beside = f"{times:8.3f}{more:+9.2f}"
        print(
            f"{mine[0].scenario:30}{client:19}{median(row.wall / row.ideal for row in mine):7.2f}"
            f"{median(row.cpu_ms for row in mine):8.2f}{beside}{lost:6}"
            f"{sum(row.again for row in mine):7}{max(row.in_flight for row in mine):8}"
            f"{round(median(row.refusals for row in mine)):6}",
            flush=True,
        )


def rounds(name: str, jobs: list[JudgmentJob], pairs: int) -> Iterator[Measurement]:
    """Yield the turns of one scenario; who begins changes from round to round."""
    for number in range(pairs):
        if name == ALONE:
            yield without_wire(jobs, number)
            continue
        scenario = scenarios(len(jobs))[name]
        first = number % len(scenario.clients)
        for client in (*scenario.clients[first:], *scenario.clients[:first]):
            yield turn(scenario, client, jobs, number)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a quarter of the judgments")
    names = [ALONE, *scenarios(1)]
    parser.add_argument("--only", nargs="*", default=names, choices=names, metavar="NAME")
    parser.add_argument("--pairs", type=int, default=9, metavar="N", help="rounds (default: 9)")
    parser.add_argument("--out", type=Path, help="write the rows as JSON")
    options = parser.parse_args()
    jobs = [job(index) for index in range(325 if options.quick else 1300)]
    warm = LoadScenario("", (), 1, 1.0, ())
    for client in (SDK, *PEERS):  # imports and first calls are not measured
        turn(warm, client, jobs[:1], 0)
    heads = ("scenario", "client", "/ ideal", "CPU ms", "/ peer", "- peer", "lost", "again")
    print("{:30}{:19}{:>7}{:>8}{:>8}{:>9}{:>6}{:>7}  flying  429s".format(*heads))
    rows: list[Measurement] = []
    for name in options.only:
        made = list(rounds(name, jobs, options.pairs))
        print_medians(made)
        rows += made
    if options.out:
        options.out.write_text(json.dumps([asdict(row) for row in rows], indent=1))


if __name__ == "__main__":
    main()
