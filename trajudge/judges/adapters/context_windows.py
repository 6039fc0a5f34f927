"""What servers report of models: context windows in tokens, and prices.

Fields read: ``max_model_len`` (vLLM, SGLang), ``loaded_context_length`` (LM Studio),
``context_length`` (OpenRouter, Together, Fireworks), ``context_window`` (Groq),
``max_context_length`` (Mistral, LM Studio), ``max_input_tokens``; llama.cpp's ``/props`` tells
``n_ctx`` and ``total_slots``. What a model was trained with (``n_ctx_train``) is not what its
server holds. Prices are in OpenRouter's ``pricing``.
"""

from __future__ import annotations

from collections.abc import Mapping
from http.client import HTTPException
from typing import Any, NamedTuple
from urllib.error import HTTPError, URLError
from urllib.request import Request, build_opener

import orjson

from trajudge.judges.adapters.errors import Unreachable
from trajudge.judges.adapters.sdk import no_answer, place_of
from trajudge.judges.models import ContextWindow, Price

PATIENCE = 5.0  # seconds for each question
_MOST_BYTES = 32 * 2**20
_LEAST = 64  # tokens: anything below is no window
_FIELDS = (
    *("max_model_len", "loaded_context_length", "context_length", "context_window"),
    *("max_context_length", "max_input_tokens"),
)


_PRICES = {
    "input": "prompt",
    "output": "completion",
    "cache_read": "input_cache_read",
    "cache_write": "input_cache_write",
}


class ServerFacts(NamedTuple):
    """What a server reports of a model, and how many requests it answers at once (``slots``); None
    where it does not."""

    window: ContextWindow | None = None
    price: Price | None = None
    slots: int | None = None


def ask_server(url: str, model: str, key: str) -> ServerFacts:
    """Ask the server whose OpenAI protocol is at ``url`` what it knows of ``model``. Raises
    Unreachable if nobody answers there."""
    entry = _entry(_get(f"{url}/models", key), model)
    tokens, properties = _window_in(entry), None
    if tokens is None:
        properties = _get(f"{url.removesuffix('/v1')}/props", key)
        tokens = _of_properties(properties)
    window = ContextWindow(tokens=tokens, source="server") if tokens else None
    slots = properties.get("total_slots") if isinstance(properties, dict) else None
    slots = slots if isinstance(slots, int) and not isinstance(slots, bool) and slots > 0 else None
    return ServerFacts(window, _price_in(entry.get("pricing")), slots)


def served_models(url: str, key: str) -> list[str]:
    """Return the names of the models that the server at ``url`` lists, none where it does not."""
    try:
        entries = _entries(_get(f"{url}/models", key))
    except Unreachable:
        return []
    names = (entry.get("id") or entry.get("name") for entry in entries)
    return [name for name in names if isinstance(name, str)]


def _get(url: str, key: str) -> Any:
    """Fetch the JSON at ``url``; None for any other answer and for one that does not come in
    time."""
    request = Request(url, headers={"Authorization": f"Bearer {key}"})  # noqa: S310 - http(s) only
    try:
        # Not urlopen, which keeps the proxies that the environment named at its first use.
        with build_opener().open(request, timeout=PATIENCE) as answer:
            return orjson.loads(answer.read(_MOST_BYTES))
    except HTTPError:
        return None
    except URLError as error:
        if isinstance(error.reason, TimeoutError):
            return None
        raise Unreachable(str(no_answer(error, place_of(url)))) from None
    except (OSError, ValueError, HTTPException):
        return None


def _entry(listed: Any, model: str) -> Mapping[str, Any]:
    """Find the model's entry in a server's list."""
    for entry in _entries(listed):
        if model in (entry.get("id"), entry.get("name")):
            return entry
    return {}


def _entries(listed: Any) -> list[Mapping[str, Any]]:
    """Return the entries of a server's list, whichever of the usual shapes that has."""
    entries = listed.get("data") or listed.get("models") if isinstance(listed, dict) else listed
    return [e for e in entries if isinstance(e, dict)] if isinstance(entries, list) else []


def _window_in(entry: Mapping[str, Any]) -> int | None:
    return next((size for name in _FIELDS if (size := _size(entry.get(name)))), None)


def _of_properties(properties: Any) -> int | None:
    """Read llama.cpp's window: of one slot, which is what a request gets."""
    if not isinstance(properties, dict):
        return None
    settings = properties.get("default_generation_settings")
    slot = settings.get("n_ctx") if isinstance(settings, dict) else None
    return _size(slot) or _size(properties.get("n_ctx"))


def _price_in(pricing: object) -> Price | None:
    """Read OpenRouter's prices: texts in dollars per token, negative where they vary. None for a
    model that has no fixed price per token, or one per request."""
    if not isinstance(pricing, dict) or _dollars(pricing.get("request")):
        return None
    prices = {name: _dollars(pricing.get(theirs)) for name, theirs in _PRICES.items()}
    if prices["input"] is None or prices["output"] is None:
        return None
    return Price(**{name: price for name, price in prices.items() if price is not None})


def _dollars(text: object) -> float | None:
    """Convert dollars per token to dollars per million; None for anything else."""
    try:
        price = round(float(text) * 1e6, 9) if isinstance(text, str | float | int) else -1.0
    except ValueError:
        return None
    return price if 0 <= price < float("inf") else None


def _size(value: object) -> int | None:
    is_size = isinstance(value, int) and not isinstance(value, bool) and value >= _LEAST
    return int(str(value)) if is_size else None
