"""The HTTP server: authentication and errors, its own protocol, and the protocols of trainers.

Trainers that send a text and receive a number (OpenRLHF, slime, OpenAI's chat) identify a
trajectory by the id under which it was pushed. The number is the reward's value; for an abstention
it is the neutral value, marked as abstained, or 503 while the judge is running. Without a neutral
value these protocols are refused from the first request on. For NeMo Gym's resources server the
sample of a judge that failed is masked, and its reward is the neutral value, because NeMo-RL counts
masked samples in the mean of their group.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict
from functools import lru_cache
from hashlib import sha256
from socket import socket
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import orjson
from aiohttp import web

from trajudge.judges.engine.budget import Payments, read_payments
from trajudge.rewards.client import NAME_LENGTH
from trajudge.rewards.reward import Reward, neutral_values, why_abstained
from trajudge.rewards.rewarder import Rewarder
from trajudge.rewards.service import NoTrajectory, RewardService, TooBusy
from trajudge.rewards.settings import RewardServerConfig
from trajudge.rewards.watch import ReferencePoint
from trajudge.trajectories import store
from trajudge.trajectories.images import not_an_image
from trajudge.trajectories.model import Trajectory
from trajudge.util.errors import UserError, did_you_mean
from trajudge.util.files import make_folder
from trajudge.util.machine import stop_event
from trajudge.util.terminal import one_line

log = logging.getLogger(__name__)

SERVICE = web.AppKey("service", RewardService)
ROUTES = web.RouteTableDef()
"""The routes; ``{token}`` is for clients that cannot send headers."""
LARGEST_BODY = 32 * 2**20
_OPEN = frozenset({"/healthz", "/readyz"})
_LOCAL = frozenset({"127.0.0.1", "localhost", "::1"})
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class RequestRefused(Exception):
    """Answers a request with an error of this status and message."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


