"""litellm: every provider that it knows, by ``provider/name``. Optional and slow to import."""

from __future__ import annotations

import logging
import os
import re
from base64 import b64encode
from collections.abc import Mapping
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from json import JSONDecodeError
from typing import Any, NamedTuple

from pydantic import JsonValue

from trajudge.judges.adapters.base import clean_url
from trajudge.judges.adapters.context_windows import ServerFacts, ask_server
from trajudge.judges.adapters.errors import (
    AuthFailed,
    BadReply,
    BadRequest,
    CallFailed,
    ContextOverflow,
    Refused,
    UnknownModel,
    Unreachable,
    causes,
)
from trajudge.judges.adapters.failures import ErrorBody, failure, kind_of, read_error, with_numbers
from trajudge.judges.adapters.provider import SendingAdapter
from trajudge.judges.adapters.sdk import HttpResult, no_answer, place_of
from trajudge.judges.adapters.wire import (
    NAMES,
    json_object,
    read_chat,
    storable,
    turn,
)
from trajudge.judges.model import Picture, Reply, Request
from trajudge.judges.models import Capability, ContextWindow, Price, capability, is_known
from trajudge.util.errors import MissingExtra

_NO_PROVIDER = "LLM Provider NOT provided"

_NO_CONNECTION = re.compile(r"Connection error|Cannot connect to host")


class ServerAnswer(NamedTuple):
    """Status, error and headers of an answer; ``is_whole``: its body itself, not litellm's words
    for it."""

    status: int
    error: ErrorBody
    headers: Mapping[str, str]
    is_whole: bool


def server_answer(error: Exception) -> ServerAnswer:
    """Find the server's own answer if it is anywhere behind litellm's error."""
    for cause in causes(error):
        response: Any = getattr(cause, "response", None)
        body, status = getattr(response, "content", b""), getattr(response, "status_code", 0)
        if isinstance(body, bytes) and body and status >= 400:
            headers = {name.lower(): value for name, value in response.headers.items()}
            return ServerAnswer(status, read_error(body), headers, is_whole=True)
    reported_headers: Any = getattr(error, "litellm_response_headers", None)
    reported_headers = (
        reported_headers or getattr(getattr(error, "response", None), "headers", None) or {}
    )
    code = str(getattr(error, "status_code", None) or "")  # a word of a gateway's, in a 200
    status = int(code) if re.fullmatch(r"[45]\d\d", code) else 500
    return ServerAnswer(
        status, ErrorBody(str(getattr(error, "message", error))), reported_headers, is_whole=False
    )


def unread_completion(error: Exception, where: str) -> dict[str, Any] | None:
    """Return the completion that litellm could not decode: Python keeps the body in the error."""
    for cause in causes(error):
        if isinstance(cause, UnicodeDecodeError | JSONDecodeError):
            body = cause.doc if isinstance(cause, JSONDecodeError) else cause.object
            content = _completion(body, where)
            return content if content and "choices" in content else None
    return None


def own_completion(original: object) -> dict[str, Any] | None:
    """Return the completion as the server sent it, None if that does not speak OpenAI's
    protocol."""
    content = _completion(original, "") if isinstance(original, str) else None
    choices = content.get("choices") if content else None
    first = choices[0] if isinstance(choices, list) and choices else None
    return content if isinstance(first, dict) else None


def _completion(body: str | bytes, where: str) -> dict[str, Any] | None:
    raw = body.encode("utf-8", "replace") if isinstance(body, str) else body
    try:
        return json_object(raw, where)
    except BadReply:
        return None


OPENROUTER = "https://openrouter.ai/api/v1"

# In the words of many providers' own code: litellm gives some of them as a 500, not as a 401.
_NO_KEY = re.compile(r"api[_ ]?key|credentials", re.IGNORECASE)

