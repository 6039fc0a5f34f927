"""Tables of values: what reads as what, what is the same, what is no value of its kind."""

from __future__ import annotations

from pydantic import JsonValue

from trajudge.rules.values import KINDS


def _texts(row: str) -> list[JsonValue]:
    """Return the texts of a row, which bars divide; a line may end where a text does."""
    return [text.strip() for text in row.replace("\n", "|").split("|")]


# kind -> values and their normal form
NORMAL: dict[str, list[tuple[JsonValue, JsonValue]]] = {
    "string": [
        ("Quest Lumaflex™ Band", "quest lumaflex band"),
        ("V-Neck", "v neck"),
        ("V–Neck", "v neck"),
        ("Café Ünïcode", "cafe unicode"),
        ("“Hi!”", "hi"),
        ("  tab\tnew\nline\u200b ", "tab new line"),
        ("nul\x00 bell\x07", "nul bell"),
        ("SUCCESS.", "success"),
        ("-5", "-5"),
        ("−5", "-5"),
        ("3–4", "3-4"),
        ("A-", "a-"),
        (".5", ".5"),
        ("5", "5"),
        (5, "5"),
        (5.0, "5"),
        (0, "0"),
        (True, "true"),
        ('16"', '16"'),
        ("?", "?"),
        ("北京", "北京"),
        ("İstanbul", "istanbul"),
        ("N/A", "n/a"),
        ("\x08", None),
    ],
    "number": [
        (5, "5"),
        (5.0, "5"),
        (-0.0, "0"),
        (0.1 + 0.2, "0.3"),
        ("1,234.50", "1234.5"),
        ("1 234", "1234"),
        ("+5", "5"),
        ("−5", "-5"),
        ("5.", "5"),
        (".5", "0.5"),
        ("1e3", "1000"),
        ("12345678901234567890", "12345678901234567890"),
        ("two", "2"),
        ("Twenty-five", "25"),
        ("two hundred and five thousand", "205000"),
        ("a million", "1000000"),
        ("minus two", "-2"),
    ],
    "integer": [(5.0, "5"), ("2,176,999", "2176999")],
    "currency": [
        (36.39, "USD 36.39"),
        (0, "USD 0.00"),
        ("$36.39", "USD 36.39"),
        ("36.39 USD", "USD 36.39"),
        ("US$ 36.39", "USD 36.39"),
        ("36.39 dollars", "USD 36.39"),
        ("-$36.39", "USD -36.39"),
        ("$-36.39", "USD -36.39"),
        ("($36.39)", "USD -36.39"),
        ("$1,234.5", "USD 1234.50"),
        ("36,39 €", "EUR 36.39"),
        ("1.234,56 EUR", "EUR 1234.56"),
        ("€1,234", "EUR 1234.00"),
        ("£5.", "GBP 5.00"),
        ("free", "USD 0.00"),
        ("99 cents", "USD 0.99"),
        (36.390000001, "USD 36.39"),
        (-0.001, "USD 0.00"),
    ],
    "date": [
        ("2023-05-23", "2023-05-23"),
        ("2023-05-23T23:30:00+09:00", "2023-05-23"),
        ("2023-05-23 11:30 PM", "2023-05-23"),
        ("May 23, 2023", "2023-05-23"),
        ("May 23,2023", "2023-05-23"),
        ("May 23rd 2023", "2023-05-23"),
        ("Tuesday, 23 May 2023.", "2023-05-23"),
        ("23rd of May, 2023", "2023-05-23"),
        ("23-May-2023", "2023-05-23"),
        ("05/23/2023", "2023-05-23"),
        ("5/23/23", "2023-05-23"),
        ("5/6/2023", "2023-05-06"),
        ("23.5.2023", "2023-05-23"),
        ("20230523", "2023-05-23"),
        ("May 2023", "2023-05"),
        ("2023-05", "2023-05"),
        ("2023", "2023"),
        ("May 23", "--05-23"),
        ("Feb 29", "--02-29"),
        ("1/2/99", "1999-01-02"),
    ],
    "month": [
        (5, "--05"),
        (5.0, "--05"),
        ("05", "--05"),
        ("May", "--05"),
        ("sept.", "--09"),
        ("May 2022", "2022-05"),
        ("2022-05", "2022-05"),
        ("5/2022", "2022-05"),
    ],
    "duration": [
        ("2min", "PT2M"),
        ("1hr 35min", "PT1H35M"),
        ("1h35m", "PT1H35M"),
        ("95 minutes", "PT1H35M"),
        ("1 hour, 35 minutes", "PT1H35M"),
        ("1 hour and 35 minutes", "PT1H35M"),
        ("1:35", "PT1H35M"),
        ("1:35 hours", "PT1H35M"),
        ("01:35:00", "PT1H35M"),
        ("PT1H35M", "PT1H35M"),
        ("P1DT2H", "PT26H"),
        ("about 30 min", "PT30M"),
        ("~30 mins.", "PT30M"),
        ("1.5 hours", "PT1H30M"),
        ("an hour", "PT1H"),
        ("90s", "PT1M30S"),
        ("0 min", "PT0S"),
        ("1.5 s", "PT1.5S"),
    ],
    "distance": [
        ("1.4km", "1400 m"),
        ("1,400 m", "1400 m"),
        ("4k", "4000 m"),
        ("2 miles", "3218.688 m"),
        ("5 ft 6 in", "1.6764 m"),
        ("5'6\"", "1.6764 m"),
        ("5 km and 300 m", "5300 m"),
        ("about 2 km.", "2000 m"),
        ("0 m", "0 m"),
    ],
    "coordinates": [
        ([40.4, -79.9], "40.4,-79.9"),
        (["40.40", "-79.9"], "40.4,-79.9"),
        ({"latitude": "40.4", "longitude": "-79.9"}, "40.4,-79.9"),
        ({"Lat": 40.4, "lng": -79.9, "name": "x"}, "40.4,-79.9"),
        ("40.4, -79.9", "40.4,-79.9"),
        ("(40.4;-79.9)", "40.4,-79.9"),
        ("lat: 40.4, lon: -79.9", "40.4,-79.9"),
        ("40.4° N, 79.9° W", "40.4,-79.9"),
        ("79.9W 40.4N", "40.4,-79.9"),
        ("40°30′00″N 79°15′36″W", "40.5,-79.26"),
    ],
    "boolean": [(True, "true"), ("Yes.", "true"), (" TRUE ", "true"), ("no", "false")],
    "url": [
        ("HTTP://Shop.Test:80/a/../b/?y=2&x=1#top", "http://shop.test/b?x=1&y=2#top"),
        ("https://shop.test", "https://shop.test"),
        ("https://shop.test/", "https://shop.test"),
        ("shop.test/A b", "https://shop.test/A%20b"),
        ("https://shop.test/%41?q=a+b&e=", "https://shop.test/A?q=a%20b"),
        ("__GITLAB__/a/B/?x=Y", "__GITLAB__/a/B?x=Y"),
        ("git@Host.test:a/B.git", "git@host.test:a/B.git"),
        ("ssh://git@host.test:2222/a/B.git", "git@host.test:a/B.git"),
        ("git@__SSH_HOST__:a/B.git", "git@__SSH_HOST__:a/B.git"),
        ("http://[::1]:8080/x", "http://[::1]:8080/x"),
    ],
    "string_list": [
        ("5,1842", ["1842", "5"]),
        (["5", 1842], ["1842", "5"]),
        ("B, a,,B", ["a", "b", "b"]),
        (["a, b"], ["a, b"]),
        ([], []),
        ("", []),
    ],
    "json": [
        ('{"b": 1.0, "a": "X"}', '{"a":"X","b":1}'),
        ({"b": 1, "a": "X"}, '{"a":"X","b":1}'),
        ('[1, "é", null, true]', '[1,"é",null,true]'),
        ("0.30", "0.3"),
        ("12345678901234567890", "12345678901234567890"),
    ],
    "markdown": [
        ("#  Title ##\r\n\r\n\r\n* a  \n+ b\n    - c\n", "# Title\n- a\n- b\n  - c"),
        (" - a\n   - b\n     - c\n - d", "- a\n  - b\n    - c\n- d"),
        ("a\n\n\n\nb", "a\n\nb"),
        ("```\n# x  \n\n\n* y\n```", "```\n# x  \n\n\n* y\n```"),
        ("```\n* y\n```\n* z", "```\n* y\n```\n- z"),
        ("````\n```\n* y\n````\n* z", "````\n```\n* y\n````\n- z"),
        ("```\n``` py\n* y\n```\n* z", "```\n``` py\n* y\n```\n- z"),
        ("a\n\n- - -\n\nb", "a\n\n***\n\nb"),
        ("Title\n---\ntext", "Title\n---\ntext"),
        ("#hash", "#hash"),
    ],
    "base64": [
        ("aGVsbG8=", "aGVsbG8="),
        ("aGVsbG8", "aGVsbG8="),
        ("aGVs\nbG8=", "aGVsbG8="),
        ("Pz8_", "Pz8/"),
        ("YQ0KYg==", "YQpi"),
    ],
    "location-name": [
        ("The Oaklander Hotel", "hotel oaklander"),
        ("Oaklander Hotel, The", "hotel oaklander"),
        ("Schiller's Pharmacy", "pharmacy schillers"),
        ("De Fer Coffee & Tea", "coffee de fer tea"),
        ("Craig St.", "craig street"),
        ("Gate 1", "1 gate"),
        ("Mile 0.5", "0.5 mile"),
    ],
    "full_address": [
        (
            "117 South Bouquet Street, Pittsburgh, Pennsylvania 15213-1234, USA",
            {
                "house_number": "117",
                "street": "s bouquet st",
                "city": "pittsburgh",
                "state": "PA",
                "postcode": "15213",
                "country": "US",
            },
        ),
        (
            {"name": "Erie Diner", "street": "Forbes Avenue", "state": "pa", "postcode": 15213},
            {"name": "erie diner", "street": "forbes ave", "state": "PA", "postcode": "15213"},
        ),
    ],
    "null": [(None, None), ("", None), ([], None), ({}, None), ("N/A", None), ("none.", None)],
}

