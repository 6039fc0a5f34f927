"""``trajudge serve``: a judge's rewards for trainers, over HTTP.

The address is taken before anything slow is imported. A server that was killed and is started again
then refuses nobody for longer than Python needs to start: who asks meanwhile waits for the answer.
OpenRLHF's client gives up after five refusals, a second apart.
"""

from __future__ import annotations

import asyncio
import socket
import sys
from pathlib import Path

from pydantic import SecretStr

from trajudge.rewards.settings import RewardServerConfig
from trajudge.util.commands import OK
from trajudge.util.errors import UserError
from trajudge.util.files import read_text
from trajudge.util.machine import is_loopback

_WAITING = 1_024  # connections


def listen(host: str, port: int, *, has_token: bool) -> socket.socket:
    """Listen on an address. Raises UserError for one that is taken, or that others reach and no
    token guards."""
    if not has_token and not is_loopback(host):
        raise UserError(
            f"--host {host} can be reached by others, who could spend your money: give "
            "--token-file FILE"
        )
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=_WAITING)
    except OSError as error:
        why = error.strerror or str(error)
        raise UserError(f"--port {port}: {host} cannot be listened on ({why})") from error


WATCHED = "watch.jsonl"


def run(config: RewardServerConfig) -> int:
    """Serve until it is interrupted. Raises UserError."""
    reward = config.reward
    token = None if config.token_file is None else read_token(config.token_file)
    with listen(config.host, config.port, has_token=token is not None) as address:
        # The address is taken: a trainer waits while the rest, seconds of imports, gets ready.
        from trajudge.eval.runs.plan import without_effect  # noqa: PLC0415
        from trajudge.rewards.server import serve  # noqa: PLC0415

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
