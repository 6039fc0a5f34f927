"""Every kind, by its tables and by the laws that hold for all: one normal form, no surprises."""

from __future__ import annotations

import json
import math
import string
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import JsonValue

from tests.rules.values.cases import DIFFERENT, INVALID, NORMAL, SAME
from tests.samples import examples
from trajudge.rules.limits import fullmatch, is_pattern
from trajudge.rules.values import KINDS, InvalidValue, Mode, equal, normalise


def rows(table: dict[str, list[Any]]) -> list[tuple[str, Any]]:
    return [(kind, row) for kind, entries in table.items() for row in entries]


@pytest.mark.parametrize(("kind", "case"), rows(NORMAL))
def test_a_value_has_its_normal_form(kind: str, case: tuple[JsonValue, JsonValue]) -> None:
    raw, normal = case
    assert normalise(kind, raw, mode=Mode.SOUND) == normal
    assert normalise(kind, normal, mode=Mode.SOUND) == normal
    assert equal(kind, normal, raw, mode=Mode.SOUND).equal
    assert equal(kind, raw, normal).equal or isinstance(raw, list)


@pytest.mark.parametrize(("kind", "case"), rows(DIFFERENT))
def test_a_change_of_meaning_is_a_difference(kind: str, case: tuple[JsonValue, JsonValue]) -> None:
    one, other = case
    verdict = equal(kind, one, other)
    assert not verdict.equal
    assert verdict.reason
    if not isinstance(other, list):
        assert not equal(kind, other, one).equal


@pytest.mark.parametrize(("kind", "case"), rows(SAME))
def test_precision_and_omission_are_no_difference(
    kind: str, case: tuple[JsonValue, JsonValue]
) -> None:
    one, other = case
    assert equal(kind, one, other).equal
    assert equal(kind, other, one).equal
    assert equal(kind, one, other).expected != equal(kind, one, other).actual


@pytest.mark.parametrize(("kind", "raw"), rows(INVALID))
def test_what_is_no_value_is_refused_with_a_reason(kind: str, raw: JsonValue) -> None:
    with pytest.raises(InvalidValue) as refusal:
        normalise(kind, raw)
    assert str(refusal.value)
    verdict = equal(kind, NORMAL[kind][0][1], raw)
    assert not verdict.equal
    assert verdict.actual is None


@pytest.mark.parametrize("kind", sorted(set(KINDS) - {"string_list", "json"}))
def test_none_and_blank_text_are_nothing_and_equal_nothing_else(kind: str) -> None:
    assert normalise(kind, None) is None
    assert normalise(kind, " ") is None
    assert equal(kind, None, "").equal
    if kind != "null":
        assert not equal(kind, None, NORMAL[kind][0][0]).equal
        assert not equal(kind, NORMAL[kind][0][0], None).equal


def test_an_unknown_kind_is_said_so() -> None:
    with pytest.raises(InvalidValue, match="no kind of value is called 'colour'"):
        normalise("colour", "red")
    assert "colour" in equal("colour", "red", "red").reason
    assert "colour" in equal("colour", "red", "red", mode=Mode.RELEASE).reason


def test_one_of_the_specifications_alternatives_has_to_be_met() -> None:
    assert equal("string", ["bookshop.org", "https://bookshop.org"], "Bookshop.org").equal
    assert equal("duration", ["5 min", "90 min"], "1:30").equal
    assert equal("currency", [5, 7], "$7").equal
    assert equal("coordinates", [[1, 2], [3, 4]], [3, 4]).equal
    verdict = equal("currency", [5, 7], "$6")
    assert verdict == (False, ["USD 5.00", "USD 7.00"], "USD 6.00", "none of the alternatives")


def test_alternatives_are_the_specifications_alone() -> None:
    for kind in set(KINDS) - {"string_list", "json", "null", "coordinates"}:
        raw = NORMAL[kind][0][0]
        assert not equal(kind, raw, [raw, raw]).equal
        assert not equal(kind, [raw, raw], [raw, raw]).equal


@pytest.mark.parametrize("expected", [[], ["a", ["b"]], ["x"] * 1001])
def test_alternatives_that_are_none_are_the_specifications_mistake(expected: JsonValue) -> None:
    assert "specification" in equal("string", expected, "b").reason


