"""Run the proxy until it is interrupted: ``trajudge proxy serve --faults plan.json``.

The first line on standard output is JSON: where the proxy is, its control address, a nonce and the
process. GET CONTROL/health answers with the same nonce; POST CONTROL/task {"id": ..., "seed": ...}
begins a task, POST CONTROL/end ends it, POST CONTROL/port opens one more port with its own task.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
from collections.abc import Sequence

from trajudge.proxy.options import add_proxy, proxy_settings
from trajudge.util.commands import Parser, user_errors


def parser() -> argparse.ArgumentParser:
    """Make the command's parser."""
    made = Parser(prog="trajudge proxy serve", description=__doc__)
    add_proxy(made)
    made.add_argument(
        "--stop-with-stdin",
        action="store_true",
        help="end when standard input does, as it does when the program that holds it ends",
    )
    return made


@user_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Serve, and show on stderr what the tasks met and cost."""
    options = vars(parser().parse_args(arguments))
    import asyncio  # noqa: PLC0415

    from trajudge.proxy.agents import ProxyRun, serve  # noqa: PLC0415
    from trajudge.proxy.mitm.trust import announced_use  # noqa: PLC0415
    from trajudge.proxy.reporting.screen import run_screen  # noqa: PLC0415
    from trajudge.proxy.reporting.summary import write_summary  # noqa: PLC0415
    from trajudge.util.errors import UserError  # noqa: PLC0415
    from trajudge.util.machine import stop_event  # noqa: PLC0415

    with_stdin = options.pop("stop_with_stdin")
    settings = proxy_settings(**options)

    async def until_interrupted() -> ProxyRun:
        stop = stop_event()

        def read_on() -> None:
            if not os.read(0, 4096):
                stop.set()

        if with_stdin:
            try:
                asyncio.get_running_loop().add_reader(0, read_on)
            except OSError as error:
                raise UserError("--stop-with-stdin: standard input is a file, no pipe") from error
        return await serve(settings, stop)

    gc.freeze()  # a request never waits for a search of all modules for garbage (28 ms)
    run = asyncio.run(until_interrupted())
    sys.stderr.write(run_screen(settings, run, announced_use(settings.backend)))
    write_summary(settings, run.tasks)
    return run.exit_code


if __name__ == "__main__":
    sys.exit(main())
