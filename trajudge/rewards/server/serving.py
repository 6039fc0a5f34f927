"""The server as a process: opened, announced, ended cleanly."""

from __future__ import annotations

import sys
from socket import socket

from aiohttp import web

from trajudge.judges.engine.budget import Payments, read_payments
from trajudge.rewards.rewarder import Rewarder
from trajudge.rewards.server import nemo_gym, own, trainers
from trajudge.rewards.server.guarding import LARGEST_BODY, SERVICE, guarded
from trajudge.rewards.server.service import RewardService
from trajudge.rewards.settings import RewardServerConfig
from trajudge.util.errors import UserError
from trajudge.util.files import make_folder
from trajudge.util.machine import stop_event

PAYMENTS = "payments.jsonl"


def application(config: RewardServerConfig, rewarder: Rewarder) -> web.Application:
    """Make the application; it closes the rewarder at its end."""
    made = web.Application(middlewares=[guarded], client_max_size=LARGEST_BODY)
    made[SERVICE] = RewardService(config, rewarder)
    made.add_routes([*own.routes(), *trainers.routes(), *nemo_gym.routes()])

    async def close(_: web.Application) -> None:
        await rewarder.aclose()

    made.on_cleanup.append(close)
    return made


async def serve(config: RewardServerConfig, listening: socket) -> None:
    """Serve on a socket until SIGINT or SIGTERM; the address is one line on standard output.
    Raises UserError."""
    try:
        make_folder(config.folder, "--store")
        ledger = config.folder / PAYMENTS
        spent = sum(read_payments(ledger).values())
    except OSError as error:
        raise UserError(f"--store {config.folder}: cannot be used ({error.strerror})") from error
    payments = Payments(ledger)
    rewarder = Rewarder(config.reward, spent=spent, payments=payments)
    for note in rewarder.function.notes:
        sys.stderr.write(f"note: {note}\n")
    # The path may hold a token, so that requests are not logged.
    runner = web.AppRunner(application(config, rewarder), access_log=None)
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
