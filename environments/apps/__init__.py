"""The applications, one a WebForge domain; a new one is a folder here and a line in ``APPS``."""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module

from environments.model.spec import App
from trajectories.errors import UserError

# id -> domain; the modules are read when first used.
APPS: dict[str, str] = {
    "shop": "consumer-transactions",
    "moderation": "content-moderation",
    "helpdesk": "enterprise-process",
    "almanac": "information-retrieval",
    "toolbox": "tool-use",
    "console": "platform-management",
    "press": "content-creation",
}


@lru_cache
def load_app(name: str) -> App:
    """The application with this id. Raises UserError for one that does not exist."""
    if name not in APPS:
        raise UserError(f"no application is called {name!r}: choose from {', '.join(APPS)}")
    app: App = import_module(f"environments.apps.{name}").APP
    return app
