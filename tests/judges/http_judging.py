"""Judges end to end: a real adapter, the engine, a model server on loopback."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np

from tests.llm_replies import Incoming
from tests.llm_server import LlmServer
from trajudge.judges.adapters.openai import OpenAIAdapter
from trajudge.judges.engine.budget import Budget
from trajudge.judges.engine.cache import Cache
from trajudge.judges.engine.engine import Engine, EngineClient, ModelRoute
from trajudge.judges.engine.limits import Limiter
from trajudge.judges.engine.retry import Retry
from trajudge.judges.judging import judge_trajectory
from trajudge.judges.model import Judge, Judgment, Usage
from trajudge.prompts.render import load_prompt
from trajudge.trajectories.model import Trajectory


def judged_over_http(
    server: LlmServer, judge: Judge, run: Trajectory, cache: Path, *, timeout: float = 20.0
) -> Judgment:
    """The judgment on ``run`` by a model behind ``server``; ``cache`` is the folder of replies."""

    async def main() -> Judgment:
        adapter = OpenAIAdapter("gpt-4o", base_url=server.url + "/v1", timeout=timeout)
        engine = Engine(
            adapter,
            cache=Cache(cache / "replies.sqlite"),
            limiter=Limiter(concurrency=8),
            retry=Retry(np.random.default_rng(0), attempts=2),
            budget=Budget(lambda model, usage: 0.001),
        )
        try:
            ask = EngineClient(
                {"gpt-4o": engine},
                ModelRoute(adapter.endpoint, "gpt-4o", {}, lambda request: Usage(input=100)),
            )
            return await judge_trajectory("judge", judge, run, ask)
        finally:
            await engine.close()

    return asyncio.run(main())


STAGES = {
    ("aer", "caption"): "caption",
    ("nnetnav", "describe"): "describe",
    ("webjudge", "key_points"): "key_points",
    ("webjudge", "screenshot"): "screenshot",
}

FORMS = ("schema", "text")


def stage_of(incoming: Incoming) -> str:
    system = incoming.payload.get("system") or incoming.payload["messages"][0]["content"]
    if not isinstance(system, str):
        system = system[0]["text"]
    for (folder, template), stage in STAGES.items():
        if system in [load_prompt(folder).render(template, answer=form) for form in FORMS]:
            return stage
    return "verdict"
