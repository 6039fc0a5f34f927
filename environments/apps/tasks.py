"""Scenarios of the recurring shapes: a question with one answer, a task that changes the state.

Every last message comes in two wordings: a sentence (``reply``), and what is asked for alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Literal, Required, TypedDict, Unpack

from trajudge.environments.model.plan import PlanStep
from trajudge.environments.model.spec import (
    AllowedChange,
    AnswerKind,
    AnswerSpec,
    Bound,
    Expect,
    Pick,
    Scenario,
    Slot,
)

Plan = Callable[[Bound], Sequence[PlanStep]]


def row_of(table: str, where: str = "") -> Pick:
    """Pick a row of the table, among those for which ``where`` (SQL, as in ``Pick``) holds."""
    return Pick(f"SELECT * FROM {table}{f' WHERE {where}' if where else ''} ORDER BY id")  # noqa: S608


def question(
    name: str,
    kind: AnswerKind,
    sql: str,
    *,
    goals: str | tuple[str, ...],
    slots: Mapping[str, Slot],
    plan: Plan,
    reply: str,
    among: str = "",
    also: AnswerSpec | None = None,
    distractor: Plan | None = None,
    charts: int = 0,
) -> Scenario:
    """Make a question about the state as it is: ``sql`` gives the answer (see ``AnswerSpec``).
    Where few answers are possible, ``also`` asks for another, so that guesses do not hit."""
    return task(
        name,
        goals=goals,
        slots=slots,
        plan=plan,
        reply=reply,
        answers=(AnswerSpec(kind, sql, among=among), *([also] if also else [])),
        distractor=distractor,
        charts=charts,
    )


class Telling(TypedDict, total=False):
    """What ``question`` takes beside the answer's query and the slots."""

    goals: Required[str | tuple[str, ...]]
    plan: Required[Plan]
    reply: Required[str]
    among: str
    also: AnswerSpec
    distractor: Plan


def lookup(
    name: str,
    kind: AnswerKind,
    field: str,
    *,
    slot: Slot | None = None,
    **telling: Unpack[Telling],
) -> Scenario:
    """Ask for a field, ``table.column``, of one row: that of the slot named like the table, by
    default any row of it."""
    table, column = field.split(".")
    sql = f"SELECT {column} FROM {table} WHERE id = :{table}"  # noqa: S608
    return question(name, kind, sql, slots={table: slot or row_of(table)}, **telling)


def peak(
    name: str,
    field: str,
    series: str,
    *,
    slots: Mapping[str, Slot],
    extreme: Literal["max", "min"] = "max",
    **telling: Unpack[Telling],
) -> Scenario:
    """Ask where a chart is highest (or lowest): for the ``table.column`` that names its bars.
    ``series`` (SQL) says which rows of the table are in the chart, by their ``amount``."""
    table, column = field.split(".")
    chart = f"FROM {table} WHERE {series}"
    sql = f"SELECT {column} {chart} AND amount = (SELECT {extreme}(amount) {chart})"
    names: Telling = {**telling}
    names.setdefault("among", f"SELECT DISTINCT {column} FROM {table}")  # noqa: S608
    return question(name, "text", sql, slots=slots, charts=1, **names)


def task(
    name: str,
    *,
    goals: str | tuple[str, ...],
    slots: Mapping[str, Slot],
    plan: Plan,
    reply: str,
    expect: tuple[Expect, ...] = (),
    code: str = "",
    answers: tuple[AnswerSpec, ...] = (),
    may: tuple[AllowedChange, ...] = (),
    distractor: Plan | None = None,
    charts: int = 0,
) -> Scenario:
    """Make a task that is done when the state is as ``expect`` says and ``answers`` are given,
    behind the operation code of the changed row of the table ``code``, if one is named."""
    answers = (*([AnswerSpec("code", code)] if code else []), *answers)
    return Scenario(
        id=name,
        goals=(goals,) if isinstance(goals, str) else goals,
        slots=slots,
        plan=plan,
        replies=(reply, _alone(answers)),
        answers=answers,
        expect=expect,
        may=may,
        distractor=distractor,
        charts=charts,
    )


def with_distractor(distractor: Plan, *scenarios: Scenario) -> tuple[Scenario, ...]:
    """Give this distractor to each scenario that has none of its own."""
    return tuple(
        scenario if scenario.distractor else replace(scenario, distractor=distractor)
        for scenario in scenarios
    )


def _alone(answers: Sequence[AnswerSpec]) -> str:
    """Return the wording that says nothing but what is asked for."""
    kinds = {"{code}" if answer.kind == "code" else "{answer}" for answer in answers}
    return ", ".join(sorted(kinds, reverse=True)) or "Done."


Cells = Mapping[str, str | int]


def added(
    table: str, within: Cells | None = None, undone: Cells | None = None, /, **values: str | int
) -> Expect:
    """Expect one row more, with these values; ``within`` and ``undone`` as in ``Expect``."""
    return Expect("added", table, values, within=within or {}, undone=undone or {})


def as_asked(*names: str) -> dict[str, str]:
    """Return the values of columns that are named like the slots that they come from."""
    return {name: f"{{{name}}}" for name in names}


def changed(table: str, key: str = "", /, **values: str | int) -> Expect:
    """Expect the row with this key to be changed so that it has these values."""
    return Expect("changed", table, values, key)


def removed(table: str, key: str = "", /, **values: str | int) -> Expect:
    """Expect one row less, which had these values."""
    return Expect("removed", table, values, key)
