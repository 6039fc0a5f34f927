"""The options that the proxy's commands share."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from trajudge.util.commands import MOST_PAGE_LOADS, OptionAdder, count, open_port, port, whole
from trajudge.util.errors import UserError

if TYPE_CHECKING:
    from trajudge.proxy.plans.plan import FaultPlan
    from trajudge.proxy.server.model_api import ModelApi
    from trajudge.proxy.server.settings import Backend, ProxySettings


def add_faults(parser: argparse.ArgumentParser, *, required: bool = False) -> None:
    """Add ``--faults``: the fault plan."""
    note = "" if required else " (default: none, only measure)"
    parser.add_argument(
        "--faults",
        type=Path,
        required=required,
        metavar="FILE",
        help=f"the fault plan, as JSON{note}",
    )


def add_task(parser: argparse.ArgumentParser) -> None:
    """Add ``--task``: the name that a task's faults are drawn from."""
    parser.add_argument(
        "--task", default="task", metavar="ID", help="name of the task (default: task)"
    )


def check_task(task: str) -> None:
    """Raise UserError for a name that tells no task from another."""
    if not task.strip():
        raise UserError(f"--task {task!r} names no task: give a name, or leave --task out")


def add_seed(parser: argparse.ArgumentParser) -> None:
    """Add ``--seed``; None stands for the plan's own."""
    parser.add_argument(
        "--seed", type=whole, metavar="N", help="seed of the run (default: the plan's)"
    )


def add_horizon(parser: argparse.ArgumentParser) -> None:
    """Add ``--horizon``: the page loads of a task, for faults that are drawn from them."""
    parser.add_argument(
        "--horizon",
        type=count,
        metavar="N",
        help="page loads that a task takes, for random(n)",
    )


def require_horizon(plan: FaultPlan, horizon: int | None, path: Path | None) -> None:
    """Raise UserError for a plan that would do nothing for want of a horizon."""
    if plan.needs_horizon and horizon is None:
        raise UserError(
            f"{path}: random(n) needs the page loads that a task takes: write random(n, horizon) "
            "or give --horizon N"
        )


def check_horizon(plan: FaultPlan, horizon: int | None, path: Path | None) -> None:
    """Raise UserError for a horizon that no plan reaches, and for a fault that is to fire at more
    page loads than ``horizon``."""
    if horizon is not None and horizon > MOST_PAGE_LOADS:
        raise UserError(
            f"--horizon {horizon} is more than {MOST_PAGE_LOADS:,} page loads: lower it"
        )
    for fault in plan.faults:
        policy = fault.policy
        drawn = policy.random if policy.horizon is None else None
        if horizon is not None and drawn is not None and drawn > horizon:
            raise UserError(
                f"{path}: fault {fault.id!r} is {policy}, which --horizon {horizon} has too few "
                f"page loads for: give --horizon {drawn} or more, or draw fewer"
            )


def add_proxy(parser: argparse.ArgumentParser) -> None:
    """Add the options of a proxy that runs."""
    add_faults(parser)
    add_task(parser)
    add_horizon(parser)
    add_seed(parser)
    add = OptionAdder(parser)
    add.repeated(
        "--site",
        "SITE=URL",
        "host of the site, with the address of its server if the name leads elsewhere; "
        "other hosts are answered 403 (default: localhost, *.localhost and 127.0.0.1)",
        default=[],
    )
    add.choice(
        "--backend",
        ("embedded", "mitm"),
        "embedded: plain HTTP; mitm: HTTPS as well, by mitmproxy, which the first use "
        "installs into an environment of its own (default: embedded)",
        default="embedded",
    )
    add.repeated(
        "--api",
        "NAME",
        "measure the calls of a model API: openai or anthropic, or openai=URL",
        default=[],
    )
    _add_browser(add)
    add.number("--port", "port to listen on (default: any free)", port, default=0)
    add.output_folder("--out", "where events and traces go (default: a new one in proxy-runs/)")


def _add_browser(add: OptionAdder) -> None:
    """Add how the proxy tells page loads and tasks from what a browser requests."""
    add.value(
        "--task-signature",
        "REGEX",
        "a page load whose 'METHOD URL' matches begins a task, named by the first group",
    )
    add.value(
        "--cdp",
        "PORT",
        "debugging port of the agent's Chromium (--remote-debugging-port): it says itself "
        "what is a page",
        type=open_port,
    )


def proxy_settings(
    *,
    faults: Path | None,
    task: str,
    horizon: int | None,
    seed: int | None,
    site: Sequence[str],
    backend: Backend,
    api: Sequence[str],
    task_signature: str | None,
    port: int,
    cdp: int | None,
    out: Path | None,
    one_task: bool = False,
) -> ProxySettings:
    """Read the plan and, without ``out``, make the folder of a run; a note on stderr says that no
    browser is at ``cdp`` yet. Raises UserError, with ``one_task`` also for a plan that needs the
    horizon which no task can state any more."""
    from trajudge.proxy.browser.probing import browser_listens, not_yet  # noqa: PLC0415
    from trajudge.proxy.server.settings import ProxySettings, boundary  # noqa: PLC0415
    from trajudge.proxy.server.sites import open_sites  # noqa: PLC0415

    check_task(task)
    plan = _plan(faults, horizon, one_task=one_task)
    if cdp is not None and not browser_listens(cdp):
        sys.stderr.write(f"note: {not_yet(cdp)}\n")
    return ProxySettings(
        plan=plan,
        sites=open_sites(tuple(site), https=backend == "mitm"),
        backend=backend,
        seed=plan.seed if seed is None else seed,
        task=task,
        horizon=horizon,
        apis=_apis(api),
        boundary=None if task_signature is None else boundary(task_signature),
        port=port,
        cdp=cdp,
        out=out or _new_folder(),
    )


def _apis(given: Sequence[str]) -> tuple[ModelApi, ...]:
    """Read which model APIs are measured, and where they are by the environment. Raises
    UserError."""
    from trajudge.proxy.server.model_api import model_api  # noqa: PLC0415

    names = {"openai": "OPENAI_BASE_URL", "anthropic": "ANTHROPIC_BASE_URL"}
    bases = {name: os.environ.get(variable, "") for name, variable in names.items()}
    return tuple(model_api(text, bases) for text in given)


def _plan(faults: Path | None, horizon: int | None, *, one_task: bool) -> FaultPlan:
    """Read the plan, an empty one without ``faults``. Raises UserError for a ``horizon`` that does
    not go with it; ``one_task``: no task can state one any more."""
    from trajudge.proxy.plans.plan import FaultPlan, read_plan  # noqa: PLC0415

    plan = read_plan(faults) if faults else FaultPlan()
    if one_task:
        require_horizon(plan, horizon, faults)
    check_horizon(plan, horizon, faults)
    return plan


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
