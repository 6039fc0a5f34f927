"""currency: an amount of money with its sign and currency, exact to the cent.

Normal form: ISO 4217 code, space, amount with two decimals: ``USD -36.39``. An amount that states
no currency is in US dollars, the currency of the benchmark's sites. Read are one amount with a
symbol, code or name of a currency before or after it, a sign or accounting parentheses, thousands
separators in their places, a decimal comma followed by two digits, ``free``, and any of these after
``about`` or ``~``, as with distances and durations. Two prices, a range, a percentage or prose
around a price are refused.
"""

from __future__ import annotations

import re
from decimal import ROUND_HALF_UP, Decimal
from typing import TYPE_CHECKING, NamedTuple

from trajudge.rules.errors import InvalidValue
from trajudge.rules.limits import SCALAR_CHARS
from trajudge.rules.values.decimals import bounded_decimal, from_json
from trajudge.rules.values.model import Kind
from trajudge.rules.values.quantities.duration import HEDGE
from trajudge.rules.values.texts.text import raw_text, strip_invisible

if TYPE_CHECKING:
    from pydantic import JsonValue

_CODES = [
    "USD",
    "EUR",
    "GBP",
    "JPY",
    "CNY",
    "INR",
    "CAD",
    "AUD",
    "NZD",
    "CHF",
    "SEK",
    "NOK",
    "DKK",
    "KRW",
    "BRL",
    "MXN",
    "SGD",
    "HKD",
    "PLN",
    "CZK",
]
_NAMES = {
    **{code.casefold(): code for code in _CODES},
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


def _digits(text: str) -> Decimal:
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
    found = _PRICE.fullmatch(text[1:-1] if negative else text)
    if not found:
        raise InvalidValue("not one amount of money")
    before, sign, between, digits, after = (part.strip() for part in found.groups())
    names = [name for name in (before, between, after) if name]
    amount = _digits(digits)
    if len(names) == 1 and names[0] in _CENTS and names[0] == after:
        currency, amount = "USD", amount / 100
    else:
        known = {_NAMES.get(name) for name in names} or {"USD"}
        currency = known.pop() or ""
        if known or not currency:
            raise InvalidValue("not one amount of money in a known currency")
    return Money(currency, _cents(-amount if negative or sign == "-" else amount))


def parse(raw: JsonValue) -> Money:
    """Return the amount that a JSON number (US dollars) or a text states."""
    if isinstance(raw, bool):
        raise InvalidValue("a truth value where an amount of money is expected")
    if isinstance(raw, int | float):
        return Money("USD", _cents(from_json(raw)))
    return _parse_text(strip_invisible(raw_text(raw, SCALAR_CHARS)))


def show(money: Money) -> str:
    """``USD -36.39``."""
    return f"{money.currency} {money.amount:f}"


KIND = Kind(parse=parse, show=show)
