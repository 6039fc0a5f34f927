"""Changes to a correct answer: near misses that must fail, and equivalent ones that must pass.

An answer is text, or a JSON value; of a response object only its data, status and type are
changed. Each mutator changes one thing, at every place where it can.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from trajudge.rules.audit.agents import TASK_TYPES
from trajudge.rules.audit.mutation import MutationCase, Mutator, Variant
from trajudge.rules.verified.response import STATUSES

_NUMBER = re.compile(r"(?<![\w.])\d[\d,]{0,30}(?:\.\d{1,30})?")
_OPPOSITES = {"yes": "no", "no": "yes", "true": "false", "false": "true"}
_UNITS = {
    "km": "mi",
    "mi": "km",
    "m": "km",
    "min": "h",
    "minutes": "hours",
    "minute": "hour",
    "hours": "minutes",
    "hour": "minute",
    "h": "min",
    "seconds": "minutes",
    "days": "weeks",
    "kg": "g",
    "usd": "eur",
    "am": "pm",
    "pm": "am",
}
_CURRENCIES = {"$": "€", "€": "$", "£": "$"}
_WORDS = "|".join(sorted(_UNITS, key=len, reverse=True))
_UNIT = re.compile(rf"(?<![^\W\d_])(?:{_WORDS})\b|[$€£]", re.IGNORECASE)
# A sign before these digits makes another quantity; in "Gate 1" or a date it makes no sense.
_QUANTITY = re.compile(r"[^\w]*\d[\d,]{0,30}(?:\.\d{1,30})?(?![\d.,]*[-/:]\s*\d)(?![\d.])")
_LARGEST = 10**100
_DATA = "retrieved_data"
FOREIGN = "zzz-not-in-any-answer"


def _leaves(value: Any, change: Callable[[Any], Iterator[Any]]) -> Iterator[Any]:
    """Yield the value with one leaf changed, for every leaf and every change to it."""
    if isinstance(value, dict):
        for key, inner in value.items():
            for changed in _leaves(inner, change):
                yield {**value, key: changed}
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            for changed in _leaves(inner, change):
                yield [*value[:index], changed, *value[index + 1 :]]
    else:
        yield from change(value)


def _containers(value: Any, change: Callable[[Any], Iterator[Any]]) -> Iterator[Any]:
    """Yield the value with one list or object in it changed."""
    if isinstance(value, dict | list):
        yield from change(value)
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, inner in list(items):
            for changed in _containers(inner, change):
                copy = value.copy()
                copy[key] = changed
                yield copy


def _on_data(
    walk: Callable[[Any, Callable[[Any], Iterator[Any]]], Iterator[Any]],
    change: Callable[[Any], Iterator[Any]],
) -> Mutator:
    """Return a mutator that changes the data of a response object, or else the whole answer."""

    def mutate(case: MutationCase) -> Iterator[Variant]:
        answer = case.answer
        if isinstance(answer, dict) and _DATA in answer:
            for data in walk(answer[_DATA], change):
                yield Variant({**answer, _DATA: data}, case.trace)
        else:
            for changed in walk(answer, change):
                yield Variant(changed, case.trace)

    return mutate


def _numeric(value: Any) -> bool:
    """Return a number that can be written with digits: neither a boolean, infinite, nor
    monstrous."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _LARGEST


def _in_numbers(value: Any, change: Callable[[str], str]) -> Iterator[Any]:
    """Yield the value with the first number in it rewritten."""
    if _numeric(value):
        changed = change(repr(abs(value)))
        number: float = float(changed) if isinstance(value, float) else int(changed)
        yield -number if value < 0 else number
    elif isinstance(value, str) and (found := _NUMBER.search(value)):
        yield value[: found.start()] + change(found[0]) + value[found.end() :]


def _sign(value: Any) -> Iterator[Any]:
    if _numeric(value) and value != 0:
        yield -value
    elif isinstance(value, str) and _QUANTITY.match(value) and (found := _NUMBER.search(value)):
        if not found[0].strip("0.,"):
            return
        start = found.start()
        negative = value[:start].endswith("-")
        yield value[: start - 1] + value[start:] if negative else f"{value[:start]}-{value[start:]}"


def _next_digit(number: str) -> str:
    """Return the first digit one up, the most significant change; a 9 becomes an 8."""
    return ("8" if number[0] == "9" else str(int(number[0]) + 1)) + number[1:]


