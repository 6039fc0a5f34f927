"""Asking the reward server from a trainer's process."""

from __future__ import annotations

import asyncio
import os
import time

import aiohttp

from trajudge.rewards.reward import Reward

URL, TOKEN = "TRAJUDGE_REWARD_URL", "TRAJUDGE_REWARD_TOKEN"
_PAUSE = 1.0  # seconds, where the server does not say how long
_AGAIN = frozenset({429, 500, 502, 503, 504})


class RewardUnavailable(Exception):
    """The server could not be reached, or refused; the message says how."""


async def ask_reward(
    name: str, *, url: str | None = None, deadline: float = 170.0, token: str | None = None
) -> Reward:
    """Ask for the reward of a pushed trajectory, again and again within ``deadline`` seconds where
    the server is busy, away, or its judge late.

    ``url`` and ``token`` default to the environment's. A reward that is still late at the deadline
    abstains. Raises RewardUnavailable where none was had.
    """
    address = url or os.environ.get(URL)
    if not address:
        raise RewardUnavailable(f"no reward server: set {URL}, or give url")
    end, last = time.monotonic() + deadline, "it did not answer in time"
    async with aiohttp.ClientSession(headers=_headers(token)) as session:
        while (left := end - time.monotonic()) > 0:
            pause = _PAUSE
            try:
                body = {"items": [{"id": name}], "deadline": left}
                limit = aiohttp.ClientTimeout(total=left + _PAUSE)
                async with session.post(
                    f"{address.rstrip('/')}/v1/rewards", json=body, timeout=limit
                ) as answer:
                    content = await answer.json(content_type=None)
                    if answer.status == 200:
                        reward = Reward.model_validate(content["rewards"][0])
                        if reward.abstained != "late" or end - time.monotonic() < _PAUSE:
                            return reward
                    elif answer.status not in _AGAIN:
                        raise RewardUnavailable(f"{address}: {content['error']}")
                    else:
                        last = str(content["error"])
                        pause = float(answer.headers.get("Retry-After", _PAUSE))
            except (aiohttp.ClientError, TimeoutError, ValueError) as error:
                last = str(error) or type(error).__name__
            await asyncio.sleep(min(pause, max(0.0, end - time.monotonic())))
    raise RewardUnavailable(f"{address}: {last}")


async def ask_base_rate(url: str | None = None) -> float | None:
    """Ask what a judge that abstains counts as; None where the server has no calibration. Raises
    RewardUnavailable."""
    address = url or os.environ.get(URL, "")
    try:
        async with (
            aiohttp.ClientSession(headers=_headers(None)) as session,
            session.get(f"{address.rstrip('/')}/v1/card") as answer,
        ):
            value = (await answer.json())["neutral_value"]
    except (aiohttp.ClientError, TimeoutError, ValueError, KeyError) as error:
        raise RewardUnavailable(f"{address}: {error}") from error
    return None if value is None else float(value)


def _headers(token: str | None) -> dict[str, str]:
    known = token or os.environ.get(TOKEN)
    return {"Authorization": f"Bearer {known}"} if known else {}
