"""The protocols of trainers that can send a text and take a number: OpenRLHF, slime, OpenAI's chat.

They name a trajectory by the id under which it was pushed. A number stands for a reward that has a
value; else the answer is the calibrated base rate, marked as abstained, or, where asking again may
help or there is no calibration, 503: never a failure as a number of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson
from aiohttp import web

from trajudge.rewards.abstaining import Abstained, neutral_values, why_abstained
from trajudge.rewards.reward import Reward
from trajudge.rewards.server.guarding import SERVICE, RequestRefused, json_object, json_response
from trajudge.rewards.server.own import named, shown
from trajudge.rewards.server.recorded import NoTrajectory
from trajudge.rewards.server.service import RewardService
from trajudge.trajectories.model import Trajectory


async def get_reward(request: web.Request) -> web.Response:
    """Answer OpenRLHF: ``labels`` are ids. ``extra_logs`` has the same keys always."""
    body = await json_object(request)
    labels = body.get("labels")
    if not isinstance(labels, list) or not labels:
        raise RequestRefused(400, '"labels" is a list with the id of each trajectory')
    queries = body.get("query")
    if isinstance(queries, list) and len(queries) != len(labels):
        raise RequestRefused(400, f'"labels" has {len(labels)} ids for {len(queries)} in "query"')
    service = request.app[SERVICE]
    rewards = await service.rewards([named(label) for label in labels])
    values = [number(service, reward) for reward in rewards]
    logs = [shown(reward) for reward in rewards]
    extra = {name: [one[name] for one in logs] for name in logs[0]}
    return json_response({"rewards": values, "scores": values, "extra_logs": extra})


async def remote_rm(request: web.Request) -> web.Response:
    """Answer slime: ``label`` is the id; ``--reward-key reward`` reads the answer."""
    body = await json_object(request)
    service = request.app[SERVICE]
    (reward,) = await service.rewards([named(body.get("label"))])
    return json_response({"reward": number(service, reward), **shown(reward)})


async def chat_completions(request: web.Request) -> web.Response:
    """Answer as a model of OpenAI's chat: the last message holds an id, or a trajectory as JSON;
    the reply is the reward as JSON, an abstention included."""
    body = await json_object(request)
    service = request.app[SERVICE]
    (reward,) = await service.rewards([_asked(service, body.get("messages"))])
    message = {"role": "assistant", "content": reward.model_dump_json()}
    return json_response(
        {
            "id": f"reward-{reward.version}",
            "object": "chat.completion",
            "created": 0,
            "model": reward.judge,
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0},
        }
    )


def _asked(service: RewardService, messages: object) -> Trajectory | str:
    last = messages[-1] if isinstance(messages, list) and messages else None
    content = last.get("content") if isinstance(last, dict) else None
    if isinstance(content, list):
        content = "".join(str(p.get("text", "")) for p in content if isinstance(p, dict))
    if not isinstance(content, str):
        raise RequestRefused(400, "the last message holds the id of a trajectory, or one as JSON")
    if not content.lstrip().startswith("{"):
        return named(content.strip())
    try:
        return service.recorded.read(orjson.loads(content))
    except (orjson.JSONDecodeError, NoTrajectory) as error:
        raise RequestRefused(422, f"the last message: {error}") from error


def number(service: RewardService, reward: Reward) -> float:
    """Return the reward's value, or the base rate of the calibration for an abstention.

    Raises RequestRefused where asking again may help, or where there is no base rate.
    """
    if reward.abstained == "late":  # the judge's verdict is under way: asking again finds it
        raise RequestRefused(503, f"{why_abstained(reward)}: ask again")
    try:
        (value,) = neutral_values([reward], base_rate=service.rewarder.function.neutral_value)
    except Abstained as error:
        raise RequestRefused(503, str(error)) from error
    return value


def routes() -> Sequence[web.RouteDef]:
    """List the routes; ``{token}`` is for clients that send no headers."""
    paths: dict[str, Any] = {"/get_reward": get_reward, "/rm": remote_rm}
    both = [(path + end, paths[path]) for path in paths for end in ("", "/{token}")]
    return [
        *(web.post(path, handler) for path, handler in both),
        web.post("/v1/chat/completions", chat_completions),
    ]
