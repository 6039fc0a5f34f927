"""Values that are quantities: numbers, amounts of money, times, lengths, dates, points."""

from __future__ import annotations

import calendar
import re
from collections.abc import Iterable, Mapping
from decimal import ROUND_HALF_UP, Decimal
from typing import TYPE_CHECKING, NamedTuple

from trajudge.rules.limits import SCALAR_CHARS, InvalidValue, bounded

if TYPE_CHECKING:
    from pydantic import JsonValue

from trajudge.rules.values.model import Kind, bounded_decimal, decimal_of, show_decimal
from trajudge.rules.values.texts import casefold_unaccented, normal_text, raw_text, strip_invisible

LARGEST_SHARE = Decimal("0.03")
_LARGEST_QUANTITY = Decimal(10) ** 15


class Quantity(NamedTuple):
    """A duration or distance: ``value`` and ``resolution`` in the same base unit (seconds, metres).

    The resolution is the size of the last unit or decimal in the text: a minute for ``1hr 35min``,
    100 m for ``1.4km``.
    """

    value: Decimal
    resolution: Decimal


def resolution_of(digits: str, unit: Decimal) -> Decimal:
    """Return the size of the last decimal of a number written in a unit."""
    decimals = len(digits.partition(".")[2])
    return unit.scaleb(-decimals)


def checked_quantity(value: Decimal, resolution: Decimal) -> Quantity:
    """Return a quantity. Raises InvalidValue beyond 1e15 base units."""
    if value > _LARGEST_QUANTITY:
        raise InvalidValue("larger than anything that can be travelled")
    return Quantity(value, resolution)


def same_quantity(one: Quantity, other: Quantity) -> bool:
    """Return True if rounding explains the difference.

    It must be at most half of the coarser resolution and at most 3 % of the larger value, so that a
    coarse answer does not equal a precise one.
    """
    difference = abs(one.value - other.value)
    if not difference:
        return True
    rounding = max(one.resolution, other.resolution) / 2
    return difference <= min(rounding, LARGEST_SHARE * max(one.value, other.value))


_DIGITS = re.compile(
    r"([+-]?) ?((?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]{1,3}(?: [0-9]{3})+|[0-9]+)(?:\.[0-9]*)?|\.[0-9]+)"
    r"([eE][+-]?[0-9]{1,4})?"
)
_SMALL = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
    "fifteen sixteen seventeen eighteen nineteen"
)
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
SMALL = {word: value for value, word in enumerate(_SMALL.split())}
TENS = {word: 10 * value for value, word in enumerate(_TENS.split(), start=2)}
SCALES = {"thousand": 10**3, "million": 10**6, "billion": 10**9}


def _group(words: list[str]) -> int:
    """Return the value of words below a thousand: ``two hundred and thirty five``."""
    total = 0
    if len(words) > 1 and words[1] == "hundred":
        if words[0] != "a" and not 0 < SMALL.get(words[0], 0) < 10:
            raise InvalidValue("not a number")
        total, words = 100 * SMALL.get(words[0], 1), words[2:]
        words = words[1:] if len(words) > 1 and words[0] == "and" else words
    if words and words[0] in TENS:
        total, words = total + TENS[words[0]], words[1:]
        if words and not 0 < SMALL.get(words[0], 0) < 10:
            raise InvalidValue("not a number")
    if words and words[0] in SMALL:
        total, words = total + SMALL[words[0]], words[1:]
    if words:
        raise InvalidValue("not a number")
    return total


def _in_words(text: str) -> Decimal:
    """Return the value of a text that consists of number words."""
    words = text.replace("-", " ").removesuffix(".").split()
    negative = words[:1] in (["minus"], ["negative"])
    words = words[negative:]
    total, largest = 0, 10**12
    while scales := [index for index, word in enumerate(words) if word in SCALES]:
        end = scales[0]
        scale, group = SCALES[words[end]], words[:end]
        if not group or scale >= largest:
            raise InvalidValue("not a number")
        total, largest = total + scale * (1 if group == ["a"] else _group(group)), scale
        words = words[end + 1 :]
        words = words[1:] if len(words) > 1 and words[0] == "and" else words
    if not words and not total:
        raise InvalidValue("not a number")
    total += _group(words) if words else 0
    return Decimal(-total if negative else total)


