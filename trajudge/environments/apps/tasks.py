"""Scenarios: what is asked and what is right to answer, from an application's ``tasks.toml``, with
the slots, the way and the expected changes that the code gives.

Every last message comes in two wordings: a sentence (``reply``), and what is asked for alone.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from trajudge.environments.apps.lists import list_all, search_and_open
from trajudge.environments.model.plan import PlanStep
from trajudge.environments.model.spec import (
    AllowedChange,
    AnswerSpec,
    Bound,
    ChoiceSlot,
    Expect,
    Pick,
    Scenario,
    Slot,
)
from trajudge.trajectories.model import Record
from trajudge.util.files import read_text

Plan = Callable[[Bound], Sequence[PlanStep]]
Slots = Mapping[str, Slot]


def row_of(table: str, where: str = "") -> Pick:
    """Pick a row of the table, among those for which ``where`` (SQL, as in ``Pick``) holds."""
    return Pick(f"SELECT * FROM {table}{f' WHERE {where}' if where else ''} ORDER BY id")  # noqa: S608


class TaskEntry(Record):
    """What ``tasks.toml`` says of a scenario: its ``goal``, or the wordings of it (``goals``), the
    sentence that replies, and what the last message must hold: the operation ``code`` of the
    changed row of that table, if one is named, then the ``answers``. ``charts`` have to be read.

    Where few answers are possible a second one is asked for, so that guesses do not hit.
    """

    goal: str = ""
    goals: tuple[str, ...] = ()
    reply: str
    code: str = ""
    answers: tuple[AnswerSpec, ...] = ()
    charts: int = 0


class TaskFile:
    """The ``tasks.toml`` beside ``module`` (a module's ``__file__``); its tasks are made scenarios
    by their names. Raises KeyError for a name that is not there."""

    def __init__(self, module: str) -> None:
        text = read_text(Path(module).with_name("tasks.toml"))
        self.tasks = {
            key: TaskEntry.model_validate(task) for key, task in tomllib.loads(text).items()
        }

    def scenario(
        self,
        name: str,
        slots: Slots,
        plan: Plan,
        *,
        expect: tuple[Expect, ...] = (),
        may: tuple[AllowedChange, ...] = (),
        distractor: Plan | None = None,
    ) -> Scenario:
        """Make a scenario: a question about the state as it is, or with ``expect`` a task that is
        done when the state is so and the answers are given."""
        task = self.tasks[name]
        answers = (*([AnswerSpec("code", task.code)] if task.code else []), *task.answers)
        return Scenario(
            id=name,
            goals=task.goals or (task.goal,),
            slots=slots,
            plan=plan,
            replies=(task.reply, _alone(answers)),
            answers=answers,
            expect=expect,
            may=may,
            distractor=distractor,
            charts=task.charts,
        )

    def of_row(self, name: str, page: str, field: str, where: str = "") -> Scenario:
        """Make a question about a row (as ``row_of`` picks it) that is found in the list ``page``
        by its ``field``, ``table.column``; the slot is named like the table."""
        table, column = field.split(".")
        slots = {table: row_of(table, where)}
        return self.scenario(name, slots, lambda b: search_and_open(page, b[table][column]))

    def of_list(self, name: str, page: str, why: str = "", /, **filters: ChoiceSlot) -> Scenario:
        """Make a question about what the filters, which are slots, leave of the list ``page``;
        ``why`` as in ``list_all``."""
        return self.scenario(
            name, filters, lambda b: list_all(page, why, **{key: b[key] for key in filters})
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
