"""``trajudge serve``: a judge's rewards for trainers, over HTTP."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from pydantic import SecretStr

from trajudge.rewards.server.listening import listen
from trajudge.rewards.settings import RewardServerConfig
from trajudge.util.commands import OK
from trajudge.util.errors import UserError
from trajudge.util.files import read_text

WATCHED = "watch.jsonl"


def run(config: RewardServerConfig) -> int:
    """Serve until it is interrupted. Raises UserError."""
    reward = config.reward
    token = None if config.token_file is None else read_token(config.token_file)
    with listen(config.host, config.port, has_token=token is not None) as address:
        # The address is taken: a trainer waits while the rest, seconds of imports, gets ready.
        from trajudge.eval.runs.plan import without_effect  # noqa: PLC0415
        from trajudge.rewards.server.serving import serve  # noqa: PLC0415

        models = () if reward.judge.model is None else (reward.judge.model,)
        for line in without_effect((reward.judge.judge,), models, reward.judge, reward.calls):
            sys.stderr.write(f"warning: {line}\n")
        watch = reward.watch.model_copy(update={"journal": config.folder / WATCHED})
        reward = reward.model_copy(update={"watch": watch})
        asyncio.run(serve(config.model_copy(update={"reward": reward, "token": token}), address))
    return OK


def read_token(file: Path) -> SecretStr:
    """Read the token of ``--token-file``. Raises UserError for one that is short."""
    try:
        text = read_text(file).strip()
    except OSError as error:
        raise UserError(f"--token-file {file}: cannot be read ({error.strerror})") from error
    if len(text) < 16:
        raise UserError(f"--token-file {file}: its token has fewer than 16 characters")
    return SecretStr(text)
