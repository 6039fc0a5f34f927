"""An application without HTTP: pages only read, refused and failing operations leave no trace."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from environments.apps import APPS, load_app
from environments.kit.reading import forms, links
from environments.model.axes import open_world, ui
from environments.model.config import Config
from environments.model.page import Form, Link, Notice, Page, Text, Word
from environments.model.schema import table
from environments.model.site import CONFIRMED, MENU, Landing, Site, missing, refused
from environments.model.spec import App, Call, Done, Operation, Refused
from environments.model.state import World, digest


def _add(call: Call) -> Done | Refused:
    call.world.add("log", id=call.world.token("log"), note=call.form["note"])
    return Done("home", {"note": call.form["note"]})


def _half(call: Call) -> Done | Refused:
    _add(call)
    return Refused("Not today.")


def _broken(call: Call) -> Done | Refused:
    _add(call)
    raise RuntimeError("halfway")


def _about_burning(call: Call) -> str:
    return f"Burn {call.form['note']}?"


APP = App(
    id="diary",
    domain="content-creation",
    title="Diary",
    tables=(table("log", id="token", note="text"),),
    profile=lambda *_: {"log": [("a", "first")]},
    pages={"home": lambda _: Page("Diary", (Text("Dear diary"),))},
    operations={
        "add": Operation(_add),
        "half": Operation(_half),
        "broken": Operation(_broken),
        "burn": Operation(
            _add, irreversible=True, confirm=lambda call: f"Burn {call.form['note']}?"
        ),
    },
    navigation=(Link(Word("home"), "home"),),
    scenarios=(),
    words={},
)


@pytest.fixture
def site() -> Iterator[Site]:
    world = open_world(APP, Config(app="diary", scenario=""))
    yield Site(APP, world, ui(APP, 0, 0))
    world.close()


def test_an_operation_changes_the_state_and_leads_on(site: Site) -> None:
    assert site.post("add", {"note": "x"}) == Landing("home", {"note": "x"})
    assert site.world.value("SELECT count(*) FROM log") == 2


def test_a_refused_operation_leaves_no_trace(site: Site) -> None:
    before = site.world.dump()
    assert site.post("half", {"note": "x"}) == Refused("Not today.")
    assert site.world.dump() == before


def test_a_failing_operation_leaves_no_trace_and_the_next_one_works(site: Site) -> None:
    before = site.world.dump()
    with pytest.raises(RuntimeError, match="halfway"):
        site.post("broken", {"note": "x"})
    with pytest.raises(KeyError):
        site.post("add", {})
    assert site.world.dump() == before
    assert isinstance(site.post("add", {"note": "x"}), Landing)


def test_operations_nest_in_a_transaction_of_the_caller(site: Site) -> None:
    before = site.world.dump()
    site.world.db.execute("BEGIN")
    site.post("add", {"note": "x"})
    site.world.db.execute("ROLLBACK")
    assert site.world.dump() == before


def test_a_question_is_asked_first_and_changes_nothing(site: Site) -> None:
    before = site.world.dump()
    question = site.post("burn", {"note": "x"})
    assert isinstance(question, Page)
    assert question.blocks[0] == Text("Burn x?")
    assert site.world.dump() == before
    (form,) = forms(question)
    assert (form.operation, form.hidden) == ("burn", {"note": "x", CONFIRMED: "yes"})
    assert isinstance(site.post("burn", form.hidden), Landing)


@pytest.mark.parametrize("answer", ["", "no", "YES", "true"])
def test_only_the_form_s_own_yes_confirms(site: Site, answer: str) -> None:
    assert isinstance(site.post("burn", {"note": "x", CONFIRMED: answer}), Page)


def test_what_does_not_exist_is_a_page_that_says_so(site: Site) -> None:
    assert site.get("nowhere", {}) == missing() == site.post("nothing", {})
    assert site.knows("home")
    assert site.knows(MENU)
    assert not site.knows("nowhere")


def test_a_folded_navigation_is_behind_the_menu(site: Site) -> None:
    assert site.navigation() == APP.navigation
    folded = Site(APP, site.world, site.ui.__class__("home", 4, 0, folded=True))
    assert folded.navigation() == (Link(Word("menu"), MENU),)
    assert tuple(links(folded.get(MENU, {}))) == APP.navigation


def test_a_refusal_is_shown_above_the_page_again() -> None:
    page = refused(Page("Diary", (Text("Dear diary"),)), Refused("No."))
    assert page.blocks == (Notice("No.", error=True), Text("Dear diary"))


HOSTILE = ("", "x", "-1", "'; DROP TABLE x; --", "99999999999999999999", "\x00", "é" * 5000, "²")


@pytest.mark.parametrize("name", APPS)
def test_pages_only_read_whatever_their_address_says(name: str) -> None:
    app = load_app(name)
    world = open_world(app, Config(app=name, scenario="", profile=2))
    before = digest(world.dump())
    for state in (ui(app, 0, 0), ui(app, 5, 0)):
        site = Site(app, world, state)
        for page in app.pages:
            for text in HOSTILE:
                args = dict.fromkeys(("id", "part", "words", "category", "year", "q", "sort"), text)
                assert isinstance(site.get(page, args), Page)
            assert isinstance(site.get(page, {}), Page)
    assert digest(world.dump()) == before
    world.close()


@pytest.mark.parametrize("name", APPS)
def test_hostile_forms_never_leave_half_an_operation(name: str) -> None:
    app = load_app(name)
    known = list(_forms(app))
    names = {name for form in known for name in form.hidden}
    names |= {entry.name for form in known for entry in form.fields}
    for operation in app.operations:
        world = open_world(app, Config(app=name, scenario="", profile=2))
        site = Site(app, world, ui(app, 0, 0))
        for text in HOSTILE:
            before = digest(world.dump())
            entered = dict.fromkeys(names, text)
            for form in ({}, entered, {CONFIRMED: "yes", **entered}):
                outcome = site.post(operation, form)
                if not isinstance(outcome, Landing):
                    assert digest(world.dump()) == before, (operation, text)
                before = digest(world.dump())
        world.close()


def _forms(app: App) -> Iterator[Form]:
    world: World = open_world(app, Config(app=app.id, scenario="", profile=2))
    site = Site(app, world, ui(app, 0, 0))
    for page in app.pages:
        yield from forms(site.get(page, {}))
    world.close()