@web.middleware
async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Check the token, and turn exceptions into responses with a status and a message."""
    service = request.app[SERVICE]
    try:
        _check_token(request)
        return await handler(request)
    except RequestRefused as refusal:
        return error_response(service, refusal.status, str(refusal))
    except TooBusy:
        limit = service.config.queue
        message = f"{limit} rewards are in progress: ask again in a second"
        return error_response(service, 429, message, retry_after=1)
    except web.HTTPException as error:
        return error_response(service, error.status, _http_message(request, error))
    except UserError as error:
        return error_response(service, 503, one_line(str(error)), retry_after=5)
    except Exception:
        # A defect of the server or of a judge's code ends this request only.
        log.exception("%s %s", request.method, request.match_info.route.resource)
        return error_response(service, 500, "the server failed: its log says why")


def _http_message(request: web.Request, error: web.HTTPException) -> str:
    if error.status == 413:
        return f"the body is larger than {LARGEST_BODY // 2**20} MB: send less of it at once"
    return f"{request.method} {request.path}: {error.reason}"


def error_response(
    service: RewardService, status: int, message: str, *, retry_after: int | None = None
) -> web.Response:
    """Return the response to a refused request; ``retry_after`` is in seconds."""
    service.metrics.refused += 1
    headers = {} if retry_after is None else {"Retry-After": str(retry_after)}
    reason = message if status == 501 else None  # OpenRLHF's log shows the reason only
    return json_response({"error": message}, status=status, headers=headers, reason=reason)


def json_response(
    content: Any,
    *,
    status: int = 200,
    headers: dict[str, str] | None = None,
    reason: str | None = None,
) -> web.Response:
    """Return a response with JSON, in which NaN and infinity are null."""
    return web.Response(
        body=orjson.dumps(content),
        status=status,
        reason=reason,
        headers=headers,
        content_type="application/json",
    )


async def json_object(request: web.Request) -> dict[str, Any]:
    """Return the body, a JSON object. Raises RequestRefused."""
    if request.content_type != "application/json":
        # A page in a browser can send other types to a local server without a CORS preflight.
        raise RequestRefused(415, "send the body as Content-Type: application/json")
    try:
        content = orjson.loads(await request.read())
    except orjson.JSONDecodeError as error:
        raise RequestRefused(400, f"the body is not JSON ({error})") from error
    if not isinstance(content, dict):
        raise RequestRefused(400, "the body is not a JSON object")
    return content


@lru_cache(maxsize=64)
def _host_of(header: str) -> str | None:
    """Return the host name of a ``Host`` header, without the port."""
    try:
        return urlsplit(f"//{header}").hostname
    except ValueError:
        return header


def _check_token(request: web.Request) -> None:
    config = request.app[SERVICE].config
    token = config.token
    if token is None:
        # Against DNS rebinding: a page's own host name may resolve to this machine.
        if (name := _host_of(request.host)) not in _LOCAL and name != config.host:
            raise RequestRefused(403, f"the host {name!s:.80} is not this server's: ask 127.0.0.1")
        return
    if request.path in _OPEN:
        return
    kind, _, sent = request.headers.get("Authorization", "").partition(" ")
    if kind.lower() != "bearer":
        sent = request.match_info.get("token", "")
    expected = token.get_secret_value().encode()
    if not hmac.compare_digest(sent.strip().encode("utf-8", "replace"), expected):
        raise RequestRefused(401, "the token is missing or wrong: send Authorization: Bearer TOKEN")


MOST_ITEMS = 1_000
LATER = frozenset({"late", "unknown"})  # abstentions after which a client asks again
_SHOWN = 80  # characters of a field's name
_HASH_PATH = "/v1/images/{sha256:[0-9a-f]{64}}"


@ROUTES.post("/v1/rewards")
async def post_rewards(request: web.Request) -> web.Response:
    """Answer ``{"items": [{"trajectory": {...}} or {"id": "..."}], "deadline": SECONDS}`` with
    ``{"rewards": [...], "neutral_values": [...]}``, one of each per item, in order.

    The neutral value of an abstention with a ``group`` and a ``group_size`` is the mean of the
    group's other members, for which the request waits; otherwise, or without such a mean, it is the
    server's ``neutral_value``. ``step`` is the training's, for the curve of the reference judge.
    """
    service = request.app[SERVICE]
    body = await json_object(request)
    _refuse_unknown("the request", body, ("items", "deadline", "step"))
    items = body.get("items")
    if not isinstance(items, list) or not 0 < len(items) <= MOST_ITEMS:
        raise RequestRefused(400, f'"items" must be a list of 1 to {MOST_ITEMS} objects')
    trajectories = [_parse_item(service, number, one) for number, one in enumerate(items)]
    members = [_parse_member(number, one) for number, one in enumerate(items)]
    deadline, started = _deadline(body), time.monotonic()
    step = None if body.get("step") is None else _step(body["step"])
    rewards = await service.rewards(trajectories, deadline, step)
    for member, reward in zip(members, rewards, strict=True):
        if member is not None and reward.abstained not in LATER:
            service.groups.add(*member, reward.value)
    left = (service.config.patience if deadline is None else deadline) - time.monotonic() + started
    neutral = (
        _neutral_value(service, member, reward, max(0.0, left))
        for member, reward in zip(members, rewards, strict=True)
    )
    return json_response(
        {
            "rewards": [one.model_dump(mode="json") for one in rewards],
            "neutral_value": service.neutral_value,
            "neutral_values": await asyncio.gather(*neutral),
        }
    )


class _Member(NamedTuple):
    """The group of an item, the group's size, and the item's name in it."""

    group: str
    size: int
    name: str


def _parse_member(number: int, item: Mapping[str, Any]) -> _Member | None:
    if item.get("group") is None:
        return None
    size = item.get("group_size")
    if isinstance(size, bool) or not isinstance(size, int) or not 0 < size <= MOST_ITEMS:
        raise RequestRefused(
            400, f'item {number}: "group_size" must be a number from 1 to {MOST_ITEMS}'
        )
    # The content distinguishes items without an id in different requests.
    own = item.get("id") or f"{number} {sha256(orjson.dumps(item['trajectory'])).hexdigest()}"
    return _Member(check_id(item["group"]), size, str(own))


async def _neutral_value(
    service: RewardService, member: _Member | None, reward: Reward, patience: float
) -> float | None:
    default = service.neutral_value
    if member is None or reward.value is not None or reward.abstained in LATER:
        return default
    mean = await service.groups.mean(member.group, patience)
    return default if mean is None else mean


def _refuse_unknown(subject: str, content: Mapping[str, Any], fields: Sequence[str]) -> None:
    """Refuse unknown fields: a misspelt ``group`` would silently change the reward."""
    for name in content:
        if name not in fields:
            hint = did_you_mean(name[:_SHOWN], fields) or ";"
            raise RequestRefused(
                400, f"{subject} has no field {name[:_SHOWN]!r}{hint} there are {', '.join(fields)}"
            )


def _parse_item(service: RewardService, number: int, item: object) -> Trajectory | str:
    if isinstance(item, Mapping):
        _refuse_unknown(f"item {number}", item, ("id", "trajectory", "group", "group_size"))
    if isinstance(item, Mapping) and isinstance(item.get("id"), str) and "trajectory" not in item:
        return check_id(item["id"])
    if not isinstance(item, Mapping) or "trajectory" not in item:
        raise RequestRefused(400, f'item {number} has neither a "trajectory" nor an "id"')
    try:
        return service.recorded.read(item["trajectory"])
    except NoTrajectory as error:
        raise RequestRefused(422, f"item {number}: {error}") from error


def check_id(value: object) -> str:
    """Return an id that is a string of valid length. Raises RequestRefused."""
    if not isinstance(value, str) or not 0 < len(value) <= NAME_LENGTH:
        raise RequestRefused(400, f"an id is a text of 1 to {NAME_LENGTH} characters")
    return value


def _deadline(body: Mapping[str, Any]) -> float | None:
    value = body.get("deadline")
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        raise RequestRefused(400, '"deadline" must be a positive number of seconds')
    return float(value)


def _step(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise RequestRefused(400, "a step must be a non-negative integer")
    return value


@ROUTES.post("/v1/trajectories")
async def post_trajectory(request: web.Request) -> web.Response:
    """Store ``{"id": "...", "trajectory": {...}}``; answer with the hashes of missing images."""
    body = await json_object(request)
    _refuse_unknown("the request", body, ("id", "trajectory"))
    record = body.get("trajectory")
    if not isinstance(record, dict):
        raise RequestRefused(400, 'there is no "trajectory": send a line of trajectories.jsonl')
    try:
        missing = await request.app[SERVICE].push(check_id(body.get("id")), record)
    except NoTrajectory as error:
        raise RequestRefused(422, str(error)) from error
    return json_response({"missing_images": missing}, status=201)


@ROUTES.put(_HASH_PATH)
async def put_image(request: web.Request) -> web.Response:
    """Store an image under its SHA-256."""
    content = await request.read()
    if sha256(content).hexdigest() != request.match_info["sha256"]:
        raise RequestRefused(422, "the SHA-256 of the body differs from that in the address")
    if problem := not_an_image(content[:32]):
        raise RequestRefused(415, f"the body {problem}")
    store.put_image(request.app[SERVICE].config.folder, content)
    return web.Response(status=201)


@ROUTES.get(_HASH_PATH)
async def has_image(request: web.Request) -> web.Response:
    """Answer 204 if the image is stored, else 404."""
    stored = store.has_image(request.app[SERVICE].config.folder, request.match_info["sha256"])
    return web.Response(status=204 if stored else 404)


@ROUTES.get("/healthz")
async def healthz(_: web.Request) -> web.Response:
    """Answer that the process is alive."""
    return json_response({"ok": True})


@ROUTES.get("/readyz")
async def readyz(request: web.Request) -> web.Response:
    """Answer 503 once the budget is spent or the watch stopped the rewards, else 200."""
    rewarder = request.app[SERVICE].rewarder
    ready = not rewarder.over_budget and not rewarder.watch.monitor.stopped
    return json_response({"ready": ready}, status=200 if ready else 503)


@ROUTES.get("/v1/audits")
async def get_audits(request: web.Request) -> web.Response:
    """List the drawn rewards that are not audited yet."""
    monitor = request.app[SERVICE].rewarder.watch.monitor
    waiting = [{"id": one.name, "value": one.value} for one in monitor.to_audit()]
    return json_response({"audits": waiting})


@ROUTES.post("/v1/audits")
async def post_audit(request: web.Request) -> web.Response:
    """Record the true outcome of a drawn trajectory, ``{"id": "...", "success": true}``."""
    body = await json_object(request)
    _refuse_unknown("the request", body, ("id", "success"))
    name, success = check_id(body.get("id")), body.get("success")
    if not isinstance(success, bool):
        raise RequestRefused(400, '"success" is true or false')
    watch = request.app[SERVICE].rewarder.watch
    if not watch.audit(name, success):
        raise RequestRefused(404, f"no reward waits for an audit as {name!r}: see GET /v1/audits")
    return json_response({"state": watch.monitor.state.name.lower()})


@ROUTES.get("/v1/reference")
async def get_reference(request: web.Request) -> web.Response:
    """Return the curve of the reference judge by training step; with ``?before=STEP`` only the
    last point before that step."""
    curve = request.app[SERVICE].rewarder.watch.monitor.curve
    points: list[ReferencePoint | None] = [*curve.points()]
    if (before := request.query.get("before")) is not None:
        points = [curve.before(_step(int(before) if before.isdecimal() else before))]
    shown_points = [asdict(point) for point in points if point is not None]
    return json_response({"judge": curve.name or None, "points": shown_points})


@ROUTES.get("/metrics")
async def metrics(request: web.Request) -> web.Response:
    """Write the counts in Prometheus' text format."""
    service = request.app[SERVICE]
    gauges = {"rewards_at_work": service.in_progress, **service.rewarder.watch.monitor.gauges()}
    kind = {"Content-Type": "text/plain; version=0.0.4; charset=utf-8"}
    return web.Response(text=service.metrics.text(gauges), headers=kind)


