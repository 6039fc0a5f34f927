"""The server's own protocol: rewards, trajectories, images, and what an operator asks."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, NamedTuple

import orjson
from aiohttp import web

from trajudge.rewards.reward import Reward
from trajudge.rewards.server.guarding import SERVICE, RequestRefused, json_object, json_response
from trajudge.rewards.server.recorded import NAME_LENGTH, NoTrajectory
from trajudge.rewards.server.service import RewardService
from trajudge.trajectories import store
from trajudge.trajectories import store as stored_lines
from trajudge.trajectories.images import not_an_image
from trajudge.trajectories.model import Trajectory
from trajudge.util.errors import did_you_mean

MOST_ITEMS = 1_000
_SHOWN = 80  # characters of a field's name
_HASH_PATH = "/v1/images/{sha256:[0-9a-f]{64}}"


async def post_rewards(request: web.Request) -> web.Response:
    """Answer ``{"items": [{"trajectory": {...}} or {"id": "..."}], "deadline": SECONDS}`` with
    ``{"rewards": [...], "neutral_values": [...]}``, one of both an item, in order; an item that
    cannot be judged abstains, and its neutral value is what stands for it in a number. Of an item
    with a ``group`` and its ``group_size`` that is the mean of the group's others, which are waited
    for; else, or where there is none, the base rate (``neutral_value``)."""
    service = request.app[SERVICE]
    body = await json_object(request)
    _refuse_unknown("the request", body, ("items", "deadline"))
    items = body.get("items")
    if not isinstance(items, list) or not 0 < len(items) <= MOST_ITEMS:
        raise RequestRefused(400, f'"items" is a list of 1 to {MOST_ITEMS} objects')
    wanted = [_wanted(service, number, one) for number, one in enumerate(items)]
    members = [_member(number, one) for number, one in enumerate(items)]
    deadline, started = _deadline(body), time.monotonic()
    rewards = await service.rewards(wanted, deadline)
    for member, reward in zip(members, rewards, strict=True):
        if member is not None and reward.abstained != "late":  # that one is asked for again
            service.groups.add(*member, reward.value)
    left = (service.config.patience if deadline is None else deadline) - time.monotonic() + started
    neutral = (
        _neutral_value(service, member, reward, max(0.0, left))
        for member, reward in zip(members, rewards, strict=True)
    )
    return json_response(
        {
            "rewards": [one.model_dump(mode="json") for one in rewards],
            "neutral_value": service.rewarder.function.neutral_value,
            "neutral_values": await asyncio.gather(*neutral),
        }
    )


class _Member(NamedTuple):
    """An item's place: the group's name and size, and its own name in it."""

    group: str
    size: int
    name: str


def _member(number: int, item: Mapping[str, Any]) -> _Member | None:
    if item.get("group") is None:
        return None
    size = item.get("group_size")
    if isinstance(size, bool) or not isinstance(size, int) or not 0 < size <= MOST_ITEMS:
        raise RequestRefused(
            400, f'item {number} has a "group": its "group_size" is a number from 1 to {MOST_ITEMS}'
        )
    # Items without an id are told apart by their content, too: two requests may have one each.
    own = item.get("id") or f"{number} {sha256(orjson.dumps(item['trajectory'])).hexdigest()}"
    return _Member(named(item["group"]), size, str(own))


async def _neutral_value(
    service: RewardService, member: _Member | None, reward: Reward, patience: float
) -> float | None:
    base_rate = service.rewarder.function.neutral_value
    if member is None or reward.value is not None or reward.abstained == "late":
        return base_rate
    mean = await service.groups.mean(member.group, patience)
    return base_rate if mean is None else mean


def _refuse_unknown(place: str, content: Mapping[str, Any], known: Sequence[str]) -> None:
    """Refuse a field that would do nothing: without its ``group`` an item has another reward."""
    for name in content:
        if name not in known:
            hint = did_you_mean(name[:_SHOWN], known) or ";"
            raise RequestRefused(
                400, f"{place} has no field {name[:_SHOWN]!r}{hint} there are {', '.join(known)}"
            )


def _wanted(service: RewardService, number: int, item: object) -> Trajectory | str:
    if isinstance(item, Mapping):
        _refuse_unknown(f"item {number}", item, ("id", "trajectory", "group", "group_size"))
    if isinstance(item, Mapping) and isinstance(item.get("id"), str) and "trajectory" not in item:
        return named(item["id"])
    if not isinstance(item, Mapping) or "trajectory" not in item:
        raise RequestRefused(400, f'item {number} has neither a "trajectory" nor an "id"')
    try:
        return service.recorded.read(item["trajectory"])
    except NoTrajectory as error:
        raise RequestRefused(422, f"item {number}: {error}") from error


def named(name: object) -> str:
    """Check an id. Raises RequestRefused."""
    if not isinstance(name, str) or not 0 < len(name) <= NAME_LENGTH:
        raise RequestRefused(400, f"an id is a text of 1 to {NAME_LENGTH} characters")
    return name


def _deadline(body: Mapping[str, Any]) -> float | None:
    value = body.get("deadline")
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        raise RequestRefused(400, '"deadline" is a number of seconds above 0')
    return float(value)


async def post_trajectory(request: web.Request) -> web.Response:
    """Keep ``{"id": "...", "trajectory": {...}}`` and tell which images are still missing."""
    body = await json_object(request)
    _refuse_unknown("the request", body, ("id", "trajectory"))
    record = body.get("trajectory")
    if not isinstance(record, dict):
        raise RequestRefused(400, 'there is no "trajectory": send a line of trajectories.jsonl')
    try:
        missing = await request.app[SERVICE].push(named(body.get("id")), record)
    except NoTrajectory as error:
        raise RequestRefused(422, str(error)) from error
    return json_response({"missing_images": missing}, status=201)


async def put_image(request: web.Request) -> web.Response:
    """Keep an image under the SHA-256 of its bytes."""
    content = await request.read()
    wanted = request.match_info["sha256"]
    if sha256(content).hexdigest() != wanted:
        raise RequestRefused(422, "the bytes have another SHA-256 than the address says")
    if problem := not_an_image(content[:32]):
        raise RequestRefused(415, f"the body {problem}")
    store.put_image(request.app[SERVICE].config.folder, content)
    return web.Response(status=201)


async def has_image(request: web.Request) -> web.Response:
    """Tell whether an image is here (HEAD, GET without a body)."""
    here = stored_lines.has_image(request.app[SERVICE].config.folder, request.match_info["sha256"])
    return web.Response(status=204 if here else 404)


async def healthz(_: web.Request) -> web.Response:
    """Say that the process answers."""
    return json_response({"ok": True})


async def readyz(request: web.Request) -> web.Response:
    """Say whether rewards can be had: not once the budget is spent, or the watch stopped them."""
    rewarder = request.app[SERVICE].rewarder
    ready = not rewarder.over_budget and not rewarder.watch.monitor.stopped
    return json_response({"ready": ready}, status=200 if ready else 503)


async def get_audits(request: web.Request) -> web.Response:
    """List the rewards that were drawn to be audited, and wait for it."""
    monitor = request.app[SERVICE].rewarder.watch.monitor
    waiting = [{"id": one.name, "value": one.value} for one in monitor.to_audit()]
    return json_response({"audits": waiting})


async def post_audit(request: web.Request) -> web.Response:
    """Take ``{"id": "...", "success": true}``: what became of a drawn trajectory in truth."""
    body = await json_object(request)
    _refuse_unknown("the request", body, ("id", "success"))
    name, success = named(body.get("id")), body.get("success")
    if not isinstance(success, bool):
        raise RequestRefused(400, '"success" is true or false')
    watch = request.app[SERVICE].rewarder.watch
    if not watch.audit(name, success):
        raise RequestRefused(404, f"no reward waits for an audit as {name!r}: see GET /v1/audits")
    return json_response({"state": watch.monitor.state.name.lower()})


async def metrics(request: web.Request) -> web.Response:
    """Write the counts in Prometheus' text format."""
    service = request.app[SERVICE]
    gauges = {"rewards_at_work": service.at_work, **service.rewarder.watch.monitor.gauges()}
    return web.Response(text=service.metrics.text(gauges))


