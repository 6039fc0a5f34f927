"""NeMo Gym's resources server: ``/seed_session``, ``/verify`` and ``/aggregate_metrics``.

The row's ``trajectory_id`` (or that of its ``verifier_metadata``) names a pushed trajectory. A
judge that failed masks its sample; the reward beside it is the base rate of the calibration, for
NeMo-RL counts masked samples in the mean of their group.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from aiohttp import web

from trajudge.rewards.server.guarding import SERVICE, RequestRefused, json_object, json_response
from trajudge.rewards.server.own import named, shown
from trajudge.rewards.server.trainers import number

_ID = "trajectory_id"


async def seed_session(_: web.Request) -> web.Response:
    """Begin a rollout: nothing is kept of it."""
    return json_response({})


async def verify(request: web.Request) -> web.Response:
    """Answer the row with ``reward``, ``mask_sample`` and ``failure_reason`` beside it."""
    body = await json_object(request)
    metadata = body.get("verifier_metadata")
    name = body.get(_ID) or (metadata.get(_ID) if isinstance(metadata, Mapping) else None)
    service = request.app[SERVICE]
    (reward,) = await service.rewards([named(name)])
    abstained = reward.value is None
    told = {
        "reward": number(service, reward),
        "mask_sample": abstained,
        "failure_reason": f"{reward.abstained}: {reward.detail}" if abstained else None,
    }
    return json_response({**body, **shown(reward), **told})


async def aggregate_metrics(request: web.Request) -> web.Response:
    """Average what ``verify`` answered, the masked samples left out of the reward."""
    body = await json_object(request)
    answers = body.get("verify_responses")
    if not isinstance(answers, list) or not all(isinstance(one, Mapping) for one in answers):
        raise RequestRefused(400, '"verify_responses" is a list of objects')
    rewards = [one["reward"] for one in answers if not one.get("mask_sample")]
    if not all(isinstance(reward, int | float) for reward in rewards):
        raise RequestRefused(400, "each of verify_responses has a number as its reward")
    means: dict[str, Any] = {"masked": sum(bool(one.get("mask_sample")) for one in answers)}
    if rewards:
        means["mean/reward"] = sum(rewards) / len(rewards)
    return json_response({"group_level_metrics": [], "agent_metrics": means, "key_metrics": means})


def routes() -> Sequence[web.RouteDef]:
    """List the routes."""
    return [
        web.post("/seed_session", seed_session),
        web.post("/verify", verify),
        web.post("/aggregate_metrics", aggregate_metrics),
    ]
