"""The published package's semantics: observed facts about version 1.2.3, its defects included."""

from __future__ import annotations

import datetime

import pytest
from pydantic import JsonValue

from trajudge.rules.values import InvalidValue, Mode, equal, normalise
from trajudge.rules.values.release import is_ssh, normal_path, same_point

NORMAL: list[tuple[str, JsonValue, JsonValue]] = [
    ("string", 0, ""),
    ("string", None, ""),
    ("string", 5.0, "5.0"),
    ("string", "V-Neck™", "v neck"),
    ("string", "A-", "a"),
    ("string", "Café ß æ €5", "cafe ss ae eur5"),
    ("string", "^a-B™$", "^a-B™$"),
    ("number", "1,2", 12.0),
    ("number", "1_0", 10.0),
    ("number", True, 1.0),
    ("number", "I think there are two of them", 2.0),
    ("number", "minus two", 2.0),
    ("number", "three four", 7.0),
    ("number", "one point five", 1.5),
    ("number", "1.5 million", 1e6),
    ("currency", "$-36.39", 36.39),
    ("currency", "-$36.39", -36.39),
    ("currency", "(5)", 5.0),
    ("currency", "$12 or $99", 12.0),
    ("currency", "free", 0.0),
    ("currency", "1,234", 1.234),
    ("currency", "$1,234,567.89", 1234567.89),
    ("currency", "36,39 €", 36.39),
    ("currency", "$.50", 0.5),
    ("currency", ".1,234.5", 1234.5),
    ("currency", "^1\u00a0234.5$", 1234.5),
    ("date", "May 23,2023", "2023-05-23"),
    ("date", "13/5/2023", "2023-05-13"),
    ("month", True, "January"),
    ("month", "May 5, 2022", "May"),
    ("duration", "1:35", "95.0 s"),
    ("duration", "1:35 hours", "5700.0 s"),
    ("duration", "3 months", "7776000.0 s"),
    ("distance", "4k", "4000.0 m"),
    ("distance", "2*2 km", "4000.0 m"),
    ("distance", "1/2 mi", "804.672 m"),
    ("distance", "5 km + 300 m", "5300.0 m"),
    ("distance", "-inf m", "inf m"),
    ("distance", "(2) km!", "2000.0 m"),
    ("distance", "rds", "5.029210058420117 m"),
    ("distance", "3 nautical_mile", "5556.0 m"),
    ("distance", "2 kfts", "609.6 m"),
    ("distance", "999.99. km", "999990.0 m"),
    ("string", "≈ 5 ≠ 6 ≤ 7", "5 6 <= 7"),
    ("string", "1️⃣2️⃣ 🎉 ★ →", "12 -"),
    ("string", "Москва Αθήνα ½", "moskva athena 1/2"),
    ("distance", "0- m", "-1.0 m"),
    ("boolean", 2, True),
    ("url", "http://a.test\u2026/x", "http://a.test.../x"),
    ("url", "http://a.test\u2025/x", "http://a.test../x"),
    ("url", "http://a..test/x", "http://a.test/x"),
    ("url", "http://B\u00fccher.test/x", "http://xn--bcher-kva.test/x"),
    ("boolean", "1", True),
    ("coordinates", "40, 200", [40.0, -160.0]),
    ("coordinates", "-90, 180", [-90.0, 180.0]),
    ("coordinates", "90, -180", [90.0, -180.0]),
    ("coordinates", {"la": 1, "lo": 2}, [1.0, 2.0]),
    ("url", "ssh://git@host:2222/Foo/bar.git", "git@__SSH_HOST__:foo/bar.git"),
    ("url", "http://Shop.test:80/a/../b/?b=2&a=1", "http://shop.test/b?a=1&b=2"),
    ("string_list", "a,,b,A", ["a", "a", "b"]),
    ("json", '{"b":1,"a":"X-é"}', '{"a":"x e","b":1}'),
    ("markdown", "##   x\r\n\n\n\n+ a\n    * b  ", "## x\n\n- a\n  - b"),
    ("markdown", "x ( a ) ( )", "x (a) ( )"),
    ("base64", "YQ0KYg==", "a\nb"),
    ("null", {}, None),
    ("number", [1, 2], [1.0, 2.0]),
]


@pytest.mark.parametrize(("kind", "raw", "normal"), NORMAL)
def test_a_value_has_the_releases_normal_form(kind: str, raw: JsonValue, normal: JsonValue) -> None:
    assert normalise(kind, raw, mode=Mode.RELEASE) == normal


