"""Run an agent behind the proxy: ``trajudge proxy run --faults plan.json -- COMMAND ...``.

The agent needs nothing but an HTTP proxy: HTTP_PROXY is set, and a browser takes it as
proxy={"server": os.environ["TRAJUDGE_PROXY"]}. With --api its model calls are measured as well, by
OPENAI_BASE_URL and ANTHROPIC_BASE_URL. The exit code is the agent's, 130 after Ctrl-C (what it met
is kept), and 2 for one that succeeded without a browser at --cdp.
"""

from __future__ import annotations

import argparse
import gc
import sys
from collections.abc import Sequence

from trajudge.proxy.options import add_proxy, proxy_settings
from trajudge.util.commands import Parser, user_errors


def parser() -> argparse.ArgumentParser:
    """Make the command's parser."""
    made = Parser(prog="trajudge proxy run", description=__doc__)
    add_proxy(made)
    made.add_argument("command", nargs="+", metavar="COMMAND", help="the agent, after --")
    return made


@user_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the agent and show what it met and what it cost."""
    options = vars(parser().parse_args(arguments))
    import asyncio  # noqa: PLC0415

    from trajudge.proxy.agents import ProxyRun, run_agent  # noqa: PLC0415
    from trajudge.proxy.mitm.trust import inherited_use  # noqa: PLC0415
    from trajudge.proxy.reporting.screen import run_screen  # noqa: PLC0415
    from trajudge.proxy.reporting.summary import write_summary  # noqa: PLC0415
    from trajudge.util.machine import stop_event  # noqa: PLC0415

    command = options.pop("command")
    settings = proxy_settings(**options, one_task=True)

    async def until_interrupted() -> ProxyRun:
        return await run_agent(settings, command, stop_event())

    gc.freeze()  # as in trajudge.proxy.serve
    run = asyncio.run(until_interrupted())
    sys.stdout.write(run_screen(settings, run, inherited_use(settings.backend)))
    write_summary(settings, run.tasks)
    return run.exit_code


if __name__ == "__main__":
    sys.exit(main())
