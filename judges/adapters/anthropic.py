"""The anthropic SDK: Claude, and local servers that speak its messages protocol."""

from __future__ import annotations

import os
from functools import cached_property
from time import perf_counter
from types import ModuleType
from typing import Any

from pydantic import JsonValue

from judges.adapters import sdk as sdks
from judges.adapters.base import Sent, clean_url, key_from
from judges.adapters.capabilities import capability
from judges.adapters.chat import Finish, count
from judges.adapters.errors import BadReply, ContextOverflow
from judges.adapters.failures import failure
from judges.adapters.headers import rate_headers
from judges.adapters.parameters import Learned
from judges.model import Message, Part, Picture, Reply, Request, Text, Usage

OWN_URL = "https://api.anthropic.com"
KEY = "ANTHROPIC_API_KEY"
_TAKEN = {"max_tokens", "temperature", "top_p", "top_k", "stop_sequences", "thinking", "metadata"}
_FINISH: dict[str, Finish] = {"max_tokens": "length", "refusal": "refused"}


class AnthropicAdapter:
    """``timeout`` in seconds for one attempt. Raises UserError if Anthropic's key is missing.

    Parameters that the protocol does not know (``seed``, ``logprobs``) are left out, as
    ``Reply.parameters`` shows; a JSON schema in ``response_format`` goes under its name here.
    """

    name = "anthropic"

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        timeout: float = 300.0,
        max_connections: int = 256,
        dry_run: bool = False,
    ) -> None:
        url = clean_url(base_url or os.environ.get("ANTHROPIC_BASE_URL") or OWN_URL)
        self._url = url.removesuffix("/v1")
        self._where = sdks.host_of(self._url)
        own_service = self._url == OWN_URL
        self.endpoint = self.name if own_service else self._url
        self._key = key_from(KEY, own_service=own_service and not dry_run, model=model)
        self._timeout = timeout
        self._max_connections = max_connections
        self._encoded = sdks.Encoded()
        self._learned = Learned()

    @cached_property
    def _sdk(self) -> ModuleType:
        import anthropic  # noqa: PLC0415

        return anthropic

    @cached_property
    def _client(self) -> Any:
        http = sdks.http_client(
            self._sdk, timeout=self._timeout, max_connections=self._max_connections
        )
        return self._sdk.AsyncAnthropic(
            api_key=self._key,
            base_url=self._url,
            max_retries=0,
            timeout=http.timeout,
            http_client=http,
        )

    async def send(self, request: Request) -> Sent:
        known = capability(request.model)
        wanted = {name: value for name, value in request.parameters.items() if name in _TAKEN}
        wanted |= _output_config(request.parameters.get("response_format"))
        wanted.setdefault("max_tokens", min(known.output, 4096))
        if not known.temperature:
            wanted.pop("temperature", None)
        started = perf_counter()
        while True:
            parameters = self._learned.apply(request.model, wanted)
            answered = await sdks.post(
                self._sdk,
                self._client,
                "/v1/messages",
                self._body(request, parameters),
                where=self._where,
            )
            if answered.status == 200:
                break
            optional = {k: v for k, v in parameters.items() if k != "max_tokens"}
            if not self._learned.learn(request.model, answered.status, answered.error, optional):
                raise failure(
                    answered.status,
                    answered.error,
                    answered.headers,
                    where=self._where,
                    key_variable=KEY,
                )
        reply = read_message(answered.content, where=self._where)
        seconds = perf_counter() - started
        reply = reply.model_copy(update={"seconds": seconds, "parameters": parameters})
        return Sent(reply, rate_headers(answered.headers))

    async def close(self) -> None:
        if "_client" in self.__dict__:
            await self._client.close()

    def _body(self, request: Request, parameters: dict[str, JsonValue]) -> dict[str, Any]:
        """The system prompt apart, its last block marked: everything before it may be cached."""
        system = [
            self._part(part)
            for message in request.messages
            if message.role == "system"
            for part in message.parts
        ]
        if system:
            system[-1]["cache_control"] = {"type": "ephemeral"}
        turns = [self._turn(message) for message in request.messages if message.role != "system"]
        body = {"model": request.model, "messages": turns, **parameters}
        return {**body, "system": system} if system else body

    def _turn(self, message: Message) -> dict[str, Any]:
        return {"role": message.role, "content": [self._part(part) for part in message.parts]}

    def _part(self, part: Part) -> dict[str, Any]:
        if isinstance(part, Text):
            return {"type": "text", "text": part.text}
        return {"type": "image", "source": self._source(part)}

    def _source(self, picture: Picture) -> dict[str, Any]:
        data = self._encoded.string(picture)
        return {"type": "base64", "media_type": picture.media_type, "data": data}


def _output_config(response_format: JsonValue) -> dict[str, JsonValue]:
    """The schema of chat completions' ``response_format`` as the messages protocol takes it."""
    if not isinstance(response_format, dict):
        return {}
    described = response_format.get("json_schema")
    if not isinstance(described, dict) or "schema" not in described:
        return {}
    return {"output_config": {"format": {"type": "json_schema", "schema": described["schema"]}}}


def read_message(content: dict[str, Any], *, where: str) -> Reply:
    """The Reply in a decoded message.

    Raises BadReply without the protocol's fields, ContextOverflow if the window was full before
    the answer ended.
    """
    blocks, stop = content.get("content"), content.get("stop_reason")
    if not isinstance(blocks, list):
        raise BadReply(f"{where} answered without content")
    if stop == "model_context_window_exceeded":
        raise ContextOverflow(f"{where}: the answer ran against the end of the context window")
    texts = (b.get("text") for b in blocks if isinstance(b, dict) and b.get("type") == "text")
    usage = content.get("usage")
    return Reply(
        text="".join(text for text in texts if isinstance(text, str)),
        finish=_FINISH.get(str(stop), "stop"),
        usage=Usage(
            input=count(usage, "input_tokens"),
            cache_read=count(usage, "cache_read_input_tokens"),
            cache_write=count(usage, "cache_creation_input_tokens"),
            output=count(usage, "output_tokens"),
        ),
        model=str(content.get("model") or ""),
    )
