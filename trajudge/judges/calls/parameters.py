"""The parameters of a model's calls, from the options and the model's own entry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import orjson
from pydantic import JsonValue

from trajudge.judges.adapters.protocols.extras import BODY, HEADERS, without_secrets
from trajudge.judges.calls.settings import CallConfig
from trajudge.judges.models.capabilities import Capability
from trajudge.trajectories.util.errors import UserError
from trajudge.trajectories.util.secrets import remember_headers

# What an adapter makes of the request itself.
_OURS = {"model", "messages", "system", "stream"}


class CallParameters(NamedTuple):
    """``parameters`` go into requests, manifests and cache keys; ``headers`` are those that are
    sent, of which ``parameters`` hold what is no secret."""

    parameters: dict[str, JsonValue]
    headers: dict[str, str]


def read_parameters(
    calls: CallConfig, known: Capability, entry: Mapping[str, JsonValue]
) -> CallParameters:
    """Return the parameters of every call: those of the options, and before them the model's own
    (``entry``). Raises UserError for extras that cannot be added."""
    given: dict[str, JsonValue] = {
        "max_tokens": calls.max_tokens,
        "temperature": calls.temperature,
        "seed": calls.seed,
        "reasoning_effort": calls.reasoning_effort,
        "thinking_budget": calls.thinking_budget,
        BODY: _object("--extra-body", calls.extra_body),
        HEADERS: _object("--extra-headers", calls.extra_headers),
    }
    joined = given | dict(entry)
    parameters: dict[str, JsonValue] = {
        name: value for name, value in joined.items() if value not in (None, {})
    }
    effort, budget = parameters.get("reasoning_effort"), parameters.get("thinking_budget")
    if "max_tokens" not in parameters:
        limit = known.default_max_tokens(
            str(effort) if effort else None, budget if isinstance(budget, int) else None
        )
        parameters["max_tokens"] = limit
    headers = _headers(parameters.pop(HEADERS, {}))
    remember_headers(headers)
    if headers:
        parameters[HEADERS] = without_secrets(headers)
    _check_body(_mapping("--extra-body", parameters.get(BODY, {})))
    return CallParameters(parameters, headers)


def _object(option: str, text: str | None) -> dict[str, JsonValue]:
    """Read the JSON object of an option. Raises UserError."""
    if text is None:
        return {}
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        value = None
    return _mapping(option, value)


def _mapping(option: str, value: JsonValue) -> dict[str, JsonValue]:
    """Check that it is an object. Raises UserError."""
    if not isinstance(value, dict):
        raise UserError(f'{option}: must be a JSON object such as {{"name": "value"}}')
    return value


def _headers(value: JsonValue) -> dict[str, str]:
    """Check names and values of headers; a refused value is not shown, it may be a secret."""
    headers = _mapping("--extra-headers", value)
    for name, text in headers.items():
        if not isinstance(text, str) or not text.isprintable() or not name.isprintable():
            raise UserError(f"--extra-headers: the value of {name!r} must be text on one line")
    return {name: str(text) for name, text in headers.items()}


def _check_body(body: Mapping[str, JsonValue]) -> None:
    if named := _OURS & body.keys():
        raise UserError(f"--extra-body: {min(named)!r} is the judge's own: leave it out")
