"""The two back ends, started and stopped."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from trajudge.proxy.browser.watching import BrowserWatch
from trajudge.proxy.mitm.intercepting import InterceptingProxy
from trajudge.proxy.server.embedded import EmbeddedProxy
from trajudge.proxy.server.settings import ProxySettings
from trajudge.util.errors import UserError
from trajudge.util.files import make_folder


@asynccontextmanager
async def running(settings: ProxySettings) -> AsyncIterator[EmbeddedProxy]:
    """Run a proxy while the block does. Raises UserError for a port or folder that is not free."""
    if settings.out is not None:
        _make_folder(settings.out)
    made = InterceptingProxy if settings.backend == "mitm" else EmbeddedProxy
    proxy = made(settings)
    watching: asyncio.Task[None] | None = None
    try:
        await proxy.start()
        if settings.cdp is not None:
            proxy.watch = BrowserWatch(settings.cdp, settings.token, proxy.navigated)
            watching = asyncio.create_task(proxy.watch.run())
        yield proxy
    finally:
        if watching is not None:
            watching.cancel()
        await proxy.close()


def _make_folder(out: Path) -> None:
    """Make a run's folder. Raises UserError for one that holds a run, or cannot be made."""
    if (out / "events.jsonl").exists():
        raise UserError(f"--out {out} holds a run already: name another folder")
    make_folder(out, "--out")
    make_folder(out / "traces", "--out")