def parse_number_text(text: str) -> Decimal:
    """Parse a number in a normalised text."""
    if match := _DIGITS.fullmatch(text):
        sign, digits, exponent = match.groups()
        return bounded_decimal(
            Decimal(sign + digits.replace(",", "").replace(" ", "") + (exponent or ""))
        )
    if text[:1].isalpha():
        return _in_words(text.casefold())
    raise InvalidValue("not a number")


def parse_number(raw: JsonValue) -> Decimal:
    """Parse a JSON number or a text."""
    if isinstance(raw, bool):
        raise InvalidValue("a truth value where a number is expected")
    if isinstance(raw, int | float):
        return decimal_of(raw)
    return parse_number_text(strip_invisible(bounded(raw_text(raw), SCALAR_CHARS)))


def parse_integer(raw: JsonValue) -> Decimal:
    """Parse a number without a fraction."""
    value = parse_number(raw)
    if value != value.to_integral_value():
        raise InvalidValue("not a whole number")
    return value


NUMBER = Kind(parse=parse_number, show=show_decimal)
"""number, integer: an exact decimal number.

Normal form: decimal digits without exponent, grouping, leading or trailing zeros: ``-1234.5``.
Read are JSON numbers (binary fractions to 15 digits, so that 0.1 + 0.2 is 0.3), digits with an
optional sign, exponent and thousands separators in their places, and numbers in words that
are nothing but number words. Truth values, percentages, units, prose and infinities are refused.
"""

INTEGER = Kind(parse=parse_integer, show=show_decimal)
HEDGE = re.compile(r"(?:about|around|approx(?:imately|\.)?|roughly|circa|ca\.|~|≈) ?")
_JOINT = re.compile(r"(?:,? and |, ?| )?")
_AMOUNT_OF_UNITS = r"(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:\.[0-9]+)?"
_SECONDS = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), Decimal(1)),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), Decimal(60)),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), Decimal(3600)),
    **dict.fromkeys(("d", "day", "days"), Decimal(86400)),
    **dict.fromkeys(("w", "week", "weeks"), Decimal(604800)),
}
METRES = {
    **dict.fromkeys(("m", "metre", "metres", "meter", "meters"), Decimal(1)),
    **dict.fromkeys(("k", "km", "kms", "kilometre", "kilometres"), Decimal(1000)),
    **dict.fromkeys(("kilometer", "kilometers"), Decimal(1000)),
    **dict.fromkeys(("cm", "centimetre", "centimetres"), Decimal("0.01")),
    **dict.fromkeys(("centimeter", "centimeters"), Decimal("0.01")),
    **dict.fromkeys(("mm", "millimetre", "millimetres"), Decimal("0.001")),
    **dict.fromkeys(("millimeter", "millimeters"), Decimal("0.001")),
    **dict.fromkeys(("mi", "mile", "miles"), Decimal("1609.344")),
    **dict.fromkeys(("ft", "foot", "feet", "'"), Decimal("0.3048")),
    **dict.fromkeys(("in", "inch", "inches", '"'), Decimal("0.0254")),
    **dict.fromkeys(("yd", "yds", "yard", "yards"), Decimal("0.9144")),
    **dict.fromkeys(("nmi", "nautical mile", "nautical miles"), Decimal(1852)),
}


def _alternatives(names: Iterable[str]) -> str:
    return "|".join(sorted(names, key=len, reverse=True))


_TIME_PART = re.compile(rf"({_AMOUNT_OF_UNITS}|an?) ?-?({_alternatives(_SECONDS)})\.?")
_LENGTH_PART = re.compile(rf"({_AMOUNT_OF_UNITS}) ?-?({_alternatives(METRES)})")
_CLOCK = re.compile(
    r"([0-9]{1,4}):([0-5][0-9])(?::([0-5][0-9](?:\.[0-9]+)?))?(?: ?(?:hrs?|hours?|h))?"
)
_ISO_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)([wdhms])")
_ISO = re.compile(r"p((?:[0-9]+w)?(?:[0-9]+d)?)(?:t((?:[0-9.]+h)?(?:[0-9.]+m)?(?:[0-9.]+s)?))?")


