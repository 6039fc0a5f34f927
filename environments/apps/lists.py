"""Lists with a search above them: their pages, and the moves of those who use them.

An application that builds on this words ``words`` and ``any``, and every list and filter by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from environments.kit.listing import listing
from environments.model.page import Field, Form, Link, Option, Page, Row, Word
from environments.model.plan import Move, choose, enter, follow, press, scan
from environments.model.spec import View

CONFIRM = press(Word("confirm"), "confirm it")


def asked_for(view: View, *names: str) -> dict[str, str]:
    """What a search asks for, as values of its SQL."""
    return {name: view.args.get(name, "") for name in ("words", *names)}


def chosen(view: View, name: str, values: Iterable[str]) -> Field:
    """A filter that may be left open."""
    options = (Option("", Word("any")), *(Option(entry, entry) for entry in values))
    return Field(name, Word(name), "choice", view.args.get(name, ""), options)


def searched(
    view: View, page: str, columns: str, rows: Sequence[Row], filters: Sequence[Field] = ()
) -> Page:
    """A list page: the search, then what was found. ``columns`` are words, blanks between."""
    words = Field("words", Word("words"), "search", view.args.get("words", ""))
    form = Form(Word("search"), (words, *filters), page=page)
    return Page(Word(page), (form, *listing(view, page, headings(columns), rows)))


def headings(columns: str) -> tuple[Word, ...]:
    return tuple(map(Word, columns.split()))


def opens(text: str, page: str, key: str, *cells: str) -> Row:
    """A row whose link opens the thing."""
    return Row(Link(text, page, {"id": key}), cells)


# --- moves ---------------------------------------------------------------------------------------


def seek(page: str, text: str) -> list[Move]:
    """Find one thing by its number or name and open it."""
    return [
        follow(Word(page), f"open the list of {page}"),
        enter(Word("words"), text, f"look for {text}"),
        press(Word("search"), "start the search"),
        follow(text, f"open {text}"),
    ]


def see_all(page: str, **filters: str) -> list[Move]:
    """See everything in a list that the filters leave."""
    return [
        follow(Word(page), f"open the list of {page}"),
        *(choose(Word(name), text, f"narrow it down to {text}") for name, text in filters.items()),
        press(Word("search"), "apply the filter"),
        scan("see the whole list"),
    ]


def fill(button: str, *, texts: dict[str, str | int], choices: dict[str, str]) -> list[Move]:
    """Complete the form and send it."""
    return [
        *(choose(Word(name), text, f"choose {text}") for name, text in choices.items()),
        *(enter(Word(name), text, f"fill in {text}") for name, text in texts.items()),
        press(Word(button), "send the form"),
    ]
