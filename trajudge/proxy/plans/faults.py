"""The faults that a plan may name, one record each."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

from trajudge.proxy.plans.policies import FaultPolicy

Stage = Literal["before", "after"]
"""Whether the origin processed the request that the fault replaces the answer of."""

Recovery = Literal["dismiss", "reload", "wait", "none"]
"""What brings the page back: closing an overlay, loading again, waiting; ``none``: nothing that the
browser offers."""

AssetKind = Literal["style", "script", "image", "font"]

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")]
Seconds = Annotated[float, Field(gt=0, le=600)]


class PlainRecord(BaseModel):
    """A frozen record that refuses unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class PlannedFault(PlainRecord):
    """What all faults have: a name that is unique in the plan, and when the fault fires."""

    # Whether the fault takes the place of the origin's answer: of two such, one can fire.
    replaces: ClassVar[bool] = True
    recovers: ClassVar[Recovery] = "reload"

    id: Name
    policy: FaultPolicy

    @property
    def recovery(self) -> Recovery:
        return self.recovers


class PopupFault(PlannedFault):
    """An overlay of our own in the page.

    ``accessibility``: ``full`` has role, label and a button with text; ``none`` has an unnamed icon
    that is no button. ``seconds`` is when a ``delayed`` popup appears after the page.
    """

    replaces: ClassVar[bool] = False
    recovers: ClassVar[Recovery] = "dismiss"

    kind: Literal["popup"]
    variant: Literal["modal", "banner", "delayed", "offscreen"] = "modal"
    accessibility: Literal["full", "none"] = "full"
    seconds: Seconds = 1.0


class StatusFault(PlannedFault):
    """An error status. ``retry_after`` (seconds) is sent as ``Retry-After``.

    ``body``: a short ``page`` that names the status, as servers send, or ``empty``, for which
    browsers show an error page of their own (and Playwright's ``goto`` raises).
    """

    kind: Literal["status"]
    status: Literal[408, 429, 500, 502, 503, 504]
    retry_after: Annotated[int, Field(ge=0, le=86400)] | None = None
    stage: Stage = "before"
    body: Literal["page", "empty"] = "page"


class DelayFault(PlannedFault):
    """A wait of ``seconds`` before the request goes to the origin, or before its answer comes."""

    replaces: ClassVar[bool] = False
    recovers: ClassVar[Recovery] = "wait"

    kind: Literal["delay"]
    seconds: Seconds
    stage: Stage = "before"


class ResetFault(PlannedFault):
    """A connection that is reset in place of an answer."""

    kind: Literal["reset"]
    stage: Stage = "before"


class TruncateFault(PlannedFault):
    """An answer that ends after a ``share`` of its body, with its full length announced."""

    kind: Literal["truncate"]
    share: Annotated[float, Field(ge=0, lt=1)] = 0.5


class DripFault(PlannedFault):
    """A body that comes in small pieces over ``seconds``."""

    replaces: ClassVar[bool] = False
    recovers: ClassVar[Recovery] = "wait"

    kind: Literal["drip"]
    seconds: Seconds


class SessionFault(PlannedFault):
    """An expired session: a redirect to ``location`` that removes ``cookies`` (all that the request
    carries, if None)."""

    recovers: ClassVar[Recovery] = "none"

    kind: Literal["session"]
    location: Annotated[str, Field(pattern=r"^/[!-~]*$")] = "/"
    cookies: tuple[Annotated[str, Field(pattern=r"^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")], ...] | None = (
        None
    )


class AssetFault(PlannedFault):
    """Styles, scripts, images or fonts of a page that fail with ``status``."""

    replaces: ClassVar[bool] = False

    kind: Literal["assets"]
    assets: Annotated[tuple[AssetKind, ...], Field(min_length=1)] = ("style", "script", "image")
    status: Annotated[int, Field(ge=400, le=599)] = 503


class OfflineFault(PlannedFault):
    """A page that says that there is no connection. ``retry_seconds``: it loads again by itself
    after so long; None: it never does."""

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
    | DripFault
    | SessionFault
    | AssetFault
    | OfflineFault,
    Field(discriminator="kind"),
]
