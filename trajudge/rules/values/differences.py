"""Where the two modes disagree about a value, by executable examples."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from trajudge.rules.values.compare import equal
from trajudge.rules.values.model import Mode

if TYPE_CHECKING:
    from pydantic import JsonValue


class Difference(NamedTuple):
    """A specification's value, an agent's value, and why one mode alone accepts it."""

    kind: str
    expected: JsonValue
    actual: JsonValue
    why: str


_ANY = "An agent's text is a pattern in the release, data here."
_LIST = "An agent's list is a list of alternatives in the release, one wrong value here."
_POINT: JsonValue = {"latitude": "40.4424191", "longitude": "-79.9397388"}
_HOME: JsonValue = {"house_number": "5", "street": "Main St", "city": "Erie", "state": "PA"}

EXAMPLES = (
    Difference("string", "Canceled", "^.*$", _ANY),
    Difference("string", "Canceled", ["Complete", "Canceled"], _LIST),
    Difference("string", "0", 0, "Zero is no text in the release."),
    Difference("string", ".5", "5", "A decimal point at the edge is punctuation in the release."),
    Difference("string", "A-", "A", "A sign at the end of a grade is lost in the release."),
    Difference("string", '16"', "16", "An inch mark is a quotation mark in the release."),
    Difference("string", "12", "12 .", "Punctuation after a space stays in the release."),
    Difference("string", "^A-B$", "A-B", "Patterns see no hyphens of a text in the release."),
    Difference("string", "5", 5.0, "A whole number is printed with a fraction in the release."),
    Difference("number", 12, "1,2", "Commas are dropped wherever they stand in the release."),
    Difference("number", 10, "1_0", "Digits are read as Python source in the release."),
    Difference("number", 1, True, "A truth value is a number in the release."),
    Difference("number", 2, "I think there are two of them", "Prose holds a number there."),
    Difference("number", -2, "minus two", "The sign of a number in words is lost in the release."),
    Difference("number", 0.3, 0.1 + 0.2, "Fractions are compared bit by bit in the release."),
    Difference("number", 2, [1, 2], _LIST),
    Difference("currency", 36.39, "$-36.39", "A sign after the symbol is lost in the release."),
    Difference("currency", 5, "($5)", "Accounting parentheses are no sign in the release."),
    Difference("currency", 36.39, "€36.39", "The currency is ignored in the release."),
    Difference("currency", 12, "$12 or $99", "The first of several prices counts in the release."),
    Difference("currency", 36.39, 36.49, "Ten cents are tolerated at any scale in the release."),
    Difference("currency", 0.99, "99 cents", "Cents are dollars in the release."),
    Difference("currency", 1234, "$1,234", "A lone comma is a decimal comma in the release."),
    Difference("currency", 12, "about 12k", "A price is looked for, whatever stands around it."),
    Difference("currency", [5, 7], 7, "Only the first alternative counts in the release."),
    Difference("date", "10:30", "11:45", "Missing parts are filled in from today in the release."),
    Difference("date", ["May 1 2023"], "May 1 2023", "One alternative is an error in the release."),
    Difference("month", "May 2022", "May 2023", "The year is dropped in the release."),
    Difference("month", "May", "May 5, 2022", "A day is a month in the release."),
    Difference("month", 1, True, "A truth value is January in the release."),
    Difference("duration", "1hr 35min", "1:35", "A clock is minutes and seconds in the release."),
    Difference("duration", "1hr 35min", "PT1H35M", "ISO 8601 is not read in the release."),
    Difference("duration", "95min", "1 hour and 35 minutes", "'and' is not read in the release."),
    Difference("duration", "30min", "about 30 min", "'about' is not read in the release."),
    Difference("duration", "5 min", "5 mins.", "A full stop is an error in the release."),
    Difference("duration", "2min", "5min", "Three minutes are tolerated at any scale there."),
    Difference("duration", "5h", "5h 29min", "A tenth is tolerated in the release."),
    Difference("distance", "2km", "2*1 km", "Arithmetic is worked out in the release."),
    Difference("distance", "2km", "inf m", "An infinite length equals any length in the release."),
    Difference("distance", "2km", "about 2km", "'about' is not read in the release."),
    Difference("distance", "10m", "20m", "Ten metres are tolerated at any scale in the release."),
    Difference("distance", "5km 300m", "5300 m", "Two units make a product in the release."),
    Difference("coordinates", _POINT, "40.4424191° N, 79.9397388° W", "Sides are not read there."),
    Difference("coordinates", _POINT, "40.4424, -79.9397", "Rounding to 11 m fails there."),
    Difference(
        "coordinates",
        [40.0, -79.0],
        [40.00001, -79.0],
        "A difference of 1.1 m is compared bit by bit in the release.",
    ),
    Difference("coordinates", [40, -160], [40, 200], "Longitudes wrap around in text only there."),
    Difference("boolean", True, 2, "Every number but zero is true in the release."),
    Difference("boolean", True, "Yes.", "A full stop is an error in the release."),
    Difference("location-name", "Gate 1", "Gate 2", "Four letters in five suffice in the release."),
    Difference("location-name", "The Hotel at 5th", "5th Hotel", "Small words count there."),
    Difference("url", "http://shop.test/A", "http://shop.test/a", "A path's case is ignored."),
    Difference(
        "url", "http://a.test/?x=1&x=2", "http://a.test/?x=1&x=3", "The second value is ignored."
    ),
    Difference("url", "http://a.test/1", "^http://a.test/.*$", _ANY),
    Difference("url", "git@a.test:x/y", "git@b.test:x/y", "The host is ignored in the release."),
    Difference("string_list", "a,b", ["b", "a"], "A list holds alternatives in the release."),
    Difference("string_list", "a", ["a"], "A list of one is an error in the release."),
    Difference("json", '{"a":"X"}', '{"a":"x"}', "Case is folded in the release."),
    Difference("json", '{"a":1}', '{"a":1.0}', "Equal numbers differ in the release."),
    Difference("json", '{"a":1}', {"a": 1}, "Only text is read in the release."),
    Difference("markdown", "# A\n\n- b", "# A\n- b", "Blank lines around headings count there."),
    Difference("base64", "aGVsbG8=", "aGVsbG8", "Padding is required in the release."),
    Difference("base64", "aGVsbG8=", "^.*$", _ANY),
    Difference("full_address", _HOME, _HOME, "An address without ZIP code is an error there."),
    Difference("null", None, [], "An empty list is an error in the release."),
)


def _cell(value: JsonValue) -> str:
    text = json.dumps(value, ensure_ascii=False).replace("|", "\\|")
    return f"`{text}`"


def table() -> Iterator[str]:
    """Yield the lines of a Markdown table: both modes' verdicts on every example, computed now."""
    yield "| kind | specification | agent | release-1.2.3 | sound | why |"
    yield "|---|---|---|---|---|---|"
    for kind, expected, actual, why in EXAMPLES:
        verdicts = [
            "equal" if equal(kind, expected, actual, mode=mode).equal else "different"
            for mode in (Mode.RELEASE, Mode.SOUND)
        ]
        yield f"| {kind} | {_cell(expected)} | {_cell(actual)} | {' | '.join(verdicts)} | {why} |"
