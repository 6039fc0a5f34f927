"""The openai SDK: OpenAI itself, and every server that speaks its chat completions
(vLLM, OpenRouter, Together, llama.cpp) by its base URL."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any
from urllib.parse import urlsplit

import orjson
from pydantic import JsonValue

from trajudge.judges.adapters.context_windows import (
    ServerFacts,
    ask_server,
    served_models,
)
from trajudge.judges.adapters.provider import ProviderAdapter
from trajudge.judges.adapters.sdk import host_of
from trajudge.judges.adapters.wire import chat_fields, read_chat, turn
from trajudge.judges.model import Picture, Reply, Request
from trajudge.judges.models import ContextWindow, Price


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
        turns = [turn(message, self._url_of, joins=joins) for message in request.messages]
        return {"messages": turns}

    def _url_of(self, picture: Picture) -> orjson.Fragment:
        return self._images.string(picture, f"data:{picture.media_type};base64,")

    def _read(self, content: dict[str, Any], where: str) -> Reply:
        return read_chat(content, where=where, key_variable=self.key_variable)
