"""A hosting platform's operations console: services, machines, alerts, keys (management)."""

from __future__ import annotations

from environments.apps.console.operations import OPERATIONS
from environments.apps.console.pages import NAVIGATION, PAGES
from environments.apps.console.scenarios import SCENARIOS
from environments.apps.console.schema import TABLES, profile
from environments.apps.console.words import WORDS
from environments.model.spec import App

APP = App(
    id="console",
    domain="platform-management",
    title="Basalt Cloud",
    tables=TABLES,
    profile=profile,
    pages=PAGES,
    operations=OPERATIONS,
    navigation=NAVIGATION,
    scenarios=SCENARIOS,
    words=WORDS,
    starts=("home", "services", "machines", "alerts", "members", "invoices"),
    sorts=3,
)
