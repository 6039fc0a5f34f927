"""How fast judgments are made, beside bare clients that send prompts of the same size.

``python -m benchmarks.judge_throughput [--quick] [--only NAME ...] [--pairs N] [--out FILE]
[--picture FILE] [--peers DIR]``

In every round all clients of a scenario take their turn, each against a fresh server of ours on
loopback in a process of its own; the medians over the rounds are printed. ``ideal`` is N x latency
/ concurrency, or N / rate where a limit binds. ``peer`` is the bare client on the same transport:
the wall time over its, and the CPU beyond its, are taken within each round, because a machine's
absolute times drift. CPU is that of the client's process, all threads, per judgment.

``peers`` sends the same prompts through litellm, and through inspect_ai (``model_graded_qa`` of
samples that are answered already) and promptfoo where ``--peers`` has them: a folder with a virtual
environment ``inspect_ai`` and a folder ``promptfoo`` in which npm installed it. These two run in a
process of their own; its CPU and wall time less those of one judgment are shown.

``pictures`` judges one screenshot of 1280 x 2500 pixels (or ``--picture``), which has to shrink, in
all judgments, beside the shrunk bytes, which are sent as they are; ``shrinking`` what one picture,
and 30 pictures of one trajectory, cost at first, then again, and from the disk. A watchdog on the
event loop measures the longest time between two of its turns (``gap``, which other processes and
the start of 64 judgments at once make longer), and the loop the longest of its steps (``step``,
and ``its CPU``).
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import Context
from dataclasses import asdict, dataclass
from functools import partial
from io import BytesIO
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import orjson
from PIL import Image, ImageDraw, ImageFont

from tests.llm_server import spawned
from trajudge.eval.runs.jobs import JudgmentJob, StopSignal, judge_all, workers_for
from trajudge.eval.runs.plan import make_model_handle
from trajudge.eval.runs.settings import JudgeConfig, RunRequest
from trajudge.eval.store.run_folder import JudgmentJournal
from trajudge.judges.judging import BaseClient, CallArgs, judge_trajectory
from trajudge.judges.model import Judgment, Picture, Reply
from trajudge.judges.registry import make_judge, needs_of
from trajudge.trajectories.model import ImageRef, Observation, Step, Trajectory, TrajectoryKey
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
ALONE, BESIDE = "alone", "peers"
PICTURES, SHRINKING = "pictures", "shrinking"
ICON = Path(__file__).parents[1] / "docs" / "pictures" / "run.png"
WORDS = ("order", "price", "cart", "total", "size", "delivery", "search", "filter", "account")
HTTP, OPENAI, SCRIPTED = "judge, http", "judge, openai", "judge, scripted"
SDK, PLAIN = "bare SDK, aiohttp", "plain aiohttp"
LITELLM, INSPECT, PROMPTFOO = "litellm", "inspect_ai", "promptfoo"
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


def page_picture(seed: int, *, photographs: bool) -> bytes:
    """A full-page screenshot as PNG: lines of text, or every other block a photograph."""
    rng = np.random.default_rng(seed)
    page = Image.new("RGB", (1280, 2500), "white")
    draw, font = ImageDraw.Draw(page), ImageFont.load_default(15)
    for top in range(0, page.height, 100):
        if photographs and top % 200 == 0:
            coarse = rng.integers(0, 256, (8, 80, 3), np.uint8)
            smooth = Image.fromarray(coarse).resize((page.width, 100), Image.Resampling.BICUBIC)
            grain = rng.integers(-3, 4, (100, page.width, 1))
            pixels = np.clip(np.asarray(smooth).astype(int) + grain, 0, 255)
            page.paste(Image.fromarray(pixels.astype(np.uint8)), (0, top))
            continue
        for line in range(5):
            words = (WORDS[number] for number in rng.integers(len(WORDS), size=25))
            draw.text((20, top + 20 * line), " ".join(words), "black", font)
    encoded = BytesIO()
    page.save(encoded, "PNG")
    return encoded.getvalue()


def picture_run(index: int, pictures: Sequence[Path]) -> Trajectory:
    """A trajectory with a screenshot in each of its steps."""
    key = TrajectoryKey(benchmark="made", agent="agent", task_id=f"task.{index}")
    steps = [
        Step(
            index=number,
            observation=Observation(url="https://shop.example/", screenshot=ImageRef(path=picture)),
            action=f"click('{number}')",
        )
        for number, picture in enumerate(pictures)
    ]
    goal = f"Open order {index}."
    return Trajectory(
        key=key, raw_task_id=key.task_id, goal=goal, steps=tuple(steps), answer="Done."
    )


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


async def through_judge(
    words: list[str], jobs: list[JudgmentJob], concurrency: int, **options: str
) -> int:
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
            "simplified",
            {"max_prompt_tokens": model.max_prompt_tokens, "images": model.images, **options},
        )
        needs = needs_of("simplified", options)
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


async def through_litellm(url: str, count: int, concurrency: int) -> int:
    """litellm's asynchronous call in a loop, with its own retries and its table from the wheel."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    import litellm

    async def ask(index: int) -> bool:
        try:
            completion = await litellm.acompletion(
                model="openai/gpt-4o",
                api_base=f"{url}/v1",
                api_key="none",
                messages=[{"role": "user", "content": tree(index, PROMPT_BYTES)}],
                **PARAMETERS,
            )
        except litellm.exceptions.APIError:
            return False
        return bool(completion.choices[0].message.content)

    return await in_turn(count, concurrency, ask)


