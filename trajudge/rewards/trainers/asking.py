"""Asking the reward server from a trainer's process."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

import aiohttp
import orjson

from trajudge.judges.adapters.errors import retry_after
from trajudge.rewards.reward import Reward

URL, TOKEN = "TRAJUDGE_REWARD_URL", "TRAJUDGE_REWARD_TOKEN"
_COLUMN = "trajectory_id"
_PAUSE = 1.0  # seconds, where the server does not say how long
_AGAIN = frozenset({429, 500, 502, 503, 504})


class RewardUnavailable(Exception):
    """The server could not be reached, or refused; the message says how."""


class AskedReward(NamedTuple):
    """A reward, and what stands for an abstention: the mean of its group where it has one, else the
    base rate (None: the server has no calibration)."""

    reward: Reward
    neutral_value: float | None


class _Later(Exception):
    """Asking again may help, after ``pause`` seconds."""

    def __init__(self, why: str, pause: float = _PAUSE) -> None:
        super().__init__(why)
        self.pause = pause


class RewardGroup(NamedTuple):
    """The group whose rewards a trainer compares: its name, and the number of its members."""

    name: str
    size: int


def pushed_name(row: str, *places: Mapping[str, Any]) -> str:
    """Return the id under which a trainer's ``row`` says that its trajectory is pushed, from the
    first of its ``places`` that holds one. Raises RewardUnavailable."""
    for place in places:
        if place.get(_COLUMN) is not None:
            return str(place[_COLUMN])
    raise RewardUnavailable(
        f"{row} without {_COLUMN}: give it the id under which its trajectory is pushed"
    )


async def ask_reward(
    name: str,
    *,
    url: str | None = None,
    deadline: float = 170.0,
    group: RewardGroup | None = None,
) -> AskedReward:
    """Ask for the reward of a pushed trajectory, again and again within ``deadline`` seconds where
    the server is busy, away, or its judge late. An abstention waits for its ``group``'s others.

    ``url`` defaults to the environment's. A reward that is still late at the deadline abstains.
    Raises RewardUnavailable where none was had.
    """
    address = url or os.environ.get(URL)
    if not address:
        raise RewardUnavailable(f"no reward server: set {URL}, or give url")
    token = os.environ.get(TOKEN)
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    item: dict[str, Any] = {"id": name}
    if group is not None:
        item |= {"group": group.name, "group_size": group.size}
    end, last = time.monotonic() + deadline, "it did not answer in time"
    async with aiohttp.ClientSession(headers=headers) as session:
        while (left := end - time.monotonic()) > 0:
            pause = _PAUSE
            try:
                asked = await _asked(session, address, item, left)
                if asked.reward.abstained != "late" or end - time.monotonic() < _PAUSE:
                    return asked
            except _Later as later:
                last, pause = str(later), later.pause
            except (aiohttp.ClientError, TimeoutError) as error:
                last = str(error) or type(error).__name__
            await asyncio.sleep(min(pause, max(0.0, end - time.monotonic())))
    raise RewardUnavailable(f"{address}: {last}")


async def _asked(
    session: aiohttp.ClientSession, address: str, item: dict[str, Any], left: float
) -> AskedReward:
    """Ask once, with ``left`` seconds. Raises _Later, RewardUnavailable, and what aiohttp does."""
    path = f"{address.rstrip('/')}/v1/rewards"
    body = {"items": [item], "deadline": left}
    limit = aiohttp.ClientTimeout(total=left + _PAUSE)
    async with session.post(path, json=body, timeout=limit) as answer:
        content = _json(await answer.read())
        if answer.status in _AGAIN:
            raise _Later(_refusal(answer.status, content), retry_after(answer.headers) or _PAUSE)
        if answer.status != 200:
            raise RewardUnavailable(f"{address}: {_refusal(answer.status, content)}")
    try:
        (reward,), (neutral,) = content["rewards"], content["neutral_values"]
        return AskedReward(Reward.model_validate(reward), neutral)
    except (KeyError, TypeError, ValueError) as error:
        raise RewardUnavailable(
            f"{address}: what answers is not  trajudge serve: check the address"
        ) from error


def _json(body: bytes) -> Any:
    """Return an answer's content; None where it is no JSON, as of a gateway before the server."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        return None


def _refusal(status: int, content: Any) -> str:
    told = content.get("error") if isinstance(content, dict) else None
    return str(told) if told else f"it answered with status {status}"
