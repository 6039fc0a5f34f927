"""Mapping from an HTTP status and body to one of our errors, for both protocols and local
servers."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping

from trajudge.judges.adapters.errors import (
    AccountClosed,
    AuthFailed,
    BadRequest,
    Blocked,
    CallFailed,
    ContextOverflow,
    Forbidden,
    NoAccess,
    NoCredit,
    Overloaded,
    RateLimited,
    Refused,
    Retryable,
    ServerFailed,
    UnknownModel,
)
from trajudge.judges.adapters.overflow import with_numbers
from trajudge.judges.adapters.protocols import wordings
from trajudge.judges.adapters.protocols.error_body import ErrorBody
from trajudge.judges.adapters.protocols.headers import rate_headers, retry_after

CHECK_MODEL = "check --model and --base-url"
_SHOWN = 200
_PARAMETER_TEXT = re.compile(
    r"not support|unsupported|deprecated|not permitted|unknown|unrecognized|cannot be used",
    re.IGNORECASE,
)
_SECRET = re.compile(r"\b(sk|pk|key|gsk|xai|hf)[-_][\w*.-]{6,}|Bearer\s+\S+", re.IGNORECASE)


def failure(
    status: int,
    error: ErrorBody,
    headers: Mapping[str, str],
    *,
    where: str,
    key_variable: str,
    model: str = "the model",
    unserved: str = CHECK_MODEL,
) -> CallFailed:
    """Make the error to raise for a status. ``where`` names the server, ``key_variable`` its key;
    ``unserved`` says what to do about a model that it does not serve.

    The provider's words are shown cut and without what looks like a key; of a refused key nothing
    is shown at all.
    """
    kind, words = kind_of(status, error), shown(error.message)
    summary = f"{where} answered {status}: {words}"
    if kind is ContextOverflow:
        return kind(with_numbers(summary, error.message))
    if issubclass(kind, Retryable):
        wait = retry_after(headers)
        if wait is None and kind is RateLimited:
            wait = wordings.stated_wait(error)
        return kind(summary, wait, rate_headers(headers))
    sentences: dict[type[CallFailed], str] = {
        AuthFailed: f"{where} refused the key ({status}): check {key_variable}",
        NoAccess: f"{where} is not reached: the proxy asks for a user and a password (407)",
        AccountClosed: f"{summary}: check the account behind {key_variable}, and where requests "
        "come from",
        NoCredit: f"{where} says that the account has no credit left to ask {model} "
        f"({status}: {words}): add credit",
        UnknownModel: f"{where} does not serve {model} ({status}: {words}): {unserved}",
        Forbidden: f"{summary}: check that the key in {key_variable} may use {model}",
        Blocked: f"{where} answered {status} with a firewall's page ({words}): check that "
        "this network may reach it",
    }
    return kind(sentences.get(kind, summary))


def kind_of(status: int, error: ErrorBody) -> type[CallFailed]:
    """Choose the class of error for a status and its words."""
    for kind, says_so in _RULES:
        if says_so(status, error):
            return kind
    if status == 500:
        return ServerFailed
    return Overloaded if status > 500 or status in {408, 409, 425} else BadRequest


# The first that is true counts.
_RULES: tuple[tuple[type[CallFailed], Callable[[int, ErrorBody], bool]], ...] = (
    (NoCredit, wordings.is_no_credit),
    (BadRequest, wordings.is_too_large_a_minute),
    (RateLimited, lambda status, _: status in {402, 429}),
    (Refused, wordings.is_policy),
    (NoAccess, lambda status, _: status == 407),
    (AccountClosed, wordings.is_closed),
    (AuthFailed, wordings.is_wrong_key),
    (ContextOverflow, wordings.is_overflow),
    (BadRequest, wordings.is_about_images),
    (UnknownModel, wordings.is_unknown_model),
    (Blocked, wordings.is_firewall),
    (Forbidden, lambda status, _: status == 403),
)


def hidden_failure(error: ErrorBody, *, where: str, key_variable: str, model: str) -> CallFailed:
    """Make the error to raise for one that a gateway hid in a 200.

    Its code is the status if it can be one; else its words decide, and without telling words the
    server is taken to be in trouble.
    """
    codes = [word for word in (error.code, *error.kind.split()) if word.isascii()]
    status = next((int(word) for word in codes if re.fullmatch(r"[45]\d\d", word)), 400)
    if kind_of(status, error) is BadRequest and str(status) not in codes:
        status = 502
    return failure(status, error, {}, where=where, key_variable=key_variable, model=model)


def refused_parameter(error: ErrorBody, sent: Collection[str]) -> str | None:
    """Return the one of the parameters ``sent`` that the server says it does not take."""
    if not _PARAMETER_TEXT.search(f"{error.message} {error.code}"):
        return None
    if error.parameter in sent:
        return error.parameter
    named = [name for name in sent if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", error.message)]
    # A server that refuses one name often recommends another: the refused one comes first.
    return min(named, key=error.message.find, default=None)


def shown(message: str) -> str:
    """Return a provider's words on one line, cut, without what looks like a key."""
    line = " ".join(_SECRET.sub("[key]", message).split())
    return line if len(line) <= _SHOWN else line[: _SHOWN - 1] + "…"
