"""The embedded proxy: its ports, and the requests that come in on them."""

from __future__ import annotations

import asyncio
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from trajudge.proxy.http.bodies import BodyTooLarge, read_body, request_framing
from trajudge.proxy.http.messages import MAX_HEAD, BadMessage, keeps_alive, read_request
from trajudge.proxy.http.origins import OriginPool
from trajudge.proxy.server import control, model_api
from trajudge.proxy.server.client import ClientConnection, asks_to_continue
from trajudge.proxy.server.context import ProxyContext, ReceivedRequest
from trajudge.proxy.server.forwarding import FAILURES
from trajudge.proxy.server.registry import TaskRegistry
from trajudge.proxy.server.routing import OWN_HOST, route
from trajudge.proxy.server.settings import ProxySettings
from trajudge.trajectories.util.errors import UserError

_MAX_BODY = 64 * 2**20  # bytes of a request, which is held whole


class EmbeddedProxy:
    """A proxy on loopback. Use ``running`` to start and stop one."""

    def __init__(self, settings: ProxySettings) -> None:
        self.settings = settings
        self.context = ProxyContext(
            settings, OriginPool(), TaskRegistry(settings), open_port=self.open_port
        )
        self._servers: list[asyncio.Server] = []
        self._connections: set[asyncio.Task[None]] = set()

    @property
    def port(self) -> int:
        """The port that the proxy was started with."""
        address: tuple[str, int] = self._servers[0].sockets[0].getsockname()
        return address[1]

    @property
    def url(self) -> str:
        return f"http://{OWN_HOST}:{self.port}"

    @property
    def control_url(self) -> str:
        return f"{self.url}{control.PREFIX}{self.settings.token}"

    def api_url(self, name: str) -> str:
        """Return the base address of a model API."""
        return f"{self.url}{model_api.PREFIX}{name}"

    async def open_port(self, port: int = 0) -> int:
        """Listen on one more port, which has a task of its own. Raises UserError."""
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
                writer.close()

    async def _requests(self, client: ClientConnection) -> None:
        """Answer the requests of a connection, one after the other. Raises FAILURES."""
        port = client.writer.get_extra_info("sockname")[1]
        while client.open:
            try:
                head = await read_request(client.reader)
                if head is None:
                    return
                client.open, client.sent = keeps_alive(head.version, head.headers), 0
                framing = request_framing(head.headers)
                if asks_to_continue(head.headers):
                    client.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
                body = await read_body(client.reader, framing, _MAX_BODY)
            except (BadMessage, BodyTooLarge) as error:
                client.open = False
                await client.sentence(413 if isinstance(error, BodyTooLarge) else 400, str(error))
                return
            await route(self.context, ReceivedRequest(client, head, body, port))


@asynccontextmanager
async def running(settings: ProxySettings) -> AsyncIterator[EmbeddedProxy]:
    """Run a proxy while the block does. Raises UserError for a port or folder that is not free."""
    if settings.out is not None:
        _make_folder(settings.out)
    proxy = EmbeddedProxy(settings)
    try:
        await proxy.open_port(settings.port)
        yield proxy
    finally:
        await proxy.close()


def _make_folder(out: Path) -> None:
    """Make a run's folder. Raises UserError for one that holds a run, or cannot be made."""
    if (out / "events.jsonl").exists():
        raise UserError(f"--out {out} holds a run already: name another folder")
    try:
        (out / "traces").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"--out {out}: {error.strerror}: name a folder that can be made") from error