ADDRESS: dict[str, JsonValue] = {
    "house_number": "1", "street": "Main St", "city": "Erie", "state": "PA", "postcode": "501",
}  # fmt: skip
INVALID: list[tuple[str, JsonValue]] = [
    ("string", []),
    ("string", ["a"]),
    ("number", "5%"),
    ("number", "~5"),
    ("number", "5 items"),
    ("currency", "12.345.678"),
    ("currency", "$12.99. ?"),
    ("distance", "5 min"),
    ("distance", "5 kms"),
    ("currency", "10%"),
    ("currency", True),
    ("date", None),
    ("date", "2023-143"),
    ("duration", "5"),
    ("duration", "PT1H35M"),
    ("duration", ", 5 min"),
    ("duration", "about 30 min"),
    ("distance", "5"),
    ("distance", "5 km 300 m"),
    ("distance", "9**9**8 m"),
    ("boolean", "Yes."),
    ("coordinates", "40.4N 79.9W"),
    ("coordinates", [1, 2, 3]),
    ("string_list", ["a"]),
    ("json", {"a": 1}),
    ("markdown", 5),
    ("markdown", " "),
    ("base64", 5),
    ("base64", " "),
    ("url", 5),
    ("url", " "),
    ("number", ""),
    ("number", {"a": 1}),
    ("month", {"a": 1}),
    ("distance", {"a": 1}),
    ("coordinates", 5),
    ("date", 5),
    ("month", " "),
    ("coordinates", [91, 0]),
    ("distance", "5"),
    ("distance", "2 m^2"),
    ("base64", "aGVsbG8"),
    ("full_address", {"city": "Erie"}),
    ("full_address", {**ADDRESS, "city": ""}),
    ("null", []),
]


@pytest.mark.parametrize(("kind", "raw"), INVALID)
def test_what_the_release_does_not_read_is_invalid(kind: str, raw: JsonValue) -> None:
    with pytest.raises(InvalidValue):
        normalise(kind, raw, mode=Mode.RELEASE)


EQUAL: list[tuple[str, JsonValue, JsonValue, bool]] = [
    ("string", "hi", "hi!", True),
    ("string", "hi", "hi .", False),
    ("string", "hi", "^H.$", True),
    ("string", "hi", "^+hi$", False),
    ("string", "b", ["a", "b"], True),
    ("string", "^A-B$", "a-b", False),
    ("currency", 36.39, 36.49, True),
    ("currency", 36.39, 36.5, False),
    ("currency", [1, 2], 2, False),
    ("duration", "7min", "10min", True),
    ("duration", "7min", "10min 1s", False),
    ("duration", "1h", "66min", True),
    ("duration", "60min", "67min", False),
    ("duration", ["5min", "90min"], "90min", True),
    ("distance", "10m", "20m", True),
    ("distance", "10m", "21m", False),
    ("distance", "1000m", "1020m", True),
    ("distance", "1km", "inf m", True),
    ("coordinates", [40.0, -79.0], [40.000005, -79.0], True),
    ("coordinates", [40.0, -79.0], [40.00002, -79.0], False),
    ("location-name", "Gate 1", "Gate 2", True),
    ("location-name", "apple store shadyside", "Apple Shadyside", True),
    ("location-name", "abc", "abd", False),
    ("location-name", "abcde", "abcdf", True),
    ("location-name", "", "", True),
    ("location-name", "", "abcde", False),
    ("location-name", "", "!", False),
    ("location-name", "!", "?", True),
    ("location-name", "!", "a", False),
    ("full_address", ADDRESS, {**ADDRESS, "postcode": "00501"}, True),
    ("duration", "60min", "66min 40s", True),
    ("duration", "60min", "66min 41s", False),
    ("distance", "1000m", "1020.4m", True),
    ("distance", "1000m", "1020.5m", False),
    ("distance", "9800m", "10000m", True),
    ("distance", "9799m", "10000m", False),
    ("url", "http://x.test/A/", "http://X.test/a", True),
    ("url", "http://x.test/a?b=", "http://x.test/a", True),
    ("url", "http://x.test/a?b=1&b=2", "http://x.test/a?b=1", True),
    ("url", "http://x.test/a?b=^1.*$", "http://x.test/a?b=12", True),
    ("url", r"^http://x.test/\d+$", "http://x.test/12", True),
    ("url", r"^http://x.test/\d+$", "http://x.test/12?a=1", False),
    ("url", "http://x.test/12", r"^http://x.test/\d+$", True),
    ("json", '{"a":1}', '{"a":1.0}', False),
    ("base64", "aGVsbG8=", "^he.*$", True),
]


@pytest.mark.parametrize(("kind", "expected", "actual", "alike"), EQUAL)
def test_values_are_equal_as_in_the_release(
    kind: str, expected: JsonValue, actual: JsonValue, alike: bool
) -> None:
    assert equal(kind, expected, actual, mode=Mode.RELEASE).equal is alike


def test_paths_and_addresses_of_repositories() -> None:
    assert normal_path("/a/./b//c/../d/", segments=True) == "/a/b/d/"
    assert normal_path("a:./b", segments=False) == "a:./b"
    repositories = [
        "git@host:a/b.git",
        "SSH://host/a/b.git",
        "host:a/b.git",
        "git@host://a",
        "git@a",
    ]
    assert [is_ssh(text) for text in repositories] == [True, True, False, False, False]


def test_points_may_be_a_hundred_thousandth_of_a_degree_apart() -> None:
    assert same_point((0.0, 1e-5), (1e-5, 0.0))
    assert not same_point((0.0, 1.1e-5), (0.0, 0.0))


def test_the_release_fills_in_missing_parts_of_a_date_from_today() -> None:
    today = datetime.datetime.now(tz=datetime.UTC).astimezone().date()
    assert normalise("date", f"{today:%B} {today.year}", mode=Mode.RELEASE) == today.isoformat()
