"""An application, read from its package: ``app.toml``, ``scenarios.toml`` and the modules."""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from types import ModuleType
from typing import Any

from pydantic import Field

from trajudge.environments.apps.lists import ListDescription
from trajudge.environments.apps.scenarios import read_scenarios, read_toml
from trajudge.environments.kit.identities import IdentityName
from trajudge.environments.model.axes import drawn_split
from trajudge.environments.model.schema import Kind, TableSchema, table
from trajudge.environments.model.spec import App, Domain, PageMaker
from trajudge.trajectories.model import Record
from trajudge.trajectories.plugins import MISTAKES, reason
from trajudge.util.errors import UserError

_PARTS = ("schema", "pages", "operations")


class AppFile(Record):
    """What ``app.toml`` says: the title, the pages where a run may begin, the number of sort orders
    that lists have, the wordings of each word, the tables, what rows are drawn from, the pages
    that are lists, and the domain, which is known of our own."""

    title: str
    domain: Domain | None = None
    starts: tuple[str, ...] = Field(default=("home",), min_length=1)
    sorts: int = Field(default=1, ge=1)
    identity: IdentityName = "plain"
    words: dict[str, tuple[str, ...]]
    tables: dict[str, dict[str, Kind]]
    rows: dict[str, Any] = Field(default_factory=dict)
    lists: dict[str, ListDescription] = Field(default_factory=dict)


def read_app(name: str, package: str, domain: Domain) -> App:
    """Read the application that a package of ours holds."""
    return _made(name, package, domain, _app_file(package))


def read_foreign(name: str, module: ModuleType) -> App:
    """Read the application of a user's package, whose ``app.toml`` names its domain.

    Raises UserError, in one sentence, for what the package lacks or raises.
    """
    package = module.__name__
    with application_mistakes(name, package, f"the package {package} cannot be loaded"):
        about = _app_file(package)
        if about.domain is None:
            raise UserError(f"{files(package) / 'app.toml'}: names no domain: write  domain = ...")
        return _made(name, package, about.domain, about)


@contextmanager
def application_mistakes(name: str, package: str, failed: str) -> Iterator[None]:
    """Say in one sentence what the code of a user's application raises inside the block: what
    ``failed``, why, and on which line of the package. Raises UserError."""
    try:
        yield
    except UserError as error:
        raise UserError(f"--app {name}: {error}") from error
    except MISTAKES as error:
        raise UserError(
            f"--app {name}: {failed} ({reason(error)}{_place(error, package)}): correct it"
        ) from error


@lru_cache
def _app_file(package: str) -> AppFile:
    return read_toml(package, "app.toml", AppFile)


class NamePools:
    """What the rows of an application are drawn from: the lists of the table ``rows`` of its
    ``app.toml``, by their names. In the test split those of ``rows.test`` stand in for the lists of
    the same names: its people and products are in no other."""

    def __init__(self, rows: Mapping[str, Any]) -> None:
        self._usual = {name: pool for name, pool in rows.items() if name != "test"}
        self._test = {**self._usual, **rows.get("test", {})}

    def __getattr__(self, name: str) -> Any:
        try:
            return (self._test if drawn_split.get() == "test" else self._usual)[name]
        except KeyError:
            raise AttributeError(f"app.toml: rows has no list {name!r}") from None


def rows_of(package: str) -> NamePools:
    """Return what the rows of an application are drawn from. Raises UserError for a file that
    cannot be read."""
    return NamePools(_app_file(package).rows)


def lists_of(package: str) -> dict[str, PageMaker]:
    """Return the list pages that an application's ``app.toml`` describes."""
    constants = import_module(f"{package}.schema")
    return {name: one.page(name, constants) for name, one in _app_file(package).lists.items()}


def tables_of(package: str) -> tuple[TableSchema, ...]:
    """Return the tables that an application's ``app.toml`` defines."""
    return tuple(table(name, **columns) for name, columns in _app_file(package).tables.items())


def words_of(package: str) -> dict[str, tuple[str, ...]]:
    """Return the wordings that an application's ``app.toml`` gives."""
    return _app_file(package).words


def _made(name: str, package: str, domain: Domain, about: AppFile) -> App:
    schema, pages, operations = (import_module(f"{package}.{part}") for part in _PARTS)
    return App(
        id=name,
        domain=domain,
        title=about.title,
        tables=(*tables_of(package), *getattr(schema, "TABLES", ())),
        profile=schema.profile,
        pages=pages.PAGES,
        operations=operations.OPERATIONS,
        navigation=pages.NAVIGATION,
        scenarios=read_scenarios(package),
        scenario_file=(files(package) / "scenarios.toml").read_text(encoding="utf-8"),
        words={**getattr(schema, "WORDS", {}), **about.words},
        areas=getattr(pages, "AREAS", {}),
        starts=about.starts,
        sorts=about.sorts,
        identity=about.identity,
    )


def _place(error: BaseException, package: str) -> str:
    """Return the line of the package on which the mistake stands; "" where it is none of its."""
    own = Path(str(files(package)))
    lines = [
        f", {Path(frame.filename).name} line {frame.lineno}"
        for frame in traceback.extract_tb(error.__traceback__)
        if Path(frame.filename).is_relative_to(own)
    ]
    return lines[-1] if lines else ""
