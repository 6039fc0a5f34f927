"""The clients that ``benchmarks.judge_throughput`` compares: the whole path of a judgment as
``eval.judge`` takes it, and bare clients that only send prompts of the same size."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import orjson

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
