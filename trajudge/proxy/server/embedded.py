"""The embedded proxy: its ports, and the requests that come in on them."""

from __future__ import annotations

import asyncio
import time
from asyncio import StreamReader, StreamWriter
from contextlib import suppress
from typing import TYPE_CHECKING

from trajudge.proxy.http.bodies import BodyTooLarge, read_body, request_framing
from trajudge.proxy.http.front import CarriedConnection, carried_connection, split_sender
from trajudge.proxy.http.messages import (
    MAX_HEAD,
    BadMessage,
    RequestHead,
    keeps_alive,
    read_request,
)
from trajudge.proxy.http.origins import OriginAddress, OriginPool
from trajudge.proxy.server import control, model_api
from trajudge.proxy.server.client import ClientConnection, asks_to_continue
from trajudge.proxy.server.context import ProxyContext, ReceivedRequest
from trajudge.proxy.server.forwarding import FAILURES
from trajudge.proxy.server.registry import TaskRegistry
from trajudge.proxy.server.routing import OWN_HOST, route
from trajudge.proxy.server.settings import Authority, ProxySettings
from trajudge.proxy.server.tunnels import tunnel
from trajudge.util.errors import UserError

if TYPE_CHECKING:
    from trajudge.proxy.browser.watching import BrowserWatch

_MAX_BODY = 64 * 2**20  # bytes of a request, which is held whole


class EmbeddedProxy:
    """A proxy on loopback. ``backends.running`` starts and stops one, and gives it the ``watch``
    of the browser that the settings name."""

    def __init__(self, settings: ProxySettings) -> None:
        self.settings = settings
        self.context = ProxyContext(
            settings, OriginPool(), TaskRegistry(settings), open_port=self.open_port
        )
        self.watch: BrowserWatch | None = None
        self._servers: list[asyncio.Server] = []
        self._connections: set[asyncio.Task[None]] = set()

    @property
    def port(self) -> int:
        """The port that the proxy was started with."""
        address: tuple[str, int] = self._servers[0].sockets[0].getsockname()
        return address[1]

    @property
    def authority(self) -> Authority | None:
        """Who signs the certificates that agents see; None for a proxy that shows none."""
        return None

    @property
    def url(self) -> str:
        return f"http://{OWN_HOST}:{self.port}"

    @property
    def control_url(self) -> str:
        return f"{self.url}{control.PREFIX}{self.settings.token}"

    def api_url(self, name: str) -> str:
        """Return the base address of a model API."""
        return f"{self.url}{model_api.PREFIX}{name}"

    def navigated(self, url: str, kind: str) -> None:
        """Record what the browser says of a navigation."""
        self.context.tasks.current(self.port).navigated(url, kind)

    async def start(self) -> None:
        """Listen on the port of the settings. Raises UserError."""
        await self.listen(self.settings.port)

    async def open_port(self) -> int:
        """Open one more port to agents, which has a task of its own, and return it."""
        return await self.listen()

    async def listen(self, port: int = 0) -> int:
        """Listen on a port, 0 for any. Raises UserError."""
        try:
            server = await asyncio.start_server(self._serve, OWN_HOST, port, limit=MAX_HEAD)
        except OSError as error:
            raise UserError(
                f"--port {port}: {error.strerror or error}: name a free port, or 0 for any"
            ) from error
        self._servers.append(server)
        return int(server.sockets[0].getsockname()[1])

    async def close(self) -> None:
        """Stop listening, end connections and tasks."""
        for server in self._servers:
            server.close()
        for connection in self._connections:
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        self.context.pool.close()
        self.context.tasks.close()

    async def _serve(self, reader: StreamReader, writer: StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - a server's callback runs as a task
        self._connections.add(task)
        client = ClientConnection(reader, writer)
        try:
            await self._requests(client)
        except FAILURES:
            pass  # one side left: the other sees its message end early
        except asyncio.CancelledError:
            client.reset()
        finally:
            self._connections.discard(task)
            with suppress(OSError, RuntimeError):
                client.flush()
                writer.close()

    async def _requests(self, client: ClientConnection) -> None:
        """Answer the requests of a connection, one after the other. Raises FAILURES."""
        port = client.writer.get_extra_info("sockname")[1]
        carried: CarriedConnection | None = None
        while client.open:
            try:
                head = await read_request(client.reader)
                received = time.perf_counter()
                if head is None:
                    return
                if self._fronted and (begun := carried_connection(head, self.settings.token)):
                    carried = begun
                    continue
                client.open, client.sent = keeps_alive(head.version, head.headers), 0
                framing = request_framing(head.headers)
                if asks_to_continue(head.headers):
                    client.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
                body = await read_body(client.reader, framing, _MAX_BODY)
            except (BadMessage, BodyTooLarge) as error:
                client.open = False
                await client.sentence(413 if isinstance(error, BodyTooLarge) else 400, str(error))
                return
            if carried is None:
                await route(self.context, self._received(client, head, body, port, received))
            elif head.method == "CONNECT":  # on a connection that had requests: mitmproxy's to take
                await tunnel(client, OriginAddress(OWN_HOST, carried.port), opening=head)
            else:
                head = carried.whole(head)
                asked = ReceivedRequest(client, head, body, carried.port, received, fronted=True)
                await route(self.context, asked)

    @property
    def _fronted(self) -> bool:
        """Whether requests come from mitmproxy, which says where they come from."""
        return self.settings.backend == "mitm"

    def _received(
        self, client: ClientConnection, head: RequestHead, body: bytes, port: int, received: float
    ) -> ReceivedRequest:
        if self._fronted:
            head, sender = split_sender(head, self.settings.token)
            if sender is not None:
                received -= sender.lag
                return ReceivedRequest(client, head, body, sender.port, received, fronted=True)
        return ReceivedRequest(client, head, body, port, received)
