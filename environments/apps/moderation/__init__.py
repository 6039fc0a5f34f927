"""A community site's moderation desk: reports, decisions, appeals, audit log (moderation)."""

from __future__ import annotations

from environments.apps.moderation.operations import OPERATIONS
from environments.apps.moderation.pages import NAVIGATION, PAGES
from environments.apps.moderation.scenarios import SCENARIOS
from environments.apps.moderation.schema import TABLES, profile
from environments.apps.moderation.words import WORDS
from environments.model.spec import App

APP = App(
    id="moderation",
    domain="content-moderation",
    title="Quayside Commons",
    tables=TABLES,
    profile=profile,
    pages=PAGES,
    operations=OPERATIONS,
    navigation=NAVIGATION,
    scenarios=SCENARIOS,
    words=WORDS,
    starts=("home", "reports", "posts", "members", "appeals", "log"),
    sorts=3,
)
