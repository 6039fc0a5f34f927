"""The fields of the filter grammar: what may be written of each, and what it means in SQL."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from trajudge.eval.data.run_index.schema import FLAGS
from trajudge.eval.data.run_index.trajectories import UNSURE
from trajudge.eval.data.run_index.words import match_of
from trajudge.judges.model import Status
from trajudge.trajectories.util.errors import did_you_mean

JUDGMENT, TRAJECTORY = "judgment", "trajectory"
_MOST_STARS = 4
_RANGE = re.compile(r"(?P<low>[^.]*(?:\.\d+)?)\.\.(?P<high>.*)")


class FilterError(ValueError):
    """A ``term`` that cannot be read; the message is one sentence for who wrote it."""

    def __init__(self, term: str, sentence: str) -> None:
        super().__init__(sentence)
        self.term = term


class Clause(NamedTuple):
    """A condition in SQL on ``judgment j`` and ``trajectory t``, with the values it binds."""

    sql: str
    parameters: tuple[str | float, ...] = ()


Make = Callable[[str, str], Clause]
"""From an operator and a value to the condition. Raises FilterError."""


class FilterField(NamedTuple):
    """A field of one of the two tables; ``example`` is shown in the help."""

    table: str
    clause: Make
    example: str


def _named(column: str, name: str) -> Make:
    def make(operator: str, value: str) -> Clause:
        _only_colon(name, operator, value)
        if "*" not in value:
            return Clause(f"{column} = ?", (value,))
        if value.count("*") > _MOST_STARS:
            raise FilterError(value, f"{name}:{value}: at most {_MOST_STARS} stars are understood.")
        return Clause(f"{column} glob ?", (re.sub(r"[?\[]", r"[\g<0>]", value),))

    return make


def _chosen(name: str, conditions: Mapping[str, str]) -> Make:
    def make(operator: str, value: str) -> Clause:
        _only_colon(name, operator, value)
        if value.lower() not in conditions:
            raise FilterError(
                value,
                f"{name}:{value}: use one of {', '.join(conditions)}"
                f"{did_you_mean(value, conditions)}.",
            )
        return Clause(conditions[value.lower()])

    return make


def _number(column: str, name: str) -> Make:
    def make(operator: str, value: str) -> Clause:
        if operator != ":":
            return Clause(f"{column} {operator} ?", (_read(name, value),))
        ends = _RANGE.fullmatch(value)
        if ends is None:
            return Clause(f"{column} = ?", (_read(name, value),))
        bounds = [("<=", ends["high"]), (">=", ends["low"])]
        given = [(sign, _read(name, end)) for sign, end in bounds if end]
        if not given:
            raise FilterError(value, f"{name}:{value}: name an end, as in {name}:0.4..0.6.")
        return Clause(
            " and ".join(f"{column} {sign} ?" for sign, _ in given), tuple(n for _, n in given)
        )

    return make


def _read(name: str, value: str) -> float:
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise FilterError(value, f"{name}: {value!r} is not a number, as in {name}>0.5.")
    return number


def _only_colon(name: str, operator: str, value: str) -> None:
    if operator != ":":
        raise FilterError(value, f"{name} is not compared by size: write {name}:{value}.")


def _free_text(operator: str, value: str) -> Clause:
    text = re.sub(r"[%_!]", r"!\g<0>", value)
    columns = (
        *("j.judge", "j.head", "t.task_id", "t.goal", "t.answer"),
        *("t.benchmark", "t.agent"),
    )
    sql = " or ".join(f"coalesce({column}, '') like ? escape '!'" for column in columns)
    words = (
        "j.id in (select rowid from said where said match ?) "
        "or t.id in (select rowid from told where told match ?)"
    )
    return Clause(f"({sql} or {words})", (*(f"%{text}%",) * len(columns), *(match_of(value),) * 2))


FREE_TEXT: Make = _free_text

_TRUTH = {"yes": " = 1", "no": " = 0", "none": " is null"}


def _truth(name: str, column: str) -> Make:
    return _chosen(name, {word: column + test for word, test in _TRUTH.items()})


_EXPERT = {
    **{word: f"t.expert{test}" for word, test in _TRUTH.items()},
    "unsure": f"t.expert = {UNSURE}",
}
_WRONG = {
    "fp": "j.success = 1 and j.expert = 0",
    "fn": "j.success = 0 and j.expert = 1",
    "any": "j.expert >= 0 and j.success <> j.expert",
}
_DISSENT = "min(t.yes, t.no)"

FIELDS: Mapping[str, FilterField] = {
    "judge": FilterField(JUDGMENT, _named("j.judge", "judge"), "judge:simplified*"),
    "status": FilterField(
        JUDGMENT, _chosen("status", {str(s): f"j.status = '{s}'" for s in Status}), "status:refused"
    ),
    "success": FilterField(JUDGMENT, _truth("success", "j.success"), "success:yes"),
    "expert": FilterField(TRAJECTORY, _chosen("expert", _EXPERT), "expert:unsure"),
    "rule": FilterField(TRAJECTORY, _truth("rule", "t.rule"), "rule:no"),
    "wrong": FilterField(JUDGMENT, _chosen("wrong", _WRONG), "wrong:fp"),
    "disagree": FilterField(TRAJECTORY, _number(_DISSENT, "disagree"), "disagree>=2"),
    "score": FilterField(JUDGMENT, _number("j.score", "score"), "score:0.4..0.6"),
    "benchmark": FilterField(TRAJECTORY, _named("t.benchmark", "benchmark"), "benchmark:webarena"),
    "agent": FilterField(TRAJECTORY, _named("t.agent", "agent"), "agent:GenericAgent*"),
    "task": FilterField(TRAJECTORY, _named("t.task_id", "task"), "task:webarena.1*"),
    "steps": FilterField(TRAJECTORY, _number("t.steps", "steps"), "steps>30"),
    "cost": FilterField(JUDGMENT, _number("j.cost", "cost"), "cost>0.05"),
    "tokens": FilterField(JUDGMENT, _number("j.tokens", "tokens"), "tokens>10000"),
    "seconds": FilterField(JUDGMENT, _number("j.seconds", "seconds"), "seconds>60"),
    "sample": FilterField(JUDGMENT, _number("j.sample", "sample"), "sample:0"),
    "split": FilterField(
        TRAJECTORY,
        _chosen("split", {"dev": "t.split = 'dev'", "test": "t.split = 'test'"}),
        "split:test",
    ),
    "flag": FilterField(
        JUDGMENT,
        _chosen("flag", {name: f"j.flags & {bit}" for name, bit in FLAGS.items()}),
        "flag:elided",
    ),
}
