"""The first stage with or without a model."""

from __future__ import annotations

import asyncio

from trajudge.environments.model.axes import generator
from trajudge.environments.stages.model import GenerationPlan, SuiteSpecification
from trajudge.environments.stages.plan import plan
from trajudge.judges.calls.handle import ModelHandle


def planned(specification: SuiteSpecification, model: ModelHandle | None) -> GenerationPlan:
    """Plan, with a model if one is given."""
    rng = generator("plan", specification.seed)
    if model is None:
        return asyncio.run(plan(specification, rng))

    async def run() -> GenerationPlan:
        engines = model.open_engines(0.0)
        try:
            return await plan(specification, rng, model.ask(engines, 0, refresh=()))
        finally:
            await engines.close()

    return asyncio.run(run())