# kind -> two values that are different
DIFFERENT: dict[str, list[tuple[JsonValue, JsonValue]]] = {
    "string": [("-5", "5"), (".5", "5"), ("A-", "A"), ('16"', "16"), ("a", ["a"]), ("0", "")],
    "number": [(1, True), (5, -5), (12, "1.2"), ("10", "1"), (0.3, 0.31)],
    "integer": [(5, 6)],
    "currency": [
        (36.39, -36.39),
        (36.39, "€36.39"),
        (36.39, 36.40),
        (36.39, 3639),
        (12, "$12 or $99"),
        (1, True),
    ],
    "date": [
        ("May 23, 2023", "May 2023"),
        ("May 2023", "May"),
        ("2023-05-23", "2023-05-24"),
        ("2023-05-23", "2022-05-23"),
    ],
    "month": [("May", "June"), ("May 2022", "May 2023"), (1, True)],
    "duration": [
        ("2min", "5min"),
        ("7min", "8min"),
        ("7min", "7h"),
        ("1h 20min", "1h"),
        ("1:35", "95 s"),
    ],
    "distance": [
        ("10m", "20m"),
        ("2km", "2 mi"),
        ("1.4km", "1.5km"),
        ("653m", "652m"),
        ("1.4km", "1 km"),
        ("653m", "0.7km"),
    ],
    "coordinates": [
        ([40.4424, -79.9397], [40.4424, 79.9397]),
        ([40.4424, -79.9397], [40.4425, -79.9397]),
        ([40.4424191, -79.9397388], [40.4424391, -79.9397388]),
        ([40.4, -79.9], [-79.9, 40.4]),
    ],
    "boolean": [(True, False), (True, 1), (True, "1"), ("yes", "no")],
    "url": [
        ("http://a.test", "https://a.test"),
        ("http://a.test/A", "http://a.test/a"),
        ("http://a.test/?x=1&x=2", "http://a.test/?x=1&x=3"),
        ("http://a.test/?x=1", "http://a.test"),
        ("git@a.test:x/y", "git@b.test:x/y"),
        ("http://a.test:8080", "http://a.test"),
    ],
    "string_list": [("a,a", "a"), ("a,b", "a"), (["a,b"], "a,b")],
    "json": [('{"a":"X"}', '{"a":"x"}'), ("[1,2]", "[2,1]"), ('{"a":1}', '{"a":"1"}')],
    "markdown": [("# A", "# a"), ("# A", "## A"), ("- a\n  - b", "- a\n- b"), ("a", "b")],
    "base64": [("SGVsbG8=", "aGVsbG8=")],
    "location-name": [("Gate 1", "Gate 2"), ("Hyatt Regency", "Hyatt"), ("abcde", "abcdf")],
    "full_address": [
        ({"city": "Erie", "state": "PA"}, {"city": "Erie"}),
        ({"street": "5th Ave", "city": "Erie"}, {"street": "6th Ave", "city": "Erie"}),
        ({"name": "a", "city": "Erie"}, {"name": "b", "city": "Erie"}),
    ],
    "null": [(None, 0), (None, False), (None, "x")],
}

