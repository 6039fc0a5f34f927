"""The facts of recorded runs on disk: what their states are made of again."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Literal

import orjson
from pydantic import BaseModel, Field

from trajudge.environments.apps import load_app
from trajudge.environments.model.axes import open_state
from trajudge.environments.model.config import Config
from trajudge.environments.model.payload import Payload
from trajudge.trajectories.model import TrajectoryKey
from trajudge.util.errors import UserError
from trajudge.util.validation import read_records

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
    content: str = ""
    code_key: str = Field("", pattern=r"^([0-9a-f]{2})*$")
    changes: tuple[_Change, ...] = ()
    answers: tuple[_Answer, ...] = ()
    predicates: tuple[_Predicate, ...] = ()
    payload: Payload | None = None
    repeated: _Number = 0
    steps: _Number = 0
    shortest: _Number = 0


def read_facts(folder: Path) -> dict[TrajectoryKey, Facts]:
    """Read the facts of a recording's runs. Raises UserError that names the file and the line, or
    the application whose content is not that of the recording any more."""
    file = folder / FACTS
    missing = "name a folder that env record or data perturb wrote"
    facts: dict[TrajectoryKey, Facts] = {}
    for number, (key, one) in read_records(file, _parsed, missing=missing, damaged=RESTORE):
        if key in facts:
            raise UserError(f"{file}, line {number}: the facts of {key} come twice: keep one line")
        facts[key] = one
    for key, one in facts.items():
        if one.get("content") != _content_now(one):
            raise UserError(
                f"{file}: {key} was recorded with other content of the application "
                f"{one.get('app', key.benchmark)}, so its state cannot be made again: record it "
                "again, or install the version that recorded it"
            )
    return facts


def content_digest(config: Config) -> str:
    """Return what an application holds for a run, as 16 hexadecimal digits: the rows of the data
    profile and the file of its scenarios. The same on every machine."""
    return _digest(config.app, config.profile, config.seed)


@lru_cache(maxsize=256)
def _digest(name: str, profile: int, seed: int) -> str:
    app = load_app(name)
    state = open_state(app, Config(app=name, scenario="", profile=profile, seed=seed))
    try:
        content = f"{app.tables}\n{state.dump()}\n{app.scenario_file}"
    finally:
        state.close()
    return sha256(content.encode()).hexdigest()[:16]


def _content_now(facts: Facts) -> str:
    return content_digest(Config.model_validate(facts["config"])) if "config" in facts else ""


def _parsed(line: bytes) -> tuple[TrajectoryKey, Facts]:
    facts = orjson.loads(line)
    return _Shape.model_validate(facts).key, facts
