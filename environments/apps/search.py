"""The search above a list. Applications word ``words`` and ``any``."""

from __future__ import annotations

from collections.abc import Iterable

from environments.model.page import Field, Form, Option, Word
from environments.model.spec import View


def chosen(name: str, word: str, value: str, values: Iterable[str]) -> Field:
    """A filter that may be left open."""
    options = (Option("", Word("any")), *(Option(entry, entry) for entry in values))
    return Field(name, Word(word), "choice", value, options)


def find(page: str, view: View, *more: Field) -> Form:
    """The form: words and filters."""
    words = Field("words", Word("words"), "search", view.args.get("words", ""))
    return Form(Word("search"), (words, *more), page=page)
