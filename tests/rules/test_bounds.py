"""Bounds as they are documented: the last value that is read, and the first that is not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from pydantic import JsonValue

from tests.rules.verified.tasks import HOSTS, answer, page, request, task, trace
from tests.tables import table
from trajudge.rules.files import brief, first, json_text
from trajudge.rules.har import Body
from trajudge.rules.limits import (
    InvalidValue,
    TooLarge,
    TooSlow,
    bounded,
    bounded_json,
    compiled,
    slow_patterns_counted,
    timed,
    unicode_text,
)
from trajudge.rules.values import Mode, equal, normalise
from trajudge.rules.values.compare import match_ordered, match_unordered
from trajudge.rules.values.release import parameters as release_parameters
from trajudge.rules.verdict import Outcome, shown
from trajudge.rules.verified.answers import Failure, Oversized, ParseFailure, read_response
from trajudge.rules.verified.evaluator import VerifiedEvaluator
from trajudge.rules.verified.network import (
    Binding,
    RequestKind,
    address,
    document,
    find,
    parameters,
    recorded_kind,
)
from trajudge.rules.verified.release import ReleaseError
from trajudge.rules.verified.release import read as read_as_released
from trajudge.rules.verified.runs import TaskResult, premature, read_answer

MIB = 2**20


def nested(depth: int) -> Any:
    value: Any = 1
    for level in range(depth):
        value = [value] if level % 2 else {"a": value}
    return value


def padded(kind: str, text: str) -> Callable[[int], object]:
    return lambda length: normalise(kind, text.rjust(length))


def point(keys: int) -> object:
    value: dict[str, JsonValue] = {"lat": 1, "lon": 2}
    return normalise("coordinates", value | {f"{n}": 0 for n in range(keys - 2)})


BOUNDS: dict[str, tuple[Callable[[int], object], int]] = {
    "text of a number": (padded("number", "5"), 500),
    "text of a price": (padded("currency", "$5"), 500),
    "text of a date": (padded("date", "2023-05-23"), 500),
    "text of a month": (padded("month", "May"), 500),
    "text of a duration": (padded("duration", "5 min"), 500),
    "text of a distance": (padded("distance", "5 km"), 500),
    "text of a truth value": (padded("boolean", "yes"), 500),
    "text of a point": (padded("coordinates", "40.4, -79.9"), 500),
    "text of a name": (padded("location-name", "Gate 1"), 500),
    "line of an address": (padded("full_address", "1 Main St, Erie, PA 16501"), 500),
    "text for nothing": (padded("null", "n/a"), 500),
    "text": (lambda n: normalise("string", "a" * n), 1_000_000),
    "text beyond ASCII": (lambda n: unicode_text("é" * n), 300_000),
    "marks on one character": (lambda n: unicode_text("北" + "\u0301" * n), 30),
    "levels of JSON": (lambda n: bounded_json(nested(n)), 100),
    "values of JSON": (lambda n: bounded_json([0] * (n - 1)), 200_000),
    "characters of a pattern": (lambda n: compiled("a" * n, 0), 10_000),
    "repeats in a pattern": (lambda n: compiled(f"a{{{n}}}", 0), 100_000),
    "items of an answer": (lambda n: match_unordered([], [0] * n, int.__eq__), 1_000),
    "items in order": (lambda n: match_ordered([0] * n, [], int.__eq__), 1_000),
    "items of a string list": (lambda n: normalise("string_list", ["a"] * n), 10_000),
    "keys of a point": (point, 100),
    "bits of an integer": (lambda n: normalise("number", 2**n - 1), 1_024),
    "exponent of a number": (lambda n: normalise("number", f"1e{n}"), 308),
    "metres": (lambda n: normalise("distance", f"{n} m"), 10**15),
    "characters of a url": (lambda n: normalise("url", "http://a.test/".ljust(n, "a")), 20_000),
    "characters of a request's address": (
        lambda n: address("http://a.test/".ljust(n, "a"), Binding(())),
        100_000,
    ),
    "parameters of a query": (lambda n: parameters("&".join(["a=1"] * n)), 1_000),
    "seconds in the release's mode": (
        lambda n: normalise("duration", f"{n} s", mode=Mode.RELEASE),
        10**14,
    ),
    "text of a distance in the release's mode": (
        lambda n: normalise("distance", "5 km".rjust(n, "1"), mode=Mode.RELEASE),
        100,
    ),
    "parameters in the release's mode": (
        lambda n: release_parameters("&".join(["a=1"] * n)),
        10_000,
    ),
}


@pytest.mark.parametrize(("read", "bound"), BOUNDS.values(), ids=BOUNDS)
def test_the_bound_is_read_and_one_more_is_not(read: Callable[[int], object], bound: int) -> None:
    read(bound)
    with pytest.raises(InvalidValue):
        read(bound + 1)


def test_what_is_too_large_says_by_how_much() -> None:
    assert bounded("abc", 3) == "abc"
    with pytest.raises(TooLarge, match="4 characters, more than the 3 allowed"):
        bounded("abcd", 3)
    with pytest.raises(TooLarge, match="nested deeper than 100 levels"):
        bounded_json(nested(100_000))
    with pytest.raises(TooLarge, match="JSON of more than 200,000 values"):
        bounded_json([[0] * 10] * 20_000)


def test_alternatives_are_a_thousand_at_most() -> None:
    assert equal("string", [*map(str, range(999)), "a"], "a").equal is True
    assert equal("string", [*map(str, range(1000)), "a"], "a").equal is None


def test_what_is_shown_is_cut_and_what_is_found_is_bounded() -> None:
    assert shown("x" * 2_000) == "x" * 2_000
    assert shown("x" * 2_001) == "x" * 2_000 + "… (2001 characters)"
    assert [len(shown([0] * n)) for n in (100, 101)] == [100, 100]
    assert [brief("x" * n) for n in (60, 61)] == ["x" * 60, "x" * 59 + "…"]
    assert [json_text("x" * n) for n in (58, 59)] == [f'"{"x" * 58}"', f'"{"x" * 58}…']
    assert first(range(8)) == "0, 1, 2, 3, 4, 5, 6, 7"
    assert first(range(9)) == "0, 1, 2, 3, 4, 5, 6, 7 and 1 more"
    assert len(find("$[*]", [0] * 10_001)) == 10_000
    kind = "application/x-www-form-urlencoded"
    forms = ["&".join(f"a{number}=1" for number in range(n)) for n in (10_000, 10_001)]
    assert [document(Body(kind, form)) is None for form in forms] == [False, True]


def test_an_answer_has_four_megabytes_at_most(tmp_path: Path) -> None:
    for extra, failure in ((0, Failure.NO_OBJECT), (1, Failure.TOO_LARGE)):
        for text in ("x" * (4 * MIB + extra), b"x" * (4 * MIB + extra)):
            read = read_response(text)
            assert isinstance(read, ParseFailure)
            assert read.kind is failure
        path = tmp_path / "agent_response.json"
        path.write_bytes(b" " * (4 * MIB + extra))
        assert isinstance(read_answer(path), Oversized) is (extra == 1)
    assert read_as_released(" " * (4 * MIB)) is None
    with pytest.raises(ReleaseError, match="an answer of 4,194,305 characters"):
        read_as_released(" " * (4 * MIB + 1))


def test_a_pattern_has_a_quarter_of_a_second_and_four_slow_texts() -> None:
    limits: list[float] = []

    def match(text: str, timeout: float) -> None:
        limits.append(timeout)
        raise TimeoutError

    with pytest.raises(TooSlow):  # as if other threads had used the time
        timed(match, "^a$", "a", 1_000.0)
    assert limits == [1_000.0 * 2**n for n in range(6)]
    limits.clear()
    with slow_patterns_counted():
        for _ in range(6):
            with pytest.raises(TooSlow):
                timed(match, "^a$", "a", 0.0)
    assert len(limits) == 4
    assert "took more than 0.25 s" in equal("string", "^(a|aa)+$", "a" * 60 + "b").reason


@table(
    "kind expected actual alike",
    """
    distance | 100 m     | 100.5 m     | yes
    distance | 100 m     | 100.51 m    | no
    distance | 1 km      | 0.97 km     | yes
    distance | 1 km      | 0.969 km    | no
    duration | 10 min    | 10 min 18 s | yes
    duration | 10 min    | 10 min 19 s | no
    """,
)
def test_rounding_explains_half_a_unit_and_three_hundredths(
    kind: str, expected: str, actual: str, alike: str
) -> None:
    assert equal(kind, expected, actual).equal is (alike == "yes")
    assert equal(kind, actual, expected).equal is (alike == "yes")


@pytest.mark.parametrize(
    ("status", "outcome"),
    [(200, "pass"), (304, "pass"), (399, "pass"), (199, "fail"), (400, "fail"), (404, "fail"),
     (500, "fail"), (-1, "fail"), (None, "fail")],
)  # fmt: skip
def test_a_site_that_refused_a_request_was_not_active(status: Any, outcome: str) -> None:
    made = VerifiedEvaluator(hosts=HOSTS, activity=True).evaluate(
        task(["a"]), answer(["a"]), trace(page("/a", status))
    )
    assert made.outcome is Outcome(outcome)


def test_a_run_gave_up_early_below_half_of_the_site_s_median() -> None:
    made = TaskResult(task_id=1, template="t", sites=("map",), outcome=Outcome.PASS)
    ratios = (None, 0.0, 0.49, 0.5, 0.52)
    early = [premature(msgspec.structs.replace(made, exploration=ratio)) for ratio in ratios]
    assert early == [False, True, True, False, False]


PAGE = {"accept": "text/html,*/*"}
CLICK = {**PAGE, "sec-fetch-dest": "document", "sec-fetch-mode": "navigate", "sec-fetch-user": "?1"}


@pytest.mark.parametrize(
    ("method", "headers", "resource", "loads", "kind", "released"),
    [
        ("GET", PAGE, None, True, "document", True),
        ("POST", PAGE, None, False, "form", False),
        ("GET", {**PAGE, "x-requested-with": "XMLHttpRequest"}, None, False, "script", True),
        ("GET", {"accept": "application/json"}, None, False, "script", False),
        ("GET", {"accept": "*/*"}, None, False, None, False),
        ("GET", {}, "Document", True, "document", False),
        ("POST", {}, "document", False, "form", False),
        ("GET", PAGE, "xhr", False, "script", True),
        ("GET", PAGE, "fetch", False, "script", True),
        ("GET", PAGE, "image", False, None, True),
        ("GET", CLICK, None, True, "document", True),
        ("GET", {**CLICK, "sec-fetch-user": "?0"}, None, True, "document", False),
        ("GET", {**CLICK, "sec-fetch-mode": "cors"}, None, True, "document", False),
        ("GET", {**CLICK, "accept": "*/*"}, None, True, "document", False),
        ("GET", {**PAGE, "sec-fetch-dest": "iframe"}, "document", False, None, True),
        ("GET", {**PAGE, "sec-fetch-dest": "empty"}, None, False, "script", True),
    ],
)
def test_who_asked_for_a_request(
    method: str, headers: dict[str, str], resource: str | None, loads: bool, kind: str | None,
    released: bool,
) -> None:  # fmt: skip
    entry = {**request("/a", method, headers=headers), "_resourceType": resource}
    (event,) = trace(entry).events
    assert event.is_document() is loads
    assert recorded_kind(event) == (kind and RequestKind(kind))
    assert event.is_release_navigation() is released


def test_the_release_s_assertions_are_numbered_as_the_checks() -> None:
    checks = [{"expected": {"url": f"__SHOPPING__/{name}"}} for name in "ab"]
    made = VerifiedEvaluator(mode=Mode.RELEASE, hosts=HOSTS).evaluate(
        task(["a"], None, *checks), answer(["a"]), trace(page("/a"))
    )
    network = [(one.name, one.outcome.value) for one in made.assertions[-2:]]
    assert network == [("network.1", "pass"), ("network.2.url", "fail")]
