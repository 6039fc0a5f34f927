"""Asks a reward server as verl and as OpenRLHF do, in a process of their own.

``python -m tests.rewards.trainer_clients SITE_PACKAGES URL COUNT`` prints what they made of the
rewards, as JSON.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys

sys.path.append(sys.argv[1])

from tests.rewards.openrlhf_client import openrlhf_answers, openrlhf_turns
from tests.rewards.verl_manager import verl_agent_rewards, verl_rewards, verl_validation
from trajudge.rewards.client import URL


async def main(url: str, count: int) -> None:
    os.environ[URL] = url
    found = {
        "verl": await verl_rewards(url, count),
        "validation": await verl_validation(url),
        "verl_agents": await verl_agent_rewards(count),
        "openrlhf": await openrlhf_answers(f"{url}/get_reward", count),
        "openrlhf_turns": await openrlhf_turns(count),
    }
    sys.stdout.write(json.dumps(found) + "\n")


loop = asyncio.new_event_loop()
asyncio.set_event_loop(loop)
loop.run_until_complete(main(sys.argv[2], int(sys.argv[3])))
