"""mitmproxy as a process of its own: started, asked for ports, ended."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from asyncio.subprocess import PIPE, Process
from pathlib import Path
from typing import Any

from trajudge.proxy.server.settings import Authority, ProxySettings
from trajudge.util.errors import UserError
from trajudge.util.machine import NoEnvironment, PinnedPackage, cache_folder

MITMPROXY = PinnedPackage(
    "mitmproxy",
    Path(__file__).with_name("pins.txt"),
    module="mitmproxy",
    variable="TRAJUDGE_MITMPROXY_PYTHON",
)
_FRONT = Path(__file__).with_name("front.py")
_START_PATIENCE, _END_PATIENCE = 60.0, 5.0  # seconds


def mitmproxy_python() -> Path:
    """Return an interpreter that has mitmproxy; the first time its environment is made.

    Raises UserError.
    """
    if not MITMPROXY.made:
        print("installing mitmproxy into an environment of its own, once", file=sys.stderr)  # noqa: T201
    try:
        return MITMPROXY.python()
    except NoEnvironment as error:
        raise UserError(f"--backend mitm: {error}") from error


class MitmProcess:
    """The running process. ``port`` is the first that it listens on."""

    def __init__(self, process: Process, first: dict[str, Any]) -> None:
        self._process = process
        self._asking = asyncio.Lock()
        self.port: int = first["port"]
        self.authority = Authority(Path(first["certificate"]), first["spki"])

    @property
    def alive(self) -> bool:
        return self._process.returncode is None

    async def open_port(self) -> int:
        """Listen on one more port and return it. Raises UserError."""
        async with self._asking:
            stdin = self._process.stdin
            assert stdin  # noqa: S101 - opened as a pipe
            stdin.write(b'{"port": 0}\n')
            return int((await _line(self._process))["port"])

    async def end(self) -> None:
        """Let the process end, and end it where it does not."""
        if self._process.stdin:
            self._process.stdin.close()
        try:
            async with asyncio.timeout(_END_PATIENCE):
                await self._process.wait()
        except TimeoutError:
            self._process.kill()
            await self._process.wait()


async def start_mitmproxy(settings: ProxySettings, inner: int) -> MitmProcess:
    """Start mitmproxy before the proxy that listens on ``inner``. Raises UserError."""
    authority = cache_folder() / "mitmproxy-authority"
    authority.mkdir(mode=0o700, parents=True, exist_ok=True)
    told = {
        "inner": inner,
        "secret": settings.token,
        "port": settings.port,
        "authority": str(authority),
    }
    python = await asyncio.to_thread(mitmproxy_python)
    process = await asyncio.create_subprocess_exec(
        *(python, "-I", _FRONT),
        stdin=PIPE,
        stdout=PIPE,
        env={**os.environ, "TRAJUDGE_FRONT": json.dumps(told)},
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(_START_PATIENCE):
            return MitmProcess(process, await _line(process))
    except BaseException as error:
        if process.returncode is None:
            process.kill()
        await process.wait()
        if isinstance(error, TimeoutError):
            raise UserError("mitmproxy did not start within a minute: try again") from error
        raise


async def _line(process: Process) -> dict[str, Any]:
    """Return what the process answers. Raises UserError."""
    assert process.stdout  # noqa: S101 - opened as a pipe
    line = await process.stdout.readline()
    answer: dict[str, Any] = json.loads(line) if line else {"error": "it ended by itself"}
    if "error" in answer:
        raise UserError(f"mitmproxy does not listen ({answer['error']}): name a free port")
    return answer
