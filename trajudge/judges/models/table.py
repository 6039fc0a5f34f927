"""The table of models: what litellm's states of those that chat, as ``generate`` writes it.

A row holds only what is stated: ``context`` and ``output`` in tokens, flags, and ``price`` and
``batch`` as tiers ``[above, input, output, cache_read, cache_write, reasoning]`` in US dollars per
million tokens, which hold for requests whose prompt has more than ``above`` tokens.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import orjson

from trajudge.judges.models.names import model_name

Row = Mapping[str, Any]

_VERSION = re.compile(r"[-@](\d{4}-\d{2}-\d{2}|\d{8}|latest|default)$")
# How names with these prefixes stand in the table; "": without any.
_SAME_SERVICE = {
    "openai": ("",),
    "anthropic": ("",),
    "bedrock": ("", "bedrock/"),
    "vertex": ("vertex_ai/", ""),
    "vertex_ai": ("vertex_ai/", ""),
}


class TableRow(NamedTuple):
    """A row and the name under which it stands."""

    name: str
    row: Row


@cache
def _table() -> dict[str, Any]:
    content: dict[str, Any] = orjson.loads(
        files("trajudge.judges.models").joinpath("table.json").read_bytes()
    )
    return content


def edition() -> str:
    """Return what the table was made of and when: ``litellm 1.106.2, 2026-11-22``."""
    return f"{_table()['source']}, {_table()['date']}"


def model_names() -> list[str]:
    """Return all names in the table."""
    return list(_table()["models"])


def row_of_service(model: str) -> TableRow | None:
    """Find ``model`` as the service that its name stands for sells it: by the exact name, else
    without the date at its end. Prices and limits of that row hold."""
    return _first(_with_and_without_version(_spellings(model.lower())))


def row_of_model(model: str) -> TableRow | None:
    """Find ``model`` at any service: its own row, else its maker's. What the model is holds there
    (window, images, reasoning), what it costs may not."""
    if found := row_of_service(model):
        return found
    name = model_name(model)
    dated = re.sub(r"-(\d{8})$", r"@\1", name)
    names = (name, f"vertex_ai/{dated}", f"vertex_ai/{name}", f"anthropic.{name}-v1:0")
    return _first(_with_and_without_version(names))


def _spellings(name: str) -> Iterator[str]:
    yield name
    provider, slash, rest = name.partition("/")
    for prefix in _SAME_SERVICE.get(provider, ()) if slash else ():
        yield prefix + rest


def _with_and_without_version(names: Iterator[str] | tuple[str, ...]) -> Iterator[str]:
    exact = tuple(names)
    yield from exact
    for name in exact:
        yield _VERSION.sub("", name)


def _first(names: Iterator[str]) -> TableRow | None:
    models = _table()["models"]
    return next((TableRow(name, models[name]) for name in names if name in models), None)