def _sum(parts: Iterable[tuple[str, str]], units: Mapping[str, Decimal], noun: str) -> Quantity:
    """Add numbers with units, which must be in descending order."""
    total, finest, last = Decimal(0), Decimal(1), Decimal(10**9)
    for digits, name in parts:
        unit = units[name]
        if unit >= last:
            raise InvalidValue(f"units of {noun} out of order")
        number = "1" if digits[0] == "a" else digits.replace(",", "")
        total += Decimal(number) * unit
        finest, last = resolution_of(number, unit), unit
    return checked_quantity(total, finest)


def _parts(text: str, part: re.Pattern[str], problem: str) -> list[tuple[str, str]]:
    """Return the numbers with units of which a text consists. Raises InvalidValue for other
    text."""
    parts, position = [], 0
    while match := part.match(text, position):
        parts.append((match[1], match[2]))
        joint = _JOINT.match(text, match.end())
        position = joint.end() if joint and joint.end() < len(text) else match.end()
    if not parts or position != len(text):
        raise InvalidValue(problem)
    return parts


def _without_hedge(raw: JsonValue, problem: str) -> str:
    """Remove ``about`` or ``~`` from the start of a normalised text. Raises InvalidValue for
    other values than texts."""
    if not isinstance(raw, str) or len(raw) > SCALAR_CHARS:
        raise InvalidValue(problem)
    text = casefold_unaccented(raw).removesuffix(".")
    return text if text[:1] in "0123456789" else HEDGE.sub("", text, count=1)


def parse_duration(raw: JsonValue) -> Quantity:
    """Seconds."""
    problem = "not a duration with its unit"
    text = _without_hedge(raw, problem)
    if clock := _CLOCK.fullmatch(text):
        hours, minutes, seconds = clock.groups()
        parts = [(hours, "h"), (minutes, "m")] + ([(seconds, "s")] if seconds else [])
        return _sum(parts, _SECONDS, "time")
    if text[:1] == "p" and (iso := _ISO.fullmatch(text)):
        parts = [(n, u) for half in iso.groups("") for n, u in _ISO_PART.findall(half)]
        if parts and sum(map(len, map("".join, parts))) == len(iso[1]) + len(iso[2] or ""):
            return _sum(parts, _SECONDS, "time")
        raise InvalidValue("not a duration")
    return _sum(_parts(text, _TIME_PART, problem), _SECONDS, "time")


def show_duration(duration: Quantity) -> str:
    """ISO 8601 in hours, minutes and seconds."""
    minutes, seconds = divmod(duration.value, 60)
    hours, minutes = divmod(minutes, 60)
    text = f"PT{hours:f}H" if hours else "PT"
    text += f"{minutes:f}M" if minutes else ""
    text += f"{show_decimal(seconds)}S" if seconds or text == "PT" else ""
    return text


DURATION = Kind(parse=parse_duration, show=show_duration, same=same_quantity)
"""duration: a length of time.

Normal form: ISO 8601 in hours, minutes and seconds: ``PT1H35M``, ``PT0S``. Read are numbers with
units (``1hr 35min``, ``1 hour and 35 minutes``, ``95 min``), clocks (``1:35`` is hours and minutes,
as the map site shows travel times, ``1:35:00``), ISO 8601; before each, ``about`` or ``~``.
A number without a unit is refused, and so is a negative one. Compared by ``same_quantity``.
"""


def parse_distance(raw: JsonValue) -> Quantity:
    """Metres."""
    problem = "not a distance with its unit"
    return _sum(_parts(_without_hedge(raw, problem), _LENGTH_PART, problem), METRES, "length")


def show_distance(distance: Quantity) -> str:
    """Metres."""
    return f"{show_decimal(distance.value)} m"


DISTANCE = Kind(parse=parse_distance, show=show_distance, same=same_quantity)
"""distance: a length.

Normal form: metres, ``1400 m``. Read are a number with a unit of length (``1.4km``, ``2 miles``,
``5 ft 6 in``, ``4k`` for kilometres), optionally after ``about`` or ``~``. The text is never
evaluated: arithmetic, infinities, negative lengths and numbers without a unit are refused.
Compared by ``same_quantity``.
"""


