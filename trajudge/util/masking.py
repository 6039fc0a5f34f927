"""Mask keys in text: values known to this process, and texts that look like a key.

Providers, gateways and proxies repeat the key of a request in their errors. ``masked`` is for texts
of other programs; ``without_known`` is for our own, in which only known values are replaced.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from urllib.parse import quote, unquote, urlsplit

MASK = "[key]"

_SHORTEST = 8  # characters: shorter values stand in ordinary text

_VARIABLE = re.compile(
    r"(KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL|AUTHORIZATION)S?(_ID|_FILE)?$"
    r"|(KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL)S?_",
    re.IGNORECASE,
)

_HEADER = re.compile(r"auth|key|token|secret|cookie|credential|password|signature", re.IGNORECASE)

_PATTERNS = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        # schemes of the header Authorization; credentials in URLs
        (r"(?i)\b(Bearer|Basic)\s+[^\s\"',;]{6,}", MASK),
        (r"(\w://)[^\s/@\"'<>]+@", rf"\1{MASK}@"),
        (r"(?i)([?&](?:[\w-]*key|[\w-]*token|sig|signature)=)[^&\s\"']+", rf"\1{MASK}"),
        # OpenAI, Anthropic, Stripe's form, Groq, xAI, Perplexity, Replicate, NVIDIA
        (r"(?i)\b(sk|pk|gsk|xai|pplx|nvapi)[-_][\w*.-]{6,}", MASK),
        (r"\b(r8_|fw_|hf_|glpat-|gh[opsu]_|github_pat_)[A-Za-z0-9*_]{16,}", MASK),
        (r"\b(?:key|hf)[-_](?=[\w*.-]*[\d*])[\w*.-]{6,}", MASK),
        (r"\bAIza[\w*-]{20,}", MASK),  # Google
        (r"\bya29\.[\w-]{10,}", MASK),
        (r"\b(?:AKIA|ASIA)[A-Z0-9]{12,}", MASK),  # AWS
        (r"\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*", MASK),  # a JSON web token
        # Azure and many gateways: hexadecimal digits that are said to be a key
        (r"(?i)(\bkeys?\b(?:\W{1,3}\w{1,12}){0,4}\W{1,3})[0-9a-f]{32,64}\b", rf"\1{MASK}"),
    )
)

_remembered: set[str] = set()


def remember(*values: str) -> None:
    """Mask these values in later calls."""
    _remembered.update(value for value in values if len(value) >= _SHORTEST)


def remember_url(url: str) -> None:
    """Mask the user, the password and the query values of a URL in later calls."""
    parts = urlsplit(url)
    user, _, password = parts.netloc.rpartition("@")[0].partition(":")
    fields = (field.partition("=")[2] for field in parts.query.split("&"))
    for value in (user, password, *fields):
        remember(value, unquote(value))


def remember_headers(headers: Mapping[str, str]) -> None:
    """Mask the values of secret headers in later calls."""
    for name, value in headers.items():
        if is_secret_header(name, value):
            remember(value, value.rpartition(" ")[2])


def is_secret_header(name: str, value: str) -> bool:
    """Return True if a header's name or value indicates a secret."""
    return bool(_HEADER.search(name)) or _without_patterns(value) != value


def masked(text: str) -> str:
    """Replace known values and all texts that look like a key."""
    return _without_patterns(without_known(text))


def without_known(text: str) -> str:
    """Replace the values known to this process: those remembered, and those of environment
    variables with key, token, secret or password in their names."""
    for value in sorted(_known(), key=len, reverse=True):
        if value in text:
            text = text.replace(value, MASK)
    return text


def _known() -> set[str]:
    values = _remembered | set(_of_environment())
    return values | {quote(value, safe="") for value in values}


def _of_environment() -> Iterator[str]:
    for name, text in os.environ.items():
        value = text.strip()
        if len(value) < _SHORTEST or value.isdecimal() or not _VARIABLE.search(name):
            continue
        if not os.path.exists(value):  # noqa: PTH110 - a file that holds a key is no key
            yield value


def _without_patterns(text: str) -> str:
    for pattern, replacement in _PATTERNS:
        text = pattern.sub(replacement, text)
    return text