def _longer(number: str) -> str:
    """Ten times as much or more, with the old digits in front."""
    whole, point, rest = number.partition(".")
    return f"{whole}0{point}{rest}" if whole != "0" else f"10{point}{rest}"


def _unit(value: Any) -> Iterator[Any]:
    if isinstance(value, str) and _NUMBER.search(value) and (found := _UNIT.search(value)):
        other = {**_UNITS, **_CURRENCIES}[found[0].lower()]
        yield value[: found.start()] + other + value[found.end() :]


def _opposite(value: Any) -> Iterator[Any]:
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, str) and value.strip().lower() in _OPPOSITES:
        yield _OPPOSITES[value.strip().lower()]


def _denial(value: Any) -> Iterator[Any]:
    if isinstance(value, str) and value.strip():
        yield f"It is certainly not {value}"


def _missing(value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        for index in range(len(value)):
            yield value[:index] + value[index + 1 :]
    else:
        for key in value:
            yield {name: inner for name, inner in value.items() if name != key}


def _extra(value: Any) -> Iterator[Any]:
    if isinstance(value, list) and value:
        yield [*value, FOREIGN]


def _repeated(value: Any) -> Iterator[Any]:
    """Yield the first item in place of the last: the length is right, an item is not."""
    if isinstance(value, list) and len(value) > 1 and value[0] != value[-1]:
        yield [*value[:-1], value[0]]


def _exchanged(value: Any) -> Iterator[Any]:
    """Two fields of an object with each other's values."""
    if isinstance(value, dict) and len(value) > 1:
        one, other = list(value)[:2]
        yield {**value, one: value[other], other: value[one]}


def _reversed(value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        yield value[::-1]


def _order(case: MutationCase) -> Iterator[Variant]:
    if case.ordered:
        yield from _on_data(_containers, _reversed)(case)


def _any_order(case: MutationCase) -> Iterator[Variant]:
    if case.ordered is False:
        yield from _on_data(_containers, _reversed)(case)


def _nothing(case: MutationCase) -> Iterator[Variant]:
    if case.answer not in (None, ""):
        yield Variant(None, case.trace)
        yield Variant("", case.trace)


def _other(field: str, values: tuple[str, ...]) -> Mutator:
    def mutate(case: MutationCase) -> Iterator[Variant]:
        if isinstance(case.answer, dict) and field in case.answer:
            for value in values:
                if value.lower() != str(case.answer[field]).lower():
                    yield Variant({**case.answer, field: value}, case.trace)

    return mutate


def _as_text(form: str) -> Mutator:
    """Return a response object as an agent would print it."""

    def mutate(case: MutationCase) -> Iterator[Variant]:
        if isinstance(case.answer, dict):
            text = msgspec.json.encode(case.answer).decode()
            yield Variant(form.format(text), case.trace)

    return mutate


def _spaced(value: Any) -> Iterator[Any]:
    if isinstance(value, str) and value:
        yield f"  {value}\n"


def _other_key_order(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield dict(reversed(value.items()))


NEAR_MISSES: Mapping[str, Mutator] = {
    "nothing": _nothing,
    "sign": _on_data(_leaves, _sign),
    "digit": _on_data(_leaves, lambda value: _in_numbers(value, _next_digit)),
    "longer_number": _on_data(_leaves, lambda value: _in_numbers(value, _longer)),
    "unit": _on_data(_leaves, _unit),
    "opposite": _on_data(_leaves, _opposite),
    "denial": _on_data(_leaves, _denial),
    "missing_item": _on_data(_containers, _missing),
    "extra_item": _on_data(_containers, _extra),
    "repeated_item": _on_data(_containers, _repeated),
    "exchanged_fields": _on_data(_containers, _exchanged),
    "order": _order,
    "status": _other("status", STATUSES),
    "task_type": _other("task_type", TASK_TYPES),
}
EQUIVALENT: Mapping[str, Mutator] = {
    "spaced": _on_data(_leaves, _spaced),
    "any_order": _any_order,
    "key_order": _on_data(_containers, _other_key_order),
    "json_text": _as_text("{}"),
    "json_fence": _as_text("```json\n{}\n```"),
    "json_after_prose": _as_text("Here is the result:\n\n```json\n{}\n```\n"),
    "byte_order_mark": _as_text("\ufeff{}"),
}
