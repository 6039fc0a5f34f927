"""A provider's batch interface on loopback, with the traps of real ones: OpenAI's files and batches
(Azure's paths too) and Anthropic's message batches, beside the live calls of both.

Every line that a batch was taken with is written down by what it asks, whatever its name;
``double`` counts lines that were taken although the same was under way or answered: they would be
paid for twice. On its own:
``python -m tests.batch_server --seed 1 --trap accept_500=0.2`` prints its URL; ``GET /__audit``
tells the counters. The traps are shares of what they befall (``TRAPS``).
"""

from __future__ import annotations

import argparse
import asyncio
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Self

import orjson
from aiohttp import web
from aiohttp.typedefs import Handler

from tests.http_thread import announce
from tests.llm_replies import Incoming, Protocol, answer, verdict_text

TRAPS = {
    "accept_500": "of submissions: taken, and a 500 is answered",
    "accept_drop": "of submissions: taken, and the connection is dropped",
    "refuse_429": "of submissions: not taken",
    "expire": "of lines: the window closes before their turn",
    "error": "of lines: answered with an error of the server",
    "refuse": "of lines: refused by the provider's filter",
    "duplicate": "of lines: answered twice, billed twice",
    "hollow": "of lines: answered with nothing but its usage, and billed",
    "cut": "of downloads: ends in the middle of a line",
}
PRICE = (1.25e-6, 5e-6)  # US dollars a token of gpt-4o in a batch: input, output
# The table of prices for this server's model: in a batch half of the live ones.
PRICES = """
[models."{model}"]
input = 2.5
output = 10.0
[models."{model}".batch]
input = 1.25
output = 5.0
"""


@dataclass
class FakeBatch:
    """A batch that was taken; ``ready`` is when it ends (monotonic)."""

    id: str
    protocol: Protocol
    lines: dict[str, bytes]
    metadata: dict[str, str]
    ready: float
    created: float = field(default_factory=time.time)
    output: list[bytes] = field(default_factory=list)
    errors: list[bytes] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    done: bool = False
    failed: str = ""
    cancelled: bool = False


