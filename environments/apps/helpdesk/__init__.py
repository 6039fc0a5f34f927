"""A company's request desk: tickets, purchases, leave, staff, rooms (enterprise process)."""

from __future__ import annotations

from environments.apps.helpdesk.operations import OPERATIONS
from environments.apps.helpdesk.pages import NAVIGATION, PAGES
from environments.apps.helpdesk.scenarios import SCENARIOS
from environments.apps.helpdesk.schema import TABLES, profile
from environments.apps.helpdesk.words import WORDS
from environments.model.spec import App

APP = App(
    id="helpdesk",
    domain="enterprise-process",
    title="Larkfield Works",
    tables=TABLES,
    profile=profile,
    pages=PAGES,
    operations=OPERATIONS,
    navigation=NAVIGATION,
    scenarios=SCENARIOS,
    words=WORDS,
    starts=("home", "tickets", "purchases", "leaves", "people", "rooms"),
    sorts=3,
)