_CODES = "USD EUR GBP JPY CNY INR CAD AUD NZD CHF SEK NOK DKK KRW BRL MXN SGD HKD PLN CZK"
_CURRENCIES = {
    **{code.casefold(): code for code in _CODES.split()},
    **dict.fromkeys(("$", "us$", "us dollar", "us dollars", "dollar", "dollars"), "USD"),
    **dict.fromkeys(("€", "euro", "euros"), "EUR"),
    **dict.fromkeys(("£", "pound", "pounds"), "GBP"),
    **dict.fromkeys(("¥", "yen"), "JPY"),
    **dict.fromkeys(("₹", "rupee", "rupees", "rs", "rs."), "INR"),
    **{"c$": "CAD", "ca$": "CAD", "a$": "AUD", "au$": "AUD", "nz$": "NZD", "hk$": "HKD"},
    **{"s$": "SGD", "r$": "BRL", "mx$": "MXN", "₩": "KRW", "yuan": "CNY", "rmb": "CNY"},
}
_CENTS = {"¢", "cent", "cents"}
_AMOUNT = r"[0-9][0-9.,' ]*|\.[0-9]+"
_PRICE = re.compile(rf"([^0-9.()+-]*)([+-]?)([^0-9.()+-]*?) ?({_AMOUNT})([^0-9.,()]*)")
_POINT = re.compile(r"(?:[0-9]{1,3}(?:[,' ][0-9]{3})+|[0-9]+)?(?:\.[0-9]*)?")
_COMMA = re.compile(r"(?:[0-9]{1,3}(?:[.' ][0-9]{3})+|[0-9]+),[0-9]{2}")
_LARGEST = Decimal(10) ** 20


class Money(NamedTuple):
    """``amount`` in units of ``currency``, two decimals."""

    currency: str
    amount: Decimal


def _amount(text: str) -> Decimal:
    text = text.strip()
    if _POINT.fullmatch(text):
        return Decimal(re.sub(r"[,' ]", "", text))
    if _COMMA.fullmatch(text):
        return Decimal(re.sub(r"[.' ]", "", text).replace(",", "."))
    raise InvalidValue("not one amount of money")


def _cents(amount: Decimal) -> Decimal:
    if abs(bounded_decimal(amount)) > _LARGEST:
        raise InvalidValue("not an amount of money")
    return amount.quantize(Decimal("0.01"), ROUND_HALF_UP) + 0


def _parse_text(text: str) -> Money:
    text = HEDGE.sub("", text.casefold().removesuffix("."), count=1)
    if text == "free":
        return Money("USD", Decimal("0.00"))
    negative = text[:1] == "(" and text[-1:] == ")"
    match = _PRICE.fullmatch(text[1:-1] if negative else text)
    if not match:
        raise InvalidValue("not one amount of money")
    before, sign, between, digits, after = (part.strip() for part in match.groups())
    names = [name for name in (before, between, after) if name]
    amount = _amount(digits)
    if len(names) == 1 and names[0] in _CENTS and names[0] == after:
        currency, amount = "USD", amount / 100
    else:
        known = {_CURRENCIES.get(name) for name in names} or {"USD"}
        currency = known.pop() or ""
        if known or not currency:
            raise InvalidValue("not one amount of money in a known currency")
    return Money(currency, _cents(-amount if negative or sign == "-" else amount))


def parse_currency(raw: JsonValue) -> Money:
    """Parse an amount from a JSON number (US dollars) or a text."""
    if isinstance(raw, bool):
        raise InvalidValue("a truth value where an amount of money is expected")
    if isinstance(raw, int | float):
        return Money("USD", _cents(decimal_of(raw)))
    return _parse_text(strip_invisible(raw_text(raw, SCALAR_CHARS)))


def show_currency(money: Money) -> str:
    """``USD -36.39``."""
    return f"{money.currency} {money.amount:f}"


CURRENCY = Kind(parse=parse_currency, show=show_currency)
"""currency: an amount of money with its sign and currency, exact to the cent.

Normal form: ISO 4217 code, space, amount with two decimals: ``USD -36.39``. An amount that states
no currency is in US dollars, the currency of the benchmark's sites. Read are one amount with a
symbol, code or name of a currency before or after it, a sign or accounting parentheses, thousands
separators in their places, a decimal comma followed by two digits, ``free``, and any of these after
``about`` or ``~``, as with distances and durations. Two prices, a range, a percentage or prose
around a price are refused.
"""


