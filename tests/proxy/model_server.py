"""Model APIs on loopback that stream, in the words of the services' own documentation."""

from __future__ import annotations

import asyncio
import json
import ssl
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

WORDS = ["To", " be", ", or", " not", " to", " be"]


def openai_events(usage: bool, output: int = 21) -> list[str]:
    base: dict[str, Any] = {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "gpt-4o-2024-08-06",
    }

    def chunk(delta: dict[str, str], finish: str | None = None) -> dict[str, Any]:
        return {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    chunks = [chunk({"role": "assistant", "content": ""})]
    chunks += [chunk({"content": word}) for word in WORDS] + [chunk({}, "stop")]
    if usage:
        counts = {
            "prompt_tokens": 1000,
            "completion_tokens": output,
            "total_tokens": 1000 + output,
            "prompt_tokens_details": {"cached_tokens": 600},
            "completion_tokens_details": {"reasoning_tokens": 5},
        }
        chunks.append({**base, "choices": [], "usage": counts})
    return [f"data: {json.dumps(one)}\n\n" for one in chunks] + ["data: [DONE]\n\n"]


def anthropic_events() -> list[str]:
    start: dict[str, Any] = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-3-7-sonnet-20250219",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {
            "input_tokens": 25,
            "cache_creation_input_tokens": 7,
            "cache_read_input_tokens": 300,
            "output_tokens": 1,
        },
    }
    block = {
        "type": "content_block_start",
        "index": 0,
        "content_block": {"type": "text", "text": ""},
    }
    deltas = [
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": word}}
        for word in WORDS
    ]
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": start},
        block,
        {"type": "ping"},
        *deltas,
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn", "stop_sequence": None},
            "usage": {"output_tokens": 15},
        },
        {"type": "message_stop"},
    ]
    return [f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in events]


class ModelServer:
    """Streams with ``pause`` seconds between events; ``cut`` ends a stream after so many.
    ``numbered``: the model ``m7`` writes 7 tokens."""

    def __init__(self, pause: float, cut: int | None, numbered: bool) -> None:
        self.pause, self.cut, self.numbered = pause, cut, numbered
        self.port = 0
        self.headers: list[dict[str, str]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def serve(self, reader: StreamReader, writer: StreamWriter) -> None:
        try:
            while await self._answer(reader, writer):
                pass
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _answer(self, reader: StreamReader, writer: StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        fields = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in head[1:])}
        self.headers.append(fields)
        asked = json.loads(await reader.readexactly(int(fields["content-length"])))
        if head[0].split()[1].endswith("/messages"):
            events = anthropic_events()
        else:
            usage = bool(asked.get("stream_options", {}).get("include_usage"))
            events = openai_events(usage, int(asked["model"][1:]) if self.numbered else 21)
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n"
        )
        for event in events[: self.cut]:
            data = event.encode()
            # Broken within an event, as networks do.
            for part in (data[: len(data) // 2], data[len(data) // 2 :]):
                writer.write(b"%x\r\n%b\r\n" % (len(part), part))
                await writer.drain()
            await asyncio.sleep(self.pause)
        if self.cut is not None:
            return False
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        return True


@asynccontextmanager
async def model_server(
    pause: float = 0.0,
    cut: int | None = None,
    numbered: bool = False,
    tls: ssl.SSLContext | None = None,
) -> AsyncIterator[ModelServer]:
    server = ModelServer(pause, cut, numbered)
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0, ssl=tls)
    server.port = listening.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listening.close()
