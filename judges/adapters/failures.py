"""From an HTTP status and body to one of our errors, for both protocols and local servers."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import orjson

from judges.adapters.errors import (
    AuthFailed,
    BadRequest,
    CallFailed,
    ContextOverflow,
    Final,
    Overloaded,
    RateLimited,
    Refused,
)
from judges.adapters.headers import rate_headers, retry_after

_SHOWN = 200
_OVERFLOW_CODES = {"context_length_exceeded", "exceed_context_size_error", "request_too_large"}
_OVERFLOW_TEXT = re.compile(
    r"maximum context length|(available|model'?s?) context (size|window|length)|"
    r"exceeds? (the )?context|prompt is too long|input is too long|too many input tokens",
    re.IGNORECASE,
)
_POLICY_CODES = {"content_policy_violation", "content_filter", "invalid_prompt"}
_POLICY_TEXT = re.compile(r"safety system|content (management )?policy|usage policy", re.IGNORECASE)
_IMAGE_TEXT = re.compile(
    r"(image|vision|multimodal|mmproj).{0,80}(not support|unsupported|only supported|invalid|"
    r"disabled|too large|could not process|exceed|at most)|"
    r"(not support|unsupported|could not process|invalid).{0,40}(image|vision|multimodal)|"
    r"not a multimodal model",
    re.IGNORECASE | re.DOTALL,
)
_PARAMETER_TEXT = re.compile(
    r"not support|unsupported|deprecated|not permitted|unknown|unrecognized|cannot be used",
    re.IGNORECASE,
)
_SECRET = re.compile(r"\b(sk|pk|key|gsk|xai|hf)[-_][\w*.-]{6,}|Bearer\s+\S+", re.IGNORECASE)


class ErrorBody(NamedTuple):
    """What a server said was wrong; empty strings where it said nothing."""

    message: str = ""
    code: str = ""
    kind: str = ""
    parameter: str = ""


def read_error(body: bytes) -> ErrorBody:
    """The error in a body of either protocol, or its beginning as the message."""
    try:
        content = orjson.loads(body)
    except orjson.JSONDecodeError:
        return ErrorBody(body[:2000].decode("utf-8", "replace"))
    return error_of(content) or ErrorBody(str(content)[:2000])


def error_of(content: Any) -> ErrorBody | None:
    """The error that decoded JSON holds, None if it holds none."""
    if not isinstance(content, dict):
        return None
    error = content.get("error") or (content if content.get("object") == "error" else None)
    error = error or content.get("detail")
    if isinstance(error, str):
        return ErrorBody(error)
    if not isinstance(error, dict):
        return None
    fields = (error.get(name) for name in ("message", "code", "type", "param"))
    return ErrorBody(*("" if field is None else str(field) for field in fields))


def failure(
    status: int, error: ErrorBody, headers: Mapping[str, str], *, where: str, key_variable: str
) -> CallFailed:
    """The error to raise for a status. ``where`` names the server, ``key_variable`` its key.

    The provider's words are shown cut and without what looks like a key; of a refused key
    nothing is shown at all.
    """
    if status in {401, 403}:
        return AuthFailed(f"{where} refused the key ({status}): check {key_variable}")
    if error.code == "insufficient_quota":
        return AuthFailed(f"{where} says that the account has no credit left")
    said = f"{where} answered {status}: {shown(error.message)}"
    if status == 429:
        return RateLimited(said, retry_after(headers), rate_headers(headers))
    if final := _final(status, error):
        return final(said)
    if status >= 500 or status in {408, 409, 425}:
        return Overloaded(said, retry_after(headers), rate_headers(headers))
    return BadRequest(said)


def _final(status: int, error: ErrorBody) -> type[Final] | None:
    """What will fail again, by the server's words. Local servers answer 500 to an image or to a
    prompt that they cannot take, which must not be asked again for ever."""
    if status in {400, 413, 422, 500} and is_overflow(error):
        return ContextOverflow
    if status < 500 and is_policy(error):
        return Refused
    if status in {400, 415, 422, 500, 501} and _IMAGE_TEXT.search(error.message):
        return BadRequest
    return None


def is_overflow(error: ErrorBody) -> bool:
    """Whether the server says that the prompt is longer than the window."""
    named = {error.code, error.kind} & _OVERFLOW_CODES
    return bool(named or _OVERFLOW_TEXT.search(error.message))


def is_policy(error: ErrorBody) -> bool:
    """Whether a filter of the provider declined the prompt."""
    return bool({error.code, error.kind} & _POLICY_CODES or _POLICY_TEXT.search(error.message))


def refused_parameter(error: ErrorBody, sent: Collection[str]) -> str | None:
    """The one of the parameters ``sent`` that the server says it does not take."""
    if not _PARAMETER_TEXT.search(f"{error.message} {error.code}"):
        return None
    if error.parameter in sent:
        return error.parameter
    named = [name for name in sent if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", error.message)]
    # A server that refuses one name often recommends another: the refused one comes first.
    return min(named, key=error.message.find, default=None)


def shown(message: str) -> str:
    """A provider's words on one line, cut, without what looks like a key."""
    line = " ".join(_SECRET.sub("[key]", message).split())
    return line if len(line) <= _SHOWN else line[: _SHOWN - 1] + "…"
