"""The first stage with or without a model."""

from __future__ import annotations

import asyncio

from trajudge.environments.agents.settings import ModelSettings, model_side
from trajudge.environments.model.axes import generator
from trajudge.environments.stages.model import GenerationPlan, SuiteSpecification
from trajudge.environments.stages.plan import plan


def planned(specification: SuiteSpecification, model: ModelSettings | None) -> GenerationPlan:
    """Plan, with a model if one is named. Raises UserError for one that cannot be asked."""
    rng = generator("plan", specification.seed)
    if model is None:
        return asyncio.run(plan(specification, rng))
    side = model_side(model)

    async def run() -> GenerationPlan:
        engines = side.open_engines(0.0)
        try:
            return await plan(specification, rng, side.ask(engines, 0, refresh=()))
        finally:
            await engines.close()

    return asyncio.run(run())
