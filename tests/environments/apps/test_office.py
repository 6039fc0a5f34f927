"""Several applications as one: signing in, roles, and names that are kept apart."""

from __future__ import annotations

from trajudge.environments.apps import load_app
from trajudge.environments.apps.composite import renamed
from trajudge.environments.checks.walk import Walk
from trajudge.environments.model.axes import open_state, ui
from trajudge.environments.model.config import Config
from trajudge.environments.model.page import Word
from trajudge.environments.model.plan import enter, follow, press
from trajudge.environments.model.site import Redirect, Site
from trajudge.environments.model.spec import Rejected

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
