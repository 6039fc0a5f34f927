"""A workshop's web tools, with their records and saved jobs (tool use)."""

from __future__ import annotations

from environments.apps.toolbox.operations import OPERATIONS
from environments.apps.toolbox.pages import NAVIGATION, PAGES
from environments.apps.toolbox.scenarios import SCENARIOS
from environments.apps.toolbox.schema import TABLES, profile
from environments.apps.toolbox.words import WORDS
from environments.model.spec import App

APP = App(
    id="toolbox",
    domain="tool-use",
    title="The Reckoner",
    tables=TABLES,
    profile=profile,
    pages=PAGES,
    operations=OPERATIONS,
    navigation=NAVIGATION,
    scenarios=SCENARIOS,
    words=WORDS,
    starts=("home", "converter", "loan", "dates", "estimator", "rooms", "packing", "jobs"),
    sorts=2,
)