class BatchServer:
    """The server. ``seconds`` that a batch takes; ``traps`` shares by name; ``lines``, ``size`` and
    ``tokens`` are limits, over which nothing is taken; ``lag`` seconds until a batch is listed."""

    def __init__(
        self,
        *,
        traps: Mapping[str, float] | None = None,
        seed: int = 0,
        seconds: float = 0.2,
        lines: int = 50_000,
        size: int = 200_000_000,
        enqueued: int | None = None,
        port: int = 0,
        usage: Callable[[dict[str, Any]], object] | None = None,
    ) -> None:
        self.usage = usage
        self.traps, self.rng = dict(traps or {}), random.Random(seed)
        self.seconds, self.max_lines, self.max_size = seconds, lines, size
        self.enqueued, self.port = enqueued, port
        self.files: dict[str, bytes] = {}
        self.batches: dict[str, FakeBatch] = {}
        self.taken: Counter[str] = Counter()
        self.settled: Counter[str] = Counter()  # lines that ended without an answer
        self.double = self.over_limit = self.submissions = self.live = self.duplicates = 0
        self.hollow = 0
        self.billed = 0.0
        self.forgotten = self.requests = 0
        self.words: list[str] = []  # every audit entry: batch and line
        self.paths: set[str] = set()  # that were asked for
        self._ready = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def audit(self) -> dict[str, Any]:
        names = ("double", "over_limit", "submissions", "live", "duplicates", "billed")
        return {name: getattr(self, name) for name in names} | {"taken": sum(self.taken.values())}

    def forget_lines(self) -> None:
        """Begin with another run, which may ask the same again."""
        self.forgotten += sum(self.taken.values())
        self.taken.clear()
        self.settled.clear()

    def _falls(self, trap: str) -> bool:
        return self.rng.random() < self.traps.get(trap, 0.0)

    # Submission

    async def upload(self, request: web.Request) -> web.Response:
        form = await request.post()
        file: Any = form["file"]
        name = f"file-{len(self.files)}"
        self.files[name] = file.file.read()
        fields = {"bytes": len(self.files[name]), "filename": file.filename, "created_at": 0}
        return _json({"id": name, "object": "file", "purpose": "batch", **fields})

    async def create_chat(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        content = self.files[body["input_file_id"]]
        lines = {orjson.loads(n)["custom_id"]: n for n in content.splitlines() if n}
        self._check(len(content.splitlines()), len(content), len(lines))
        batch = self._take("openai", lines, body.get("metadata") or {})
        return await self._answer_submission(request, batch, self._chat(batch) if batch else {})

    async def create_messages(self, request: web.Request) -> web.StreamResponse:
        content = await request.read()
        requests = orjson.loads(content)["requests"]
        lines = {one["custom_id"]: orjson.dumps(one) for one in requests}
        self._check(len(requests), len(content), len(lines))
        batch = self._take("anthropic", lines, {})
        return await self._answer_submission(request, batch, self._message(batch) if batch else {})

    def _check(self, lines: int, size: int, distinct: int) -> None:
        self.over_limit += lines > self.max_lines or size > self.max_size or distinct != lines

    def _take(
        self, protocol: Protocol, lines: dict[str, bytes], metadata: dict[str, str]
    ) -> FakeBatch | None:
        self.submissions += 1
        if self._falls("refuse_429"):
            return None
        for line in lines.values():
            asked = _asked(protocol, line)
            self.double += self.taken[asked] > self.settled[asked]
            self.taken[asked] += 1
        kind = "batch" if protocol == "openai" else "msgbatch"
        ready = time.monotonic() + self.seconds * self.rng.uniform(0.5, 1.5)
        batch = FakeBatch(f"{kind}_{len(self.batches)}", protocol, lines, metadata, ready)
        tokens = sum(len(one) // 4 for one in lines.values())
        if self.enqueued is not None and self._tokens_under_way() + tokens > self.enqueued:
            batch.failed, batch.done = "token_limit_exceeded", True
            self.settled.update(_asked(protocol, line) for line in lines.values())
        self.batches[batch.id] = batch
        self.words += [f"{batch.id} {name}" for name in lines]
        return batch

    def _tokens_under_way(self) -> int:
        open_ = (batch for batch in self.batches.values() if not batch.done)
        return sum(len(line) // 4 for batch in open_ for line in batch.lines.values())

    async def _answer_submission(
        self, request: web.Request, batch: FakeBatch | None, shown: dict[str, Any]
    ) -> web.StreamResponse:
        if batch is None:
            return _json({"error": {"message": "too many batches", "type": "rate_limit"}}, 429)
        if self._falls("accept_500"):
            return _json({"error": {"message": "internal error"}}, 500)
        if self._falls("accept_drop"):
            assert request.transport
            request.transport.abort()
        return _json(shown)

    # State

    def _settle(self, batch: FakeBatch) -> None:
        """Process the batch when its time has come."""
        if batch.done or time.monotonic() < batch.ready:
            return
        batch.done = True
        for number, (name, line) in enumerate(batch.lines.items()):
            fate = next((t for t in ("expire", "error", "refuse") if self._falls(t)), "")
            if batch.cancelled and number % 2:  # what was under way is answered
                fate = "cancel"
            self._line(batch, name, orjson.loads(line), fate)
        self.rng.shuffle(batch.output)
        self.rng.shuffle(batch.errors)

    def _line(self, batch: FakeBatch, name: str, line: dict[str, Any], fate: str) -> None:
        body = orjson.dumps(line["body" if batch.protocol == "openai" else "params"])
        write = _chat_line if batch.protocol == "openai" else _message_line
        if fate:
            self.settled[_asked(batch.protocol, orjson.dumps(line))] += fate != "refuse"
            kind = {"expire": "expired", "cancel": "canceled"}.get(fate, "errored")
            batch.counts[kind] += 1
            batch.errors.append(write(name, None, fate))
            return
        incoming = Incoming(0, batch.protocol, "", {}, body)
        message = orjson.loads(answer(incoming, reply_text(incoming.prompt)).body)
        usage = message["usage"]
        if self.usage:
            message["usage"] = self.usage(usage)
        copies = 1 + self._falls("duplicate")
        self.duplicates += copies - 1
        if "hollow" in self.traps and self._falls("hollow"):
            self.hollow += copies
            self.settled[_asked(batch.protocol, orjson.dumps(line))] += 1
            message["choices" if batch.protocol == "openai" else "content"] = []
        batch.counts["succeeded"] += 1
        batch.output += [write(name, message, "")] * copies
        prompt = usage.get("prompt_tokens", usage.get("input_tokens"))
        output = usage.get("completion_tokens", usage.get("output_tokens"))
        self.billed += copies * (prompt * PRICE[0] + output * PRICE[1])

    def _chat(self, batch: FakeBatch) -> dict[str, Any]:
        self._settle(batch)
        expired = batch.counts["expired"]
        is_early = time.monotonic() < batch.ready - self.seconds / 4
        status = "validating" if is_early else "in_progress"
        if batch.done:
            status = "failed" if batch.failed else "expired" if expired else "completed"
        if batch.cancelled:
            status = "cancelled" if batch.done else "cancelling"
        done = batch.done and not batch.failed
        errors = {"data": [{"code": batch.failed, "message": batch.failed}], "object": "list"}
        return {
            **{"id": batch.id, "object": "batch", "endpoint": "/v1/chat/completions"},
            **{"completion_window": "24h", "created_at": int(batch.created), "input_file_id": "f"},
            **{"status": status, "metadata": batch.metadata},
            "errors": errors if batch.failed else None,
            "output_file_id": f"out-{batch.id}" if done and batch.output else None,
            "error_file_id": f"err-{batch.id}" if done and batch.errors else None,
            "request_counts": {
                "total": len(batch.lines),
                "completed": batch.counts["succeeded"],
                "failed": batch.counts["errored"],
            },
        }

    def _message(self, batch: FakeBatch) -> dict[str, Any]:
        self._settle(batch)
        names = ("succeeded", "errored", "expired", "canceled")
        counts = {name: batch.counts[name] for name in names}
        counts["processing"] = 0 if batch.done else len(batch.lines)
        created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(batch.created))
        word = "canceling" if batch.cancelled else "in_progress"
        status = "ended" if batch.done else word
        return {
            **{"id": batch.id, "type": "message_batch", "processing_status": status},
            **{"request_counts": counts, "created_at": created, "expires_at": created},
            **{"ended_at": None, "archived_at": None, "cancel_initiated_at": None},
            "results_url": f"{self.url}/v1/messages/batches/{batch.id}/results",
        }

    async def list_batches(self, request: web.Request) -> web.Response:
        chat = "messages" not in request.path
        kind = "openai" if chat else "anthropic"
        newest = [b for b in reversed(self.batches.values()) if b.protocol == kind]
        after = request.query.get("after") or request.query.get("after_id")
        start = next((i + 1 for i, b in enumerate(newest) if b.id == after), 0)
        page = newest[start : start + 3]  # pages are short: a client has to turn them
        shown = [self._chat(b) if chat else self._message(b) for b in page]
        ends = {"first_id": page[0].id, "last_id": page[-1].id} if page else {}
        more = len(newest) > start + 3
        return _json({"object": "list", "data": shown, "has_more": more, **ends})

    async def retrieve(self, request: web.Request) -> web.Response:
        batch = self.batches[request.match_info["id"]]
        return _json(self._chat(batch) if batch.protocol == "openai" else self._message(batch))

    async def cancel(self, request: web.Request) -> web.Response:
        batch = self.batches[request.match_info["id"]]
        if not batch.done:
            batch.cancelled = True
            batch.ready = time.monotonic() + self.seconds / 4
        return await self.retrieve(request)

    # Results

    async def content(self, request: web.Request) -> web.StreamResponse:
        kind, _, name = request.match_info["file"].partition("-")
        batch = self.batches[name]
        return await self._download(request, batch.output if kind == "out" else batch.errors)

    async def results(self, request: web.Request) -> web.StreamResponse:
        batch = self.batches[request.match_info["id"]]
        return await self._download(request, [*batch.errors, *batch.output])

    async def _download(self, request: web.Request, lines: list[bytes]) -> web.StreamResponse:
        content = b"".join(line + b"\n" for line in lines)
        if self._falls("cut"):
            # At a line's end and with a length that is right: only the counts tell.
            whole = b"".join(line + b"\n" for line in lines[: len(lines) // 2])
            content = whole if self.rng.random() < 0.5 else content[: len(content) * 2 // 3]
        return web.Response(body=content, content_type="application/octet-stream")

    # Live

    async def call(self, request: web.Request) -> web.Response:
        self.live += 1
        protocol: Protocol = "anthropic" if request.path.endswith("/messages") else "openai"
        incoming = Incoming(0, protocol, request.path, {}, await request.read())
        made = answer(incoming, reply_text(incoming.prompt))
        return web.Response(body=made.body, content_type="application/json")

    async def tell(self, request: web.Request) -> web.Response:
        return _json(self.audit)

    # Running

    def application(self) -> web.Application:
        @web.middleware
        async def count(request: web.Request, handler: Handler) -> web.StreamResponse:
            self.requests += 1
            self.paths.add(request.path_qs)
            return await handler(request)

        app = web.Application(client_max_size=2**30, middlewares=[count])
        for root in ("/v1", "/openai"):
            app.router.add_post(f"{root}/files", self.upload)
            app.router.add_get(f"{root}/files/{{file}}/content", self.content)
            app.router.add_post(f"{root}/batches", self.create_chat)
            app.router.add_get(f"{root}/batches", self.list_batches)
            app.router.add_get(f"{root}/batches/{{id}}", self.retrieve)
            app.router.add_post(f"{root}/batches/{{id}}/cancel", self.cancel)
        app.router.add_post("/v1/messages/batches", self.create_messages)
        app.router.add_get("/v1/messages/batches", self.list_batches)
        app.router.add_get("/v1/messages/batches/{id}", self.retrieve)
        app.router.add_get("/v1/messages/batches/{id}/results", self.results)
        app.router.add_post("/v1/messages/batches/{id}/cancel", self.cancel)
        app.router.add_post("/v1/chat/completions", self.call)
        app.router.add_post("/openai/deployments/{name}/chat/completions", self.call)
        app.router.add_post("/v1/messages", self.call)
        app.router.add_get("/__audit", self.tell)
        return app

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        runner = web.AppRunner(self.application(), access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", self.port)
        await site.start()
        assert runner.addresses
        self.port = runner.addresses[0][1]
        self._ready.set()
        await self._stop.wait()
        await runner.cleanup()

    def __enter__(self) -> Self:
        self.thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)
        self.thread.start()
        self._ready.wait()
        return self

    def __exit__(self, *exc: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self.thread.join()


def _asked(protocol: Protocol, line: bytes) -> str:
    """Return what a line asks, as a hash."""
    body = orjson.loads(line)["body" if protocol == "openai" else "params"]
    return sha256(orjson.dumps(body, option=orjson.OPT_SORT_KEYS)).hexdigest()


def reply_text(prompt: str) -> str:
    """A verdict that several judges can read, at each of their stages."""
    return f"{verdict_text(prompt)}\nScore: 4\nStatus: success"


def _json(content: dict[str, Any], status: int = 200) -> web.Response:
    return web.Response(body=orjson.dumps(content), status=status, content_type="application/json")


def _chat_line(name: str, message: dict[str, Any] | None, fate: str) -> bytes:
    line: dict[str, Any] = {"id": "batch_req_1", "custom_id": name, "response": None, "error": None}
    if message:
        line["response"] = {"status_code": 200, "request_id": "r", "body": message}
    elif fate in ("expire", "cancel"):
        code = "batch_expired" if fate == "expire" else "batch_cancelled"
        line["error"] = {"code": code, "message": "not executed before the batch ended"}
    else:
        refused = {"code": "content_policy_violation", "message": "rejected by our safety system"}
        body = {"error": refused if fate == "refuse" else {"message": "the server had an error"}}
        status = 400 if fate == "refuse" else 500
        line["response"] = {"status_code": status, "request_id": "r", "body": body}
    return orjson.dumps(line)


def _message_line(name: str, message: dict[str, Any] | None, fate: str) -> bytes:
    result: dict[str, Any]
    if message:
        result = {"type": "succeeded", "message": message}
    elif fate in ("expire", "cancel"):
        result = {"type": "expired" if fate == "expire" else "canceled"}
    else:
        kind = "api_error" if fate == "error" else "invalid_request_error"
        told = {"type": kind, "message": "Output blocked by content filtering policy"}
        result = {"type": "errored", "error": {"type": "error", "error": told}}
    return orjson.dumps({"custom_id": name, "result": result})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=0.2)
    parser.add_argument("--trap", action="append", default=[], metavar="NAME=SHARE")
    options = parser.parse_args()
    traps = {name: float(part) for name, _, part in (t.partition("=") for t in options.trap)}
    server = BatchServer(traps=traps, seed=options.seed, seconds=options.seconds, port=options.port)
    with server:
        announce(server.url)
        server.thread.join()


if __name__ == "__main__":
    main()
