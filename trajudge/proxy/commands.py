"""The work of ``trajudge proxy``: each command takes its settings and returns the exit code."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from trajudge.proxy.agents import ProxyRun, run_agent
from trajudge.proxy.agents import serve as serve_proxy
from trajudge.proxy.browser.probing import browser_listens, not_yet
from trajudge.proxy.mitm.trust import announced_use, inherited_use
from trajudge.proxy.plans.plan import FaultPlan, read_plan
from trajudge.proxy.plans.schedule import Schedule
from trajudge.proxy.reporting.screen import run_screen
from trajudge.proxy.reporting.summary import write_summary
from trajudge.proxy.reporting.tables import schedule_table
from trajudge.proxy.server.model_api import ModelApi, model_api
from trajudge.proxy.server.settings import ProxySettings, boundary
from trajudge.proxy.server.sites import open_sites
from trajudge.proxy.settings import AgentRunConfig, ProxyConfig, ServeConfig, ShowPlanConfig
from trajudge.util.commands import OK
from trajudge.util.errors import UserError
from trajudge.util.machine import stop_event
from trajudge.util.tables import print_tables


def run(config: AgentRunConfig) -> int:
    """Run the agent and show what it met and what it cost."""
    settings = proxy_settings(config, one_task=True)

    async def until_interrupted() -> ProxyRun:
        return await run_agent(settings, config.command, stop_event())

    gc.freeze()  # as in serve
    ran = asyncio.run(until_interrupted())
    sys.stdout.write(run_screen(settings, ran, inherited_use(settings.backend)))
    write_summary(settings, ran.tasks)
    return ran.exit_code


def serve(config: ServeConfig) -> int:
    """Serve, and show on stderr what the tasks met and cost."""
    settings = proxy_settings(config)

    async def until_interrupted() -> ProxyRun:
        stop = stop_event()

        def read_on() -> None:
            if not os.read(0, 4096):
                stop.set()

        if config.stop_with_stdin:
            try:
                asyncio.get_running_loop().add_reader(0, read_on)
            except OSError as error:
                raise UserError("--stop-with-stdin: standard input is a file, no pipe") from error
        return await serve_proxy(settings, stop)

    gc.freeze()  # a request never waits for a search of all modules for garbage (28 ms)
    ran = asyncio.run(until_interrupted())
    sys.stderr.write(run_screen(settings, ran, announced_use(settings.backend)))
    write_summary(settings, ran.tasks)
    return ran.exit_code


def plan(config: ShowPlanConfig) -> int:
    """Print the page loads at which each fault of the plan fires."""
    faults = read_plan(config.faults)
    _require_horizon(faults, config.horizon, config.faults)
    _check_horizon(faults, config.horizon, config.faults)
    seed = faults.seed if config.seed is None else config.seed
    print_tables([schedule_table(Schedule(faults, config.task, seed, config.horizon))])
    return OK


def proxy_settings(config: ProxyConfig, *, one_task: bool = False) -> ProxySettings:
    """Read the plan and, without ``out``, make the folder of a run; a note on stderr says that no
    browser is at ``cdp`` yet. Raises UserError, with ``one_task`` also for a plan that needs the
    horizon which no task can state any more."""
    faults = read_plan(config.faults) if config.faults else FaultPlan()
    if one_task:
        _require_horizon(faults, config.horizon, config.faults)
    _check_horizon(faults, config.horizon, config.faults)
    if config.cdp is not None and not browser_listens(config.cdp):
        sys.stderr.write(f"note: {not_yet(config.cdp)}\n")
    signature = config.task_signature
    return ProxySettings(
        plan=faults,
        sites=open_sites(config.site, https=config.backend == "mitm"),
        backend=config.backend,
        seed=faults.seed if config.seed is None else config.seed,
        task=config.task,
        horizon=config.horizon,
        apis=_apis(config.api),
        boundary=None if signature is None else boundary(signature),
        port=config.port,
        cdp=config.cdp,
        out=config.out or _new_folder(),
    )


def _require_horizon(plan: FaultPlan, horizon: int | None, path: Path | None) -> None:
    """Raise UserError for a plan that would do nothing for want of a horizon."""
    if plan.needs_horizon and horizon is None:
        raise UserError(
            f"{path}: random(n) needs the page loads that a task takes: write random(n, horizon) "
            "or give --horizon N"
        )


def _check_horizon(plan: FaultPlan, horizon: int | None, path: Path | None) -> None:
    """Raise UserError for a fault that is to fire at more page loads than ``horizon``."""
    for fault in plan.faults:
        policy = fault.policy
        drawn = policy.random if policy.horizon is None else None
        if horizon is not None and drawn is not None and drawn > horizon:
            raise UserError(
                f"{path}: fault {fault.id!r} is {policy}, which --horizon {horizon} has too few "
                f"page loads for: give --horizon {drawn} or more, or draw fewer"
            )


def _apis(given: Sequence[str]) -> tuple[ModelApi, ...]:
    """Read which model APIs are measured, and where they are by the environment. Raises
    UserError."""
    names = {"openai": "OPENAI_BASE_URL", "anthropic": "ANTHROPIC_BASE_URL"}
    bases = {name: os.environ.get(variable, "") for name, variable in names.items()}
    return tuple(model_api(text, bases) for text in given)


def _new_folder() -> Path:
    """Make a folder that is named by the time; a run of the same second gets a number as well.
    Raises UserError."""
    runs, now = Path("proxy-runs"), time.strftime("%Y%m%d-%H%M%S")
    for name in (now, *(f"{now}-{number}" for number in range(2, 1000))):
        try:
            (runs / name).mkdir(parents=True)
        except FileExistsError:
            continue
        except OSError as error:
            raise UserError(f"{runs / name}: {error.strerror}: name a folder with --out") from error
        return runs / name
    raise UserError(f"{runs / now} and 998 more hold runs already: name a folder with --out")
