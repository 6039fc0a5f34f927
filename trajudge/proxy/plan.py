"""Fault plans: faults, when each fires, and their JSON file.

Everything here is pure: plan, seed and task determine the schedule, whatever the order of requests.
The addon makes the draws, because it runs without trajudge.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from trajudge.proxy.addon import DrawKey, is_due, planned_ordinals
from trajudge.util.commands import MOST_PAGE_LOADS
from trajudge.util.errors import UserError
from trajudge.util.files import read_utf8

_FORMS = "at(k), random(n, horizon), random(n) or bernoulli(p)"
_CALL = re.compile(r"^\s*(at|random|bernoulli)\s*\(\s*([^()]*?)\s*\)\s*$")

_Ordinal = Annotated[int, Field(ge=1, le=MOST_PAGE_LOADS)]


class FaultPolicy(BaseModel):
    """When a fault fires, by one of: ``at`` (page load k, from 1); ``random`` (n of the page
    loads 1 to ``horizon``, without replacement); ``bernoulli`` (each page load with this
    probability). Written as an object or as ``at(3)``, ``random(2, 6)``, ``bernoulli(0.1)``.
    ``random(2)`` uses the task's horizon, which is given when the task begins."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    at: _Ordinal | None = None
    random: _Ordinal | None = None
    horizon: _Ordinal | None = None
    bernoulli: Annotated[float, Field(ge=0, le=1)] | None = None

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, value: Any) -> Any:
        return _parsed(value) if isinstance(value, str) else value

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        named = [name for name in ("at", "random", "bernoulli") if getattr(self, name) is not None]
        if len(named) != 1:
            raise ValueError(f"name exactly one of {_FORMS}")
        if self.random is None and self.horizon is not None:
            raise ValueError("a horizon goes with random(n, horizon)")
        if self.random is not None and self.horizon is not None and self.random > self.horizon:
            raise ValueError(f"{self.random} page loads of {self.horizon} cannot be drawn")
        return self

    def __str__(self) -> str:
        if self.at is not None:
            return f"at({self.at})"
        if self.random is not None:
            named = (self.random, self.horizon) if self.horizon else (self.random,)
            return f"random({', '.join(map(str, named))})"
        return f"bernoulli({self.bernoulli:g})"


def _parsed(text: str) -> Mapping[str, Any]:
    """Parse text such as ``at(3)``. Raises ValueError."""
    call = _CALL.match(text)
    words = [word.split("=")[-1].strip() for word in call[2].split(",")] if call else []
    if call is None or len(words) not in ((1, 2) if call[1] == "random" else (1,)):
        raise ValueError(f"write {_FORMS}")
    try:
        numbers = [json.loads(word) for word in words]
    except ValueError:
        raise ValueError(f"write {_FORMS} with numbers") from None
    return dict(zip((call[1], "horizon"), numbers, strict=False))


Stage = Literal["before", "after"]
"""Whether the origin processed the request that the fault replaces the answer of."""

Recovery = Literal["dismiss", "reload", "wait", "none"]
"""What brings the page back: closing an overlay, loading again, waiting; ``none``: nothing that the
browser offers."""

Replaced = Literal["before", "after", "document", ""]
"""When a fault replaces the origin's answer, or that it replaces its document; "" for neither."""

AssetKind = Literal["style", "script", "image", "font"]

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")]
Seconds = Annotated[float, Field(gt=0, le=600)]


