"""Error bodies of servers, whatever shape the provider gives them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import orjson

from trajudge.trajectories.util.secrets import masked

_TEXTS = {"message", "msg", "error", "detail", "details", "title", "raw", "error_message"}
_TEXTS |= {"error_msg", "status_msg", "reasons"}
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
    if not texts and not ({"error", "base_resp"} & _keys(content) and codes):
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


def _keys(content: Any) -> set[str]:
    return set(content) if isinstance(content, Mapping) else set()


def _json(text: str) -> Any:
    """Decode JSON, None if it is none: most texts are not, and are known by their beginning."""
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
