"""Whether a task got past a fault that fired, and by what: told by the page loads that followed.

Every exposure has one record: at the moment that shows the recovery, else at the task's end.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from trajudge.proxy.plans.faults import DelayFault, DripFault, Fault, OfflineFault, SessionFault

RecoveryMeans = Literal["dismissed", "reloaded", "waited", "left", "none"]
"""``dismissed``: the overlay was closed. ``reloaded``: the same address was loaded again, by the
same method, and the site answered. ``waited``: the page came while the agent waited. ``left``: only
other pages were loaded after the fault. ``none``: no page came any more."""

RECOVERED: tuple[RecoveryMeans, ...] = ("dismissed", "reloaded", "waited")

_EARLY = 0.25  # seconds by which a browser's own reload may come before its time


class PageAnswer(NamedTuple):
    """The end of one request of a page load. ``faults`` are those that it met, ``replaced`` tells
    whether one took the answer's place; ``complete`` whether the client took all of it. ``began``
    and ``ended`` are seconds of one clock."""

    k: int
    method: str
    url: str
    status: int
    faults: tuple[str, ...]
    replaced: bool
    complete: bool
    began: float
    ended: float

    @property
    def by_the_site(self) -> bool:
        """Whether the site answered, and without an error."""
        return self.complete and not self.replaced and 200 <= self.status < 400


@dataclass(eq=False)
class FaultExposure:
    """A fault that fired at page load ``k``; ``at`` in seconds. ``overlay`` names a popup.
    ``calls`` is the number of the task's model calls before it; ``left``: another page came."""

    fault: Fault
    k: int
    method: str
    url: str
    at: float
    overlay: str = ""
    calls: int = 0
    left: bool = False


class FaultRecovery(NamedTuple):
    """What came of an exposure. ``k`` is the page load that showed it, None where none did;
    ``seconds`` passed between the fault and that, or the end of the task."""

    exposure: FaultExposure
    means: RecoveryMeans
    k: int | None
    seconds: float

    @property
    def recovered(self) -> bool:
        return self.means in RECOVERED


@dataclass
class RecoveryTracker:
    """The exposures of a task that have no record yet."""

    _open: list[FaultExposure] = field(default_factory=list)

    def add(self, exposure: FaultExposure) -> None:
        """Follow one more exposure."""
        self._open.append(exposure)

    def closed(self, overlay: str, k: int, now: float) -> Iterator[FaultRecovery]:
        """Yield what an overlay's closing shows."""
        for exposure in list(self._open):
            if overlay and exposure.overlay == overlay:
                yield self._settled(exposure, "dismissed", k, now)

    def answered(self, answer: PageAnswer) -> Iterator[FaultRecovery]:
        """Yield what the end of a page load's request shows."""
        for exposure in list(self._open):
            means = _shown(exposure, answer)
            if means in RECOVERED:
                yield self._settled(exposure, means, answer.k, answer.ended)
            elif means == "left":
                exposure.left = True

    def rest(self, now: float) -> Iterator[FaultRecovery]:
        """Yield what is left at the task's end."""
        for exposure in list(self._open):
            yield self._settled(exposure, "left" if exposure.left else "none", None, now)

    def _settled(
        self, exposure: FaultExposure, means: RecoveryMeans, k: int | None, now: float
    ) -> FaultRecovery:
        self._open.remove(exposure)
        return FaultRecovery(exposure, means, k, now - exposure.at)


def _shown(exposure: FaultExposure, answer: PageAnswer) -> RecoveryMeans:
    """Return what an answer shows of an exposure, ``none`` for nothing."""
    fault = exposure.fault
    if answer.k == exposure.k:
        held = isinstance(fault, DelayFault | DripFault) and fault.id in answer.faults
        return "waited" if held and answer.complete else "none"
    if not answer.by_the_site or fault.id in answer.faults:
        return "none"
    if (answer.method, answer.url) != (exposure.method, exposure.url):
        return "left"
    if isinstance(fault, SessionFault) and 300 <= answer.status < 400:
        return "none"  # the site itself asks for a login
    if isinstance(fault, OfflineFault) and fault.retry_seconds is not None:
        waited = answer.began - exposure.at >= fault.retry_seconds - _EARLY
        return "waited" if waited else "reloaded"
    return "reloaded"