_MONTHS = (
    "january jan,february feb,march mar,april apr,may,june jun,july jul,august aug,"
    "september sep sept,october oct,november nov,december dec"
)
MONTHS = {
    name: number
    for number, names in enumerate(_MONTHS.split(","), start=1)
    for name in names.split()
}
_MONTH = rf"(?P<name>{'|'.join(sorted(MONTHS, key=len, reverse=True))})\.?"
_DAY = r"(?P<day>[0-9]{1,2})(?:st|nd|rd|th)?"
_YEAR = r"(?P<year>[0-9]{4})"
_TIME = re.compile(
    r"(?:,? at|,)?[ t](?:[0-9]{1,2}:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]{1,9})?)?(?: ?[ap]\.?m\.?)?"
    r"|[0-9]{1,2} ?[ap]\.?m\.?)(?: ?(?:z|utc|gmt|[+-][0-9]{2}:?[0-9]{2}))?\Z"
)
_WEEKDAY = re.compile(r"(?:(?:mon|tues?|wed(?:nes)?|thu(?:rs?)?|fri|sat(?:ur)?|sun)(?:day)?\.?,? )")
_FORMS = tuple(
    re.compile(form)
    for form in (
        _YEAR + r"([-/.])(?P<month>[0-9]{1,2})\2(?P<day>[0-9]{1,2})",
        r"(?P<first>[0-9]{1,2})([-/.])(?P<second>[0-9]{1,2})\2(?P<year>[0-9]{4}|[0-9]{2})",
        rf"{_MONTH} {_DAY}(?:,? ?{_YEAR})?",
        rf"(?:the )?{_DAY}(?: of | |-|/){_MONTH}(?:(?:,? ?|-|/){_YEAR})?",
        rf"{_MONTH}(?:,? |-){_YEAR}",
        _YEAR + r"-(?P<month>[0-9]{1,2})",
        r"(?P<month>[0-9]{1,2})/" + _YEAR,
        r"--(?P<month>[0-9]{2})-(?P<day>[0-9]{2})",
        r"(?P<year>[0-9]{4})(?P<month>[0-9]{2})(?P<day>[0-9]{2})",
        _YEAR + rf"[- ]{_MONTH}[- ](?P<day>[0-9]{{1,2}})",
        _YEAR,
    )
)


class Date(NamedTuple):
    """The stated parts; None where a part was not stated."""

    year: int | None
    month: int | None
    day: int | None


def _checked_date(year: int | None, month: int | None, day: int | None) -> Date:
    if year == 0 or (month is not None and not 1 <= month <= 12):
        raise InvalidValue("no such date")
    # 29 February is valid unless its year is no leap year.
    longest = calendar.monthrange(year or 2000, month)[1] if month else 31
    if day is not None and not 1 <= day <= longest:
        raise InvalidValue("no such day")
    return Date(year, month, day)


def _from_match(parts: dict[str, str | None]) -> Date:
    stated = parts.get("year") or ""
    year = int(stated) if stated else None
    if year is not None and len(stated) == 2:
        year += 2000 if year < 69 else 1900
    if parts.get("first"):
        first, second = int(parts["first"] or 0), int(parts["second"] or 0)
        return (
            _checked_date(year, second, first) if first > 12 else _checked_date(year, first, second)
        )
    month = MONTHS[parts["name"] or ""] if parts.get("name") else int(parts.get("month") or 0)
    day = int(parts["day"] or 0) if parts.get("day") else None
    return _checked_date(year, month if parts.get("name") or parts.get("month") else None, day)


def parse_date(raw: JsonValue) -> Date:
    """Parse a date from a text. Raises InvalidValue for numbers, such as an epoch."""
    if not isinstance(raw, str) or len(raw) > SCALAR_CHARS:
        raise InvalidValue("not a date")
    text = casefold_unaccented(raw).removesuffix(".")
    if text[:1].isalpha():
        text = _WEEKDAY.sub("", text, count=1) if _WEEKDAY.match(text) else text
    if ":" in text or text.endswith(("m", "m.")):
        text = _TIME.sub("", text)
    for form in _FORMS:
        if match := form.fullmatch(text):
            return _from_match(match.groupdict())
    raise InvalidValue("not a date")


def show_date(date: Date) -> str:
    """Return ISO 8601, truncated to the stated parts."""
    year = "-" if date.year is None else f"{date.year:04}"
    month = "" if date.month is None else f"-{date.month:02}"
    return year + month + ("" if date.day is None else f"-{date.day:02}")


