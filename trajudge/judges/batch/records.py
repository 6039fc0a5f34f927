"""Records of batches: their lines, their state here and at the provider, the limits of a file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from pydantic import Field

from trajudge.judges.adapters.errors import CallFailed
from trajudge.judges.adapters.failures import ErrorBody
from trajudge.trajectories.model import Record

BatchState = Literal["intent", "submitted", "collected", "released"]
"""``intent``: it may have reached the provider or not; ``submitted``: it has; ``collected``: every
line has its outcome; ``released``: the provider never took it, so its lines may be sent again."""


class BatchLimits(Record):
    """Limits of one file, and of what may be under way at once: ``enqueued`` tokens per model
    (None: not known, the provider then says so). ``tokens`` of one file (None: no limit)."""

    lines: int = Field(ge=1)
    bytes: int = Field(ge=1)
    tokens: int | None = Field(default=None, ge=1)
    enqueued: int | None = Field(default=None, ge=1)


class BatchLine(NamedTuple):
    """One request of a batch: its hash, the line's bytes (without a line break), its parameters as
    they are shown, estimated tokens, and the dollars reserved for it (at batch price)."""

    request: str
    content: bytes
    parameters: dict[str, Any]
    tokens: int
    reserved: float


class BatchRow(NamedTuple):
    """A batch as the ledger has it; times in seconds since 1970."""

    id: str
    service: str
    endpoint: str
    model: str
    run: str
    state: BatchState
    intent_at: float
    submitted_at: float | None
    ended_at: float | None
    provider_id: str
    input_sha: str
    lines: int
    tokens: int
    duplicates: int
    note: str

    @property
    def is_open(self) -> bool:
        return self.state in ("intent", "submitted")


class OpenLine(NamedTuple):
    """A line whose outcome is not known yet; ``parameters`` are those that were sent."""

    parameters: dict[str, Any]
    reserved: float


class PaidLine(NamedTuple):
    """A line that cost something, ``dollars`` None if its cost is not known and nothing was
    reserved for it; ``attempt`` names it among all lines of a run's batches."""

    attempt: str
    request: str
    dollars: float | None
    is_answered: bool


class ProviderState(NamedTuple):
    """What the provider says of a batch: whether it has ended, its own word for the state, the
    lines that are through and all of them. ``failed`` is the reason if no line was ever taken, and
    ``is_full`` tells that the reason is the limit of enqueued tokens."""

    ended: bool
    word: str
    through: int
    lines: int
    failed: str = ""
    is_full: bool = False


class LineResult(NamedTuple):
    """A line of a provider's results: the body of an answer, or a status with the error's words.
    ``expired``: the window closed before the line's turn. ``where`` is who says so, where it is not
    the adapter's server, and ``unserved`` what to do about a model that it does not serve."""

    request: str
    content: dict[str, Any] | None
    status: int = 200
    error: ErrorBody = ErrorBody()
    expired: bool = False
    where: str = ""
    unserved: str = ""


class BatchResults(NamedTuple):
    """All lines of a batch's results in the provider's order. At least ``expected`` requests
    are answered in them if the download is whole."""

    lines: Sequence[LineResult]
    expected: int


class MaybeAccepted(CallFailed):
    """A submission without an answer: the provider may have taken it."""


class RequestRef(NamedTuple):
    """A request by its hash, for the cache."""

    hash: str
    endpoint: str
    model: str
