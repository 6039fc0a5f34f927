"""The right answers, asked of the state."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from trajudge.environments.model.binding import filled, money, parameters
from trajudge.environments.model.spec import AnswerKind, AnswerSpec, Bound, Scenario
from trajudge.environments.model.state import AppState
from trajudge.rules.values import normalise

Code = Callable[[str, str], str]


class ResolvedAnswer(NamedTuple):
    """One thing that the last message must say. ``values`` as a reader would write them: one, the
    members of ``texts``, or none where the state has no (single) right answer. ``among`` are all
    names that would be candidates, ``unit`` is what a number counts or measures."""

    kind: AnswerKind
    values: tuple[str, ...]
    among: tuple[str, ...] = ()
    unit: str = ""


def expected_answers(
    scenario: Scenario,
    bound: Bound,
    rows: Mapping[str, str],
    *,
    before: AppState,
    after: AppState,
    code: Code,
) -> tuple[ResolvedAnswer, ...]:
    """Return what each of the scenario's answers must be. ``bound`` with ``new_TABLE`` for added
    rows, ``rows`` the key of the row that was expected to change in a table (see
    ``frame.Reading``)."""
    values = parameters(bound)
    worlds = {"before": before, "after": after}
    return tuple(
        code_answer(answer, rows, code)
        if answer.kind == "code"
        else query_answer(answer, worlds[answer.when], values)
        for answer in scenario.answers
    )


def code_answer(answer: AnswerSpec, rows: Mapping[str, str], code: Code) -> ResolvedAnswer:
    """Return the operation code of the row that was expected to change."""
    key = rows.get(answer.sql)
    return ResolvedAnswer("code", () if key is None else (code(answer.sql, key),))


def query_answer(answer: AnswerSpec, state: AppState, values: Mapping[str, Any]) -> ResolvedAnswer:
    """Return what the state gives for an answer; ``values`` are what its queries may name."""
    if answer.kind == "none":
        return ResolvedAnswer("none", ("None",))
    cells = column(state, answer.sql, values)
    shown = dict.fromkeys(written(answer.kind, cell) for cell in cells if cell is not None)
    if answer.kind != "texts" and len(shown) != 1:
        shown = {}
    among = tuple(str(name) for name in column(state, answer.among, values)) if answer.among else ()
    return ResolvedAnswer(answer.kind, tuple(shown), among, answer.unit)


def column(state: AppState, sql: str, values: Mapping[str, Any]) -> list[Any]:
    """Return the first column of what a query gives."""
    return [row[0] for row in state.rows(sql, **values)]


def written(kind: AnswerKind, cell: str | float) -> str:
    """Return an answer as a reader would write it. Money is in cents; a duration is a whole number
    of minutes, or text with its units."""
    if kind == "money":
        return money(round(float(cell)))
    if kind == "number":
        return str(normalise("number", cell))
    if kind == "duration" and not isinstance(cell, str):
        hours, minutes = divmod(round(cell), 60)
        return f"{hours} h {minutes} min" if hours else f"{minutes} min"
    return str(cell)


def reply(template: str, bound: Bound, right: tuple[ResolvedAnswer, ...]) -> str:
    """Return the sentence in which a run that did as it was told reports: ``{answer}`` and
    ``{code}`` filled in."""
    answers = [", ".join(a.values) for a in right if a.kind != "code"]
    codes = [value for a in right if a.kind == "code" for value in a.values]
    parts = {"answer": " and ".join(answers), "code": " and ".join(codes)}
    return filled(template, {**bound, **parts})