async def card(request: web.Request) -> web.Response:
    """Say which judge answers, how it was calibrated, and how far it can be trusted."""
    function = request.app[SERVICE].rewarder.function
    monitor = request.app[SERVICE].rewarder.watch.monitor
    return json_response(
        {
            "judge": function.configuration.model_dump(mode="json"),
            "version": function.version,
            "shaping": function.shaping.model_dump(mode="json"),
            "calibration": function.calibration and function.calibration.model_dump(mode="json"),
            "decision": function.decided or None,
            "neutral_value": function.neutral_value,
            "notes": list(function.notes),
            "watch": {"state": monitor.state.name.lower(), "reason": monitor.reason},
        }
    )


def routes() -> Sequence[web.RouteDef]:
    """List the routes."""
    return [
        web.post("/v1/rewards", post_rewards),
        web.post("/v1/trajectories", post_trajectory),
        web.put(_HASH_PATH, put_image),
        web.get(_HASH_PATH, has_image),
        web.get("/v1/audits", get_audits),
        web.post("/v1/audits", post_audit),
        web.get("/healthz", healthz),
        web.get("/readyz", readyz),
        web.get("/metrics", metrics),
        web.get("/v1/card", card),
    ]


def shown(reward: Reward) -> dict[str, Any]:
    """Return what one-line protocols show of a reward beside its value."""
    return {
        "abstained": float(reward.value is None),
        "probability": -1.0 if reward.probability is None else reward.probability,
        "cost": -1.0 if reward.cost is None else reward.cost,
        "seconds": reward.seconds,
    }
