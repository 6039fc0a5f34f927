"""The commands of ``trajudge proxy``: each takes its settings and returns the exit code."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from trajudge.proxy.plan import FaultPlan, Schedule, read_plan
from trajudge.proxy.process import (
    NODE_VARIABLE,
    TRUST_VARIABLES,
    ModelApi,
    ProxySettings,
    RunningProxy,
    SiteHost,
    SiteServer,
    find_mitmdump,
    running,
)
from trajudge.proxy.screen import run_screen, schedule_table
from trajudge.proxy.settings import AgentRunConfig, ProxyConfig, ServeConfig, ShowPlanConfig
from trajudge.util.commands import INTERRUPTED, OK
from trajudge.util.errors import UserError
from trajudge.util.files import save_bytes
from trajudge.util.machine import stop_event, users_environment
from trajudge.util.tables import print_tables

LOOPBACK = ("localhost", "*.localhost", "127.0.0.1")
PUBLIC_APIS = {"openai": "https://api.openai.com/v1", "anthropic": "https://api.anthropic.com"}
_BASE_URLS = {"openai": "OPENAI_BASE_URL", "anthropic": "ANTHROPIC_BASE_URL"}
_BYPASSES = ("NO_PROXY", "no_proxy")
_PROXIES = ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "TRAJUDGE_PROXY")
_HOST = re.compile(r"(\*\.)?[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")
_END_PATIENCE = 10.0  # seconds that an interrupted agent has to end by itself
_BY_ENVIRONMENT = (
    "programs use it by HTTP_PROXY and HTTPS_PROXY and trust it by "
    f"{', '.join((*TRUST_VARIABLES, NODE_VARIABLE))}; a browser by the flags in "
    "TRAJUDGE_PROXY_CHROMIUM or the address in TRAJUDGE_PROXY"
)
_BY_FIRST_LINE = (
    "start programs with the `proxy` of the first line as HTTP_PROXY and HTTPS_PROXY, and a "
    "browser with the flags in its `chromium`; programs have to trust its `certificate`"
)


def run(config: AgentRunConfig) -> int:
    """Run the agent; print exposure and cost."""
    settings = proxy_settings(config, one_task=True)

    async def until_interrupted() -> tuple[Sequence[Mapping[str, Any]], int]:
        return await run_agent(settings, config.command, stop_event())

    tasks, code = asyncio.run(until_interrupted())
    sys.stdout.write(run_screen(settings.plan, tasks, settings.out, _BY_ENVIRONMENT))
    write_summary(settings, tasks)
    return code


def serve(config: ServeConfig) -> int:
    """Serve; print exposure and cost of the tasks to standard error."""
    settings = proxy_settings(config, one_task=False)

    async def until_interrupted() -> Sequence[Mapping[str, Any]]:
        stop = stop_event()

        def read_on() -> None:
            if not os.read(0, 4096):
                stop.set()

        if config.stop_with_stdin:
            try:
                asyncio.get_running_loop().add_reader(0, read_on)
            except OSError as error:
                raise UserError("--stop-with-stdin: standard input is a file, no pipe") from error
        return await serve_until(settings, stop)

    tasks = asyncio.run(until_interrupted())
    sys.stderr.write(run_screen(settings.plan, tasks, settings.out, _BY_FIRST_LINE))
    write_summary(settings, tasks)
    return OK


def plan(config: ShowPlanConfig) -> int:
    """Print the page loads at which each fault of the plan fires."""
    faults = read_plan(config.faults)
    _require_horizon(faults, config.horizon, config.faults)
    _check_horizon(faults, config.horizon, config.faults)
    seed = faults.seed if config.seed is None else config.seed
    print_tables([schedule_table(Schedule(faults, config.task, seed, config.horizon))])
    return OK


# Agents.


def agent_environment(proxy: RunningProxy, inherited: Mapping[str, str]) -> dict[str, str]:
    """Return the environment variables that send an agent's requests and measured model calls
    through the proxy. No host is excluded, because sites under test are often on loopback."""
    kept = {name: value for name, value in inherited.items() if name not in _BYPASSES}
    return {
        **kept,
        **dict.fromkeys(_PROXIES, proxy.url),
        "TRAJUDGE_PROXY_CONTROL": proxy.control_url,
        "TRAJUDGE_PROXY_CHROMIUM": " ".join(proxy.chromium_flags()),
        **proxy.trust_variables(),
        **{_BASE_URLS[api.name]: proxy.api_url(api.name) for api in proxy.settings.apis},
    }


async def run_agent(
    settings: ProxySettings, command: Sequence[str], stop: asyncio.Event
) -> tuple[Sequence[Mapping[str, Any]], int]:
    """Run a command behind a proxy until it ends or ``stop`` is set; then it has some seconds to
    end, and the records up to then are kept. Return the figures of its tasks, and its exit code.

    Raises UserError for a command that cannot be started.
    """
    # Before the run has a folder: the corrected command may name the same one.
    if shutil.which(command[0]) is None:
        raise UserError(_not_started(command, "no file that may be run"))
    async with running(settings) as proxy:
        environment = agent_environment(proxy, users_environment())
        try:
            process = await asyncio.create_subprocess_exec(*command, env=environment)
        except OSError as error:
            raise UserError(_not_started(command, error.strerror)) from error
        code = await _waited(process, stop)
    # A signal's number is negative here, and 128 + N where a shell gives it.
    return proxy.summaries, code if code >= 0 else 128 - code


def _not_started(command: Sequence[str], reason: str | None) -> str:
    return f"{command[0]!r} cannot be started ({reason}): name a command after --"


async def _waited(process: asyncio.subprocess.Process, stop: asyncio.Event) -> int:
    """Return the process's exit code, or that of an interruption."""
    ending, stopping = asyncio.create_task(process.wait()), asyncio.create_task(stop.wait())
    await asyncio.wait((ending, stopping), return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if not stop.is_set():
        return ending.result()
    try:
        async with asyncio.timeout(_END_PATIENCE):
            await process.wait()
    except TimeoutError:
        with suppress(ProcessLookupError):
            process.terminate()
    ending.cancel()
    return INTERRUPTED


async def serve_until(settings: ProxySettings, stop: asyncio.Event) -> Sequence[Mapping[str, Any]]:
    """Run a proxy until ``stop`` is set, and return the figures of its tasks. The first line on
    standard output has the proxy's address."""
    async with running(settings) as proxy:
        ready = {
            "proxy": proxy.url,
            "control": proxy.control_url,
            "apis": {api.name: proxy.api_url(api.name) for api in settings.apis},
            "chromium": proxy.chromium_flags(),
            "certificate": str(proxy.certificate),
            "nonce": settings.nonce,
            "pid": os.getpid(),
        }
        print(json.dumps(ready), flush=True)  # noqa: T201 - the line that callers wait for
        await stop.wait()
    return proxy.summaries


def write_summary(settings: ProxySettings, tasks: Sequence[Mapping[str, Any]]) -> None:
    """Write ``summary.json`` and ``plan.json`` into the run's folder. Raises UserError."""
    summary = {
        "format": 1,
        "plan": settings.plan.digest,
        "seed": settings.seed,
        "tasks": list(tasks),
    }
    save_bytes(settings.out / "summary.json", json.dumps(summary, indent=1).encode())
    text = settings.plan.model_dump_json(indent=1, exclude_none=True)
    save_bytes(settings.out / "plan.json", text.encode())


# Settings.


def proxy_settings(config: ProxyConfig, *, one_task: bool) -> ProxySettings:
    """Read the plan and, without ``out``, create the run's folder. Raises UserError, with
    ``one_task`` also for a plan that needs a horizon, which tasks cannot state then."""
    faults = read_plan(config.faults) if config.faults else FaultPlan()
    if one_task:
        _require_horizon(faults, config.horizon, config.faults)
    _check_horizon(faults, config.horizon, config.faults)
    _check_expression("--task-signature", config.task_signature, r"'^GET \S+/start\?task=(\w+)'")
    _check_expression("--page-requests", config.page_requests, "'^GET '")
    return ProxySettings(
        plan=faults,
        sites=open_sites(config.site),
        seed=faults.seed if config.seed is None else config.seed,
        task=config.task,
        horizon=config.horizon,
        apis=_apis(config.api),
        signature=config.task_signature,
        page_requests=config.page_requests,
        port=config.port,
        mitmdump=find_mitmdump(config.mitmdump),
        out=config.out or _new_folder(),
    )


def _check_expression(option: str, text: str | None, example: str) -> None:
    """Raise UserError for an invalid regular expression."""
    try:
        re.compile(text or "")
    except re.error as error:
        raise UserError(
            f"{option} {text!r:.80} is not a regular expression ({error}): write for example "
            f"{example}"
        ) from error


def _require_horizon(plan: FaultPlan, horizon: int | None, path: Path | None) -> None:
    """Raise UserError for a plan that has no effect without a horizon."""
    if plan.needs_horizon and horizon is None:
        raise UserError(
            f"{path}: random(n) needs the page loads that a task takes: write random(n, horizon) "
            "or give --horizon N"
        )


def _check_horizon(plan: FaultPlan, horizon: int | None, path: Path | None) -> None:
    """Raise UserError for a fault that fires at more page loads than ``horizon``."""
    for fault in plan.faults:
        policy = fault.policy
        drawn = policy.random if policy.horizon is None else None
        if horizon is not None and drawn is not None and drawn > horizon:
            raise UserError(
                f"{path}: fault {fault.id!r} is {policy}, which --horizon {horizon} has too few "
                f"page loads for: give --horizon {drawn} or more, or draw fewer"
            )


def open_sites(hosts: Sequence[str]) -> tuple[SiteHost, ...]:
    """Return the sites of ``--site`` options, by default those on loopback. Raises UserError,
    also for a repeated host."""
    sites: dict[str, SiteHost] = {}
    for text in hosts or LOOPBACK:
        site = _site(text)
        if site.host in sites:
            raise UserError(f"--site {text!r:.80}: {site.host} is given twice: leave one out")
        sites[site.host] = site
    return tuple(sites.values())


def _site(text: str) -> SiteHost:
    """Parse ``HOST`` or ``HOST=http://ADDRESS[:PORT]``. Raises UserError."""
    host, equals, address = text.partition("=")
    if text.startswith("https://"):
        name = urlsplit(text).hostname
        raise UserError(f"--site {text!r:.80}: name the host alone, {name}")
    if not _HOST.fullmatch(host):
        raise UserError(
            f"--site {text!r:.80} is not a host: write shop.localhost, *.localhost or "
            "shop.localhost=http://127.0.0.1:8080"
        )
    if not equals:
        return SiteHost(host.lower(), None)
    server = _server(address if "://" in address else f"http://{address}")
    if server is None or urlsplit(address).path not in ("", "/", address):
        raise UserError(
            f"--site {text!r:.80}: {address!r:.60} is not the address of a server: write "
            "http://127.0.0.1:8080"
        )
    return SiteHost(host.lower(), server)


def _server(address: str) -> SiteServer | None:
    """Return the server of a URL; None for an invalid one."""
    parts = urlsplit(address)
    try:
        port = parts.port
    except ValueError:
        return None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return None
    tls = parts.scheme == "https"
    return SiteServer(parts.hostname, port or (443 if tls else 80), tls)


def _apis(options: Sequence[str]) -> tuple[ModelApi, ...]:
    """Return the model APIs to measure: of the option, of the environment, or the public ones.
    Raises UserError."""
    bases = {name: os.environ.get(variable, "") for name, variable in _BASE_URLS.items()}
    return tuple(model_api(text, bases) for text in options)


def model_api(text: str, defaults: Mapping[str, str]) -> ModelApi:
    """Parse ``openai``, ``anthropic`` or ``NAME=URL``; ``defaults`` are URLs by name. Raises
    UserError."""
    name, equals, address = text.partition("=")
    if name not in PUBLIC_APIS:
        raise UserError(f"--api {text!r:.80}: name one of {', '.join(PUBLIC_APIS)}, or NAME=URL")
    url = address if equals else defaults.get(name) or PUBLIC_APIS[name]
    server = _server(url)
    if server is None:
        raise UserError(f"--api {text!r:.80} has no URL: write {name}={PUBLIC_APIS[name]}")
    return ModelApi(name, server, urlsplit(url).path.rstrip("/"))


def _new_folder() -> Path:
    """Create a folder named by the time, with a number if it exists. Raises UserError."""
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
