"""base64: text in base64.

Normal form: the standard alphabet with padding, of the decoded text with ``\\n`` as line break and
without white space at its ends. Read are the standard and the URL alphabet, with or without padding
and line breaks; the bytes must be UTF-8. A specification's pattern is matched against the decoded
text.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import TYPE_CHECKING

from trajudge.rules.errors import InvalidValue
from trajudge.rules.limits import TEXT_CHARS, bounded
from trajudge.rules.values.model import Kind

if TYPE_CHECKING:
    from pydantic import JsonValue

_SPACE = re.compile(r"\s+")
_ALPHABET = re.compile(r"[A-Za-z0-9+/]*={0,2}")


def parse(raw: JsonValue) -> str:
    """Return the decoded text."""
    if not isinstance(raw, str):
        raise InvalidValue("not base64")
    text = _SPACE.sub("", bounded(raw, TEXT_CHARS)).replace("-", "+").replace("_", "/")
    if not _ALPHABET.fullmatch(text):
        raise InvalidValue("not base64")
    text = text.rstrip("=")
    try:
        data = base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
        content = data.decode("utf-8")
    except (binascii.Error, UnicodeDecodeError) as error:
        raise InvalidValue("not base64 of UTF-8 text") from error
    return content.replace("\r\n", "\n").replace("\r", "\n").strip()


def show(text: str) -> str:
    """Write standard base64 with padding."""
    return base64.b64encode(text.encode()).decode()


def texts(raw: JsonValue) -> tuple[str]:
    """Return the decoded text."""
    return (parse(raw),)


KIND = Kind(parse=parse, show=show, texts=texts, case_matters=True)
