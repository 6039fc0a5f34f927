"""Amounts, dates, durations and numbers in running text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tables import table
from trajudge.environments.verify.mentions import ProseKind, digits_for_words, mentions
from trajudge.rules.values import normalise


@table(
    "words digits",
    """
    three hours and five minutes               | 3 hours and 5 minutes
    two hundred twelve dollars and forty cents | 212 dollars and 40 cents
    a hundred and sixty minutes                | 160 minutes
    twenty-five                                | 25
    half an hour                               | 30 minutes
    two and a half hours                       | 2.5 hours
    one of them is two pounds                  | one of them is 2 pounds
    one hour                                   | 1 hour
    twenty twenty                              | twenty twenty
    six hundred forty-two point five kilos     | 642.5 kilos
    eighty-seven and a half percent            | 87.5 percent
    three and a quarter hours                  | 3.25 hours
    the thirty-first of August 2026            | the 31th of August 2026
    January fifth, 2027                        | January 5th, 2027
    the first of the two                       | the first of the 2
    thirteen hundred eighteen dollars          | 1318 dollars
    nineteen hundred and four                  | 1904
    the last day of February 2028              | the 29 February 2028
    """,
)
def test_numbers_in_words_become_digits(words: str, digits: str) -> None:
    assert digits_for_words(words) == digits


@pytest.mark.parametrize(
    ("kind", "text", "forms"),
    [
        ("currency", "$190.25 per month ($2,283.00 a year)", ["USD 190.25", "USD 2283.00"]),
        ("currency", "190,25 $ or 190 dollars and 25 cents", ["USD 190.25", "USD 190.25"]),
        ("number", "3 of AL-1044, on page 2 of 7, at 10:15, the 2nd, 4.5/5", ["3", "4.5"]),
        ("date", "from 14.02.2026 to 3 March 2026", ["2026-02-14", "2026-03-03"]),
        ("duration", "2:40 h, that is 160 min", ["PT2H40M", "PT2H40M"]),
        ("currency", "47 euros and 88 cents, 402 dollars 60.", ["EUR 47.88", "USD 402.60"]),
        ("currency", "$47 and 88 cents", ["USD 47.88"]),
        ("currency", "24 euros 90 per month", ["EUR 24.90"]),
        ("duration", "a 3-hour-40-minute flight", ["PT3H40M"]),
        ("duration", "3 horas y 40 minutos, not 2 hours - 3 hours", ["PT3H40M", "PT2H", "PT3H"]),
        ("number", "87,5 % of 1.234,5 and 1,200", ["87.5", "1234.5", "1200"]),
        ("date", "am 23. September 2026 or August the 31st, 2026", ["2026-09-23", "2026-08-31"]),
        ("date", "23/09/26, May 4 '26", ["2026-09-23", "2026-05-04"]),
        ("duration", "3h15 07h48m PT3H15M", ["PT3H15M", "PT7H48M", "PT3H15M"]),
        ("duration", "2 hours 45, not 2 h 30 min 5 s", ["PT2H45M", "PT2H30M5S"]),
        ("duration", "3 Std. 15 Min. or 3,25 hours", ["PT3H15M", "PT3H15M"]),
    ],
)
def test_every_mention_has_its_place_and_normal_form(
    kind: ProseKind, text: str, forms: list[str]
) -> None:
    found = mentions(kind, text)
    assert [one.form for one in found] == forms
    assert all(one.sure and text[one.start : one.end].strip() for one in found)


def test_a_date_in_numbers_that_reads_two_ways_is_both() -> None:
    assert [(one.form, one.sure) for one in mentions("date", "01/05/27")] == [
        ("2027-01-05", False),
        ("2027-05-01", False),
    ]
    assert [(one.form, one.sure) for one in mentions("date", "05.01.2027")] == [
        ("2027-01-05", True),
        ("2027-05-01", False),
    ]


@given(st.integers(0, 10**6), st.sampled_from(["There are {} of them.", "= {}", "{}"]))
def test_a_number_is_found_in_a_sentence(number: int, sentence: str) -> None:
    (found,) = mentions("number", sentence.format(f"{number:,}"))
    assert found.form == normalise("number", number)