# kind -> two values of different normal forms that are the same
SAME: dict[str, list[tuple[JsonValue, JsonValue]]] = {
    "month": [("May", "May 2022")],
    "duration": [("7min", "7 min 12 s"), ("5h 47min", "5.8h")],
    "distance": [("914km", "568 mi"), ("2km", "1.98km"), ("653m", "0.65km")],
    "coordinates": [
        ([40.4424191, -79.9397388], "40.4424, -79.9397"),
        ([40.4424191, -79.9397388], [40.44242, -79.93974]),
    ],
    "full_address": [({"name": "a", "city": "Erie"}, {"city": "Erie"})],
}

# kind -> what is no value of it
INVALID: dict[str, list[JsonValue]] = {
    "string": [[], ["a"], {}, {"a": 1}],
    "number": [
        5e-324,
        True,
        [5],
        {},
        *_texts(
            """1,2 | 12,34 | 1_0 | 5% | ~5 | 5 items | $5 | inf | nan | 1e400 | 0x10 | ٣
            I think there are two | three four | point | a | minus | hundred | million
            two thousand million"""
        ),
    ],
    "integer": [5.5, "5.5"],
    "currency": [
        True,
        [5],
        *_texts(
            """$12 or $99 | $5 - $10 | 10% | 2 for $10 | Free shipping | 5 zorkmids | 12,3456
            $ | 1e5 | - | $5€"""
        ),
    ],
    "date": [
        5,
        20230523,
        True,
        ["May 1"],
        *_texts(
            """Feb 30 2023 | Feb 29 2023 | 13/13/2023 | today | Tuesday | 10:30 | 2023-143
            0000-01-01 | 12"""
        ),
    ],
    "month": [0, 13, 5.5, True, *_texts("13 | Januar | Q1 | 2022 | May 5, 2022 | maybe")],
    "duration": [
        "PT1.2.3H",
        5,
        *_texts("5 | -5 min | inf min | 1e3 s | min | 5 min 2 h | 15 min walk | 1:75"),
    ],
    "distance": [
        5,
        *_texts(
            """5 | -5 km | inf m | nan m | 1e400 m | 2*2 km | 9**9**8 m | 1/2 mi | 5 kg
            1,4 km | km | 5 m/s | 2 km walk"""
        ),
    ],
    "coordinates": [
        [1],
        [1, 2, 3],
        [95, 10],
        [40, 200],
        [True, False],
        {"lat": 1},
        {"lat": 1, "latitude": 2, "lon": 3},
        40.4,
        "40.4",
        "40 N, 79 N",
    ],
    "boolean": [0, 1, 2, 1.0, [True], {}, *_texts("1 | 0 | maybe | yes, it is")],
    "url": [5, ["http://a.test"], *_texts("not a url | http:// | /path | http://a b/")],
    "string_list": [{}, [[1]], [None]],
    "json": [*_texts('{bad | NaN | [1e999] | {"a":1,"a":2} | \'a\'')],
    "markdown": [5, ["a"], {}],
    "base64": [5, *_texts("!! | /w== | a | ^.*$")],
    "location-name": [["a"], {}, "!!"],
    "full_address": [
        {},
        {"planet": "Mars"},
        {"state": "ZZ"},
        {"postcode": "1521"},
        5,
        "Pittsburgh",
        "Main St, Erie, PA 16501",
    ],
    "null": [0, False, [0], {"a": None}, "x"],
}

assert NORMAL.keys() == DIFFERENT.keys() == INVALID.keys() == set(KINDS)
