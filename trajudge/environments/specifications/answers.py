"""What is to be answered: the check of the agent's response, with one JSON schema per kind.

A task that asks for one thing wants a list of values, one that asks for several an object with a
key for each kind ("text2" for a second name). An operation code is made by the run: a specification
that is written before asks for its shape and says so (``shape_only``), one that is written for a
recorded run knows its values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trajudge.environments.model.operation_codes import LENGTH
from trajudge.environments.specifications.oracle import OracleRun
from trajudge.environments.specifications.responses import NOT_POSSIBLE
from trajudge.environments.verify.truth import ResolvedAnswer
from trajudge.rules.values import normalise
from trajudge.rules.verified.tasks import AnswerCheck, ExpectedAnswer, Schema

CODE = f"^[A-Z2-7]{{{LENGTH}}}$"
_SCHEMAS: dict[str, Schema] = {
    "money": {"type": "number", "format": "currency"},
    "number": {"type": "number"},
    "date": {"type": "string", "format": "date"},
    "duration": {"type": "string", "format": "duration"},
    "code": {"type": "string", "pattern": CODE},
}


def answer_check(run: OracleRun, codes: Sequence[str] = ()) -> AnswerCheck:
    """Return the check of the response: its data for a task that asks for something, else that it
    reports a change. ``codes`` are the right operation codes, where they are known."""
    possible = all(answer.kind != "none" for answer in run.answers)
    if not run.answers or not possible:
        status = "SUCCESS" if possible else NOT_POSSIBLE
        expected = ExpectedAnswer(task_type="mutate", status=status, retrieved_data=None)
        return AnswerCheck(expected=expected, results_schema={"type": "null"})
    schema, wanted = _asked(run.answers, codes or (CODE,))
    return AnswerCheck(
        expected=ExpectedAnswer(task_type="retrieve", status="SUCCESS", retrieved_data=wanted),
        results_schema={"type": "array", "items": schema},
        shape_only=not codes and any(answer.kind == "code" for answer in run.answers),
    )


def _asked(answers: Sequence[ResolvedAnswer], codes: Sequence[str]) -> tuple[Schema, list[Any]]:
    if len(answers) == 1:
        return _schema(answers[0]), _values(answers[0], codes)
    kinds = [answer.kind for answer in answers]
    alike = [one for one in answers if kinds.count(one.kind) > 1]
    names = [name for answer in alike for name in set(answer.among) or {""}]
    if "texts" in kinds or len(set(names)) != len(names) or "" in names:
        raise ValueError(f"an object cannot tell these answers apart: {', '.join(kinds)}")
    before = [kinds[:n].count(kind) for n, kind in enumerate(kinds)]
    keys = [f"{kind}{n + 1}" if n else kind for n, kind in zip(before, kinds, strict=True)]
    properties = {key: _schema(answer) for key, answer in zip(keys, answers, strict=True)}
    values = {key: _values(answer, codes)[0] for key, answer in zip(keys, answers, strict=True)}
    return {"type": "object", "properties": properties}, [values]


def _schema(answer: ResolvedAnswer) -> Schema:
    """Return the schema of one value. The names that a task chooses from are part of it."""
    known = _SCHEMAS.get(answer.kind, {"type": "string"})
    return {**known, "enum": list(answer.among)} if answer.among else known


def _values(answer: ResolvedAnswer, codes: Sequence[str]) -> list[Any]:
    """Return the right values as JSON has them: amounts and numbers bare, everything else text;
    several codes are alternatives."""
    if answer.kind == "code":
        return [codes[0] if len(codes) == 1 else list(codes)]
    if answer.kind == "money":
        return [_number(value.replace("$", "")) for value in answer.values]
    if answer.kind == "number":
        return [_number(value) for value in answer.values]
    return list(answer.values)


def _number(text: str) -> int | float:
    value = float(str(normalise("number", text)))
    return int(value) if value.is_integer() else value