@ROUTES.get("/v1/card")
async def card(request: web.Request) -> web.Response:
    """Return judge, version, shaping, calibration, notes and the state of the watch."""
    function = request.app[SERVICE].rewarder.function
    monitor = request.app[SERVICE].rewarder.watch.monitor
    return json_response(
        {
            "judge": function.configuration.model_dump(mode="json"),
            "version": function.version,
            "shaping": function.shaping.model_dump(mode="json"),
            "calibration": function.calibration and function.calibration.model_dump(mode="json"),
            "decision": function.decided or None,
            "neutral_value": request.app[SERVICE].neutral_value,
            "notes": list(function.notes),
            "watch": {"state": monitor.state.name.lower(), "reason": monitor.reason},
            "reference": monitor.curve.name or None,
        }
    )


def reward_details(reward: Reward) -> dict[str, Any]:
    """Return the fields that the trainers' protocols add to the value of a reward."""
    return {
        "abstained": float(reward.value is None),
        "probability": -1.0 if reward.probability is None else reward.probability,
        "cost": -1.0 if reward.cost is None else reward.cost,
        "seconds": reward.seconds,
    }


_FIX = "give  trajudge serve  --neutral-value VALUE or --calibration-file FILE"


def _service_of_numbers(request: web.Request) -> RewardService:
    """Return the service for a protocol that accepts only numbers. Raises RequestRefused without a
    neutral value: otherwise the first abstention would end the training, hours later."""
    service = request.app[SERVICE]
    if service.neutral_value is None:
        raise RequestRefused(501, f"there is no neutral value for abstentions: {_FIX}")
    return service