DATE = Kind(parse=parse_date, show=show_date, nothing=frozenset({"", "n/a", "na", "none", "null"}))
"""date: a day, or the part of a date that was stated.

Normal form: ISO 8601, cut to the stated parts: ``2023-05-23``, ``2023-05``, ``2023``, ``--05-23``.
Parts that are not stated are never filled in, so a month is no day in it. Read are ISO dates,
numbers with ``/``, ``-`` or ``.`` between them — month first as the benchmark's sites write, unless
only day first is a date — and English month names with the day before or after. A weekday and a
time of day are allowed and ignored; the date is the one written, whatever the time zone. Years of
two digits are 1969 to 2068.
"""

_MONTH_NUMBER = re.compile(r"(?:--)?([0-9]{1,2})(?:\.0+)?")


def parse_month(raw: JsonValue) -> Date:
    """Parse a month, as a date without a day."""
    if isinstance(raw, int | float) and not isinstance(raw, bool):
        number = int(raw) if 1 <= raw <= 12 and raw == int(raw) else 0
    elif isinstance(raw, str) and len(raw) <= SCALAR_CHARS:
        text = casefold_unaccented(raw).removesuffix(".")
        match = _MONTH_NUMBER.fullmatch(text)
        number = int(match[1]) if match else MONTHS.get(text, 0)
        if not match and not number:
            stated = parse_date(raw)
            if stated.month is None or stated.day is not None:
                raise InvalidValue("not a month")
            return stated
    else:
        raise InvalidValue("not a month")
    if not 1 <= number <= 12:
        raise InvalidValue("not a month")
    return Date(None, number, None)


def same_month(one: Date, other: Date) -> bool:
    """Return True for equal months, unless both state a year and the years differ."""
    return one.month == other.month and (
        one.year is None or other.year is None or one.year == other.year
    )


MONTH = Kind(parse=parse_month, show=show_date, same=same_month, nothing=DATE.nothing)
"""month: a calendar month, of a year where one was stated.

Normal form: ``2022-05``, or ``--05`` without a year. Two months are the same if their numbers are
and no two different years were stated. Read are the numbers 1 to 12, English names, and both with
a year. A date with a day is a date, not a month.
"""


_TRUTH = dict.fromkeys(("true", "t", "yes", "y", "on"), True) | dict.fromkeys(
    ("false", "f", "no", "n", "off"), False
)


def parse_boolean(raw: JsonValue) -> bool:
    """Parse a JSON truth value or a word."""
    if isinstance(raw, bool):
        return raw
    value = _TRUTH.get(normal_text(raw_text(raw, SCALAR_CHARS)))
    if value is None:
        raise InvalidValue("neither yes nor no")
    return value


def show_boolean(value: bool) -> str:
    """Return ``true`` or ``false``."""
    return "true" if value else "false"


BOOLEAN = Kind(parse=parse_boolean, show=show_boolean)
"""boolean: a truth value. Normal form: ``true`` or ``false``.

Read are JSON truth values and the words true, t, yes, y, on and false, f, no, n, off, whatever
their case and closing punctuation. Numbers are not truth values.
"""

_NO_VALUE = frozenset({"", "n/a", "na", "nan", "null", "none"})


def parse_nothing(raw: JsonValue) -> None:
    """Return None. Raises InvalidValue for a value."""
    if raw is None or raw in ([], {}):
        return
    if isinstance(raw, str) and len(raw) <= SCALAR_CHARS and normal_text(raw) in _NO_VALUE:
        return
    raise InvalidValue("a value where none is expected")


NOTHING = Kind(parse=parse_nothing, show=lambda _: None, is_list=lambda _: True)
"""null: no value at all. Normal form: None.

Read are None, blank text, the empty list and object, and the words with which agents say that
there is none. Anything else is a value, zero and false included.
"""

_LATITUDE = ("latitude", "lat")
_LONGITUDE = ("longitude", "lon", "lng", "long")
_LEAST_DECIMALS = 4
_SAME_PLACE = Decimal("0.00001")
_LABEL = r"(?:(?:lat|lon|lng|long|latitude|longitude)[:=]? ?)?"
_ANGLE = (
    _LABEL + r"(?:([nsew]) ?)?([+-]?[0-9]{1,3}(?:\.[0-9]+)?) ?°?"
    r"(?: ?([0-9]{1,2}(?:\.[0-9]+)?) ?')?(?: ?([0-9]{1,2}(?:\.[0-9]+)?) ?(?:\"|''))? ?([nsew])?"
)
_PAIR = re.compile(rf"[(\[]?{_ANGLE} ?[,; ] ?{_ANGLE}[)\]]?")


