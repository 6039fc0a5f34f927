"""Common base of the adapters of OpenAI's and Anthropic's protocols: address and key, the SDK's
client, and that a parameter which a model refused is not sent again."""

from __future__ import annotations

import asyncio
import os
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Mapping
from functools import cached_property
from importlib import import_module
from time import perf_counter
from types import ModuleType
from typing import Any, ClassVar, NamedTuple

import orjson
from pydantic import JsonValue

from trajudge.judges.adapters import sdk as sdks
from trajudge.judges.adapters.base import AdapterResponse, clean_url, key_from
from trajudge.judges.adapters.errors import CallFailed, UnknownModel, rate_headers
from trajudge.judges.adapters.failures import (
    CHECK_MODEL,
    ErrorBody,
    failure,
    is_about_parts,
    refused_parameter,
)
from trajudge.judges.adapters.sdk import HttpResult, ImageBase64Cache
from trajudge.judges.adapters.wire import merged, of_sample, split
from trajudge.judges.model import Picture, Reply, Request
from trajudge.judges.models import Capability, capability, model_names
from trajudge.util.errors import did_you_mean


class _Translated(NamedTuple):
    """Parameters as the protocol names them, the fields that are never left out, and the headers as
    they may be shown."""

    wanted: dict[str, JsonValue]
    fixed: dict[str, Any]
    shown_headers: dict[str, JsonValue]


class BatchBody(NamedTuple):
    """The body of a request as a line of a batch holds it, and its parameters as they are shown."""

    body: dict[str, Any]
    parameters: dict[str, JsonValue]


_OTHER_NAME = {
    "max_tokens": "max_completion_tokens",
    "max_completion_tokens": "max_tokens",
}


