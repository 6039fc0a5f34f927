"""json: a JSON document.

Normal form: its text with sorted keys and no white space, numbers as in ``number``; case, accents
and the order of lists are kept, since they carry meaning. Read are JSON text and decoded lists and
objects. Refused are repeated keys, NaN and infinities, and documents beyond the limits of
``rules.limits``.
"""

from __future__ import annotations

import json
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

from trajudge.rules.errors import InvalidValue, TooLarge
from trajudge.rules.limits import TEXT_CHARS, bounded, bounded_json, unicode_text
from trajudge.rules.values import decimals
from trajudge.rules.values.model import Kind

if TYPE_CHECKING:
    from pydantic import JsonValue


def _refuse(name: str) -> None:
    raise InvalidValue(f"{name} is no JSON")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise InvalidValue("a JSON object with a repeated key")
    return members


def _number(digits: str) -> Decimal:
    return decimals.bounded_decimal(Decimal(bounded(digits, 1000)))


def decoded(text: str) -> Any:
    """Return the document of a JSON text, with exact numbers."""
    try:
        return json.loads(
            bounded(text, TEXT_CHARS).removeprefix("\ufeff"),
            parse_float=_number,
            parse_int=_number,
            parse_constant=_refuse,
            object_pairs_hook=_object,
        )
    except RecursionError as error:
        raise TooLarge("JSON nested too deep") from error
    except (ValueError, InvalidOperation) as error:
        raise InvalidValue("not JSON") from error


def _canonical(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(unicode_text(value), ensure_ascii=False)
    if isinstance(value, int | float):
        value = decimals.from_json(value)
    if isinstance(value, Decimal):
        return decimals.show(value)
    if isinstance(value, dict):
        members = sorted((_canonical(key), _canonical(item)) for key, item in value.items())
        return "{" + ",".join(f"{key}:{item}" for key, item in members) + "}"
    return "[" + ",".join(map(_canonical, value)) + "]"


def parse(raw: JsonValue) -> str:
    """Return the canonical text of a JSON text, list or object."""
    value = decoded(raw) if isinstance(raw, str) else raw
    bounded_json(value)
    return _canonical(value)


KIND = Kind(parse=parse, show=str, is_list=lambda _: True)
