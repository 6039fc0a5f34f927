"""A web shop: catalogue, cart, orders, wish list, account (consumer transactions)."""

from __future__ import annotations

from environments.apps.shop.operations import OPERATIONS
from environments.apps.shop.pages import NAVIGATION, PAGES, WORDS
from environments.apps.shop.scenarios import SCENARIOS
from environments.apps.shop.schema import TABLES, profile
from environments.model.spec import App

APP = App(
    id="shop",
    domain="consumer-transactions",
    title="Alder & Finch",
    tables=TABLES,
    profile=profile,
    pages=PAGES,
    operations=OPERATIONS,
    navigation=NAVIGATION,
    scenarios=SCENARIOS,
    words=WORDS,
    starts=("home", "products", "cart", "orders", "wishes", "account"),
    sorts=3,
)
