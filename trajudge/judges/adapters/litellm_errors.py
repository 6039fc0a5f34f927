"""Server's own answer behind an error of litellm, which litellm rewords."""

from __future__ import annotations

import re
from collections.abc import Mapping
from json import JSONDecodeError
from typing import Any, NamedTuple

from trajudge.judges.adapters.errors import (
    BadReply,
    BadRequest,
    CallFailed,
    ContextOverflow,
    Refused,
    UnknownModel,
    Unreachable,
    causes,
)
from trajudge.judges.adapters.protocols.error_body import ErrorBody, read_error
from trajudge.judges.adapters.protocols.failures import kind_of
from trajudge.judges.adapters.protocols.json_body import json_object

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
    status = int(getattr(error, "status_code", 0) or 500)
    return ServerAnswer(
        status, ErrorBody(str(getattr(error, "message", error))), reported_headers, is_whole=False
    )


def own_kind(error: Exception, answer: ServerAnswer, kinds: Any) -> type[CallFailed] | None:
    """Return our error for litellm's class, where the server's own words tell none.

    ``kinds`` is litellm's module of exceptions.
    """
    if answer.is_whole and not issubclass(kind_of(answer.status, answer.error), BadRequest):
        return None
    classes: tuple[tuple[type[CallFailed], tuple[type[Exception], ...]], ...] = (
        (ContextOverflow, (kinds.ContextWindowExceededError,)),
        (Refused, (kinds.ContentPolicyViolationError,)),
        (Unreachable, (kinds.Timeout,)),
        (BadReply, (kinds.JSONSchemaValidationError, kinds.APIResponseValidationError)),
    )
    return next((ours for ours, theirs in classes if isinstance(error, theirs)), None)


def is_unreached(error: Exception, answer: ServerAnswer, kinds: Any) -> bool:
    """Tell whether no server answered."""
    if answer.is_whole:
        return False
    words = answer.error.message
    return isinstance(error, kinds.APIConnectionError) or bool(_NO_CONNECTION.search(words))


def without_provider(answer: ServerAnswer, model: str) -> UnknownModel | None:
    """Return the error for a model of which litellm does not know whom to ask, so that it asks
    nobody; None for another error."""
    if answer.is_whole or _NO_PROVIDER not in answer.error.message:
        return None
    return UnknownModel(
        f"litellm knows no provider of {model}: name it before the model, as --model "
        f"openai/{model} where the server speaks OpenAI's protocol"
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
