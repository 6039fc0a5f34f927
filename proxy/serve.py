"""Run the proxy until it is interrupted: ``trajudge proxy serve --faults plan.json``.

The first line on standard output is JSON: where the proxy is, its control address, a nonce and the
process. GET CONTROL/health answers with the same nonce; POST CONTROL/task {"id": ..., "seed": ...}
begins a task, POST CONTROL/end ends it, POST CONTROL/port opens one more port with its own task.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from trajudge.proxy.options import add_proxy, proxy_settings
from trajudge.trajectories.util.exits import OK, Parser, user_errors


def parser() -> argparse.ArgumentParser:
    """Make the command's parser."""
    made = Parser(prog="trajudge proxy serve", description=__doc__)
    add_proxy(made)
    return made


@user_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Serve, and show on stderr what the tasks met and cost."""
    options = vars(parser().parse_args(arguments))
    import asyncio  # noqa: PLC0415
    import signal  # noqa: PLC0415

    from trajudge.proxy.agents import serve  # noqa: PLC0415
    from trajudge.proxy.reporting.screen import run_screen  # noqa: PLC0415
    from trajudge.proxy.reporting.summary import write_summary  # noqa: PLC0415

    settings = proxy_settings(**options)

    async def until_interrupted() -> list[dict[str, object]]:
        stop = asyncio.Event()
        for name in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(name, stop.set)
        return await serve(settings, stop)

    tasks = asyncio.run(until_interrupted())
    write_summary(settings, tasks)
    sys.stderr.write(run_screen(settings.out, tasks))
    return OK


if __name__ == "__main__":
    sys.exit(main())