@ROUTES.post("/get_reward")
@ROUTES.post("/get_reward/{token}")
async def get_reward(request: web.Request) -> web.Response:
    """Answer OpenRLHF: ``labels`` are ids; ``extra_logs`` always has the same keys."""
    service, body = _service_of_numbers(request), await json_object(request)
    labels = body.get("labels")
    if not isinstance(labels, list) or not labels:
        raise RequestRefused(400, '"labels" must be a list of trajectory ids')
    queries = body.get("query")
    if isinstance(queries, list) and len(queries) != len(labels):
        raise RequestRefused(400, f'"labels" has {len(labels)} ids for {len(queries)} in "query"')
    rewards = await service.rewards([check_id(label) for label in labels])
    values = [reward_number(service, reward) for reward in rewards]
    logs = [reward_details(reward) for reward in rewards]
    extra = {name: [one[name] for one in logs] for name in logs[0]}
    return json_response({"rewards": values, "scores": values, "extra_logs": extra})


@ROUTES.post("/rm")
@ROUTES.post("/rm/{token}")
async def remote_rm(request: web.Request) -> web.Response:
    """Answer slime: ``label`` is the id; ``--reward-key reward`` reads the answer."""
    service, body = _service_of_numbers(request), await json_object(request)
    (reward,) = await service.rewards([check_id(body.get("label"))])
    return json_response({"reward": reward_number(service, reward), **reward_details(reward)})


@ROUTES.post("/v1/chat/completions")
async def chat_completions(request: web.Request) -> web.Response:
    """Answer as a model of OpenAI's chat: the last message is an id or a trajectory as JSON, the
    reply is the reward as JSON, which may be an abstention."""
    body = await json_object(request)
    service = request.app[SERVICE]
    (reward,) = await service.rewards([_parse_messages(service, body.get("messages"))])
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


