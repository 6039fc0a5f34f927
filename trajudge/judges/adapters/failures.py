"""From an HTTP status and body to one of our errors: error bodies of every shape, the wordings of
providers, and the numbers in messages about prompts that are too long.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Container, Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

import orjson

from trajudge.judges.adapters import errors
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
    RateLimited,
    Retryable,
    UnknownModel,
    rate_headers,
    retry_after,
)
from trajudge.util.masking import masked

_TEXTS = {
    *("message", "msg", "error", "detail", "details", "title", "raw", "error_message"),
    *("error_msg", "status_msg", "reasons"),
}
_CODES = {"code", "type", "status", "status_code", "error_type", "error_code", "reason"}
_INSIDE = {"errors", "metadata", "innererror", "base_resp"}

_MARKUP = re.compile(r"<(script|style)\b.*?</\1\s*>|<[^>]*>", re.IGNORECASE | re.DOTALL)

_PAGE = re.compile(r"\s*<(!doctype|html|head|body)\b", re.IGNORECASE)

_LONGEST = 2000

_DEEPEST = 8


class ErrorBody(NamedTuple):
    """A server's error message; empty strings where it said nothing.

    ``message`` holds all texts of the body, the outermost first (a gateway's own words, then those
    of the provider behind it); ``code`` the first code word, ``kind`` the others. ``is_page``: it
    is HTML, which a proxy or firewall wrote and no model server.
    """

    message: str = ""
    code: str = ""
    kind: str = ""
    parameter: str = ""
    is_page: bool = False


def read_error(body: bytes) -> ErrorBody:
    """Parse the error in a body, its keys masked; its beginning is the message where it has none (a
    page's text without its markup)."""
    text = body.decode("utf-8-sig", "replace")
    content = _json(text)
    if content is None:
        is_page = bool(_PAGE.match(text))
        words = _MARKUP.sub(" ", text).strip() if is_page else text
        return ErrorBody(masked(words)[:_LONGEST], is_page=is_page)
    return error_of(content) or ErrorBody(masked(str(content))[:_LONGEST])


def error_of(content: Any) -> ErrorBody | None:
    """Return the error that decoded JSON holds, None if it holds none.

    Only fields that servers put their own words in are read: what they repeat of the request
    (``input``, ``flagged_input``) is not looked at.
    """
    texts, codes = dict[str, None](), dict[str, None]()
    parameter = _gather(content, texts, codes, 0)
    names = set(content) if isinstance(content, dict) else set()
    if not texts and not ({"error", "base_resp"} & names and codes):
        return None
    code, *others = codes or [""]
    return ErrorBody(masked("; ".join(texts))[:_LONGEST], code, " ".join(others), parameter)


def _gather(content: Any, texts: dict[str, None], codes: dict[str, None], depth: int) -> str:
    """Collect all texts and code words of ``content`` in order; return the parameter that is named,
    or ""."""
    if depth > _DEEPEST:
        return ""
    if isinstance(content, list):
        parameters = [_gather(item, texts, codes, depth + 1) for item in content]
        return next(filter(None, parameters), "")
    if not isinstance(content, dict):
        _add(content, texts)
        return ""
    parameter = content.get("param")
    parameter = parameter if isinstance(parameter, str) else ""
    for name, value in content.items():
        if name in _TEXTS and isinstance(value, str):
            inner = _json(value)
            if isinstance(inner, dict | list):
                parameter = _gather(inner, texts, codes, depth + 1) or parameter
            else:
                _add(value, texts)
        elif name in _TEXTS | _INSIDE and isinstance(value, dict | list):
            parameter = _gather(value, texts, codes, depth + 1) or parameter
        elif name in _CODES and isinstance(value, str | int) and not isinstance(value, bool):
            codes.setdefault(str(value))
    return parameter


def _add(value: object, texts: dict[str, None]) -> None:
    if isinstance(value, str) and value.strip():
        texts.setdefault(value.strip())


def _json(text: str) -> Any:
    """Decode JSON, None if it is none: most texts are not, and are known by their beginning."""
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None


def _any_of(*alternatives: str) -> re.Pattern[str]:
    return re.compile("|".join(alternatives), re.IGNORECASE | re.DOTALL)


class ErrorRule(NamedTuple):
    """An answer of one of ``statuses`` is an error of ``kind``: a rule of ``wordings.toml``, which
    says what its fields mean."""

    kind: type[CallFailed]
    statuses: Container[int] = range(1000)
    words: re.Pattern[str] | None = None
    codes: re.Pattern[str] | None = None
    unless: re.Pattern[str] | None = None
    page: bool | None = None

    def applies(self, status: int, error: ErrorBody, codes: str) -> bool:
        """Return True if the rule is about this answer."""
        if status not in self.statuses or self.page not in (None, error.is_page):
            return False
        if self.unless and self.unless.search(error.message):
            return False
        if self.words is None and self.codes is None:
            return True
        by_code = self.codes is not None and self.codes.search(codes)
        return bool(by_code or (self.words is not None and self.words.search(error.message)))


@cache
def _wordings() -> dict[str, Any]:
    file = resources.files("trajudge.judges.adapters").joinpath("wordings.toml")
    return tomllib.loads(file.read_text(encoding="utf-8"))


@cache
def error_rules() -> tuple[ErrorRule, ...]:
    """Read the rules in their order."""
    return tuple(map(_rule, _wordings()["rule"]))


def _rule(fields: Mapping[str, Any]) -> ErrorRule:
    read: dict[str, Any] = {
        name: _any_of(*map(_whole, fields[name])) for name in _PATTERNS & fields.keys()
    }
    if "statuses" in fields:
        spans = (str(one).partition("-") for one in fields["statuses"])
        read["statuses"] = {
            n for low, _, high in spans for n in range(int(low), int(high or low) + 1)
        }
    return ErrorRule(getattr(errors, fields["kind"]), page=fields.get("page"), **read)


_PATTERNS = {"words", "codes", "unless"}


def _whole(pattern: str) -> str:
    """Put the parts that several patterns share in their places."""
    for name, part in _wordings()["parts"].items():
        pattern = pattern.replace(f"{{{name}}}", part)
    return pattern


def kind_of(status: int, error: ErrorBody) -> type[CallFailed]:
    """Choose the class of error for a status and its words."""
    # ``DataInspectionFailed`` becomes data_inspection_failed.
    split = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", f"{error.code} {error.kind}")
    codes = re.sub(r"[-.]", "_", split).lower()
    return next(
        (rule.kind for rule in error_rules() if rule.applies(status, error, codes)), BadRequest
    )


_TEXTS_ONLY = _any_of(
    r"invalid type: sequence, expected a string",  # DeepSeek: BerriAI/litellm#6642
    r"content'? ?: value must be a string",  # Groq: OpenHands/OpenHands#4643
    r"input should be a valid string",  # SiliconFlow: CherryHQ/cherry-studio#3474
)


def is_about_parts(error: ErrorBody) -> bool:
    """Return True if the server takes a message's texts as one string alone."""
    return bool(_TEXTS_ONLY.search(error.message))


_WAIT = _any_of(
    r"(?:retry|try again) (?:in|after) (?=\d)(?:(\d+)h ?)?(?:(\d+)m ?(?!s))?"
    r"(?:(\d+(?:\.\d+)?) ?(ms|s(?:ec(?:ond)?s?)?\b))?",
)


def stated_wait(error: ErrorBody) -> float | None:
    """Return the seconds after which to ask again, as Gemini, Azure and OpenAI say in words; None
    where nothing is said."""
    stated = _WAIT.search(error.message)
    if stated is None or not any(stated.groups()):
        return None
    hours, minutes, seconds, unit = stated.groups()
    rest = float(seconds or 0) / (1000 if unit and unit.lower() == "ms" else 1)
    return 3600 * int(hours or 0) + 60 * int(minutes or 0) + rest


class OverflowNumbers(NamedTuple):
    """Numbers of a refusal in tokens: the ``window``, the ``prompt`` as the server counted it, and
    what it reserved for the ``reply``; None for what it does not say."""

    window: int | None = None
    prompt: int | None = None
    reply: int | None = None


_NUMBER = r"(\d[\d,]*)"


def overflow_numbers(message: str) -> OverflowNumbers:
    """Parse the numbers in a server's message about a prompt that is too long."""
    numbers = _wordings()["numbers"]
    return OverflowNumbers(**{name: _first(message, numbers[name]) for name in numbers})


def with_numbers(sentence: str, message: str) -> str:
    """Append to ``sentence``, which shows a server's ``message`` cut, the numbers that it lacks."""
    stated = overflow_numbers(message)
    if overflow_numbers(sentence) == stated:
        return sentence
    numbers = (
        ("maximum context length is {} tokens", stated.window),
        ("{} tokens in the prompt", stated.prompt),
        ("{} for the completion", stated.reply),
    )
    shown = ", ".join(words.format(number) for words, number in numbers if number is not None)
    return f"{sentence} ({shown})"


def _first(message: str, patterns: Sequence[str]) -> int | None:
    whole = (pattern.replace("{n}", _NUMBER) for pattern in patterns)
    matches = (re.search(pattern, message, re.IGNORECASE) for pattern in whole)
    return next((int(match[1].replace(",", "")) for match in matches if match), None)


CHECK_MODEL = "check --model and --base-url"

_SHOWN = 200

_PARAMETER_TEXT = re.compile(
    r"not support|unsupported|deprecated|not permitted|unknown|unrecognized|cannot be used",
    re.IGNORECASE,
)


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
            wait = stated_wait(error)
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
    line = " ".join(masked(message).split())
    return line if len(line) <= _SHOWN else line[: _SHOWN - 1] + "…"
