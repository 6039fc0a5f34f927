"""Run an agent, as any command, behind the proxy."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from trajudge.proxy.backends import running
from trajudge.proxy.mitm.trust import chromium_flags, trusting
from trajudge.proxy.server.embedded import EmbeddedProxy
from trajudge.proxy.server.settings import ProxySettings
from trajudge.util.commands import INTERRUPTED, OK, USAGE_ERROR
from trajudge.util.errors import UserError
from trajudge.util.machine import users_environment

_END_PATIENCE = 10.0  # seconds that an interrupted agent has to end by itself
_BASE_URLS = {"openai": "OPENAI_BASE_URL", "anthropic": "ANTHROPIC_BASE_URL"}
_BYPASSES = ("NO_PROXY", "no_proxy")


def agent_environment(proxy: EmbeddedProxy, inherited: Mapping[str, str]) -> dict[str, str]:
    """Return the environment in which what the proxy carries, and the model calls that are to be
    measured, go through it. No host is excepted: sites under test are often on loopback."""
    kept = {name: value for name, value in inherited.items() if name not in _BYPASSES}
    apis = {_BASE_URLS[api.name]: proxy.api_url(api.name) for api in proxy.settings.apis}
    trust = trusting(proxy) if proxy.authority else {}
    return {
        **kept,
        "HTTP_PROXY": proxy.url,
        "http_proxy": proxy.url,
        "TRAJUDGE_PROXY": proxy.url,
        "TRAJUDGE_PROXY_CONTROL": proxy.control_url,
        "TRAJUDGE_PROXY_CHROMIUM": " ".join(chromium_flags(proxy)),
        **trust,
        **apis,
    }


class ProxyRun(NamedTuple):
    """What a proxy carried: the figures of its ``tasks``; ``unwatched`` is the debugging port at
    which no browser came, None where one did or none was to. ``code`` is the agent's, 0 without."""

    tasks: list[dict[str, Any]]
    unwatched: int | None
    code: int = OK

    @property
    def exit_code(self) -> int:
        """The agent's, but for an agent that succeeded without the browser that was to come."""
        return self.code or (OK if self.unwatched is None else USAGE_ERROR)


async def run_agent(
    settings: ProxySettings, command: Sequence[str], stop: asyncio.Event
) -> ProxyRun:
    """Run a command behind a proxy until it ends, or ``stop`` is set: then it has some seconds to
    end by itself, and what it met until then is kept.

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
    return _ended(proxy, code if code >= 0 else 128 - code)


def _not_started(command: Sequence[str], reason: str | None) -> str:
    return f"{command[0]!r} cannot be started ({reason}): name a command after --"


def _ended(proxy: EmbeddedProxy, code: int = OK) -> ProxyRun:
    missed = proxy.watch is not None and not proxy.watch.attached
    return ProxyRun(proxy.context.tasks.summaries, proxy.settings.cdp if missed else None, code)


async def _waited(process: asyncio.subprocess.Process, stop: asyncio.Event) -> int:
    """Return the process's exit code, or that of an interruption."""
    ending, stopping = asyncio.create_task(process.wait()), asyncio.create_task(stop.wait())
    await asyncio.wait((ending, stopping), return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if not stop.is_set():
        return ending.result()
    await _end(process)
    ending.cancel()
    return INTERRUPTED


async def _end(process: asyncio.subprocess.Process) -> None:
    """Let an interrupted agent end, and end it where it does not."""
    try:
        async with asyncio.timeout(_END_PATIENCE):
            await process.wait()
    except TimeoutError:
        with suppress(ProcessLookupError):
            process.terminate()


async def serve(settings: ProxySettings, stop: asyncio.Event) -> ProxyRun:
    """Run a proxy until ``stop`` is set; its first line on standard output says where it is."""
    async with running(settings) as proxy:
        ready = {
            "proxy": proxy.url,
            "control": proxy.control_url,
            "apis": {api.name: proxy.api_url(api.name) for api in settings.apis},
            "chromium": chromium_flags(proxy),
            "certificate": proxy.authority and str(proxy.authority.certificate),
            "nonce": settings.nonce,
            "pid": os.getpid(),
        }
        print(json.dumps(ready), flush=True)  # noqa: T201 - the line that callers wait for
        await stop.wait()
    return _ended(proxy)