# Runs in the environment of inspect_ai: the samples' file, the server, how many at once.
GRADING = """
import sys

from inspect_ai import Task, eval
from inspect_ai.dataset import Sample, json_dataset
from inspect_ai.model import GenerateConfig, get_model
from inspect_ai.scorer import model_graded_qa
from inspect_ai.solver import solver


@solver
def answered():
    async def solve(state, generate):
        return state

    return solve


file, url, width, logs = sys.argv[1:]
config = GenerateConfig(temperature=0, max_tokens=500, max_connections=int(width))
model = get_model(
    "openai/gpt-4o", base_url=url + "/v1", api_key="none", config=config, responses_api=False
)
grader = model_graded_qa(template="{question}", model=model)
task = Task(dataset=json_dataset(file), solver=answered(), scorer=grader)
(log,) = eval(task, model=model, display="none", log_dir=logs, max_samples=int(width))
print("answered", sum(sample.scores["model_graded_qa"].value == "C" for sample in log.samples))
"""


def through_inspect(peers: Path, url: str, count: int, width: int, folder: Path) -> int:
    """A task of inspect_ai whose samples are answered, and graded by a model; how many are."""
    texts = ({"input": tree(number, PROMPT_BYTES), "target": "Done."} for number in range(count))
    file = folder / "samples.jsonl"
    file.write_bytes(b"\n".join(map(orjson.dumps, texts)))
    words = [str(file), url, str(width), str(folder / "logs")]
    printed = subprocess.run(
        [peers / INSPECT / "bin" / "python", "-c", GRADING, *words],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return int(printed.rpartition("answered ")[2])


def through_promptfoo(peers: Path, url: str, count: int, width: int, folder: Path) -> int:
    """``promptfoo eval`` of one variable that is the whole prompt; how many were answered."""
    settings = {"apiBaseUrl": f"{url}/v1", "apiKey": "none", **PARAMETERS}
    config = {
        "prompts": ["{{text}}"],
        "providers": [{"id": "openai:chat:gpt-4o", "config": settings}],
        "tests": [{"vars": {"text": tree(number, PROMPT_BYTES)}} for number in range(count)],
    }
    file, results = folder / "promptfooconfig.json", folder / "results.json"
    file.write_bytes(orjson.dumps(config))
    quiet = {"PROMPTFOO_DISABLE_TELEMETRY": "1", "PROMPTFOO_DISABLE_UPDATE": "1"}
    subprocess.run(
        [
            *(peers / PROMPTFOO / "node_modules" / ".bin" / "promptfoo", "eval", "-c", file),
            *("-o", results, "-j", str(width), "--no-cache", "--no-table", "--no-progress-bar"),
        ],
        check=True,
        capture_output=True,
        env={**os.environ, **quiet, "PROMPTFOO_CONFIG_DIR": str(folder)},
        cwd=folder,
    )
    return int(orjson.loads(results.read_bytes())["results"]["stats"]["successes"])


APART = {INSPECT: through_inspect, PROMPTFOO: through_promptfoo}


def apart(client: str, peers: Path, count: int, number: int) -> Measurement:
    """Run a peer in a process of its own, and take off what one judgment costs there."""
    turns = []
    for wanted in (1, count):
        answer = f"{ANSWER}\nGRADE: C"
        with (
            tempfile.TemporaryDirectory() as folder,
            spawned("--latency", str(LATENCY), "--answer", answer) as url,
        ):
            before, wall = os.times(), time.perf_counter()
            answered = APART[client](peers, url, wanted, 64, Path(folder))
            after = os.times()
            counts = server_counts(url)
        cpu = after[2] + after[3] - before[2] - before[3]
        turns.append((time.perf_counter() - wall, cpu))
    wall, cpu = (many - one for one, many in zip(*turns, strict=True))
    return Measurement(
        scenario="64 at once",
        client=client,
        round=number,
        wanted=count,
        answered=answered,
        wall=wall,
        ideal=count * LATENCY / 64,
        cpu_ms=1000 * cpu / (count - 1),
        refusals=counts["refused"],
        again=counts["answered_again"],
        in_flight=counts["max_in_flight"],
    )


class WatchedLoop(asyncio.SelectorEventLoop):
    """Measures the longest step of a task: ``wall``, and ``cpu`` of the loop's thread; and the
    longest time ``between`` two turns. All in seconds."""

    wall = cpu = between = 0.0

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        return super().call_soon(self._measured, callback, args, context=context)

    def _measured(self, callback: Callable[..., object], args: tuple[Any, ...]) -> None:
        wall, cpu = time.perf_counter(), time.thread_time()
        callback(*args)
        self.cpu = max(self.cpu, time.thread_time() - cpu)
        self.wall = max(self.wall, time.perf_counter() - wall)

    async def watch(self) -> None:
        while True:
            before = time.perf_counter()
            await asyncio.sleep(0.001)
            self.between = max(self.between, time.perf_counter() - before)


@dataclass(frozen=True)
class PictureTurn:
    """What judgments of one picture cost. ``gap_ms``, ``step_ms`` and ``step_cpu_ms`` are those of
    the ``WatchedLoop``; ``peak_mb`` is the most resident memory of the process."""

    client: str
    round: int
    wanted: int
    answered: int
    wall: float
    cpu_ms: float
    gap_ms: float
    step_ms: float
    step_cpu_ms: float
    peak_mb: float


@contextmanager
def empty_caches() -> Iterator[Path]:
    """Set the user's cache folder to an empty one, and yield another folder."""
    before = os.environ.get("XDG_CACHE_HOME")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CACHE_HOME"] = f"{folder}/cache"
        try:
            yield Path(folder)
        finally:
            os.environ.pop("XDG_CACHE_HOME")
            if before is not None:
                os.environ["XDG_CACHE_HOME"] = before


def forget_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def peak_mb() -> float:
    """The most resident memory since ``forget_peak``, in MB."""
    return int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]) / 1000


