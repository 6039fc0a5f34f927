"""Several applications as one: one state, one origin, the pages of each below its name.

A member is an application's folder that knows nothing of the others. Its tables are those of the
whole with its name before them (``shop_purchase``), its pages ``shop/orders``, its operations
``shop/place-order``. Its words are shared with the others, but for those that an earlier member
reads otherwise: they have its name before them, too (``press_due``).
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

from trajudge.environments.model.page import Form, Link, ListOrder, Page, Word
from trajudge.environments.model.schema import TableSchema
from trajudge.environments.model.spec import (
    FormSubmission,
    Operation,
    PageContext,
    PageMaker,
    Rejected,
    Success,
)
from trajudge.environments.model.state import AppState, Record, Value


class MemberApp(NamedTuple):
    """What a member brings; the names are its own. ``words`` are the keys in the whole of those
    words that an earlier member reads otherwise."""

    name: str
    tables: tuple[TableSchema, ...]
    pages: Mapping[str, PageMaker]
    operations: Mapping[str, Operation]
    navigation: tuple[Link, ...]
    words: Mapping[str, str]


class MemberState(AppState):
    """The tables of one member in the state of the whole, under the member's own names."""

    def __init__(self, whole: AppState, member: MemberApp) -> None:
        self.whole, self.member = whole, member
        self.tables = {table.name: table for table in member.tables}
        self.db = whole.db

    def rows(self, sql: str, /, **values: Any) -> list[sqlite3.Row]:
        return self.whole.rows(self._renamed(sql), **values)

    def records(self, sql: str, /, **values: Any) -> list[Record]:
        return self.whole.records(self._renamed(sql), **values)

    def one(self, sql: str, /, **values: Any) -> sqlite3.Row | None:
        return self.whole.one(self._renamed(sql), **values)

    def add(self, table: str, **values: Value) -> None:
        self.whole.add(f"{self.member.name}_{table}", **values)

    def change(self, table: str, key: Value, /, **values: Value) -> None:
        self.whole.change(f"{self.member.name}_{table}", key, **values)

    def remove(self, table: str, key: Value) -> None:
        self.whole.remove(f"{self.member.name}_{table}", key)

    def _renamed(self, sql: str) -> str:
        return renamed(sql, self.member.name, tuple(self.tables))


@lru_cache(maxsize=4096)
def renamed(sql: str, member: str, tables: tuple[str, ...]) -> str:
    """Return a member's query with the names that its tables have in the whole: where a table is
    named, and before a full stop (its alias stays what it was)."""
    names = "|".join(tables)
    source = re.compile(
        rf"\b(?P<where>FROM|JOIN|INTO|UPDATE)(?P<blank>\s+)\"?(?P<table>{names})\"?"
        r"(?=\s*(?P<alias>(?!(?:WHERE|ORDER|GROUP|JOIN|LEFT|ON|LIMIT|SET|UNION|VALUES|AS)\b)[a-z]\w*)?)",
        re.IGNORECASE,
    )

    def written(match: re.Match[str]) -> str:
        alias = "" if match["alias"] or match["where"].upper() in ("INTO", "UPDATE") else " AS"
        own = f" {match['table']}" if alias else ""
        return f'{match["where"]}{match["blank"]}"{member}_{match["table"]}"{alias}{own}'

    return source.sub(written, sql)


def member_tables(member: MemberApp) -> tuple[TableSchema, ...]:
    """Return a member's tables as the whole has them."""
    return tuple(table._replace(name=f"{member.name}_{table.name}") for table in member.tables)


def member_pages(
    member: MemberApp, guard: Callable[[PageMaker], PageMaker]
) -> dict[str, PageMaker]:
    """Return a member's pages by their names in the whole, each behind the ``guard``."""

    def within(make: PageMaker) -> PageMaker:
        def page(view: PageContext) -> Page:
            own = replace(
                view,
                state=MemberState(view.state, member),
                code=lambda table, key: view.code(f"{member.name}_{table}", key),
            )
            placed: Page = in_member(make(own), member)
            return placed

        return guard(page)

    return {f"{member.name}/{name}": within(make) for name, make in member.pages.items()}


def member_operations(
    member: MemberApp, refused: Callable[[AppState, str], str]
) -> dict[str, Operation]:
    """Return a member's operations by their names in the whole; ``refused`` says why the one who is
    signed in may not carry one out ("" for who may)."""

    def within(name: str, operation: Operation) -> Operation:
        ask = operation.confirm

        def own(submission: FormSubmission) -> FormSubmission:
            return FormSubmission(MemberState(submission.state, member), submission.form)

        def run(submission: FormSubmission) -> Success | Rejected:
            if why := refused(submission.state, f"{member.name}/{name}"):
                return Rejected(why)
            outcome = operation.run(own(submission))
            if isinstance(outcome, Rejected):
                return outcome
            return replace(outcome, page=f"{member.name}/{outcome.page}")

        confirm = None if ask is None else lambda submission: ask(own(submission))
        return replace(operation, run=run, confirm=confirm)

    return {f"{member.name}/{name}": within(name, each) for name, each in member.operations.items()}


def in_member(part: Any, member: MemberApp) -> Any:
    """Return a page, or a part of one, whose links and forms lead to the member's pages, and whose
    words are the member's."""
    if part is None or isinstance(part, str | int | float):
        return part
    if isinstance(part, Word):
        return part._replace(key=member.words.get(part.key, part.key))
    if hasattr(part, "_fields"):
        made = part._make(in_member(each, member) for each in part)
        for name in ("page", "operation") if isinstance(made, Link | Form | ListOrder) else ():
            if address := getattr(made, name, ""):
                made = made._replace(**{name: f"{member.name}/{address}"})
        return made
    if isinstance(part, Mapping):
        return {name: in_member(each, member) for name, each in part.items()}
    if isinstance(part, Sequence) and not isinstance(part, str):
        return tuple(in_member(each, member) for each in part)
    return part
