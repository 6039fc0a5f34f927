"""The agent's response as the released package reads and compares it."""

from __future__ import annotations

import json
import re
from typing import Any

from msgspec import UNSET

from trajudge.rules.errors import InvalidValue
from trajudge.rules.limits import bounded_json
from trajudge.rules.values import Mode, equal
from trajudge.rules.verdict import Assertion, Outcome, checked, shown
from trajudge.rules.verified.answers import kind_of, normal_data
from trajudge.rules.verified.dataset import AnswerCheck, Schema
from trajudge.rules.verified.network.sites import Binding
from trajudge.rules.verified.release import ReleaseError
from trajudge.rules.verified.release.addresses import bound_text
from trajudge.rules.verified.response import MAX_ANSWER, Oversized

_FENCE = re.compile(r"```(?:json)?\s*\n?(.*?)\n?```", re.DOTALL)


def read(answer: object) -> Any:
    """Return what the package takes for the response: the first fence, or all of the text, as
    JSON."""
    value = answer
    if isinstance(answer, Oversized):
        raise ReleaseError(f"an answer of {answer.size:,} bytes")
    if isinstance(answer, bytes):
        answer = value = answer.decode("utf-8", "replace")
    if isinstance(answer, str):
        if len(answer) > MAX_ANSWER:
            raise ReleaseError(f"an answer of {len(answer):,} characters")
        fence = _FENCE.search(answer)
        value = fence[1].strip() if fence else answer.strip()
        try:
            value = json.loads(value)
            bounded_json(value)
        except (ValueError, RecursionError):
            pass
        except InvalidValue as error:
            raise ReleaseError(str(error)) from error
    return value or None


def answer_assertions(
    check: AnswerCheck, answer: object, binding: Binding | None
) -> list[Assertion]:
    """Return the comparisons of the response, in the package's order. Raises ReleaseError."""
    if answer is not None and not isinstance(answer, str | bytes | dict | list | Oversized):
        raise ReleaseError("an answer that is no text, object or list")
    response = read(answer)
    if not isinstance(response, dict):
        reason = "the answer is no JSON object"
        return [checked("parse_failure.no_object", False, reason, None, response)]
    made = [
        _word(check, response, "task_type", check.expected.task_type),
        _word(check, response, "status", check.expected.status),
    ]
    if check.expected.retrieved_data is UNSET:
        # The package then compares an object without the key to one with it.
        made.append(checked("answer.retrieved_data", False, "a missing key", None, None))
    elif check.expected.task_type == "retrieve":
        data = response.get("retrieved_data")
        expected = check.expected.retrieved_data
        made.append(_data(check, _bound(expected, binding), _bound(data, binding)))
    return made


def _word(check: AnswerCheck, response: dict[str, Any], field: str, expected: str) -> Assertion:
    name = f"answer.{field}"
    key = "performed_operation" if field == "task_type" and field not in response else field
    if key not in response:
        return checked(name, False, f"no {field}", expected, None)
    value = response[key]
    if not isinstance(value, str):
        raise ReleaseError(f"{field} is no text")
    match = equal("string", expected, value.strip(), mode=Mode.RELEASE)
    held = match.equal and bool(value.strip())
    return checked(name, held, f"{field} is {value[:60]!r}", expected, value)


def _bound(data: Any, binding: Binding | None) -> Any:
    """Return the data with the sites' addresses in its texts as the package sees them."""
    if isinstance(data, list):
        return [_bound(item, binding) for item in data]
    if isinstance(data, dict):
        return {key: _bound(value, binding) for key, value in data.items()}
    return data if binding is None else bound_text(data, binding)


def _nothing(value: Any) -> bool:
    return not value and not isinstance(value, int | float)


def _data(check: AnswerCheck, expected: Any, found: Any) -> Assertion:
    name = "answer.retrieved_data"
    schema = check.results_schema
    if schema.get("type") != "array" and not (_nothing(expected) and _nothing(found)):
        raise ReleaseError("the specification's schema is no array")
    if _nothing(expected) or _nothing(found):
        held = _nothing(expected) and _nothing(found)
        return checked(name, held, "data on one side alone", expected, found)
    items = schema.get("items") or {}
    wanted = expected if isinstance(expected, list) else [expected]
    given = found if isinstance(found, list) else [found]
    held = _same_lists(items, wanted, given, ordered=check.ordered)
    return Assertion(
        name=name,
        outcome=Outcome.PASS if held else Outcome.FAIL,
        reason="" if held else "different data",
        expected=expected,
        found=shown(found),
        expected_normalised=normal_data(schema, expected, Mode.RELEASE, alternatives=True),
        found_normalised=shown(normal_data(schema, found, Mode.RELEASE)),
    )


def _same_lists(items: Schema, wanted: list[Any], given: list[Any], *, ordered: bool) -> bool:
    """Greedy: each expected item takes the first equal one that is left."""
    if ordered:
        pairs = zip(wanted, given, strict=False)
        return len(wanted) == len(given) and all(_same(items, *pair, ordered) for pair in pairs)
    left = list(given)
    for one in wanted:
        partner = next((at for at, two in enumerate(left) if _same(items, one, two, ordered)), None)
        if partner is None:
            return False
        del left[partner]
    return not left


def _same(schema: Schema, expected: Any, found: Any, ordered: bool) -> bool:
    if schema.get("type") == "array":
        if not isinstance(expected, list) or not isinstance(found, list):
            return False
        return _same_lists(schema.get("items") or {}, expected, found, ordered=ordered)
    if schema.get("type") == "object" and not schema.get("format"):
        return _same_objects(schema, expected, found, ordered)
    if expected is None or found is None:
        return expected is found
    match = equal(kind_of(schema), expected, found, mode=Mode.RELEASE)
    if not match.equal and match.reason.startswith("the specification's"):
        raise ReleaseError(match.reason)
    return match.equal is True


def _same_objects(schema: Schema, expected: Any, found: Any, ordered: bool) -> bool:
    if isinstance(found, str):
        try:
            found = json.loads(found)
        except (ValueError, RecursionError):
            return False
    if not isinstance(expected, dict):
        raise ReleaseError("the specification gives no object")
    if not isinstance(found, dict) or found.keys() != expected.keys():
        return False
    properties = schema.get("properties") or {}
    return all(
        _same(properties.get(key) or {}, value, found[key], ordered)
        for key, value in expected.items()
    )
