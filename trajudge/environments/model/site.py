"""An application in one state: what a visitor gets for a page or an operation, without HTTP.

The server and the walker both stand on this, so what is checked offline is what the browser sees.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from trajudge.environments.model.config import Ui
from trajudge.environments.model.page import Form, Link, Notice, Page, Paragraph, Question, Word
from trajudge.environments.model.spec import App, FormSubmission, PageContext, Rejected, Success
from trajudge.environments.model.state import AppState

CONFIRMED = "_confirmed"
INFORMATION = "info"
_TEXTS: dict[str, list[str]] = tomllib.loads(
    Path(__file__).with_name("information.toml").read_text(encoding="utf-8")
)


class Redirect(NamedTuple):
    """The operation was carried out: go on to this page."""

    page: str
    args: Mapping[str, str]


class Site:
    """``code`` seals a row (table, key) as an operation code."""

    def __init__(
        self, app: App, state: AppState, ui: Ui, code: Callable[[str, str], str] = lambda *_: "-"
    ) -> None:
        self.app, self.state, self.ui, self.code = app, state, ui, code

    def navigation(self, page: str) -> tuple[Link, ...]:
        """Return the links on every page, or on every one of the area that ``page`` is in."""
        return self.app.areas.get(page.partition("/")[0], self.app.navigation)

    def information(self) -> tuple[Link, ...]:
        """Return the links to what the site says about itself; no task needs them."""
        return tuple(Link(Word(f"info_{topic}"), INFORMATION, {"id": topic}) for topic in _TEXTS)

    def knows(self, page: str) -> bool:
        return page in self.app.pages or page == INFORMATION

    def get(self, page: str, args: Mapping[str, str]) -> Page:
        """Return the page; one that says "not found" for a name that does not exist."""
        if page == INFORMATION and (texts := _TEXTS.get(args.get("id", ""))):
            return Page(Word(f"info_{args['id']}"), tuple(map(Paragraph, texts)))
        maker = self.app.pages.get(page)
        if maker is None:
            return missing()
        return maker(PageContext(self.state, args, self.ui, self.code))

    def post(self, operation: str, form: Mapping[str, str]) -> Redirect | Rejected | Page:
        """Carry out an operation, or give the page that asks for confirmation first."""
        known = self.app.operations.get(operation)
        if known is None:
            return missing()
        submission = FormSubmission(self.state, form)
        if known.confirm and form.get(CONFIRMED) != "yes":
            return _question(known.confirm(submission), operation, form)
        # A failing statement must not leave half an operation behind.
        outcome = self.state.attempt(
            lambda: known.run(submission), lambda done: isinstance(done, Success)
        )
        return Redirect(outcome.page, outcome.args) if isinstance(outcome, Success) else outcome


def missing() -> Page:
    """Return what is shown for an address that leads nowhere."""
    return Page(Word("not_found"), (Link(Word("home"), "home"),))


def refused(page: Page, refusal: Rejected) -> Page:
    """Return the page again, with the reason above."""
    return page._replace(blocks=(Notice(refusal.message, error=True), *page.blocks))


def _question(text: str, operation: str, form: Mapping[str, str]) -> Page:
    """Return what asks for confirmation, over nothing: the server shows it over the page that the
    form was on."""
    hidden = {**form, CONFIRMED: "yes"}
    agree = Form(Word("confirm"), operation=operation, hidden=hidden)
    cancel = Link(Word("cancel"), "home")
    return Page(
        Word("confirm_title"), (), question=Question(Word("confirm_title"), text, agree, cancel)
    )