class PlainRecord(BaseModel):
    """A frozen record that refuses unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class PlannedFault(PlainRecord):
    """The fields of all faults: a name that is unique in the plan, and when the fault fires."""

    recovers: ClassVar[Recovery] = "reload"
    instead: ClassVar[Replaced] = ""

    id: Name
    policy: FaultPolicy

    @property
    def recovery(self) -> Recovery:
        return self.recovers

    @property
    def replaces(self) -> Replaced:
        """What the fault replaces; of two faults that replace a response only one can fire."""
        return self.instead


class PopupFault(PlannedFault):
    """An overlay in the page.

    ``accessibility``: ``full`` has a role, a label and a button with text; ``none`` has an unnamed
    icon that is not a button. A ``delayed`` popup appears ``seconds`` after the page.
    """

    recovers: ClassVar[Recovery] = "dismiss"

    kind: Literal["popup"]
    variant: Literal["modal", "banner", "delayed", "offscreen"] = "modal"
    accessibility: Literal["full", "none"] = "full"
    seconds: Seconds = 1.0


class StatusFault(PlannedFault):
    """An error status. ``retry_after`` (seconds) is sent as ``Retry-After``.

    ``body``: a short ``page`` with the status, as servers send, or ``empty``, for which browsers
    show their own error page (and Playwright's ``goto`` raises).
    """

    kind: Literal["status"]
    status: Literal[408, 429, 500, 502, 503, 504]
    retry_after: Annotated[int, Field(ge=0, le=86400)] | None = None
    stage: Stage = "before"
    body: Literal["page", "empty"] = "page"

    @property
    def replaces(self) -> Stage:
        return self.stage


class DelayFault(PlannedFault):
    """A delay of ``seconds`` of the request to the site or of the response."""

    recovers: ClassVar[Recovery] = "wait"

    kind: Literal["delay"]
    seconds: Seconds
    stage: Stage = "before"


class ResetFault(PlannedFault):
    """A connection reset instead of a response."""

    kind: Literal["reset"]
    stage: Stage = "before"

    @property
    def replaces(self) -> Stage:
        return self.stage


class TruncateFault(PlannedFault):
    """A response that ends after a ``share`` of its body, with the full length in its header."""

    instead: ClassVar[Replaced] = "document"

    kind: Literal["truncate"]
    share: Annotated[float, Field(ge=0, lt=1)] = 0.5


class SessionFault(PlannedFault):
    """An expired session: a redirect to ``location`` that removes ``cookies`` (all that the request
    carries, if None)."""

    recovers: ClassVar[Recovery] = "none"
    instead: ClassVar[Replaced] = "before"

    kind: Literal["session"]
    location: Annotated[str, Field(pattern=r"^/[!-~]*$")] = "/"
    cookies: tuple[Annotated[str, Field(pattern=r"^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")], ...] | None = (
        None
    )


class AssetFault(PlannedFault):
    """Styles, scripts, images or fonts of a page that fail with ``status``."""

    kind: Literal["assets"]
    assets: Annotated[tuple[AssetKind, ...], Field(min_length=1)] = ("style", "script", "image")
    status: Annotated[int, Field(ge=400, le=599)] = 503


class OfflineFault(PlannedFault):
    """A page without connection, which reloads itself after ``retry_seconds``; None: never."""

    instead: ClassVar[Replaced] = "before"

    kind: Literal["offline"]
    retry_seconds: Annotated[int, Field(ge=1, le=600)] | None = 5

    @property
    def recovery(self) -> Recovery:
        return "reload" if self.retry_seconds is None else "wait"


Fault = Annotated[
    PopupFault
    | StatusFault
    | DelayFault
    | ResetFault
    | TruncateFault
    | SessionFault
    | AssetFault
    | OfflineFault,
    Field(discriminator="kind"),
]


_SHOWN = 3  # mistakes that one message names
_EXAMPLE = '{"faults": [{"id": "busy", "kind": "status", "status": 503, "policy": "at(2)"}]}'
_MEND = f"write a JSON object such as {_EXAMPLE}"

KINDS = tuple(
    get_args(fault.model_fields["kind"].annotation)[0] for fault in get_args(get_args(Fault)[0])
)


class FaultPlan(PlainRecord):
    """Faults in the order in which they apply. ``seed`` is the default for runs."""

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
        """Whether a fault uses the task's horizon."""
        policies = (fault.policy for fault in self.faults)
        return any(policy.random and policy.horizon is None for policy in policies)

    @property
    def digest(self) -> str:
        """A hash of the faults: plans with equal hashes behave the same with equal seeds."""
        faults = self.model_dump_json(include={"version", "faults"})
        return sha256(faults.encode()).hexdigest()[:16]


def plan_mistakes(text: str | bytes) -> tuple[str, ...]:
    """Return one sentence per error in a plan's JSON; empty for a valid plan."""
    try:
        FaultPlan.model_validate_json(text)
    except ValidationError as error:
        return tuple(_sentence(dict(one)) for one in error.errors(include_url=False))
    return ()


def _sentence(error: dict[str, Any]) -> str:
    """Describe an error: its field, the value, and the reason."""
    location = list(error["loc"])
    fields = location
    where = ".".join(map(str, location)) or "the plan"
    if len(location) >= 2 and location[0] == "faults":  # ("faults", number, kind, field ...)
        fields = location[3:]
        where = ": ".join(
            filter(None, [f"fault {int(location[1]) + 1}", ".".join(map(str, fields))])
        )
    why = str(error["msg"]).removeprefix("Value error, ")
    if error["type"] in ("json_invalid", "model_type") and not location:
        return f"{where}: {why}: {_MEND}"
    if error["type"] == "missing":
        return f"{where} is missing"
    if error["type"] == "extra_forbidden":
        return f"{where} is not a field of this record: remove it or correct its name"
    if error["type"] in ("union_tag_not_found", "union_tag_invalid"):
        return f"{where} has no known kind: name one of {', '.join(KINDS)}"
    if isinstance(error["input"], dict | bytes) or not fields:
        return f"{where}: {why}"
    return f"{where} is {error['input']!r:.80}: {why}"


def read_plan(path: Path) -> FaultPlan:
    """Read a plan. Raises UserError with a sentence for each of the first errors."""
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


@dataclass(frozen=True)
class Schedule:
    """The faults of a plan in one task, determined by plan, seed, task and ``horizon``, the
    number of the task's page loads (for ``random(n)``)."""

    plan: FaultPlan
    task: str
    seed: int
    horizon: int | None = None

    def planned(self, fault: Fault) -> tuple[int, ...] | None:
        """Return the page loads at which a fault fires; None for a policy without an end."""
        return planned_ordinals(*self._drawn(fault), self.horizon)

    def due(self, ordinal: int) -> tuple[Fault, ...]:
        """Return the faults of a page load (from 1), in the plan's order."""
        return tuple(fault for fault in self.plan.faults if self.is_due(fault, ordinal))

    def is_due(self, fault: Fault, ordinal: int) -> bool:
        """Return True if a fault is planned at a page load."""
        policy, key = self._drawn(fault)
        return is_due(policy, self.planned(fault), key, ordinal)

    def _drawn(self, fault: Fault) -> tuple[dict[str, Any], DrawKey]:
        """Return the policy in the form of which the addon draws."""
        policy = fault.policy.model_dump(exclude_none=True)
        return policy, DrawKey(self.seed, self.task, fault.id)