def test_a_specifications_pattern_has_to_match_the_whole_value() -> None:
    assert equal("string", r"^#?\s*0*170$", "# 000170").equal
    assert equal("string", "^A-B$", "a-b").equal
    assert equal("string", "^a b$", "A-B!").equal
    assert equal("string", "^flat rate[^a-z0-9]*(?:fixed)$", "Flat Rate - Fixed").equal
    assert equal("string", "^.*MIT.*License.*$", "x\nThe MIT\nLicense (MIT)").equal
    assert not equal("string", "^(?!main$).+$", "main").equal
    assert equal("url", r"^__GITLAB__/a/\d+$", "__GITLAB__/a/12?x=#top").equal
    assert not equal("url", r"^__GITLAB__/a/.*$", "__GITLAB__/a/12?x=1").equal
    assert not equal("url", r"^__GITLAB__/A/\d+$", "__GITLAB__/a/12").equal
    assert equal("base64", "^he.*$", "aGVsbG8=").equal
    assert not equal("string", r"^\d$", "12").equal


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("pattern", ["^.*$", "^(a+)+$", "^$", "^__GITLAB__.*$"])
def test_an_agents_text_is_never_a_pattern(kind: str, pattern: str) -> None:
    for raw, _ in NORMAL[kind]:
        assert not equal(kind, raw, pattern).equal


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("kind", ["string", "location-name", "base64", "url"])
@pytest.mark.parametrize("pattern", ["^$", "^a$", r"^\d$", "^(?!x).$"])
def test_a_pattern_is_equal_to_itself(kind: str, pattern: str, mode: Mode) -> None:
    """But to the package an address is a pattern or is matched by one."""
    is_equal = kind != "url" or mode is Mode.SOUND
    assert equal(kind, pattern, pattern, mode=mode).equal is is_equal


def test_a_placeholder_for_hosts_is_the_specifications_alone() -> None:
    placeholder, address = "git@__SSH_HOST__:a/b.git", "ssh://git@host.test:2222/a/b.git"
    assert equal("url", placeholder, address).equal
    assert not equal("url", address, placeholder).equal
    assert not equal("url", placeholder, "git@host.test:a/c.git").equal
    assert not equal("url", placeholder, "root@host.test:a/b.git").equal
    assert not equal("url", placeholder, "https://host.test/a/b.git").equal


# Laws, on values that resemble real ones and on anything at all.

FRAGMENTS = st.sampled_from(
    [str(raw) for entries in NORMAL.values() for raw, _ in entries]
    + [str(raw) for entries in INVALID.values() for raw in entries]
    + ["-", "+", ".", ",", " ", "$", "%", "km", "min", ":", "/", "^", "é", "́", "\x00", "\ud800"]
)
TEXTS = st.one_of(
    st.text(max_size=40),
    st.text(st.characters(exclude_categories=[]), max_size=40),
    st.lists(FRAGMENTS, max_size=4).map("".join),
    st.text(string.digits + " .,-+:/kmhins$€eE", max_size=20),
)
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.sampled_from(["^.*$", ""]), TEXTS
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
MANY = settings(
    max_examples=examples(100), suppress_health_check=[HealthCheck.too_slow], deadline=None
)


@pytest.mark.parametrize("kind", KINDS)
@MANY
@given(raw=VALUES)
def test_normalising_twice_changes_nothing(kind: str, raw: Any) -> None:
    try:
        normal = normalise(kind, raw)
    except InvalidValue:
        return
    assert normalise(kind, normal) == normal
    assert equal(kind, normal, normal).equal


@pytest.mark.parametrize("kind", sorted(set(KINDS) - {"url"}))
@MANY
@given(one=VALUES, other=VALUES)
def test_equality_is_symmetric(kind: str, one: Any, other: Any) -> None:
    lists = isinstance(one, list) or isinstance(other, list)
    patterns = "^.*$" in (one, other)
    if not lists and not patterns:
        assert (equal(kind, one, other).equal is True) == (equal(kind, other, one).equal is True)


@pytest.mark.slow
@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("kind", KINDS)
@settings(MANY, max_examples=examples(60))
@given(expected=VALUES, actual=VALUES)
def test_comparing_anything_with_anything_never_raises(
    kind: str, mode: Mode, expected: Any, actual: Any
) -> None:
    verdict = equal(kind, expected, actual, mode=mode)
    assert (verdict.equal is True) is (verdict.reason == "")
    for raw in (expected, actual):
        try:
            normalise(kind, raw, mode=mode)
        except InvalidValue as error:
            assert str(error)


@given(number=st.integers(-(10**12), 10**12))
def test_a_number_is_the_same_in_all_its_forms_and_no_other(number: int) -> None:
    for form in (str(number), f"{number:,}", f"{number:,}".replace(",", " "), f"{number}.0"):
        assert equal("number", number, form).equal
    assert not equal("number", number, str(number + 1)).equal
    assert not equal("number", number, f"{number}%").equal
    assert not equal("number", number, f"{number}1").equal
    assert number == 0 or not equal("number", number, str(-number)).equal


