"""OpenAI's protocol without its SDK: the same requests and answers over plain aiohttp, for a
fraction of the time that the SDK takes for each."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from trajudge.judges.adapters.failures import ErrorBody, read_error
from trajudge.judges.adapters.openai import OpenAIAdapter
from trajudge.judges.adapters.sdk import HttpResult, no_answer
from trajudge.judges.adapters.wire import json_bytes, json_object, proxy_for

if TYPE_CHECKING:
    from aiohttp import ClientSession

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