class Point(NamedTuple):
    """Decimal degrees, north and east positive."""

    latitude: Decimal
    longitude: Decimal


def _checked_point(latitude: Decimal, longitude: Decimal) -> Point:
    if abs(latitude) > 90 or abs(longitude) > 180:
        raise InvalidValue("no such point: a latitude is within 90, a longitude within 180 degrees")
    return Point(round(latitude, 9), round(longitude, 9))


def _angle(
    before: str, degrees: str, minutes: str, seconds: str, after: str
) -> tuple[str, Decimal]:
    if before and after:
        raise InvalidValue("not coordinates")
    side = before or after or ""
    size = abs(Decimal(degrees)) + Decimal(minutes or 0) / 60 + Decimal(seconds or 0) / 3600
    negative = degrees[0] == "-" or (side and side in "sw")
    return side, -size if negative else size


def _from_text(text: str) -> Point:
    match = _PAIR.fullmatch(casefold_unaccented(text))
    if not match:
        raise InvalidValue("not coordinates")
    groups = match.groups("")
    one, first = _angle(*groups[:5])
    other, second = _angle(*groups[5:])
    if one in ("e", "w") and other in ("n", "s"):
        first, second = second, first
    elif one in ("e", "w") or other in ("n", "s"):
        raise InvalidValue("not one latitude and one longitude")
    return _checked_point(first, second)


def _member(raw: dict[str, JsonValue], names: tuple[str, ...]) -> Decimal:
    results = [value for key, value in raw.items() if key.strip().casefold() in names]
    if len(results) != 1:
        raise InvalidValue("an object without exactly one latitude and one longitude")
    return parse_number(results[0])


def parse_coordinates(raw: JsonValue) -> Point:
    """Parse a point from a list, an object or a text."""
    if isinstance(raw, list) and len(raw) == 2:
        return _checked_point(parse_number(raw[0]), parse_number(raw[1]))
    if isinstance(raw, dict) and len(raw) <= 100:
        return _checked_point(_member(raw, _LATITUDE), _member(raw, _LONGITUDE))
    if isinstance(raw, str) and len(raw) <= SCALAR_CHARS:
        return _from_text(raw)
    raise InvalidValue("not coordinates")


def _decimals(value: Decimal) -> int:
    exponent = value.normalize().as_tuple().exponent
    return max(-exponent, _LEAST_DECIMALS) if isinstance(exponent, int) else _LEAST_DECIMALS


def _near(one: Decimal, other: Decimal) -> bool:
    coarser = min(_decimals(one), _decimals(other))
    return abs(one - other) <= max(Decimal(5).scaleb(-coarser - 1), _SAME_PLACE)


def same_point(one: Point, other: Point) -> bool:
    """Return True if both components agree to the stated precision."""
    return _near(one.latitude, other.latitude) and _near(one.longitude, other.longitude)


def show_coordinates(point: Point) -> str:
    """``40.4424191,-79.9397388``."""
    return f"{show_decimal(point.latitude)},{show_decimal(point.longitude)}"


def is_point(raw: JsonValue) -> bool:
    """Return True if a list is one point rather than a list of alternatives."""
    return (
        isinstance(raw, list) and len(raw) == 2 and not any(isinstance(x, list | dict) for x in raw)
    )


COORDINATES = Kind(
    parse=parse_coordinates, show=show_coordinates, same=same_point, is_list=is_point
)
"""coordinates: a point on the globe.

Normal form: latitude and longitude in decimal degrees, ``40.4424191,-79.9397388``. Read are a list
of two numbers, an object with a latitude and a longitude (lat, lon, lng, long), and text: two
decimal numbers or degrees, minutes and seconds, with or without N, S, E, W. Latitudes beyond 90
and longitudes beyond 180 degrees are refused. Two points are the same if each component differs
by at most half of the coarser one's last decimal, where four decimals (about 11 m) are the least,
or by 0.00001, which is 1.1 m: no map tells such points apart.
"""
