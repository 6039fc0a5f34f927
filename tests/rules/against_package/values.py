"""Pairs of values to compare: what specifications and agents write, and slips of it.

The release spells the letters of every script in Latin ones. The release mode knows signs, and the
Latin, Greek and Cyrillic letters; texts in other scripts are therefore not drawn.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numpy.random import Generator

_WRITTEN: dict[str, list[Any]] = json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))
_ANY = _WRITTEN.pop("any")
POOLS = {**_WRITTEN, "integer": _WRITTEN["number"]}
"""Values by kind: as they are written, and as they should not be."""

WHOLE = frozenset({"full_address"})
"""Kinds of which values are compared as they stand: the package reads addresses with a trained
model, and no published task has one."""


def _pick(options: Any, rng: Generator) -> Any:
    return options[int(rng.integers(len(options)))]


def _inserted(text: str, part: str, rng: Generator) -> str:
    at = int(rng.integers(len(text) + 1))
    return text[:at] + part + text[at:]


def _dropped(text: str, rng: Generator) -> str:
    at = int(rng.integers(max(len(text), 1)))
    return text[:at] + text[at + 1 :]


_PARTS = [
    " ",
    "  ",
    ".",
    ",",
    "-",
    "–",
    "'",
    '"',
    "\n",
    "\u00a0",
    "\u200b",
    "0",
    "1",
    "é",
    "k",
    "/",
    "%",
    ":",
    ";",
    "(",
    ")",
]
_SIGNS = [
    *"≈±½🎉→•…—’“”°€£₹₩™≠≤≥★✓ßñŁøΩμİŋ①³№¿«»■●√∞×÷‰",
    *("1\ufe0f\u20e3", "\u200d", "\ufeff", "\u202f", "ﬁ", "Москва", "Αθήνα"),
]
_BEFORE = ["~", "≈", "about ", "= ", "< ", ">= ", "+"]
_BEHIND = [". ", "!", " approx", "//", "?", "%", ". ?"]
_TEXT_SLIPS: list[Callable[[str, Generator], str]] = [
    lambda text, rng: text.upper(),
    lambda text, rng: text.lower(),
    lambda text, rng: text.title(),
    lambda text, rng: f" {text} ",
    lambda text, rng: f"{text}.",
    lambda text, rng: f'"{text}"',
    lambda text, rng: f"({text})",
    lambda text, rng: f"about {text}",
    lambda text, rng: f"-{text}",
    lambda text, rng: f"${text}",
    lambda text, rng: f"^{text}$",
    lambda text, rng: text.replace(" ", "-"),
    lambda text, rng: text.replace("-", "–"),
    lambda text, rng: text.replace(" ", ""),
    lambda text, rng: text.replace(" ", "\u00a0"),
    lambda text, rng: text.replace(",", ""),
    lambda text, rng: text.replace(".", ","),
    lambda text, rng: text.replace("e", "é"),
    lambda text, rng: f"{text} {_pick(['km', 'min', 'USD', 'hours', '%', 'm', 'x'], rng)}",
    lambda text, rng: _inserted(text, _pick(_PARTS, rng), rng),
    _dropped,
    lambda text, rng: _inserted(text, _pick(_SIGNS, rng), rng),
    lambda text, rng: _pick(_BEFORE, rng) + text,
    lambda text, rng: text + _pick(_BEHIND, rng),
    lambda text, rng: text.replace("1", _pick(["１", "①", "1\ufe0f\u20e3", "¹"], rng)),
    lambda text, rng: text.replace(".", _pick([". ", "..", "．"], rng)),
    lambda text, rng: text[::-1],
]  # fmt: skip


def _number_slip(value: float, rng: Generator) -> Any:
    near = [value + 1, value - 0.05, value + 0.1, -value, value * 1.019, value * 1.1, str(value)]
    return _pick([*near, f"{value:,}", bool(value), [value, value + 1], float(value)], rng)


def slip(value: Any, rng: Generator) -> Any:
    """Return a value as somebody else would write it, or nearly."""
    if isinstance(value, str):
        return _pick(_TEXT_SLIPS, rng)(value, rng)
    if isinstance(value, bool) or value is None:
        return _pick([not value, str(value), value], rng)
    if isinstance(value, int | float):
        return _number_slip(value, rng)
    if isinstance(value, list) and value:
        return [slip(part, rng) if rng.random() < 0.5 else part for part in value]
    if isinstance(value, dict):
        return {key: slip(part, rng) if rng.random() < 0.3 else part for key, part in value.items()}
    return value


def _one(kind: str, known: dict[str, list[Any]], rng: Generator) -> Any:
    """Return a value of the kind; sometimes one that a published task expects, or of none."""
    chance = rng.random()
    if chance < 0.06:
        return _pick(_ANY, rng)
    if chance < 0.4 and known.get(kind):
        return _pick(known[kind], rng)
    return _pick(POOLS[kind], rng)


def draw_pair(known: dict[str, list[Any]], rng: Generator) -> dict[str, Any]:
    """Return a kind and two values of it, which are related half of the time."""
    kind = _pick(list(POOLS), rng)
    expected = _one(kind, known, rng)
    actual = expected if rng.random() < 0.5 else _one(kind, known, rng)
    for _ in range(int(rng.integers(3)) if kind not in WHOLE else 0):
        actual = slip(actual, rng)
    if rng.random() < 0.08:
        expected = [expected, _one(kind, known, rng)]
    if rng.random() < 0.05:
        actual = [actual, _one(kind, known, rng)]
    return {"kind": kind, "expected": expected, "actual": actual}