def picture_turn(client: str, picture: bytes, count: int, number: int) -> PictureTurn:
    """Judge the picture so many times against a fresh server, with caches that are empty."""
    longest = (0.0, 0.0, 0.0)

    async def watched(url: str, jobs: list[JudgmentJob]) -> int:
        nonlocal longest
        loop = asyncio.get_running_loop()
        assert isinstance(loop, WatchedLoop)
        watchdog = asyncio.create_task(loop.watch())
        words = ["--base-url", f"{url}/v1", "--adapter", "http"]
        try:
            return await through_judge(words, jobs, 64, representation="screenshot")
        finally:
            watchdog.cancel()
            longest = (1000 * loop.between, 1000 * loop.wall, 1000 * loop.cpu)

    with empty_caches() as folder, spawned("--latency", str(LATENCY), "--answer", ANSWER) as url:
        shot = folder / "page.png"
        shot.write_bytes(picture)
        runs = [picture_run(index, [shot]) for index in range(count)]
        jobs = [JudgmentJob(run.key, run, 0) for run in runs]
        forget_peak()
        answered, wall, cpu = timed(partial(watched, url, jobs), WatchedLoop)
    cost = 1000 * cpu / count
    return PictureTurn(client, number, count, answered, wall, cost, *longest, peak_mb())


class Answering(BaseClient):
    """Answers at once, and keeps the pictures that it was asked about."""

    calls = ()

    def __init__(self) -> None:
        self.pictures: list[Picture] = []

    async def answer(self, call_args: CallArgs) -> Reply:
        parts = [part for message in call_args.messages for part in message.parts]
        self.pictures = [part for part in parts if isinstance(part, Picture)]
        return Reply(text=f"{ANSWER}\nStatus: success")


