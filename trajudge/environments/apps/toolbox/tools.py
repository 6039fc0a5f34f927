"""The tools: what each asks for and what it reckons, in whole numbers wherever money is.

Every tool reads untrusted text and gives None for what it cannot reckon with. An outcome keeps its
inputs in a normal form, so that a saved result does not depend on how a number was typed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date, timedelta
from typing import NamedTuple

from trajudge.environments.apps.toolbox.schema import COUNTINGS, in_unit
from trajudge.environments.model.binding import money
from trajudge.environments.model.state import AppState

_DECIMAL = re.compile(r"([0-9]{1,7})(?:\.([0-9]{1,2}))?")
_WHOLE = re.compile(r"[0-9]{1,6}")
_DAY = re.compile(r"(?:19|20|21)[0-9]{2}-[0-9]{2}-[0-9]{2}")


class ToolResult(NamedTuple):
    """Result of a tool.

    ``rows`` are Words' keys and what is shown, the chief one first; ``value`` is that one as a
    number: cents, hundredths of a unit, tins, or days.
    """

    inputs: Mapping[str, str]
    rows: tuple[tuple[str, str], ...]
    value: int

    @property
    def written(self) -> str:
        """The inputs as they are stored."""
        return "; ".join(f"{name}={value}" for name, value in self.inputs.items())


def read(written: str) -> dict[str, str]:
    """Parse stored inputs into what a form would send."""
    return dict(pair.split("=", 1) for pair in written.split("; ") if "=" in pair)


def hundredths(text: str) -> int | None:
    """``12.5`` as 1250."""
    match = _DECIMAL.fullmatch(text.strip())
    return None if match is None else int(match[1]) * 100 + int((match[2] or "").ljust(2, "0"))


def whole(text: str, low: int, high: int) -> int | None:
    """Return a whole number within bounds."""
    number = int(text) if _WHOLE.fullmatch(text) else None
    return number if number is not None and low <= number <= high else None


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text) if _DAY.fullmatch(text) else None
    except ValueError:
        return None


def _plain(number: int) -> str:
    """Hundredths as short as they can be written."""
    return f"{number // 100}.{number % 100:02}".rstrip("0").rstrip(".")


def convert(state: AppState, form: Mapping[str, str]) -> ToolResult | None:
    """Return an amount in another unit of the same kind, to two decimals."""
    by_name = "SELECT * FROM unit WHERE name = :name"
    amount = hundredths(form.get("amount", ""))
    source = state.one(by_name, name=form.get("source", ""))
    target = state.one(by_name, name=form.get("target", ""))
    if amount is None or source is None or target is None:
        return None
    if source["measures"] != target["measures"]:
        return None
    value = in_unit(amount, source["size"], target["size"])
    inputs = {"amount": _plain(amount), "source": source["name"], "target": target["name"]}
    shown = f"{value // 100:,}.{value % 100:02} {target['name']}"
    return ToolResult(inputs, (("converted", shown),), value)


def payment(principal: int, rate: int, months: int) -> int:
    """Return the level monthly payment in cents; ``rate`` is yearly, in hundredths of a per
    cent."""
    monthly = rate / 120_000
    if not monthly:
        return int(principal / months + 0.5)
    return int(principal * monthly / (1 - (1 + monthly) ** -months) + 0.5)


def loan(_: AppState, form: Mapping[str, str]) -> ToolResult | None:
    """Return what a loan with level payments costs."""
    principal, rate = hundredths(form.get("amount", "")), hundredths(form.get("rate", ""))
    years = whole(form.get("years", ""), 1, 40)
    if not principal or rate is None or rate > 10_000 or years is None:
        return None
    monthly = payment(principal, rate, 12 * years)
    total = 12 * years * monthly
    inputs = {"amount": _plain(principal), "rate": _plain(rate), "years": str(years)}
    rows = (
        ("monthly", money(monthly)),
        ("payments", money(total)),
        ("interest", money(total - principal)),
    )
    return ToolResult(inputs, rows, monthly)


def later(start: date, days: int, working: bool) -> date:
    """Return the day so many days after ``start``; working days are Monday to Friday."""
    if not working:
        return start + timedelta(days=days)
    weeks, rest = divmod(days, 5)
    end = start
    while end.weekday() > 4:  # from a weekend one counts as from the Friday before
        end -= timedelta(days=1)
    end += timedelta(weeks=weeks)
    over = end.weekday() + rest > 4
    return end + timedelta(days=rest + 2 * over) if days else start


def count_days(_: AppState, form: Mapping[str, str]) -> ToolResult | None:
    """Return the date so many calendar or working days after another."""
    start, days = _day(form.get("start", "")), whole(form.get("days", ""), 0, 20_000)
    counting = form.get("counting", "")
    if start is None or days is None or counting not in COUNTINGS:
        return None
    end = later(start, days, counting == "working days")
    inputs = {"start": start.isoformat(), "days": str(days), "counting": counting}
    rows = (("falls_on", end.isoformat()), ("apart", f"{(end - start).days} days"))
    return ToolResult(inputs, rows, (end - start).days)


def estimate(state: AppState, form: Mapping[str, str]) -> ToolResult | None:
    """Return the paint for the four walls of a room without its openings, in whole tins."""
    sides = [whole(form.get(name, ""), 1, 5000) for name in ("length", "width", "height")]
    openings, coats = whole(form.get("openings", ""), 0, 500), whole(form.get("coats", ""), 1, 9)
    paint = state.one("SELECT * FROM paint WHERE name = :name", name=form.get("paint", ""))
    length, width, height = sides
    if length is None or width is None or height is None:
        return None
    if openings is None or coats is None or paint is None:
        return None
    area = 2 * (length + width) * height - 10_000 * openings  # square centimetres
    if area <= 0:
        return None
    tins = -(-area * coats // (10_000 * paint["covers"] * paint["tin"]))
    hours, minutes = divmod(coats * paint["drying"], 60)
    inputs = {
        "length": str(length), "width": str(width), "height": str(height),
        "openings": str(openings), "coats": str(coats), "paint": paint["name"],
    }  # fmt: skip
    rows = (
        ("tins", str(tins)),
        ("cost", money(tins * paint["price"])),
        ("walls", f"{area // 100 // 100}.{area // 100 % 100:02} m²"),
        ("dry_after", f"{hours} h {minutes} min"),
    )
    return ToolResult(inputs, rows, tins)


TOOLS: Mapping[str, Callable[[AppState, Mapping[str, str]], ToolResult | None]] = {
    "converter": convert,
    "loan": loan,
    "dates": count_days,
    "estimator": estimate,
}
