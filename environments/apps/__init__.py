"""The applications, one a WebForge domain; a new one is a folder here and a line in ``APPS``.

A folder holds ``app.toml`` (title, start pages, sort orders, and what its Words may read),
``tasks.toml`` (what is asked, and what is right to answer) and the modules ``schema``, ``pages``,
``operations`` and ``scenarios``; what it shares with the others is in ``lists``, ``details``,
``submissions`` and ``tasks``.
"""

from __future__ import annotations

import tomllib
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from trajudge.trajectories.util.errors import UserError

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
}
_PARTS = ("schema", "pages", "operations", "scenarios")


@lru_cache
def load_app(name: str) -> App:
    """Load the application with this id. Raises UserError for one that does not exist."""
    from trajudge.environments.model.spec import App  # noqa: PLC0415 - --help names applications

    if name not in APPS:
        raise UserError(f"no application is called {name!r}: choose from {', '.join(APPS)}")
    about = tomllib.loads((Path(__file__).parent / name / "app.toml").read_text(encoding="utf-8"))
    schema, pages, operations, scenarios = (
        import_module(f"{__name__}.{name}.{part}") for part in _PARTS
    )
    return App(
        id=name,
        domain=APPS[name],
        title=about["title"],
        tables=schema.TABLES,
        profile=schema.profile,
        pages=pages.PAGES,
        operations=operations.OPERATIONS,
        navigation=pages.NAVIGATION,
        scenarios=scenarios.SCENARIOS,
        words={key: tuple(wordings) for key, wordings in about["words"].items()},
        starts=tuple(about.get("starts", ["home"])),
        sorts=about.get("sorts", 1),
    )
