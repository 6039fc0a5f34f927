"""The openai SDK: OpenAI itself, and every server that speaks its chat completions
(vLLM, OpenRouter, Together, llama.cpp) by its base URL."""

from __future__ import annotations

import os
from functools import cached_property
from time import perf_counter
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

from judges.adapters import sdk as sdks
from judges.adapters.base import Sent, clean_url, key_from
from judges.adapters.capabilities import capability
from judges.adapters.chat import read_chat
from judges.adapters.failures import failure
from judges.adapters.headers import rate_headers
from judges.adapters.parameters import Learned
from judges.model import Message, Part, Picture, Request

OWN_URL = "https://api.openai.com/v1"
OWN_ENDPOINT = "openai"
KEY = "OPENAI_API_KEY"


class OpenAIAdapter:
    """``timeout`` in seconds for one attempt. Raises UserError if OpenAI's key is missing."""

    name = "openai"

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        timeout: float = 300.0,
        max_connections: int = 256,
        dry_run: bool = False,
    ) -> None:
        url = clean_url(base_url or os.environ.get("OPENAI_BASE_URL") or OWN_URL)
        self._url = url if urlsplit(url).path else url + "/v1"
        self._where = sdks.host_of(self._url)
        own_service = self._url == OWN_URL
        self.endpoint = OWN_ENDPOINT if own_service else self._url
        self._key = key_from(KEY, own_service=own_service and not dry_run, model=model)
        self._timeout = timeout
        self._max_connections = max_connections
        self._encoded = sdks.Encoded()
        self._learned = Learned()

    @cached_property
    def _sdk(self) -> ModuleType:
        import openai  # noqa: PLC0415

        return openai

    @cached_property
    def _client(self) -> Any:
        http = sdks.http_client(
            self._sdk, timeout=self._timeout, max_connections=self._max_connections
        )
        return self._sdk.AsyncOpenAI(
            api_key=self._key,
            base_url=self._url,
            max_retries=0,
            timeout=http.timeout,
            http_client=http,
        )

    async def send(self, request: Request) -> Sent:
        messages = [self._turn(message) for message in request.messages]
        known = capability(request.model)
        wanted = dict(request.parameters)
        if "max_tokens" in wanted:
            wanted[known.limit_name] = wanted.pop("max_tokens")
        if not known.temperature:
            wanted.pop("temperature", None)
        started = perf_counter()
        while True:
            parameters = self._learned.apply(request.model, wanted)
            body = {"model": request.model, "messages": messages, **parameters}
            answered = await self._post("/chat/completions", body)
            if answered.status == 200:
                break
            if not self._learned.learn(request.model, answered.status, answered.error, parameters):
                raise failure(
                    answered.status,
                    answered.error,
                    answered.headers,
                    where=self._where,
                    key_variable=KEY,
                )
        reply = read_chat(answered.content, where=self._where, key_variable=KEY)
        seconds = perf_counter() - started
        reply = reply.model_copy(update={"seconds": seconds, "parameters": parameters})
        return Sent(reply, rate_headers(answered.headers))

    async def _post(self, path: str, body: dict[str, Any]) -> sdks.Answered:
        return await sdks.post(self._sdk, self._client, path, body, where=self._where)

    async def close(self) -> None:
        if "_client" in self.__dict__:
            await self._client.close()

    def _turn(self, message: Message) -> dict[str, Any]:
        """One message; texts alone go as one string, which every server understands."""
        if not any(isinstance(part, Picture) for part in message.parts):
            text = "\n\n".join(part.text for part in message.parts if part.kind == "text")
            return {"role": message.role, "content": text}
        return {"role": message.role, "content": [self._part(part) for part in message.parts]}

    def _part(self, part: Part) -> dict[str, Any]:
        if isinstance(part, Picture):
            url = self._encoded.string(part, f"data:{part.media_type};base64,")
            return {"type": "image_url", "image_url": {"url": url}}
        return {"type": "text", "text": part.text}