def _parse_messages(service: RewardService, messages: object) -> Trajectory | str:
    last = messages[-1] if isinstance(messages, list) and messages else None
    content = last.get("content") if isinstance(last, dict) else None
    if isinstance(content, list):
        content = "".join(str(p.get("text", "")) for p in content if isinstance(p, dict))
    if not isinstance(content, str):
        raise RequestRefused(400, "the last message must be a trajectory's id or a trajectory")
    if not content.lstrip().startswith("{"):
        return check_id(content.strip())
    try:
        return service.recorded.read(orjson.loads(content))
    except (orjson.JSONDecodeError, NoTrajectory) as error:
        raise RequestRefused(422, f"the last message: {error}") from error


def reward_number(service: RewardService, reward: Reward) -> float:
    """Return the reward's value, or the neutral value of an abstention. Raises RequestRefused while
    the judge is running."""
    if reward.abstained == "late":
        raise RequestRefused(503, f"{why_abstained(reward)}: ask again")
    (value,) = neutral_values([reward], base_rate=service.neutral_value)
    return value


_ID = "trajectory_id"  # of NeMo Gym's rows


@ROUTES.post("/seed_session")
async def seed_session(_: web.Request) -> web.Response:
    """Answer the start of a rollout, which needs no state."""
    return json_response({})


@ROUTES.post("/verify")
async def verify(request: web.Request) -> web.Response:
    """Answer with the row and its ``reward``, ``mask_sample`` and ``failure_reason``."""
    service, body = _service_of_numbers(request), await json_object(request)
    metadata = body.get("verifier_metadata")
    name = body.get(_ID) or (metadata.get(_ID) if isinstance(metadata, Mapping) else None)
    (reward,) = await service.rewards([check_id(name)])
    abstained = reward.value is None
    result = {
        "reward": reward_number(service, reward),
        "mask_sample": abstained,
        "failure_reason": f"{reward.abstained}: {reward.detail}" if abstained else None,
    }
    return json_response({**body, **reward_details(reward), **result})


@ROUTES.post("/aggregate_metrics")
async def aggregate_metrics(request: web.Request) -> web.Response:
    """Average the responses of ``verify``, without the rewards of masked samples."""
    body = await json_object(request)
    answers = body.get("verify_responses")
    if not isinstance(answers, list) or not all(isinstance(one, Mapping) for one in answers):
        raise RequestRefused(400, '"verify_responses" must be a list of objects')
    rewards = [one["reward"] for one in answers if not one.get("mask_sample")]
    if not all(isinstance(reward, int | float) for reward in rewards):
        raise RequestRefused(400, "each of verify_responses must have a number as its reward")
    means: dict[str, Any] = {"masked": sum(bool(one.get("mask_sample")) for one in answers)}
    if rewards:
        means["mean/reward"] = sum(rewards) / len(rewards)
    return json_response({"group_level_metrics": [], "agent_metrics": means, "key_metrics": means})


PAYMENTS = "payments.jsonl"
_SHUTDOWN_SECONDS = 5.0  # for requests in progress


def application(config: RewardServerConfig, rewarder: Rewarder) -> web.Application:
    """Return the application, which closes the rewarder on cleanup."""
    app = web.Application(middlewares=[guard], client_max_size=LARGEST_BODY)
    app[SERVICE] = RewardService(config, rewarder)
    app.add_routes(ROUTES)

    async def close(_: web.Application) -> None:
        await rewarder.aclose()

    app.on_cleanup.append(close)
    return app


async def serve(config: RewardServerConfig, listening: socket) -> None:
    """Serve on a socket until SIGINT or SIGTERM, and write the address to standard output. Raises
    UserError."""
    try:
        make_folder(config.folder, "--store")
        ledger = config.folder / PAYMENTS
        spent = sum(read_payments(ledger).values())
    except OSError as error:
        raise UserError(f"--store {config.folder}: cannot be used ({error.strerror})") from error
    payments = Payments(ledger)
    rewarder = Rewarder(config.reward, spent=spent, payments=payments)
    app = application(config, rewarder)
    notes = [*rewarder.function.notes]
    if app[SERVICE].neutral_value is None:
        notes.append(f"/get_reward, /rm and /verify are disabled: to enable them {_FIX}")
    sys.stderr.write("".join(f"note: {note}\n" for note in notes))
    # Requests are not logged, because the path may contain the token.
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=_SHUTDOWN_SECONDS)
    await runner.setup()
    try:
        await web.SockSite(runner, listening).start()
        host, port = runner.addresses[0][:2]
        shown = f"[{host}]" if ":" in host else host
        sys.stdout.write(f"http://{shown}:{port}\n")
        sys.stdout.flush()
        await stop_event().wait()
    finally:
        await runner.cleanup()
        payments.close()