@given(cents=st.integers(-(10**9), 10**9).filter(bool))
def test_a_price_is_the_same_in_all_its_forms_and_no_other(cents: int) -> None:
    size, sign = f"{abs(cents) / 100:.2f}", "-" if cents < 0 else ""
    grouped = f"{abs(cents) / 100:,.2f}"
    for form in (f"{sign}${size}", f"${sign}{size}", f"{sign}{grouped} USD", cents / 100):
        assert equal("currency", cents / 100, form).equal
    for form in (f"{sign}€{size}", f"{'' if sign else '-'}${size}", (cents + 1) / 100):
        assert not equal("currency", cents / 100, form).equal


@given(day=st.dates())
def test_a_day_is_the_same_in_all_its_forms_and_no_other(day: Any) -> None:
    iso = day.isoformat()
    year = f"{day.year:04}"
    for form in (
        f"{day:%B} {day.day}, {year}",
        f"{day.day} {day:%b} {year}",
        f"{day.month}/{day.day}/{year}",
        f"{iso}T12:00:00Z",
        f"{day:%A}, {day:%B} {day.day} {year}",
    ):
        assert equal("date", iso, form).equal
    assert not equal("date", iso, iso[:7]).equal
    assert not equal("date", iso, f"{(day.year % 9999) + 1:04}{iso[4:]}").equal


@given(minutes=st.integers(1, 10_000))
def test_a_duration_is_the_same_in_all_its_forms_and_no_other(minutes: int) -> None:
    hours, rest = divmod(minutes, 60)
    for form in (
        f"{minutes} minutes",
        f"{hours}h {rest}min",
        f"{hours}:{rest:02}",
        f"PT{minutes}M",
        f"{minutes * 60} s",
    ):
        assert equal("duration", f"{minutes}min", form).equal
    assert not equal("duration", f"{minutes}min", f"{minutes + 1}min").equal
    assert not equal("duration", f"{minutes}min", f"{minutes}h").equal


@given(metres=st.integers(1, 10**6))
def test_a_distance_is_the_same_in_all_its_forms_and_no_other(metres: int) -> None:
    for form in (f"{metres:,} metres", f"{metres / 1000:.3f} km", f"{metres * 100}cm"):
        assert equal("distance", f"{metres}m", form).equal
    assert not equal("distance", f"{metres}m", f"{metres + 1}m").equal
    assert not equal("distance", f"{metres}m", f"{metres}km").equal


@given(latitude=st.integers(-899999, 899999), longitude=st.integers(-1799999, 1799999))
def test_a_point_is_the_same_in_all_its_forms_and_no_other(latitude: int, longitude: int) -> None:
    point: list[Any] = [latitude / 10_000, longitude / 10_000]
    north, east = "NS"[latitude < 0], "EW"[longitude < 0]
    forms: tuple[JsonValue, ...] = (
        {"lat": point[0], "lon": point[1]},
        f"{point[0]}, {point[1]}",
        f"{abs(point[0])}°{north} {abs(point[1])}°{east}",
    )
    for form in forms:
        assert equal("coordinates", point, form).equal
    assert not equal("coordinates", point, [point[0] + 0.0001, point[1]]).equal
    if latitude:
        assert not equal("coordinates", point, [-point[0], point[1]]).equal


HUGE: list[Any] = [
    "9" * 10_000,
    10**10_000,
    -(10**10_000),
    "1e400 m",
    "1e400",
    "1e99999999999",
    "9**9**8 m",
    "9" * 400 + " m",
    "1 h " * 10_000,
    "1" + ",000" * 120,
    "1" + ",000" * 120_000,
    "a" * 2_000_000,
    "-" * 100_000,
    "a-" * 100_000,
    "'" * 100_000,
    "'\"" * 100_000,
    ".!?" * 100_000,
    " " * 500_000,
    "\x00" * 100_000,
    "\ud800" * 100_000,
    "e" + "\u0316\u0301" * 100_000,
    "ﷺ" * 50_000,
    "[" * 100_000,
    '{"a":' * 50_000,
    "[" * 50_000 + "]" * 50_000,
    "* " * 100_000,
    "#" * 100_000,
    "`" * 100_000,
    " \n" * 100_000,
    "- a\n" * 50_000,
    "one " * 100,
    "hundred and " * 40,
    "http://" + "a." * 50_000,
    "http://a.test/" + "../" * 6_000,
    "http://a.test/?" + "a=b&" * 4_000,
    "git@" * 4_000,
    "P" + "1D" * 200,
    "A" * 999_999,
    math.inf,
    -math.inf,
    math.nan,
    1e308,
    5e-324,
    [[]] * 10_000,
    ["a"] * 50_000,
]


