"""litellm: every provider that it knows, by ``provider/name``. Optional and slow to import."""

from __future__ import annotations

import os
import re
from base64 import b64encode
from functools import cached_property
from importlib.util import find_spec
from time import perf_counter
from types import ModuleType
from typing import Any

from judges.adapters.base import Sent, clean_url
from judges.adapters.capabilities import capability
from judges.adapters.chat import read_chat, turn
from judges.adapters.errors import (
    AuthFailed,
    BadReply,
    CallFailed,
    ContextOverflow,
    Refused,
    Unreachable,
)
from judges.adapters.failures import ErrorBody, failure
from judges.adapters.headers import rate_headers
from judges.adapters.parameters import Learned
from judges.adapters.sdk import host_of, root_cause
from judges.model import Picture, Request
from trajectories.errors import MissingExtra

# In the words of many providers' own code: litellm gives some of them as a 500, not as a 401.
_NO_KEY = re.compile(r"api[_ ]?key|credentials", re.IGNORECASE)
_NO_CONNECTION = re.compile(r"Connection error|Cannot connect to host")


class LiteLLMAdapter:
    """``timeout`` in seconds for one attempt; keys as litellm reads them from the environment.

    Raises MissingExtra if litellm is not installed.
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
    ) -> None:
        if find_spec("litellm") is None:
            raise MissingExtra("litellm", "litellm", f"the model {model!r}")
        self._url = clean_url(base_url) if base_url else None
        self._where = host_of(self._url) if self._url else model.partition("/")[0]
        self.endpoint = self._url or self.name
        self._model, self._provider = model, model.partition("/")[0]
        self._timeout = timeout
        self._learned = Learned()

    @cached_property
    def _sdk(self) -> ModuleType:
        # Otherwise the import fetches a price table from the network.
        os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
        import litellm  # noqa: PLC0415

        litellm.telemetry = False
        litellm.suppress_debug_info = True
        return litellm

    @cached_property
    def _base_error(self) -> type[Exception]:
        """All of litellm's errors are made from those of the openai SDK."""
        import openai  # noqa: PLC0415

        return openai.OpenAIError

    async def send(self, request: Request) -> Sent:
        messages = [turn(message, _data_url) for message in request.messages]
        wanted = dict(request.parameters)
        if not capability(request.model).temperature:
            wanted.pop("temperature", None)
        started = perf_counter()
        while True:
            parameters = self._learned.apply(request.model, wanted)
            try:
                response = await self._sdk.acompletion(
                    model=request.model,
                    messages=messages,
                    timeout=self._timeout,
                    num_retries=0,
                    max_retries=0,
                    **self._server(),
                    **parameters,
                )
                break
            except self._base_error as error:
                said = ErrorBody(str(getattr(error, "message", error)))
                status = getattr(error, "status_code", 0)
                if not self._learned.learn(request.model, status, said, parameters):
                    raise (self._without_key(said) or self._mapped(error, said)) from None
        key_variable = self._key_variable()
        reply = read_chat(response.model_dump(), where=self._where, key_variable=key_variable)
        seconds = perf_counter() - started
        reply = reply.model_copy(update={"seconds": seconds, "parameters": parameters})
        told = getattr(response, "_response_headers", None) or {}
        return Sent(reply, rate_headers(told))

    async def close(self) -> None:
        if "_sdk" in self.__dict__:
            await self._sdk.close_litellm_async_clients()

    def _server(self) -> dict[str, Any]:
        """A server named by the user may go without a key."""
        if self._url is None:
            return {}
        return {"api_base": self._url, "api_key": os.environ.get(self._key_variable()) or "none"}

    def _key_variable(self) -> str:
        return f"{self._provider.upper()}_API_KEY"

    def _without_key(self, said: ErrorBody) -> AuthFailed | None:
        """The error to raise if this one came for want of a key, naming what is not set."""
        if self._url or not _NO_KEY.search(said.message):
            return None
        missing = self._sdk.validate_environment(self._model).get("missing_keys")
        if not missing:
            return None
        return AuthFailed(f"{self._where} needs a key, and nothing is set of {', '.join(missing)}")

    def _mapped(self, error: Exception, said: ErrorBody) -> CallFailed:
        """One of our errors for one of litellm's, the special cases first."""
        kinds = self._sdk.exceptions
        status = int(getattr(error, "status_code", 0) or 0)
        if isinstance(error, kinds.ContextWindowExceededError):
            return ContextOverflow(f"{self._where}: the prompt is longer than the context window")
        if isinstance(error, kinds.ContentPolicyViolationError):
            return Refused(f"{self._where}: the provider's content policy declined the prompt")
        if isinstance(error, kinds.Timeout):
            return Unreachable(f"{self._where} did not answer in time")
        response = getattr(error, "response", None)
        headers = getattr(error, "litellm_response_headers", None)
        headers = headers or getattr(response, "headers", None) or {}
        if isinstance(error, kinds.JSONSchemaValidationError | kinds.APIResponseValidationError):
            return BadReply(f"{self._where} answered without the fields of the protocol")
        if isinstance(error, kinds.APIConnectionError) or _NO_CONNECTION.search(said.message):
            return Unreachable(f"cannot reach {self._where}: {root_cause(error)}")
        return failure(
            status or 500, said, headers, where=self._where, key_variable=self._key_variable()
        )


def _data_url(picture: Picture) -> str:
    return f"data:{picture.media_type};base64,{b64encode(picture.data).decode()}"
