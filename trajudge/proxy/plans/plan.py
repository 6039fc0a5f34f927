"""A fault plan: the JSON file that names the faults of a run."""

from __future__ import annotations

from collections import Counter
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import Field, ValidationError, model_validator

from trajudge.proxy.plans.faults import Fault, PlainRecord
from trajudge.util.errors import UserError
from trajudge.util.files import read_utf8

_SHOWN = 3  # mistakes that one message names
_EXAMPLE = '{"faults": [{"id": "busy", "kind": "status", "status": 503, "policy": "at(2)"}]}'
_MEND = f"write a JSON object such as {_EXAMPLE}"

KINDS = tuple(
    get_args(fault.model_fields["kind"].annotation)[0] for fault in get_args(get_args(Fault)[0])
)


class FaultPlan(PlainRecord):
    """Faults in the order in which they apply. ``seed`` is used where a run names none."""

    version: Literal[1] = 1
    seed: Annotated[int, Field(ge=0)] = 0
    faults: tuple[Fault, ...] = ()

    @model_validator(mode="after")
    def _names_are_unique(self) -> Self:
        for name, uses in Counter(fault.id for fault in self.faults).items():
            if uses > 1:
                raise ValueError(f"the id {name!r} stands {uses} times: give each fault its own")
        return self

    @property
    def needs_horizon(self) -> bool:
        """Whether a fault is drawn from as many page loads as the task takes."""
        policies = (fault.policy for fault in self.faults)
        return any(policy.random and policy.horizon is None for policy in policies)

    @property
    def digest(self) -> str:
        """Of the faults: two plans with one digest do the same under one seed."""
        faults = self.model_dump_json(include={"version", "faults"})
        return sha256(faults.encode()).hexdigest()[:16]


def plan_mistakes(text: str | bytes) -> tuple[str, ...]:
    """Return one sentence per mistake in a plan's JSON; none for a plan that can be used."""
    try:
        FaultPlan.model_validate_json(text)
    except ValidationError as error:
        return tuple(_sentence(dict(one)) for one in error.errors(include_url=False))
    return ()


def _sentence(error: dict[str, Any]) -> str:
    """Say where a plan is wrong, the value, and why."""
    place = list(error["loc"])
    if len(place) >= 2 and place[0] == "faults":  # the kind stands in the place as well
        fields = [str(part) for part in place[3:]]
        where = f"fault {int(place[1]) + 1}" + (f": {'.'.join(fields)}" if fields else "")
    else:
        where = ".".join(map(str, place)) or "the plan"
    why = str(error["msg"]).removeprefix("Value error, ")
    if error["type"] in ("json_invalid", "model_type") and not place:
        return f"{where}: {why}: {_MEND}"
    if error["type"] == "missing":
        return f"{where} is missing"
    if error["type"] == "extra_forbidden":
        return f"{where} is no field of this record: remove it or mend its name"
    if error["type"] in ("union_tag_not_found", "union_tag_invalid"):
        return f"{where} has no known kind: name one of {', '.join(KINDS)}"
    if isinstance(error["input"], dict | bytes) or not _names_field(place):
        return f"{where}: {why}"
    return f"{where} is {error['input']!r:.80}: {why}"


def _names_field(place: list[Any]) -> bool:
    """Tell whether a place names a field, not a record as a whole."""
    return bool(place) and (place[0] != "faults" or len(place) > 3)


def read_plan(path: Path) -> FaultPlan:
    """Read a plan. Raises UserError with a sentence for each of the first mistakes."""
    try:
        text = read_utf8(path)
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}: name a fault plan in --faults") from error
    if not text.strip():
        raise UserError(f"{path} is empty: {_MEND}")
    mistakes = plan_mistakes(text)
    if mistakes:
        more = f"; and {len(mistakes) - _SHOWN} more" if len(mistakes) > _SHOWN else ""
        raise UserError(f"{path}: {'; '.join(mistakes[:_SHOWN])}{more}")
    return FaultPlan.model_validate_json(text)
