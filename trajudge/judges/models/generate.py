"""Generate ``table.json`` from the model table of the installed litellm package (MIT):
``python -m trajudge.judges.models.generate``, which needs the extra ``litellm``.

Only what litellm states is written: a price or limit that is missing there is missing here.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import orjson

from trajudge.util.errors import MissingExtra
from trajudge.util.files import read_regular, write_bytes

TABLE = Path(__file__).with_name("table.json")
_SOURCE = "model_prices_and_context_window_backup.json"
_MODES = {"chat", "responses", "completion"}
_PRICES = (
    *("input_cost_per_token", "output_cost_per_token", "cache_read_input_token_cost"),
    *("cache_creation_input_token_cost", "output_cost_per_reasoning_token"),
)
_ABOVE = re.compile(rf"({'|'.join(_PRICES)})_above_(\d+)(k?)_tokens(_batches)?$")
_FLAGS = {
    "images": "supports_vision",
    "reasoning": "supports_reasoning",
    "structured_output": "supports_response_schema",
    "temperature": "supports_sampling_params",
    "adaptive_thinking": "supports_adaptive_thinking",
    "effort": "supports_output_config",
    "budget_thinking": "supports_legacy_thinking",
    "always_thinks": "thinking_always_on",
}
# Providers whose dearer tier begins with the threshold itself, not above it.
_INCLUSIVE = {"xai"}

Row = dict[str, Any]


def source_table() -> dict[str, Row]:
    """Read litellm's table as its package ships it. Raises MissingExtra without the package."""
    package = find_spec("litellm")
    if package is None or not package.submodule_search_locations:
        raise MissingExtra("litellm", "litellm", "the table of models")
    path = Path(package.submodule_search_locations[0]) / _SOURCE
    table: dict[str, Row] = orjson.loads(read_regular(path))
    return table


def rows(source: Mapping[str, Row]) -> dict[str, Row]:
    """Select the models that chat, each as a row of ours; none of which nothing is known."""
    chats = {name: entry for name, entry in source.items() if entry.get("mode") in _MODES}
    made = {name.lower(): row_of(entry) for name, entry in sorted(chats.items())}
    return {name: row for name, row in made.items() if "context" in row or "price" in row}


def row_of(entry: Row) -> Row:
    """Translate one entry: tokens, flags where stated, prices in dollars per million tokens."""
    row: Row = {
        "context": _tokens(entry.get("max_input_tokens")),
        "output": _tokens(entry.get("max_output_tokens")),
        "cache_minimum": _tokens(entry.get("prompt_cache_min_tokens")),
        **{name: entry.get(stated) for name, stated in _FLAGS.items()},
        "default_effort": entry.get("default_reasoning_effort"),
        "price": list(_tiers(entry, batch=False)) or None,
        "batch": list(_tiers(entry, batch=True)) or None,
    }
    return {name: value for name, value in row.items() if value is not None}


def _tokens(value: object) -> int | None:
    return int(value) if isinstance(value, int | float) and value > 0 else None


def _tiers(entry: Row, *, batch: bool) -> Iterator[list[float | None]]:
    """Yield ``[above, input, output, cache_read, cache_write, reasoning]`` by rising prompt
    length; a tier holds for a whole request. Nothing where input or output has no price."""
    if (tiers := entry.get("tiered_pricing")) and not batch:
        for tier in tiers:
            prices = [_dollars(tier.get(name)) for name in _PRICES]
            yield [int(tier["range"][0]), *_trimmed(prices)]
        return
    suffix = "_batches" if batch else ""
    prices = [_dollars(entry.get(name + suffix)) for name in _PRICES]
    if None in prices[:2]:
        return
    yield [0, *_trimmed(prices)]
    for threshold, keys in sorted(_thresholds(entry, suffix).items()):
        prices = [
            price if name not in keys else _dollars(entry[keys[name]])
            for name, price in zip(_PRICES, prices, strict=True)
        ]
        above = threshold - (entry.get("litellm_provider") in _INCLUSIVE)
        yield [above, *_trimmed(prices)]


def _thresholds(entry: Row, suffix: str) -> dict[int, dict[str, str]]:
    """Return the keys of the prices above each threshold, by threshold and price."""
    found: dict[int, dict[str, str]] = {}
    for key, value in entry.items():
        match = _ABOVE.match(key)
        if match and value is not None and (match[4] or "") == suffix:
            tokens = int(match[2]) * (1000 if match[3] else 1)
            found.setdefault(tokens, {})[match[1]] = key
    return found


def _dollars(value: object) -> float | None:
    """Convert dollars per token to dollars per million."""
    return None if value is None else round(float(str(value)) * 1e6, 9)


def _trimmed(prices: list[float | None]) -> list[float | None]:
    kept = list(prices)
    while kept and kept[-1] is None:
        kept.pop()
    return kept


def content() -> dict[str, Any]:
    """Make the whole table: what it was made of, when, and a row per model."""
    return {
        "source": f"litellm {version('litellm')}",
        "date": datetime.now(UTC).date().isoformat(),
        "models": rows(source_table()),
    }


def write(table: Mapping[str, Any], path: Path = TABLE) -> None:
    """Write one line per model, so that a change of one is a change of one line."""
    head = {name: value for name, value in table.items() if name != "models"}
    lines = [orjson.dumps({name: row})[1:-1].decode() for name, row in table["models"].items()]
    opened = orjson.dumps(head)[:-1].decode()
    write_bytes(path, (opened + ',"models":{\n' + ",\n".join(lines) + "\n}}\n").encode())


def main() -> None:
    """Write the table beside this module."""
    table = content()
    write(table)
    sys.stdout.write(f"{TABLE}: {len(table['models'])} models of {table['source']}\n")


if __name__ == "__main__":
    main()
