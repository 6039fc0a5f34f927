"""The facts of recorded runs on disk: what their states are made of again."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import orjson
from pydantic import BaseModel, Field

from trajudge.environments.model.config import Config
from trajudge.environments.model.payload import Payload
from trajudge.trajectories.model import TrajectoryKey
from trajudge.util.errors import UserError
from trajudge.util.jsonl import read_records

FACTS = "facts.jsonl"
RESTORE = "restore the file from a copy, or record again"
Facts = Mapping[str, Any]
_Number = Annotated[int, Field(ge=0)]


class _Change(BaseModel):
    kind: Literal["added", "removed", "changed"]
    table: str
    key: str | int
    before: dict[str, Any]
    after: dict[str, Any]


class _Answer(BaseModel):
    kind: str
    right: bool | None


class _Predicate(BaseModel):
    name: str
    holds: bool


class _Shape(BaseModel):
    """What is read of a run's facts; a recording of an earlier version lacks some of it, but what
    is there is never None."""

    key: TrajectoryKey
    app: str = ""
    config: Config = Config(app="", scenario="")
    code_key: str = Field("", pattern=r"^([0-9a-f]{2})*$")
    changes: tuple[_Change, ...] = ()
    answers: tuple[_Answer, ...] = ()
    predicates: tuple[_Predicate, ...] = ()
    payload: Payload | None = None
    repeated: _Number = 0
    steps: _Number = 0
    shortest: _Number = 0


def read_facts(folder: Path) -> dict[TrajectoryKey, Facts]:
    """Read the facts of a recording's runs. Raises UserError that names the file and the line."""
    file = folder / FACTS
    missing = "name a folder that env record or data perturb wrote"
    facts: dict[TrajectoryKey, Facts] = {}
    for number, (key, one) in read_records(file, _parsed, missing=missing, damaged=RESTORE):
        if key in facts:
            raise UserError(f"{file}, line {number}: the facts of {key} come twice: keep one line")
        facts[key] = one
    return facts


def _parsed(line: bytes) -> tuple[TrajectoryKey, Facts]:
    facts = orjson.loads(line)
    return _Shape.model_validate(facts).key, facts