# litellm's classes that tell what the server's own words do not.
_KINDS: tuple[tuple[type[CallFailed], tuple[str, ...], str], ...] = (
    (
        ContextOverflow,
        ("ContextWindowExceededError",),
        "says that the prompt is longer than the context window",
    ),
    (Refused, ("ContentPolicyViolationError",), "declined the prompt by its content policy"),
    (Unreachable, ("Timeout",), "did not answer in time"),
    (
        BadReply,
        ("JSONSchemaValidationError", "APIResponseValidationError"),
        "answered without the fields of the protocol",
    ),
)


class LiteLLMAdapter(SendingAdapter):
    """Adapter of litellm.

    ``timeout`` in seconds for one attempt; keys as litellm reads them from the environment. Raises
    MissingExtra if litellm is not installed.
    """

    name = "litellm"

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
        if find_spec("litellm") is None:
            raise MissingExtra("litellm", "litellm", f"the model {model!r}")
        self._url = clean_url(base_url) if base_url else None
        self._model, self._provider = model, model.partition("/")[0]
        self._where = place_of(self._url) if self._url else self._provider
        self.endpoint = self._url or self.name
        self.key_variable = f"{self._provider.upper()}_API_KEY"
        self._known = known or capability(model)
        self._headers = dict(headers or {})
        self._timeout = timeout

    @cached_property
    def _sdk(self) -> Any:
        # Otherwise the import fetches a price table from the network.
        os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
        litellm: Any = import_module("litellm")  # no "import": mypy would read all of it
        litellm.telemetry = False
        litellm.suppress_debug_info = True
        # It warns of every finish reason that it takes for "stop"; here such an answer is none.
        logging.getLogger("LiteLLM").setLevel(logging.ERROR)
        return litellm

    @cached_property
    def _base_error(self) -> type[Exception]:
        """Base class of litellm's errors: they are made from those of the openai SDK."""
        import openai  # noqa: PLC0415

        return openai.OpenAIError

    def context_window(self, model: str) -> ContextWindow | None:
        """Return the window: of the server that the user named or of OpenRouter, else of litellm's
        own table, where ours has none."""
        if self._listing is not None:
            return self._facts(model).window
        if is_known(model):
            return None
        entry = self._sdk.model_cost.get(model) or {}
        tokens = entry.get("max_input_tokens") or entry.get("max_tokens")
        return ContextWindow(tokens=tokens, source="litellm") if isinstance(tokens, int) else None

    def reported_price(self, model: str) -> Price | None:
        """Return the price that the server lists, of one that the user named or of OpenRouter."""
        return self._facts(model).price if self._listing else None

    @property
    def _listing(self) -> str | None:
        """Return the URL of a list of models that may tell windows and prices."""
        if self._url is None and self._provider == "openrouter":
            return clean_url(os.environ.get("OPENROUTER_API_BASE") or OPENROUTER)
        return self._url

    def _facts(self, model: str) -> ServerFacts:
        """Ask the server once. Raises Unreachable."""
        if model not in self._asked:
            key = os.environ.get(self.key_variable) or "none"
            name = model.partition("/")[2] or model
            self._asked[model] = ask_server(str(self._listing), name, key)
        return self._asked[model]

    @cached_property
    def _asked(self) -> dict[str, ServerFacts]:
        return {}

    def _wanted(self, parameters: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
        return dict(parameters)

    def _extra_fields(self, fields: dict[str, Any]) -> dict[str, Any]:
        return {"extra_body": fields} if fields else {}

    def _prompt(self, request: Request) -> dict[str, Any]:
        joins = self._unsupported.joins_texts(request.model)
        return {"messages": [turn(message, _data_url, joins=joins) for message in request.messages]}

    async def _post(self, body: dict[str, Any]) -> HttpResult:
        try:
            content, headers = await self._complete(body)
        except self._base_error as error:
            if unread := unread_completion(error, self._where):
                return HttpResult(200, unread, ErrorBody(), {})
            answer = server_answer(error)
            failed = self._without_key(answer.error) or self._mapped(error, answer)
            return HttpResult(answer.status, {}, answer.error, answer.headers, failed)
        return HttpResult(200, content, ErrorBody(), headers)

    def reasoning_fields(self, parameters: Mapping[str, JsonValue], model: str) -> dict[str, Any]:
        """Return what is told of reasoning in litellm's words, which it translates for each
        provider."""
        effort, budget = (parameters.get(name) for name in NAMES)
        thinking = {"thinking": {"type": "enabled", "budget_tokens": budget}} if budget else {}
        return {"reasoning_effort": effort, **thinking} if effort else thinking

    async def _complete(self, body: dict[str, Any]) -> tuple[dict[str, Any], Mapping[str, str]]:
        """Make one attempt; return the completion as litellm gives it, and the headers."""
        heard: list[object] = []

        def listen(details: Mapping[str, Any]) -> None:
            if details.get("log_event_type") == "post_api_call":
                heard.append(details.get("original_response"))

        try:
            response = await self._sdk.acompletion(
                timeout=self._timeout,
                num_retries=0,
                max_retries=0,
                logger_fn=listen,
                **self._server(),
                **({"extra_headers": self._headers} if self._headers else {}),
                **body,
            )
        except self._base_error:
            if heard and (own := own_completion(heard[-1])):
                return own, {}  # an answer that litellm cannot read is paid all the same
            raise
        content = storable(response.model_dump())
        if heard and (own := own_completion(heard[-1])):
            content["usage"] = own.get("usage")  # litellm puts zeros for none, and reads strings
            if own["choices"][0].get("finish_reason") is None:
                content["choices"][0]["finish_reason"] = None  # litellm says "stop"
        return content, getattr(response, "_response_headers", None) or {}

    def _read(self, content: dict[str, Any], where: str) -> Reply:
        return read_chat(content, where=where, key_variable=self.key_variable)

    def _served_models(self) -> list[str]:
        """Return none: litellm's names are not the server's."""
        return []

    async def close(self) -> None:
        if "_sdk" in self.__dict__:
            await self._sdk.close_litellm_async_clients()
            # It would hand the closed ones out again to whoever asks at the same address.
            self._sdk.in_memory_llm_clients_cache.flush_cache()

    def _server(self) -> dict[str, Any]:
        """Return the arguments of a server named by the user, which may go without a key."""
        if self._url is None:
            return {}
        return {"api_base": self._url, "api_key": os.environ.get(self.key_variable) or "none"}

    def _without_key(self, error: ErrorBody) -> AuthFailed | None:
        """Return the error for a missing key, naming what is not set; None if the key is not the
        reason."""
        if self._url or not _NO_KEY.search(error.message):
            return None
        missing = self._sdk.validate_environment(self._model).get("missing_keys")
        if not missing:
            return None
        return AuthFailed(f"{self._where} needs a key, and nothing is set of {', '.join(missing)}")

    def _mapped(self, error: Exception, answer: ServerAnswer) -> CallFailed:
        """Map one of litellm's errors to one of ours."""
        words, kinds = answer.error.message, self._sdk.exceptions
        if not answer.is_whole and _NO_PROVIDER in words:
            return UnknownModel(
                f"litellm knows no provider of {self._model}: name it before the model, as --model "
                f"openai/{self._model} where the server speaks OpenAI's protocol"
            )
        if not answer.is_whole or issubclass(kind_of(answer.status, answer.error), BadRequest):
            for kind, names, sentence in _KINDS:
                if isinstance(error, tuple(getattr(kinds, name) for name in names)):
                    message = words if kind is ContextOverflow else ""
                    return kind(with_numbers(f"{self._where} {sentence}", message))
        is_connection = isinstance(error, kinds.APIConnectionError) or _NO_CONNECTION.search(words)
        if is_connection and not answer.is_whole:
            return no_answer(error, self._where)
        return failure(
            answer.status,
            answer.error,
            answer.headers,
            where=self._where,
            key_variable=self.key_variable,
            model=self._model,
        )


def _data_url(picture: Picture) -> str:
    return f"data:{picture.media_type};base64,{b64encode(picture.data).decode()}"
