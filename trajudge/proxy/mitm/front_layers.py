"""What mitmproxy does with a client's connection: carry its bytes to the inner proxy as they are,
or hand on the streams of HTTP/2 one by one.

Like ``front.py`` it runs in mitmproxy's environment and imports nothing of ours.
"""

import socket
import struct
from collections.abc import Mapping
from typing import Any

from mitmproxy.connection import Client, Server
from mitmproxy.proxy import commands, events
from mitmproxy.proxy.context import Context
from mitmproxy.proxy.layer import CommandGenerator, Layer
from mitmproxy.proxy.layers import HttpLayer, TCPLayer
from mitmproxy.proxy.layers.http import GetHttpConnection, GetHttpConnectionCompleted
from mitmproxy.proxy.layers.http._http1 import Http1Client

Connections = Mapping[Any, Any]  # clients' identifiers to mitmproxy's handlers


class CarriedBytes(TCPLayer):  # type: ignore[misc]
    """Carries a client's connection to the inner proxy as it is, after a head of ours."""

    def __init__(self, context: Context, connections: Connections, to: Server, head: bytes) -> None:
        context.server = to
        super().__init__(context, ignore=True)
        self._connections, self._head = connections, head

    def _begin(self, event: events.Event) -> CommandGenerator[None]:
        yield from self.start(event)
        if self.context.server.connected:
            yield commands.SendData(self.context.server, self._head)

    _handle_event = _begin

    def relay_messages(self, event: events.Event) -> CommandGenerator[None]:
        """Carry a piece, or an end; a reset of the inner proxy's is one for the client as well."""
        if self._was_reset(event):
            reset(self._connections, self.context.client)
            yield commands.CloseConnection(self.context.client)
        else:
            yield from super().relay_messages(event)

    def _was_reset(self, event: events.Event) -> bool:
        server = self.context.server
        if not isinstance(event, events.ConnectionClosed) or event.connection != server:
            return False
        handler = self._connections.get(self.context.client.id)
        carried = handler and handler.transports.get(server)
        return bool(carried and carried.reader.exception())


class Streams(HttpLayer):  # type: ignore[misc]
    """The streams of a client's HTTP/2, each on a connection to the inner proxy that is idle, or a
    new one: by itself mitmproxy takes a new one for each."""

    def get_connection(
        self, event: GetHttpConnection, *, reuse: bool = True
    ) -> CommandGenerator[None]:
        """Give a stream its connection."""
        for connection, layer in self.connections.items():
            if event.connection_spec_matches(connection) and _is_idle(connection, layer):
                stream = self.command_sources.pop(event)
                done = GetHttpConnectionCompleted(event, (connection, None))
                yield from self.event_to_child(stream, done)
                return
        yield from super().get_connection(event, reuse=False)


def _is_idle(connection: Server, layer: Layer) -> bool:
    asking = getattr(layer, "child_layer", None)
    idle = isinstance(asking, Http1Client) and asking.stream_id is None
    return idle and bool(connection.connected)


def reset(connections: Connections, client: Client) -> None:
    """Let a client's connection end with a reset, not in order, when it is closed."""
    handler = connections.get(client.id)
    if handler is None or client not in handler.transports:
        return
    connection = handler.transports[client].writer.get_extra_info("socket")
    if connection is not None:
        linger = struct.pack("ii", 1, 0)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
