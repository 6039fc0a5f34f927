"""The applications, one a WebForge domain, and one made of several (``office``).

A new one is a folder here and a line in ``APPS``, or a package of the user's with an entry point in
the group ``trajudge.applications``.

A folder holds ``app.toml`` (title, start pages, tables, lists, and what its Words may read),
``scenarios.toml`` (what is asked, the way to it, and what is right) and the modules ``schema``,
``pages`` and ``operations``; what it shares with the others is in ``lists``, ``details``,
``submissions`` and ``scenarios``.
"""

from __future__ import annotations

import re
from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache
from types import ModuleType
from typing import TYPE_CHECKING

from trajudge.environments.apps.reading import application_mistakes, read_app, read_foreign
from trajudge.trajectories.plugins import PluginPoint
from trajudge.util.errors import UserError

if TYPE_CHECKING:
    from trajudge.environments.model.spec import App, Domain

# id -> domain; the modules are read when first used.
APPS: dict[str, Domain] = {
    "shop": "consumer-transactions",
    "moderation": "content-moderation",
    "helpdesk": "enterprise-process",
    "almanac": "information-retrieval",
    "toolbox": "tool-use",
    "console": "platform-management",
    "press": "content-creation",
    "mail": "enterprise-process",
    "office": "enterprise-process",
}
DOOR = PluginPoint(group="trajudge.applications", option="--app")
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,39}")  # it becomes a part of files' names


@lru_cache
def load_app(name: str) -> App:
    """Load the application with this id: one of ours, or of an installed package.

    Raises UserError for one that does not exist or cannot be loaded, and for one of ours that a
    package brings, too.
    """
    if name in APPS:
        DOOR.refuse_namesake(name)
        return read_app(name, f"{__name__}.{name}", APPS[name])
    module = _installed(name)
    if module is None:
        raise UserError(
            f"no application is called {name!r}: choose from {', '.join(DOOR.names(APPS))}, or "
            f"install the package that brings it (entry point group {DOOR.group})"
        )
    return read_foreign(name, module)


@lru_cache  # asked for each configuration that is checked
def _installed(name: str) -> ModuleType | None:
    return DOOR.module(name) if _NAME.fullmatch(name) else None


def mistakes_of(name: str, failed: str) -> AbstractContextManager[None]:
    """Return a block that says in one sentence what the code of a user's application raises, as a
    UserError that tells what ``failed``. What one of ours raises is a defect, and passes."""
    module = None if name in APPS else _installed(name)
    return nullcontext() if module is None else application_mistakes(name, module.__name__, failed)
