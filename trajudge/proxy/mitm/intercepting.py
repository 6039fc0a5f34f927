"""The embedded proxy with mitmproxy before it."""

from __future__ import annotations

from trajudge.proxy.mitm.process import MitmProcess, start_mitmproxy
from trajudge.proxy.server.embedded import EmbeddedProxy
from trajudge.proxy.server.settings import Authority, ProxySettings
from trajudge.util.errors import UserError


class InterceptingProxy(EmbeddedProxy):
    """All that agents and harnesses send goes to mitmproxy's ports, control and health as well."""

    def __init__(self, settings: ProxySettings) -> None:
        super().__init__(settings)
        self._front: MitmProcess | None = None

    @property
    def front(self) -> MitmProcess:
        """The process, once it has been started."""
        assert self._front is not None  # noqa: S101 - ``start`` made it
        return self._front

    @property
    def port(self) -> int:
        return self.front.port

    @property
    def authority(self) -> Authority | None:
        return self.front.authority

    async def start(self) -> None:
        """Listen on a port that only mitmproxy knows, and start it. Raises UserError."""
        self._front = await start_mitmproxy(self.settings, await self.listen())

    async def open_port(self) -> int:
        return await self.front.open_port()

    async def close(self) -> None:
        """End both. Raises UserError where mitmproxy had ended before."""
        alive = self._front is None or self._front.alive
        if self._front is not None:
            await self._front.end()
        await super().close()
        if not alive:
            raise UserError("mitmproxy ended by itself: the run's figures end there")