def deep(levels: int) -> Any:
    value: Any = "x"
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.slow
@pytest.mark.timeout(60)
@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("kind", KINDS)
def test_huge_and_hostile_values_neither_raise_nor_hang(kind: str, mode: Mode) -> None:
    expected = NORMAL[kind][0][0]
    for raw in [*HUGE, deep(150), deep(5_000), {"a": deep(5_000)}]:
        verdict = equal(kind, expected, raw, mode=mode)
        assert isinstance(verdict.equal, bool)


@pytest.mark.parametrize(
    ("kind", "value", "normal"),
    [
        ("duration", "1 h 1 min", "PT1H1M"),
        ("duration", "PT1H1M", "PT1H1M"),
        ("number", "two thousand three hundred", "2300"),
        ("number", "one million two thousand", "1002000"),
    ],
)
def test_units_and_scales_that_fall_are_read(kind: str, value: str, normal: str) -> None:
    assert str(normalise(kind, value)) == normal


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("duration", "1 h 1 h"),
        ("duration", "1 min 1 h"),
        ("number", "two thousand three thousand"),
        ("number", "two thousand one million"),
    ],
)
def test_a_unit_or_scale_that_comes_again_is_no_value(kind: str, value: str) -> None:
    with pytest.raises(InvalidValue):
        normalise(kind, value)


def test_an_exploding_pattern_is_a_verdict_with_its_reason() -> None:
    verdict = equal("string", "^(a|aa)+$", "a" * 60 + "b")
    assert verdict.equal is None
    assert "took more than" in verdict.reason


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("string", "^(a$"),
        ("string", "^a{1000}{1000}$"),
        ("string", "^" + "a" * 20_000 + "$"),
        ("number", "about five"),
        ("date", "^2023.*$"),
        ("colour", "red"),
        ("string", ["b", "^(a$"]),
    ],
)
def test_the_specifications_own_mistake_is_no_verdict_on_the_value(
    kind: str, expected: JsonValue
) -> None:
    verdict = equal(kind, expected, "a")
    assert verdict.equal is None
    assert verdict.reason


def test_an_alternative_that_is_met_needs_no_other() -> None:
    assert equal("string", ["^(b$", "a"], "a").equal is True
    assert equal("string", ["b", "c"], "a").equal is False


def test_a_value_beyond_the_limits_is_the_agents_failure() -> None:
    assert equal("string", "^a*$", "a" * 1_000_001).equal is False
    assert equal("number", 5, "9" * 10_000).equal is False


Value = tuple[str, Any]


def typed(schema: dict[str, Any] | None, value: Any) -> Iterator[Value]:
    """(kind, value) pairs of a value under its schema, alternatives one by one."""
    schema = schema or {}
    kind = str(schema.get("format") or schema.get("type") or "string")
    if kind == "array":
        for item in value or ():
            yield from typed(schema.get("items"), item)
    elif kind == "object":
        for one in value if isinstance(value, list) else [value]:
            for key, item in one.items():
                yield from typed(schema.get("properties", {}).get(key), item)
    else:
        yield from ((kind, item) for item in (value if isinstance(value, list) else [value]))


def expected_values(tasks: list[dict[str, Any]]) -> Iterator[Value]:
    for config in (config for task in tasks for config in task["eval"]):
        expected = config["expected"]
        yield from typed(config.get("results_schema"), expected.get("retrieved_data"))
        for part in ("query_params", "post_data"):
            schemas = (config.get(f"{part}_schema") or {}).get("properties", {})
            for key, value in (expected.get(part) or {}).items():
                yield from typed(schemas.get(key), value)


@pytest.fixture
def values(real_data: Path) -> list[Value]:
    path = real_data / "webarena" / "webarena-verified.json"
    tasks = json.loads(path.read_text(encoding="utf-8"))
    assert len(tasks) == 812
    return list(expected_values(tasks))


@pytest.mark.real_data
def test_every_expected_value_of_the_812_tasks_normalises(values: list[Value]) -> None:
    assert {kind for kind, _ in values} == set(KINDS) - {"base64", "full_address"}
    for kind, value in values:
        if is_pattern(value):
            fullmatch(value, "compiles")
            continue
        normal = normalise(kind, value)
        assert normalise(kind, normal) == normal, (kind, value)
        assert equal(kind, value, value).equal, (kind, value)


@pytest.mark.real_data
def test_the_release_reads_them_too(values: list[Value]) -> None:
    for kind, value in values:
        if value is not None:
            normalise(kind, value, mode=Mode.RELEASE)
            assert equal(kind, value, value, mode=Mode.RELEASE).equal, (kind, value)
