"""How near WebJudge comes to the ideal: the sample's runs of ten steps, three calls deep.

``python -m benchmarks.webjudge [--trajectories N] [--concurrency N]``

The server is ours, on loopback, in a process of its own, with 200 ms of latency. ``ideal`` is
calls x latency / concurrency, and the way of a last judgment (key points, screenshots, verdict)
where that takes longer. Engine, cache on the disk, journal of judgments and the openai SDK are on.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import math
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from itertools import cycle, islice
from pathlib import Path

import numpy as np

from tests.llm_server import spawned
from trajudge.eval.runs.jobs import JudgmentJob, StopSignal, judge_all
from trajudge.eval.store.run_folder import JudgmentJournal
from trajudge.judges.adapters.openai import OpenAIAdapter
from trajudge.judges.engine.budget import Budget
from trajudge.judges.engine.cache import Cache
from trajudge.judges.engine.engine import EngineClient, Engines, ModelRoute
from trajudge.judges.engine.limits import Limiter
from trajudge.judges.engine.retry import Retry
from trajudge.judges.judging import judge_trajectory
from trajudge.judges.model import Judgment, Status, Usage
from trajudge.judges.registry import make_judge, needs_of
from trajudge.trajectories.loaders import open_source
from trajudge.trajectories.model import ImageRef, Observation, Trajectory
from trajudge.trajectories.sample import sample_path

LATENCY = 0.2
STEPS = 10
DEPTH = 3
MODEL = "gpt-4o"
ANSWER = "Reasoning: the page shows what was asked for.\nScore: 4\nStatus: success"


def runs(count: int) -> list[Trajectory]:
    """The sample's trajectories, each brought to ten steps by repeating its own; goals and
    screenshots are made different, so that no call is shared."""
    read = open_source(f"trajudge:{sample_path()}")
    sample = [item for item in read if isinstance(item, Trajectory)]
    return [_ten_steps(run, number) for number, run in enumerate(islice(cycle(sample), count))]


def _ten_steps(run: Trajectory, number: int) -> Trajectory:
    steps = tuple(
        step.model_copy(
            update={"index": index, "observation": _unique(step.observation, number, index)}
        )
        for index, step in enumerate(islice(cycle(run.steps), STEPS))
    )
    key = run.key.model_copy(update={"attempt": number})
    goal = f"{run.goal} (order {number})"
    return run.model_copy(update={"key": key, "goal": goal, "steps": steps})


def _unique(observation: Observation, number: int, index: int) -> Observation:
    """A file may go on after its image ends: another content, the same picture."""
    shot = observation.screenshot
    assert shot
    assert shot.path
    image = ImageRef(data=shot.path.read_bytes() + f"{number}/{index}".encode())
    return observation.model_copy(update={"screenshot": image})


async def judge(url: str, trajectories: list[Trajectory], concurrency: int, folder: Path) -> int:
    """Judge them all as ``eval.judge`` does; how many judgments are there."""
    adapter = OpenAIAdapter(MODEL, base_url=f"{url}/v1", max_connections=2 * concurrency)
    engines = Engines(
        {MODEL: adapter},
        cache=Cache(folder / "cache.db"),
        limiter=lambda _: Limiter(concurrency=concurrency),
        retry=Retry(np.random.default_rng(0)),
        budget=Budget(lambda model, usage: usage.input * 2.5e-6 + usage.output * 1e-5),
    )
    judge_id, webjudge = make_judge("webjudge")
    needs = needs_of("webjudge")
    jobs: Iterator[JudgmentJob] = (JudgmentJob(run.key, run, 0) for run in trajectories)

    async def judge_one(job: JudgmentJob) -> Judgment:
        assert isinstance(job.item, Trajectory)
        ask = EngineClient(
            engines,
            ModelRoute(
                adapter.endpoint,
                MODEL,
                {"temperature": 0, "max_tokens": 500},
                lambda request: Usage(input=2000, output=200),
            ),
        )
        return await judge_trajectory(judge_id, webjudge, job.item, ask, needs=needs)

    try:
        with JudgmentJournal(folder) as journal:
            record = journal.add
            await judge_all(jobs, judge_one, width=concurrency, record=record, stop=StopSignal())
            return sum(j.status is Status.OK for j in journal.judgments())
    finally:
        await engines.close()


def requests(url: str) -> int:
    with urllib.request.urlopen(f"{url}/__stats") as response:
        return int(json.load(response)["requests"])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--trajectories", type=int, default=100)
    parser.add_argument("--concurrency", type=int, default=64)
    options = parser.parse_args()
    trajectories = runs(options.trajectories)
    calls = len(trajectories) * (STEPS + 2)
    ideal = max(DEPTH, math.ceil(calls / options.concurrency)) * LATENCY
    with spawned("--latency", str(LATENCY), "--answer", ANSWER) as url:
        with tempfile.TemporaryDirectory() as folder:
            asyncio.run(judge(url, runs(1), 1, Path(folder)))  # imports are not measured
        with tempfile.TemporaryDirectory() as folder:
            gc.collect()
            wall, cpu = time.perf_counter(), time.process_time()
            done = asyncio.run(judge(url, trajectories, options.concurrency, Path(folder)))
            wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        sent = requests(url) - (STEPS + 2)
    print(
        f"WebJudge, {STEPS} steps, {options.concurrency} at once: "
        f"{done}/{len(trajectories)} judged in {sent} calls (expected {calls}), "
        f"wall {wall:.2f} s, ideal {ideal:.2f} s, ratio {wall / ideal:.2f}, "
        f"CPU {1000 * cpu / calls:.2f} ms a call"
    )


if __name__ == "__main__":
    main()