class UnsupportedParameters:
    """Parameters to leave out, or to send under their other name, by model; and models whose server
    wants the texts of a message joined."""

    def __init__(self) -> None:
        self._refused: defaultdict[str, set[str]] = defaultdict(set)
        self._joined = set[str]()

    def joins_texts(self, model: str) -> bool:
        """Return True if several texts of a message go as one."""
        return model in self._joined

    def shown(self, model: str) -> dict[str, JsonValue]:
        """Return what a reply's parameters say of how its prompt went out."""
        return {"text_parts": "joined"} if model in self._joined else {}

    def apply(self, model: str, parameters: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
        """Return the parameters that will really be sent."""
        refused = self._refused[model]
        effective: dict[str, JsonValue] = {}
        for wanted, value in parameters.items():
            name = _OTHER_NAME.get(wanted, wanted) if wanted in refused else wanted
            if name not in refused:
                effective[name] = value
        return effective

    def learn(
        self, model: str, status: int, error: ErrorBody, sent: Mapping[str, JsonValue]
    ) -> bool:
        """Learn from an error; True if it names a parameter that was sent and will be left out from
        now on, or says that texts are to be joined, as they will be.

        Every call that returns True makes the next request different, so the loop ends.
        """
        if status not in {400, 422}:
            return False
        if is_about_parts(error) and model not in self._joined:
            self._joined.add(model)
            return True
        name = refused_parameter(error, sent.keys())
        if name is None:
            return False
        self._refused[model].add(name)
        return True


class SendingAdapter(ABC):
    """Sends requests one by one; a parameter that the server refused is not sent again.

    ``required`` are the parameters that the protocol never does without. ``known`` is what is known
    of the model.
    """

    name: str
    endpoint: str
    required: ClassVar[frozenset[str]] = frozenset()
    key_variable: str
    _known: Capability
    _where: str

    @abstractmethod
    def _wanted(self, parameters: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
        """Return the parameters as the protocol names them."""

    @abstractmethod
    def reasoning_fields(self, parameters: Mapping[str, JsonValue], model: str) -> dict[str, Any]:
        """Return the fields for what the parameters say of reasoning: the user's own words, which
        are never left out because a server refuses them. Raises UserError."""

    @abstractmethod
    def _prompt(self, request: Request) -> dict[str, Any]:
        """Return the messages as the body holds them."""

    @abstractmethod
    async def _post(self, body: dict[str, Any]) -> HttpResult:
        """Make one attempt. Raises Unreachable and BadReply."""

    @abstractmethod
    def _read(self, content: dict[str, Any], where: str) -> Reply:
        """Parse the answer in the body of a 200, which ``where`` gave. Raises CallFailed."""

    @cached_property
    def _unsupported(self) -> UnsupportedParameters:
        return UnsupportedParameters()

    def _extra_fields(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Return where the user's own fields of the body go."""
        return fields

    async def send(self, request: Request) -> AdapterResponse:
        """Make one attempt, as ``Adapter`` describes."""
        wanted, fixed, shown_headers = self._translated(request)
        served = request.model.removeprefix(f"{self.name}/")
        started = perf_counter()
        while True:
            prompt = self._prompt(request)
            parameters = merged(self._unsupported.apply(request.model, wanted), fixed)
            seeded = of_sample(parameters, request.sample)
            answered = await self._post({"model": served, **prompt, **seeded})
            if answered.status == 200:
                break
            kept = self.required | fixed.keys()
            optional = {k: v for k, v in parameters.items() if k not in kept}
            if not self._unsupported.learn(
                request.model, answered.status, answered.error, optional
            ):
                error = answered.failure or failure(
                    answered.status,
                    answered.error,
                    answered.headers,
                    where=self._where,
                    key_variable=self.key_variable,
                    model=request.model,
                )
                raise await self._suggesting(error, served)
        reply = self._read(answered.content, self._where)
        seconds = perf_counter() - started
        sent = parameters | shown_headers | self._unsupported.shown(request.model)
        vars(reply).update(seconds=seconds, parameters=sent)  # nobody else holds it yet
        return AdapterResponse(reply, rate_headers(answered.headers))

    def _translated(self, request: Request) -> _Translated:
        """Return the parameters in the protocol's words: made once, as those of a run's requests
        are nearly always the same. Raises UserError."""
        key = request.model, orjson.dumps(request.parameters)
        if self._last is None or self._last[0] != key:
            asked, plain = split(request.parameters)
            wanted = self._wanted(plain)
            fixed = self.reasoning_fields(request.parameters, request.model)
            fixed = merged(fixed, self._extra_fields(asked.body))
            if not self._takes_temperature(request.parameters, fixed):
                wanted.pop("temperature", None)
            self._last = key, _Translated(wanted, fixed, asked.shown_headers)
        return self._last[1]

    _last: tuple[tuple[str, bytes], _Translated] | None = None

    def _takes_temperature(
        self, parameters: Mapping[str, JsonValue], fixed: Mapping[str, Any]
    ) -> bool:
        return self._known.takes_temperature(parameters.get("reasoning_effort"))

    async def _suggesting(self, error: CallFailed, model: str) -> CallFailed:
        """Name the closest model that the server serves, where it does not serve ``model``."""
        if not isinstance(error, UnknownModel):
            return error
        close = did_you_mean(model, await asyncio.to_thread(self._served_models))
        return UnknownModel(f"{error}{close}") if close else error

    def _served_models(self) -> list[str]:
        """Return the names of models that may be asked for."""
        return model_names()


class ProviderAdapter(SendingAdapter):
    """Adapter of a provider with an SDK of its own.

    ``timeout`` in seconds for one attempt. Raises UserError if the key of the provider's own
    service is missing. ``package`` is the SDK's; ``service`` (by default the package) the
    endpoint's name where the provider's own service answers; ``client`` the SDK's class; ``path``
    where requests go below the URL. ``key_variable`` is named where a server refuses the key.
    ``known`` is by default what the table says; ``headers`` go out with every request.
    """

    package: ClassVar[str]
    service: ClassVar[str] = ""
    client: ClassVar[str]
    own_url: ClassVar[str]
    url_variable: ClassVar[str]
    path: ClassVar[str]

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        timeout: float = 300.0,
        max_connections: int = 256,
        dry_run: bool = False,
        known: Capability | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self._known = known or capability(model)
        self._headers = dict(headers or {})
        named = base_url or os.environ.get(self.url_variable)
        self._url = self._root(clean_url(named or self._service_url(model)))
        self._where = sdks.place_of(self._url)
        own = self._own_endpoint()
        self.endpoint = own or self._url
        self._authenticate(model, own_service=own is not None, dry_run=dry_run)
        self._timeout = timeout
        self._max_connections = max_connections

    async def send(self, request: Request) -> AdapterResponse:
        """Make one attempt, as ``Adapter`` describes."""
        for part in (part for message in request.messages for part in message.parts):
            if isinstance(part, Picture) and part not in self._images:
                self._base64(part)
                await asyncio.sleep(0)  # the event loop turns between two pictures
        return await super().send(request)

    @cached_property
    def _images(self) -> ImageBase64Cache:
        return ImageBase64Cache()

    @abstractmethod
    def _base64(self, picture: Picture) -> orjson.Fragment:
        """Return the JSON string that holds the picture in the body."""

    def _service_url(self, model: str) -> str:
        """Return the URL where the provider's own service answers. Raises UserError."""
        return self.own_url

    def _own_endpoint(self) -> str | None:
        """Return the name of the provider's own service, None if another server is asked."""
        return (self.service or self.package) if self._url == self.own_url else None

    def _authenticate(self, model: str, *, own_service: bool, dry_run: bool) -> None:
        """Find out who asks. Raises UserError."""
        self._key = key_from(
            self.key_variable, own_service=own_service and not dry_run, model=model
        )

    def _credentials(self) -> dict[str, Any]:
        """Return the arguments of the SDK's client that say who asks, and where."""
        return {"api_key": self._key, "base_url": self._url}

    def _address(self, body: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """Return the path below the URL that a body goes to, and the body as it goes there."""
        return self.path, body

    @staticmethod
    @abstractmethod
    def _root(url: str) -> str:
        """Return the URL that ``path`` is appended to, however the user wrote it."""

    @property
    def sdk(self) -> ModuleType:
        """The SDK, imported now."""
        return self._sdk

    @property
    def sdk_client(self) -> Any:
        """The SDK's client, for what goes beside single calls: files and batches."""
        return self._client

    @property
    def where(self) -> str:
        """Host and port, for messages."""
        return self._where

    def batch_body(self, request: Request) -> BatchBody:
        """Return what ``send`` would post, for a batch. Raises UserError."""
        wanted, fixed, shown_headers = self._translated(request)
        parameters = merged(self._unsupported.apply(request.model, wanted), fixed)
        served = request.model.removeprefix(f"{self.name}/")
        seeded = of_sample(parameters, request.sample)
        body = {"model": served, **self._prompt(request), **seeded}
        shown = parameters | shown_headers | self._unsupported.shown(request.model)
        return BatchBody(body, shown)

    def batch_reply(
        self, content: dict[str, Any], parameters: Mapping[str, JsonValue], *, where: str = ""
    ) -> Reply:
        """Parse the answer to a line, which ``where`` gave ("": this server), as ``send`` does.
        Raises CallFailed."""
        reply = self._read(content, where or self._where)
        return reply.model_copy(update={"parameters": dict(parameters)})

    def batch_failure(
        self,
        model: str,
        status: int,
        error: ErrorBody,
        parameters: Mapping[str, JsonValue],
        *,
        where: str = "",
        unserved: str = "",
    ) -> CallFailed | None:
        """Make the error of a line, which ``where`` answered ("": this server), with what to do
        where that does not serve the model; None if it named a parameter that is left out from now
        on, so that the line may be sent again."""
        optional = {k: v for k, v in parameters.items() if k not in self.required}
        if self._unsupported.learn(model, status, error, optional):
            return None
        return failure(
            status,
            error,
            {},
            where=where or self._where,
            key_variable=self.key_variable,
            model=model,
            unserved=unserved or CHECK_MODEL,
        )

    async def close(self) -> None:
        client = self.__dict__.pop("_client", None)  # a later call opens another
        if client is not None:
            await client.close()

    async def _post(self, body: dict[str, Any]) -> HttpResult:
        path, body = self._address(body)
        return await sdks.post(self._sdk, self._client, path, body, where=self._where)

    @cached_property
    def _sdk(self) -> ModuleType:
        return import_module(self.package)

    @cached_property
    def _client(self) -> Any:
        http = sdks.http_client(
            self._sdk, timeout=self._timeout, max_connections=self._max_connections
        )
        return getattr(self._sdk, self.client)(
            **self._credentials(),
            max_retries=0,
            timeout=http.timeout,
            http_client=http,
            default_headers=self._headers,
        )
