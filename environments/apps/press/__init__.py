"""A publishing desk: articles, reviews, images, newsletters, comments (content creation)."""

from __future__ import annotations

from environments.apps.press.operations import OPERATIONS
from environments.apps.press.pages import NAVIGATION, PAGES
from environments.apps.press.scenarios import SCENARIOS
from environments.apps.press.schema import TABLES, profile
from environments.apps.press.words import WORDS
from environments.model.spec import App

APP = App(
    id="press",
    domain="content-creation",
    title="The Lantern Review",
    tables=TABLES,
    profile=profile,
    pages=PAGES,
    operations=OPERATIONS,
    navigation=NAVIGATION,
    scenarios=SCENARIOS,
    words=WORDS,
    starts=("home", "articles", "sections", "images", "newsletters", "comments"),
    sorts=3,
)
