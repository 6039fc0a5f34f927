"""What the user adds to every request: fields of the body and headers, secrets kept apart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from pydantic import JsonValue

from trajudge.judges.adapters.protocols.reasoning import NAMES
from trajudge.trajectories.util.secrets import is_secret_header

BODY, HEADERS = "extra_body", "extra_headers"
HIDDEN = "(secret)"


class Extras(NamedTuple):
    """``body`` fields, and the headers as they may be shown."""

    body: dict[str, Any]
    shown_headers: dict[str, JsonValue]


def split(parameters: Mapping[str, JsonValue]) -> tuple[Extras, dict[str, JsonValue]]:
    """Return the extras among a request's parameters, and the parameters that need no
    translation."""
    body = parameters.get(BODY)
    shown = {HEADERS: parameters[HEADERS]} if HEADERS in parameters else {}
    plain = {k: v for k, v in parameters.items() if k not in (BODY, HEADERS, *NAMES)}
    return Extras(dict(body) if isinstance(body, dict) else {}, shown), plain


def merged(parameters: Mapping[str, Any], told: Mapping[str, Any]) -> dict[str, Any]:
    """Join both; where each has an object under one name, the objects are joined."""
    joined = dict(parameters)
    for name, value in told.items():
        own = joined.get(name)
        if isinstance(own, dict) and isinstance(value, dict):
            joined[name] = {**own, **value}
        else:
            joined[name] = value
    return joined


def without_secrets(headers: Mapping[str, str]) -> dict[str, JsonValue]:
    """Return the headers as journals, manifests and cache keys hold them."""
    return {
        name: HIDDEN if is_secret_header(name, value) else value
        for name, value in sorted(headers.items())
    }
