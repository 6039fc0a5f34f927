"""Several applications as one: signing in, roles, and names that are kept apart."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from itertools import islice

import pytest

from tests.environments.apps.contract import crawl, named_twice, said
from trajudge.environments.apps import load_app
from trajudge.environments.apps.composite import renamed
from trajudge.environments.checks.walk import Walk
from trajudge.environments.kit.words import WORDS
from trajudge.environments.model.axes import instance, open_state, ui
from trajudge.environments.model.binding import Infeasible, bind
from trajudge.environments.model.config import Config
from trajudge.environments.model.page import Link, Word
from trajudge.environments.model.plan import enter, follow, press
from trajudge.environments.model.site import Redirect, Site, missing
from trajudge.environments.model.spec import Rejected, Scenario

OFFICE = load_app("office")


def site() -> Site:
    return Site(
        OFFICE, open_state(OFFICE, Config(app="office", scenario="cancel")), ui(OFFICE, 0, 0)
    )


def signed_in(office: Site, role: str) -> Walk:
    user = office.state.rows("SELECT * FROM user WHERE role = :role", role=role)[0]
    walk = Walk(office)
    walk.open("home", {})
    for step in (
        enter(Word("login"), user["login"], "write the name"),
        enter(Word("password"), user["password"], "write the password"),
        press(Word("sign_in"), "sign in"),
    ):
        walk.do(step)
    return walk


def test_every_page_asks_who_is_there_until_somebody_signed_in() -> None:
    office = site()
    for name in OFFICE.pages:
        assert office.get(name, {}).title == Word("sign_in"), name
    wrong = office.post("sign-in", {"login": "nobody", "password": "x"})
    assert wrong == Rejected("There is no user with this login name and password.")
    assert office.post("shop/newsletter", {}) == Rejected("Sign in first.")
    walk = signed_in(office, "clerk")
    assert walk.page.title == Word("start_page")
    walk.do(press(Word("sign_out"), "leave"))
    assert office.get("shop/products", {}).title == Word("sign_in")


def test_a_role_decides_what_is_refused_and_why() -> None:
    office = site()
    order = office.state.value("SELECT id FROM shop_purchase WHERE status = 'processing'")
    confirmed = {"order": order, "_confirmed": "yes"}
    signed_in(office, "buyer")
    outcome = office.post("shop/cancel-order", confirmed)
    assert isinstance(outcome, Rejected)
    assert outcome.message.startswith("Only a manager may do this; ")
    office.post("sign-out", {})
    signed_in(office, "manager")
    assert isinstance(office.post("shop/cancel-order", confirmed), Redirect)
    assert office.state.row("shop_purchase", order)["status"] == "cancelled"


def test_each_application_has_its_own_navigation_and_tables() -> None:
    office = site()
    walk = signed_in(office, "clerk")
    labels = {
        area: {link.label for link in office.navigation(f"{area}/home")} for area in OFFICE.areas
    }
    assert Word("products") in labels["shop"] and Word("products") not in labels["helpdesk"]
    walk.do(follow(Word("to_helpdesk"), "go to the desk"))
    walk.do(follow(Word("tickets"), "see the tickets"))
    assert walk.visits[-1].name == "helpdesk/tickets"
    assert {"shop_purchase", "helpdesk_purchase"} <= office.state.tables.keys()


@pytest.mark.parametrize("area", OFFICE.areas)
def test_on_a_page_a_wording_means_one_thing(area: str) -> None:
    """A word that two applications read otherwise is each one's own."""
    office, words = site(), {**WORDS, **OFFICE.words}
    signed_in(office, "clerk")
    part = replace(OFFICE, starts=(f"{area}/home",), navigation=OFFICE.areas[area])
    seen = list(islice(crawl(part, office, 60), 60))
    for place, page in seen:
        assert page != missing() and not named_twice(office, place, page), place
        keys = {word.key for word in (*said(page), *map(_label, office.navigation(place)))}
        wordings = [wording.casefold() for key in keys for wording in words[key]]
        assert len(wordings) == len(set(wordings)), place
    assert len({place for place, _ in seen}) >= 6


def _label(link: Link) -> Word:
    assert isinstance(link.label, Word)
    return link.label


@pytest.mark.parametrize("scenario", OFFICE.scenarios, ids=lambda scenario: scenario.id)
def test_a_task_is_over_several_applications_if_its_plan_is(scenario: Scenario) -> None:
    """A refusal that the list of rights tells of needs none of them."""
    plans = []
    for number in range(6):
        places = instance(OFFICE.id, scenario.id, tuple(scenario.slots), number, 0)
        state = open_state(OFFICE, Config(app="office", scenario=scenario.id, profile=number))
        with suppress(Infeasible):
            plans.append(scenario.plan(bind(scenario, places, state)))
        state.close()
    links = {Word(f"to_{area}") for area in OFFICE.areas}
    assert plans
    for plan in plans:
        visited = {step.label for step in plan} & links
        assert (len(visited) >= 2) == (scenario.family == "applications"), visited


def test_a_word_that_is_read_otherwise_has_the_name_of_its_application() -> None:
    assert OFFICE.words["due"] == load_app("helpdesk").words["due"]
    assert OFFICE.words["press_due"] == load_app("press").words["due"]
    assert "press_articles" not in OFFICE.words
    assert OFFICE.words["articles"] == load_app("press").words["articles"]


def test_a_query_of_a_member_names_the_tables_of_the_whole() -> None:
    tables = ("line", "purchase")
    for own, whole in {
        "SELECT * FROM purchase": 'SELECT * FROM "shop_purchase" AS purchase',
        "SELECT l.purchase FROM line l JOIN purchase ON purchase.id = l.purchase": (
            'SELECT l.purchase FROM "shop_line" l JOIN "shop_purchase" AS purchase'
            " ON purchase.id = l.purchase"
        ),
        'SELECT * FROM "line" WHERE id = :purchase': (
            'SELECT * FROM "shop_line" AS line WHERE id = :purchase'
        ),
    }.items():
        assert renamed(own, "shop", tables) == whole
