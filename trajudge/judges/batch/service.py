"""A provider's batch interface: what each provider's module implements, and limits of files."""

from __future__ import annotations

import tomllib
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import orjson
from pydantic import Field, ValidationError

from trajudge.judges.adapters.errors import BadReply, CallFailed
from trajudge.judges.adapters.failures import ErrorBody, failure, read_error
from trajudge.judges.adapters.provider import ProviderAdapter
from trajudge.judges.adapters.sdk import no_answer
from trajudge.judges.batch.ledger import BatchLine, BatchRow
from trajudge.trajectories.model import Record
from trajudge.util.errors import UserError

_FLAG = "--batch-options"


class MaybeAccepted(CallFailed):
    """A submission without an answer: the provider may have taken it."""


@dataclass(frozen=True, slots=True)
class ProviderState:
    """What the provider says of a batch: whether it has ended, and the lines that are through.
    ``failed`` is the reason if no line was ever taken, and ``is_full`` tells that the reason is the
    limit of enqueued tokens."""

    ended: bool
    through: int
    failed: str = ""
    is_full: bool = False


_NO_ERROR = ErrorBody()


@dataclass(frozen=True, slots=True)
class LineResult:
    """A line of a provider's results: the body of an answer, or a status with the error's words.
    ``expired``: the window closed before the line's turn. ``where`` is who says so, where it is not
    the adapter's server."""

    request: str
    content: dict[str, Any] | None
    status: int = 200
    error: ErrorBody = _NO_ERROR
    expired: bool = False
    where: str = ""


class BatchService(ABC):
    """One provider. ``name`` is its row in the table of limits, ``adapter`` makes the bodies, and
    ``unserved`` says what to do about a model that is not served. Methods raise CallFailed."""

    unserved = ""

    def __init__(self, adapter: ProviderAdapter) -> None:
        self.adapter = adapter
        self.name = {"http": "openai"}.get(adapter.name, adapter.name)
        if adapter.endpoint.startswith("http"):
            self.name = adapter.endpoint  # another server than the provider's: other limits

    @abstractmethod
    def line(self, request_hash: str, body: dict[str, Any]) -> bytes:
        """Return a request's line."""

    @abstractmethod
    async def submit(self, batch: str, lines: Sequence[BatchLine]) -> str:
        """Submit a batch and return the provider's name for it. Raises MaybeAccepted where nobody
        can tell whether it was taken, another CallFailed where it was not."""

    @abstractmethod
    async def find(self, row: BatchRow, requests: Collection[str], known: Collection[str]) -> str:
        """Return the provider's name of a batch that may have been taken, "" if it has none;
        ``known`` are names of other batches of ours. Raises CallFailed also where one that may be
        it has to be waited for."""

    @abstractmethod
    async def state(self, provider_id: str) -> ProviderState:
        """Ask how far the batch is."""

    @abstractmethod
    async def results(self, provider_id: str) -> list[LineResult]:
        """Download the results, in the provider's order. Raises CallFailed unless they are
        whole."""

    @abstractmethod
    async def cancel(self, provider_id: str) -> bool:
        """Ask for the end of the batch, of which what is done by then is answered; return whether
        it is over at once, and nothing of it will be answered."""

    @contextmanager
    def _sdk_errors(self, *, submitting: bool = False) -> Iterator[Any]:
        """Yield the SDK's client; raise errors of the SDK as ours: MaybeAccepted where a
        submission's fate is open: no answer, or a 5xx, after which providers have been seen to go
        on."""
        adapter = self.adapter
        sdk = adapter.sdk
        try:
            yield adapter.sdk_client
        except sdk.APIStatusError as error:
            status = int(error.status_code)
            if submitting and (status >= 500 or status in (408, 409)):
                raise MaybeAccepted(f"{adapter.where} answered {status}") from None
            body, headers = read_error(error.response.content), dict(error.response.headers.items())
            raise failure(
                status, body, headers, where=adapter.where, key_variable=adapter.key_variable
            ) from None
        except sdk.APIError as error:
            answer = no_answer(error, adapter.where)
            raise (MaybeAccepted(str(answer)) if submitting else answer) from None


def whole(results: list[LineResult], answers: int, provider_id: str) -> list[LineResult]:
    """Return the results. Raises BadReply if they lack some of so many answers."""
    arrived = len({line.request for line in results if line.content is not None})
    if arrived < answers:
        raise BadReply(f"{arrived} of {answers} answers of batch {provider_id} arrived")
    return results


def json_lines(content: bytes, where: str) -> Iterator[dict[str, Any]]:
    """Decode lines of JSON objects. Raises BadReply for a line that is cut."""
    for line in content.split(b"\n"):
        if not line.strip():
            continue
        try:
            decoded = orjson.loads(line)
        except orjson.JSONDecodeError:
            raise BadReply(f"{where}: a line of the results is cut or is not JSON") from None
        if isinstance(decoded, dict):
            yield decoded


class BatchOptions(Record):
    """Limits of one file, ``enqueued`` the tokens per model that may be under way at once (None:
    not known, the provider then says so), and times in seconds: ``poll`` before the first look at a
    batch (later ones are rarer), ``grace`` until a submission without an answer, which the provider
    does not list, may be made again."""

    lines: int = Field(default=1, ge=1)
    bytes: int = Field(default=1, ge=1)
    tokens: int | None = Field(default=None, ge=1)
    enqueued: int | None = Field(default=None, ge=1)
    poll: float = 10.0
    grace: float = 900.0


def batch_options(service: str, text: str | None) -> BatchOptions:
    """Return the options of a service's batches: ``NAME=NUMBER,...`` before the table of limits.

    Raises UserError, also for a service that the table does not know, unless lines and bytes are
    given.
    """
    given: dict[str, float] = {}
    for pair in filter(None, (text or "").split(",")):
        name, _, value = (part.strip() for part in pair.partition("="))
        try:
            number = float(value)
        except ValueError:
            number = -1.0
        if name not in BatchOptions.model_fields or not 0 < number < float("inf"):
            names = ", ".join(BatchOptions.model_fields)
            raise UserError(f"{_FLAG} {pair!r}: write NAME=NUMBER with one of {names}, above 0")
        given[name] = number
    table = tomllib.loads(files("trajudge.judges.batch").joinpath("limits.toml").read_text())
    known = {**table.get(service, {}), **given}
    if not {"lines", "bytes"} <= known.keys():
        raise UserError(
            f"the limits of batch files at {service} are not known: give them with  "
            f"{_FLAG} lines=50000,bytes=200000000"
        )
    try:
        return BatchOptions(**known)
    except ValidationError:
        raise UserError(f"{_FLAG}: lines, bytes, tokens and enqueued are whole numbers") from None
