"""``trajudge serve``: a judge's rewards for trainers, over HTTP.

The socket listens before the slow imports, so that clients of a restarted server wait for the
answer instead of being refused: OpenRLHF's client gives up after five refusals, a second apart.
"""

from __future__ import annotations

import asyncio
import sys

from trajudge.rewards.settings import RewardServerConfig
from trajudge.util.commands import OK
from trajudge.util.machine import listen
from trajudge.util.validation import read_token

WATCHED = "watch.jsonl"


def run(config: RewardServerConfig) -> int:
    """Serve until SIGINT or SIGTERM. Raises UserError."""
    reward = config.reward
    token = None if config.token_file is None else read_token(config.token_file)
    danger = "" if token else "spend your money"
    with listen(config.host, config.port, danger) as address:
        # The socket listens already: clients wait during these imports, which take seconds.
        from trajudge.eval.runs.plan import without_effect  # noqa: PLC0415
        from trajudge.rewards.server import serve  # noqa: PLC0415

        models = () if reward.judge.model is None else (reward.judge.model,)
        for line in without_effect((reward.judge.judge,), models, reward.judge, reward.calls):
            sys.stderr.write(f"warning: {line}\n")
        watch = reward.watch.model_copy(update={"journal": config.folder / WATCHED})
        reward = reward.model_copy(update={"watch": watch})
        asyncio.run(serve(config.model_copy(update={"reward": reward, "token": token}), address))
    return OK
