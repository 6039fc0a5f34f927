"""A regional statistics and library portal (information retrieval)."""

from __future__ import annotations

from environments.apps.almanac.operations import OPERATIONS
from environments.apps.almanac.pages import NAVIGATION, PAGES
from environments.apps.almanac.scenarios import SCENARIOS
from environments.apps.almanac.schema import TABLES, profile
from environments.apps.almanac.words import WORDS
from environments.model.spec import App

APP = App(
    id="almanac",
    domain="information-retrieval",
    title="Tarn Valley Almanac",
    tables=TABLES,
    profile=profile,
    pages=PAGES,
    operations=OPERATIONS,
    navigation=NAVIGATION,
    scenarios=SCENARIOS,
    words=WORDS,
    starts=("home", "districts", "figures", "reports", "events", "research", "account"),
    sorts=3,
)