async def judged_alone(name: str, options: Mapping[str, Any], run: Trajectory) -> list[Picture]:
    """Judge one trajectory with a model that answers at once; the pictures of the last call."""
    client = Answering()
    judge_id, judge = make_judge(name, {"max_prompt_tokens": 10**6, **options})
    judgment = await judge_trajectory(judge_id, judge, run, client, needs=needs_of(name, options))
    assert judgment.status == "ok", judgment.detail
    return client.pictures


def print_shrinking(
    title: str, name: str, options: Mapping[str, Any], made: list[bytes], times: int
) -> None:
    """Print the CPU time of a judgment of these pictures, medians of so many times: with empty
    caches, again, and after the files were touched, so that only their content is known."""
    forget_peak()
    costs = np.empty((times, 3))
    for row in costs:
        with empty_caches() as folder:
            shots = [folder / f"{number}.png" for number in range(len(made))]
            for shot, content in zip(shots, made, strict=True):
                shot.write_bytes(content)
            run = picture_run(0, shots)
            for again in range(3):
                if again == 2:
                    for shot in shots:
                        shot.touch()
                started = time.process_time()
                sent = asyncio.run(judged_alone(name, options, run))
                row[again] = 1000 * (time.process_time() - started)
            assert len(sent) == len(made)
    taken, shrunk = sum(map(len, made)) / 1000, sum(len(one.data) for one in sent) / 1000
    print(
        f"{title:30}{taken:9,.0f}{shrunk:9,.0f}"
        + "".join(f"{c:9.1f}" for c in np.median(costs, axis=0))
        + f"{peak_mb():9.0f}",
        flush=True,
    )


def measure_shrinking(picture: bytes | None, pairs: int) -> None:
    """Print what one picture and 30 of a trajectory cost to bring within a model's limits."""
    heads = ("pictures", "kB", "kB sent", "first", "again", "disk", "peak MB")
    print("{:30}{:>9}{:>9}{:>9}{:>9}{:>9}{:>9}".format(*heads))
    final: Mapping[str, Any] = {"representation": "screenshot"}
    every: Mapping[str, Any] = {"screenshots": 30}
    for name, options in (("simplified", final), ("webvoyager", every)):
        asyncio.run(judged_alone(name, options, picture_run(0, [ICON])))  # imports
    rows: list[tuple[str, str, Mapping[str, Any], list[bytes]]] = [
        ("a page of text", "simplified", final, [page_picture(0, photographs=False)]),
        ("a page with photographs", "simplified", final, [page_picture(0, photographs=True)]),
        *([("the file", "simplified", final, [picture])] if picture else []),
        ("30 pages, half photographs", "webvoyager", every, _pages()),
    ]
    for title, name, options, made in rows:
        print_shrinking(title, name, options, made, pairs)


def _pages() -> list[bytes]:
    return [page_picture(number, photographs=number % 2 == 0) for number in range(30)]


def measure_pictures(picture: bytes, count: int, pairs: int) -> list[PictureTurn]:
    """Print what judgments of one picture cost beside those of its shrunk bytes."""
    with empty_caches() as folder:
        shot = folder / "page.png"
        shot.write_bytes(picture)
        options = {"representation": "screenshot"}
        (sent,) = asyncio.run(judged_alone("simplified", options, picture_run(0, [shot])))
    clients = {"shrunk for each judgment": picture, "sent as they are": sent.data}
    for client, content in clients.items():  # imports and first calls are not measured
        picture_turn(client, content, 2, 0)
    rows = []
    for number in range(pairs):
        for client in sorted(clients, reverse=number % 2 == 1):
            rows.append(picture_turn(client, clients[client], count, number))
    heads = (
        "one screenshot, 64 at once",
        "wall s",
        "CPU ms",
        "gap ms",
        "step ms",
        "its CPU",
        "peak MB",
    )
    print("{:30}{:>9}{:>9}{:>9}{:>9}{:>9}{:>9}{:>6}".format(*heads, "lost"))
    figures: dict[str, dict[str, float]] = {}
    for client in clients:
        mine = [row for row in rows if row.client == client]
        names = ("wall", "cpu_ms", "gap_ms", "step_ms", "step_cpu_ms", "peak_mb")
        figures[client] = {name: median(getattr(row, name) for row in mine) for name in names}
        lost = sum(row.wanted - row.answered for row in mine)
        print(f"{client:30}" + "".join(f"{v:9.2f}" for v in figures[client].values()) + f"{lost:6}")
    ratios = [
        median(
            getattr(one, name) / getattr(other, name)
            for one, other in zip(
                *([row for row in rows if row.client == client] for client in clients), strict=True
            )
        )
        for name in ("wall", "cpu_ms")
    ]
    print(f"{'ratio':30}" + "".join(f"{ratio:9.3f}" for ratio in ratios), flush=True)
    return rows


