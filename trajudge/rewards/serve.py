"""``trajudge serve``: a judge's rewards for trainers, over HTTP."""

from __future__ import annotations

import sys
from argparse import Namespace
from socket import socket

from trajudge.rewards.options import parser
from trajudge.util.commands import OK, command, make_settings


@command(parser)
def main(options: Namespace) -> int:
    """Serve until it is interrupted."""
    from trajudge.rewards.server.listening import listen  # noqa: PLC0415 - --help needs none

    has_token = options.token_file is not None
    with listen(options.host, options.port, has_token=has_token) as address:
        return _serve(options, address)


def _serve(options: Namespace, address: socket) -> int:
    import asyncio  # noqa: PLC0415 - what follows is slow: the address is taken by now

    from trajudge.rewards.from_options import read_token, reward_config  # noqa: PLC0415
    from trajudge.rewards.server.serving import serve  # noqa: PLC0415
    from trajudge.rewards.server.settings import RewardServerConfig  # noqa: PLC0415

    values = {
        "reward": reward_config(options),
        "folder": options.store,
        "token": read_token(options.token_file),
        **{name: getattr(options, name) for name in ("host", "port", "queue")},
    }
    asyncio.run(serve(make_settings(RewardServerConfig, values), address))
    return OK


if __name__ == "__main__":
    sys.exit(main())
