"""OpenAI's chat completions: OpenAI itself, and every server that speaks them (vLLM, OpenRouter,
Together, llama.cpp) by its base URL. They go through the openai SDK, or over plain aiohttp, for a
fraction of the time that the SDK takes for each request.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import orjson
from pydantic import JsonValue

from trajudge.judges.adapters.context_windows import (
    ServerFacts,
    ask_server,
    served_models,
)
from trajudge.judges.adapters.failures import ErrorBody, read_error
from trajudge.judges.adapters.provider import ProviderAdapter
from trajudge.judges.adapters.sdk import HttpResult, host_of, no_answer
from trajudge.judges.adapters.wire import (
    chat_fields,
    json_bytes,
    json_object,
    proxy_for,
    read_chat,
    turn,
)
from trajudge.judges.model import Picture, Reply, Request
from trajudge.judges.models import ContextWindow, Price

if TYPE_CHECKING:
    from aiohttp import ClientSession


class OpenAIAdapter(ProviderAdapter):
    """Chat completions."""

    name = "openai"
    package = "openai"
    client = "AsyncOpenAI"
    own_url = "https://api.openai.com/v1"
    url_variable = "OPENAI_BASE_URL"
    key_variable = "OPENAI_API_KEY"
    path = "/chat/completions"

    @staticmethod
    def _root(url: str) -> str:
        return url if urlsplit(url).path else url + "/v1"

    def context_window(self, model: str) -> ContextWindow | None:
        """Return the window of any server but OpenAI's own, whose list of models has no windows."""
        return self._facts(model).window

    def reported_price(self, model: str) -> Price | None:
        """Return the price that the server lists."""
        return self._facts(model).price

    def slots(self, model: str) -> int | None:
        """Return how many requests the server answers at once, where it reports that."""
        return self._facts(model).slots

    def _facts(self, model: str) -> ServerFacts:
        """Ask the server once. Raises Unreachable."""
        if self._url == self.own_url:
            return ServerFacts()
        if model not in self._asked:
            self._asked[model] = ask_server(self._url, model, self._key)
        return self._asked[model]

    @cached_property
    def _asked(self) -> dict[str, ServerFacts]:
        return {}

    def _served_models(self) -> list[str]:
        return served_models(self._url, self._key)

    def _wanted(self, parameters: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
        wanted = dict(parameters)
        if "max_tokens" in wanted:
            wanted[self._known.limit_name] = wanted.pop("max_tokens")
        return wanted

    def reasoning_fields(
        self, parameters: Mapping[str, JsonValue], model: str
    ) -> dict[str, JsonValue]:
        return chat_fields(parameters, host_of(self._url), model.rpartition("/")[2].lower())

    def _prompt(self, request: Request) -> dict[str, Any]:
        joins = self._unsupported.joins_texts(request.model)
        turns = [turn(message, self._base64, joins=joins) for message in request.messages]
        return {"messages": turns}

    def _base64(self, picture: Picture) -> orjson.Fragment:
        return self._images.string(picture, f"data:{picture.media_type};base64,")

    def _read(self, content: dict[str, Any], where: str) -> Reply:
        return read_chat(content, where=where, key_variable=self.key_variable)


# Uvicorn, and so vLLM, closes a connection that was idle for 5 s: never write to one that it is
# about to close.
KEEPALIVE = 4.0


class HttpAdapter(OpenAIAdapter):
    """The openai adapter over another transport: models, parameters, errors and endpoint (and
    therefore the cache's replies) are the same."""

    name = "http"

    @cached_property
    def _session(self) -> ClientSession:
        import aiohttp  # noqa: PLC0415

        # Waiting for a connection of the pool is not the server's silence: no timeout for it.
        timeout = aiohttp.ClientTimeout(
            total=None, sock_connect=min(self._timeout, 30.0), sock_read=self._timeout
        )
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=self._max_connections, keepalive_timeout=KEEPALIVE
            ),
            timeout=timeout,
            proxy=proxy_for(self._url),
            headers={
                "Authorization": f"Bearer {self._key}",
                "Content-Type": "application/json",
                **self._headers,
            },
        )

    async def _post(self, body: dict[str, Any]) -> HttpResult:
        import aiohttp  # noqa: PLC0415

        try:
            url, data = self._url + self.path, json_bytes(body)
            async with self._session.post(url, data=data) as response:
                content = await response.read()
        except (aiohttp.ClientError, OSError) as error:
            raise no_answer(error, self._where) from None
        headers = {name.lower(): value for name, value in response.headers.items()}
        if response.status != 200:
            return HttpResult(response.status, {}, read_error(content), headers)
        return HttpResult(200, json_object(content, self._where), ErrorBody(), headers)

    async def close(self) -> None:
        session = self.__dict__.pop("_session", None)  # a later call opens another
        if session is not None:
            await session.close()
        await super().close()  # the SDK's client, where batches were sent