def server_counts(url: str) -> dict[str, int]:
    with urllib.request.urlopen(f"{url}/__stats") as response:
        counts: dict[str, int] = json.load(response)
    return counts


def timed(
    run: Callable[[], Awaitable[int]],
    loop: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop,
) -> tuple[int, float, float]:
    """Return what was answered, and wall and CPU seconds, in a loop of its own."""

    async def work() -> tuple[int, float, float]:
        wall, cpu = time.perf_counter(), time.process_time()
        answered = await run()
        return answered, time.perf_counter() - wall, time.process_time() - cpu

    gc.collect()
    with asyncio.Runner(loop_factory=loop) as once:
        return once.run(work())


def runner(
    client: str, url: str, jobs: list[JudgmentJob], width: int
) -> Callable[[], Awaitable[int]]:
    """Return the client's whole run against the server at ``url``."""
    if client == PLAIN:
        return partial(through_http, url, len(jobs), width)
    if client == SDK:
        return partial(through_sdk, url, len(jobs), width)
    if client == LITELLM:
        return partial(through_litellm, url, len(jobs), width)
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
        BESIDE: LoadScenario("64 at once", (), 64, at_64, (*everyone, LITELLM)),
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


def rounds(
    name: str, jobs: list[JudgmentJob], pairs: int, peers: Path | None
) -> Iterator[Measurement]:
    """Yield the turns of one scenario; who begins changes from round to round."""
    for number in range(pairs):
        if name == ALONE:
            yield without_wire(jobs, number)
            continue
        scenario = scenarios(len(jobs))[name]
        first = number % len(scenario.clients)
        for client in (*scenario.clients[first:], *scenario.clients[:first]):
            yield turn(scenario, client, jobs, number)
        if name == BESIDE and peers is not None:
            for client in APART:
                if (peers / client).is_dir():
                    yield apart(client, peers, len(jobs), number)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a quarter of the judgments")
    names = [ALONE, *scenarios(1)]
    pictures = [PICTURES, SHRINKING]
    choices = [*names, *pictures]
    parser.add_argument("--only", nargs="*", default=choices, choices=choices, metavar="NAME")
    parser.add_argument("--pairs", type=int, default=9, metavar="N", help="rounds (default: 9)")
    parser.add_argument("--out", type=Path, help="write the rows as JSON")
    parser.add_argument("--picture", type=Path, help="a screenshot that a judge's model shrinks")
    parser.add_argument("--peers", type=Path, metavar="DIR", help="inspect_ai and promptfoo")
    options = parser.parse_args()
    count = 325 if options.quick else 1300
    rows: list[Measurement | PictureTurn] = []
    shown = options.picture and options.picture.read_bytes()
    if SHRINKING in options.only:
        measure_shrinking(shown, options.pairs)
    if PICTURES in options.only:
        page = shown or page_picture(0, photographs=True)
        rows += measure_pictures(page, count, options.pairs)
    if texts := [name for name in options.only if name in names]:
        rows += measure_texts(texts, count, options.pairs, options.peers)
    if options.out:
        options.out.write_text(json.dumps([asdict(row) for row in rows], indent=1))


def measure_texts(
    names: Sequence[str], count: int, pairs: int, peers: Path | None = None
) -> list[Measurement]:
    """Print the medians of every client of these scenarios."""
    jobs = [job(index) for index in range(count)]
    warm = LoadScenario("", (), 1, 1.0, ())
    for client in (
        SDK,
        *PEERS,
        *([LITELLM] if BESIDE in names else []),
    ):  # imports and first calls are not measured
        turn(warm, client, jobs[:1], 0)
    heads = ("scenario", "client", "/ ideal", "CPU ms", "/ peer", "- peer", "lost", "again")
    print("{:30}{:19}{:>7}{:>8}{:>8}{:>9}{:>6}{:>7}  flying  429s".format(*heads))
    rows: list[Measurement] = []
    for name in names:
        made = list(rounds(name, jobs, pairs, peers))
        print_medians(made)
        rows += made
    return rows


if __name__ == "__main__":
    main()
