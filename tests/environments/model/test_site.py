"""An application without HTTP: pages only read, refused and failing operations leave no trace."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.environments.cases import half_done
from trajudge.environments.apps import APPS, load_app
from trajudge.environments.kit.reading import forms
from trajudge.environments.model.axes import open_state, ui
from trajudge.environments.model.config import Config
from trajudge.environments.model.page import Form, Link, Notice, Page, Paragraph, Word
from trajudge.environments.model.schema import table
from trajudge.environments.model.site import CONFIRMED, Redirect, Site, missing, refused
from trajudge.environments.model.spec import App, FormSubmission, Operation, Rejected, Success
from trajudge.environments.model.state import AppState, digest


def _add(submission: FormSubmission) -> Success | Rejected:
    submission.state.add("log", id=submission.state.token("log"), note=submission.form["note"])
    return Success("home", {"note": submission.form["note"]})


def _broken(submission: FormSubmission) -> Success | Rejected:
    _add(submission)
    raise RuntimeError("halfway")


def _about_burning(submission: FormSubmission) -> str:
    return f"Burn {submission.form['note']}?"


APP = App(
    id="diary",
    domain="content-creation",
    title="Diary",
    tables=(table("log", id="token", note="text"),),
    profile=lambda *_: {"log": [("a", "first")]},
    pages={"home": lambda _: Page("Diary", (Paragraph("Dear diary"),))},
    operations={
        "add": Operation(_add),
        "half": Operation(half_done(_add)),
        "broken": Operation(_broken),
        "burn": Operation(
            _add, irreversible=True, confirm=lambda submission: f"Burn {submission.form['note']}?"
        ),
    },
    navigation=(Link(Word("home"), "home"),),
    scenarios=(),
    words={},
)


@pytest.fixture
def site() -> Iterator[Site]:
    state = open_state(APP, Config(app="diary", scenario=""))
    yield Site(APP, state, ui(APP, 0, 0))
    state.close()


def test_an_operation_changes_the_state_and_leads_on(site: Site) -> None:
    assert site.post("add", {"note": "x"}) == Redirect("home", {"note": "x"})
    assert site.state.value("SELECT count(*) FROM log") == 2


def test_a_refused_operation_leaves_no_trace(site: Site) -> None:
    before = site.state.dump()
    assert site.post("half", {"note": "x"}) == Rejected("Not today.")
    assert site.state.dump() == before


def test_a_failing_operation_leaves_no_trace_and_the_next_one_works(site: Site) -> None:
    before = site.state.dump()
    with pytest.raises(RuntimeError, match="halfway"):
        site.post("broken", {"note": "x"})
    with pytest.raises(KeyError):
        site.post("add", {})
    assert site.state.dump() == before
    assert isinstance(site.post("add", {"note": "x"}), Redirect)


def test_operations_nest_in_a_transaction_of_the_caller(site: Site) -> None:
    before = site.state.dump()
    site.state.db.execute("BEGIN")
    site.post("add", {"note": "x"})
    site.state.db.execute("ROLLBACK")
    assert site.state.dump() == before


def test_a_question_is_asked_first_and_changes_nothing(site: Site) -> None:
    before = site.state.dump()
    question = site.post("burn", {"note": "x"})
    assert isinstance(question, Page)
    assert question.question is not None
    assert question.question.text == "Burn x?"
    assert site.state.dump() == before
    (form,) = forms(question)
    assert (form.operation, form.hidden) == ("burn", {"note": "x", CONFIRMED: "yes"})
    assert isinstance(site.post("burn", form.hidden), Redirect)


@pytest.mark.parametrize("answer", ["", "no", "YES", "true"])
def test_only_the_form_s_own_yes_confirms(site: Site, answer: str) -> None:
    assert isinstance(site.post("burn", {"note": "x", CONFIRMED: answer}), Page)


def test_what_does_not_exist_is_a_page_that_says_so(site: Site) -> None:
    assert site.get("nowhere", {}) == missing() == site.post("nothing", {})
    assert site.knows("home")
    assert not site.knows("nowhere")


def test_a_refusal_is_shown_above_the_page_again() -> None:
    page = refused(Page("Diary", (Paragraph("Dear diary"),)), Rejected("No."))
    assert page.blocks == (Notice("No.", error=True), Paragraph("Dear diary"))


HOSTILE = ("", "x", "-1", "'; DROP TABLE x; --", "99999999999999999999", "\x00", "é" * 5000, "²")


@pytest.mark.parametrize("name", APPS)
def test_pages_only_read_whatever_their_address_says(name: str) -> None:
    app = load_app(name)
    state = open_state(app, Config(app=name, scenario="", profile=2))
    before = digest(state.dump())
    for interface in (ui(app, 0, 0), ui(app, 5, 0)):
        site = Site(app, state, interface)
        for page in app.pages:
            for text in HOSTILE:
                args = dict.fromkeys(("id", "part", "words", "category", "year", "q", "sort"), text)
                assert isinstance(site.get(page, args), Page)
            assert isinstance(site.get(page, {}), Page)
    assert digest(state.dump()) == before
    state.close()


@pytest.mark.parametrize("name", APPS)
def test_hostile_forms_never_leave_half_an_operation(name: str) -> None:
    app = load_app(name)
    known = list(_forms(app))
    names = {name for form in known for name in form.hidden}
    names |= {entry.name for form in known for entry in form.fields}
    for operation in app.operations:
        state = open_state(app, Config(app=name, scenario="", profile=2))
        site = Site(app, state, ui(app, 0, 0))
        before = state.db.serialize()
        for text in HOSTILE:
            entered = dict.fromkeys(names, text)
            for form in ({}, entered, {CONFIRMED: "yes", **entered}):
                outcome = site.post(operation, form)
                after = state.db.serialize()
                assert isinstance(outcome, Redirect) or after == before, (operation, text)
                before = after
        state.close()


def _forms(app: App) -> Iterator[Form]:
    state: AppState = open_state(app, Config(app=app.id, scenario="", profile=2))
    site = Site(app, state, ui(app, 0, 0))
    for page in app.pages:
        yield from forms(site.get(page, {}))
    state.close()
