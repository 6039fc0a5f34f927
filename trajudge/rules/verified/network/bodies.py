"""What a form, a JSON document or a multipart message says, by field; and JSONPaths into it."""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import parse_qsl

from trajudge.rules.errors import InvalidValue
from trajudge.rules.har.records import Body
from trajudge.rules.limits import bounded_json
from trajudge.rules.reading import json_or_text, json_value
from trajudge.rules.values import Mode

MAX_FIELDS = 10_000
_BOUNDARY = re.compile(r"boundary=(?:\"([^\"]+)\"|([^;\s]+))", re.IGNORECASE)
_RELEASE_BOUNDARY = re.compile(r"boundary=([^;\s]+)")
_RELEASE_NAME = re.compile(r'name="([^"]+)"')
_DISPOSITION = "content-disposition:"
_NAME = re.compile(r"[;\s]name=\"([^\"]*)\"", re.IGNORECASE)


def document(body: Body | None, mode: Mode = Mode.SOUND) -> Any:
    """Return the body as data: an object of fields for a form, the value of a JSON document; None
    where there is nothing that can be read as data.

    A repeated field of a form has its last value, as servers of the PHP and Rails families read
    it, and a list of all if its name ends in ``[]``; in the release's mode the first of a form and
    the last of a multipart message. Bodies without a type that says so are tried as JSON.
    """
    if body is None:
        return None
    kind = body.mime_type if mode is Mode.RELEASE else body.mime_type.lower()
    if body.text is None and body.params and mode is Mode.SOUND:
        return _fields([(pair.name, pair.value or "") for pair in body.params], mode)
    text = body.text or ""
    if "application/x-www-form-urlencoded" in kind:
        return _form(text, mode)
    if "multipart/form-data" in kind:
        if mode is Mode.RELEASE:
            return _release_multipart(text, kind)
        return _multipart_fields(text, body.mime_type)
    return _json(text, mode) if "application/json" in kind or mode is Mode.SOUND else None


def _json(text: str, mode: Mode) -> Any:
    try:
        value = json_value(text) if mode is Mode.SOUND else json.loads(text)
        bounded_json(value)
    except (ValueError, InvalidValue, RecursionError):
        return None
    return value if isinstance(value, dict) or mode is Mode.SOUND else None


def _form(text: str, mode: Mode) -> dict[str, Any] | None:
    if not text:
        return None
    try:
        pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=MAX_FIELDS)
    except ValueError:
        return None
    return _fields(pairs, mode)


def _fields(pairs: list[tuple[str, str]], mode: Mode) -> dict[str, Any]:
    found: dict[str, list[str]] = {}
    for name, value in pairs:
        found.setdefault(name, []).append(value)
    if mode is Mode.RELEASE:
        return {name: values[0] for name, values in found.items()}
    return {
        name: values if name.endswith("[]") and len(values) > 1 else values[-1]
        for name, values in found.items()
    }


def _multipart_fields(text: str, mime_type: str) -> dict[str, Any] | None:
    boundary = _BOUNDARY.search(mime_type)
    if boundary is None:
        return None
    return _fields(_multipart(text, boundary[1] or boundary[2]), Mode.SOUND)


def _release_multipart(text: str, mime_type: str) -> dict[str, str] | None:
    """Return the last value of each field; a blank value takes its field with it."""
    boundary = _RELEASE_BOUNDARY.search(mime_type)
    if boundary is None or not text:
        return None
    found = {}
    for part in map(str.strip, text.split(f"--{boundary[1]}")[: MAX_FIELDS + 1]):
        blank = "\r\n\r\n" if "\r\n\r\n" in part else "\n\n"
        head, separator, value = part.partition(blank)
        lines = [line for line in head.split("\r\n") if line.lower().startswith(_DISPOSITION)]
        name = _RELEASE_NAME.search(lines[0]) if separator and lines else None
        if name:
            found[name[1]] = value.rstrip("\r\n")
    return found


def _multipart(text: str, boundary: str) -> list[tuple[str, str]]:
    pairs = []
    for part in text.split(f"--{boundary}")[1 : MAX_FIELDS + 1]:
        head, blank, value = part.replace("\r\n", "\n").lstrip("\n").partition("\n\n")
        name = _NAME.search(head)
        if blank and name:
            pairs.append((name[1], value.rstrip("\n")))
    return pairs


def unpacked(value: Any) -> Any:
    """Return the data with every text that is a JSON document in its place read as one."""
    if isinstance(value, dict):
        return {name: _opened(item) for name, item in value.items()}
    if isinstance(value, list):
        return [unpacked(item) for item in value]
    return value


def _opened(value: Any) -> Any:
    if not isinstance(value, str):
        return unpacked(value)
    if not value[:1].strip():
        return value
    return json_or_text(value)
