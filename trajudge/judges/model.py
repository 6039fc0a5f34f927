"""Data model of judging.

A Request gets a Reply (one model call); a judge reads a Verdict in the replies; a Judgment is the
verdict on one trajectory with its status and its cost.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from enum import StrEnum
from functools import cached_property
from hashlib import sha256
from typing import Literal, Protocol

import orjson
from pydantic import Field, JsonValue, ValidationInfo, field_validator

from trajudge.trajectories.model import Record, Trajectory, TrajectoryKey


class Status(StrEnum):
    """How a judgment ended. Everything but ``ok`` is a failure, never a silent "no"."""

    OK = "ok"
    UNPARSABLE = "unparsable"
    REFUSED = "refused"
    TRUNCATED = "truncated"
    CONTEXT_OVERFLOW = "context_overflow"
    PROVIDER_ERROR = "provider_error"
    SKIPPED = "skipped"


class Text(Record):
    """A piece of text in a message."""

    kind: Literal["text"] = "text"
    text: str


Detail = Literal["low", "high", "auto"]


class Picture(Record):
    """An encoded image as it is sent. ``width`` and ``height`` in pixels; ``detail`` is the
    resolution to ask for in chat completions, None to leave it to the provider."""

    kind: Literal["image"] = "image"
    sha256: str
    media_type: str
    width: int
    height: int
    detail: Detail | None = None
    data: bytes = Field(repr=False)


Part = Text | Picture


class Message(Record):
    """One turn of the conversation."""

    role: Literal["system", "user", "assistant"]
    parts: tuple[Part, ...]


class Request(Record):
    """One model call, identified by its content.

    ``endpoint`` says who answers (an adapter's name, or its base URL), so that a local server's
    reply is never taken for the provider's. ``sample`` tells repeated draws apart.
    """

    endpoint: str
    model: str
    messages: tuple[Message, ...]
    parameters: dict[str, JsonValue] = Field(default_factory=dict)
    sample: int = 0

    @cached_property
    def hash(self) -> str:
        """SHA-256 (hexadecimal) over the canonical JSON, images by their own hash."""
        turns = [[m.role, [_content(part) for part in m.parts]] for m in self.messages]
        content = [self.endpoint, self.model, turns, self.parameters, self.sample]
        return sha256(orjson.dumps(content, option=orjson.OPT_SORT_KEYS)).hexdigest()


def _content(part: Part) -> JsonValue:
    """Return what identifies a part; a picture without ``detail`` as before there was one."""
    if isinstance(part, Text):
        return part.text
    return {"image": part.sha256, **({"detail": part.detail} if part.detail else {})}


class Usage(Record):
    """Tokens of one call.

    ``input`` are those billed in full: the prompt's tokens are ``input + cache_read +
    cache_write``. ``reasoning`` is a part of ``output``, ``image`` a part of ``input`` where the
    provider reports it.
    """

    input: int = 0
    cache_read: int = 0
    cache_write: int = 0
    output: int = 0
    reasoning: int = 0
    image: int = 0

    @property
    def prompt(self) -> int:
        """Tokens of the prompt, however they are billed."""
        return self.input + self.cache_read + self.cache_write

    def __add__(self, other: Usage) -> Usage:
        return Usage(**{name: getattr(self, name) + getattr(other, name) for name in USAGE_FIELDS})


USAGE_FIELDS = tuple(Usage.model_fields)


class Reply(Record):
    """A model's answer.

    ``finish``: ``stop``, ``length`` (ran out of output tokens) or ``refused``. ``usage`` is None
    where the server does not report it: 0 tokens for a prompt, or for an answer that has text, are
    no report. ``parameters`` are those that were sent. ``thoughts`` is the model's reasoning beside
    the answer; no verdict is read from it. ``seconds`` is the latency of the original call, also
    when the reply comes from the cache.
    """

    text: str
    finish: Literal["stop", "length", "refused"] = "stop"
    usage: Usage | None = None
    model: str = ""
    seconds: float = 0.0
    parameters: dict[str, JsonValue] = Field(default_factory=dict)
    logprobs: JsonValue = None
    thoughts: str = ""

    @field_validator("usage")
    @classmethod
    def _is_reported(cls, usage: Usage | None, info: ValidationInfo) -> Usage | None:
        """Take counts that cannot be true for none: unknown is not zero."""
        if usage is None or not usage.prompt or (info.data.get("text") and not usage.output):
            return None
        return usage


class Verdict(Record):
    """A judge's labels for a trajectory. None: not asked, or not answered.

    ``score`` is that of success, from 0 to 1, ``scores`` are further numbers by name; ``fallback``
    says what had to be repaired to parse the reply, "" if nothing. ``process``, ``failure_step``
    (from 0) and ``failure_type`` answer what a Label's fields of these names ask.
    """

    success: bool | None = None
    side_effect: bool | None = None
    repetition: bool | None = None
    optimality: int | None = Field(default=None, ge=1, le=4)
    score: float | None = Field(default=None, ge=0, le=1)
    scores: dict[str, float] = Field(default_factory=dict)
    reasoning: str = ""
    fallback: str = ""
    record: dict[str, JsonValue] | None = Field(default=None, repr=False)
    process: bool | None = None
    failure_step: int | None = Field(default=None, ge=0)
    failure_type: str | None = None


VERDICT_FIELDS = tuple(Verdict.model_fields)

REPAIR = "repair"
"""The stage of a corrective turn."""

SECOND_ASKED = "second_asked"
"""In the ``scores`` of a cascade of judges: 1 if the second member was asked, else 0."""


class Call(Record):
    """One model call of a judgment, as recorded in its ledger.

    ``usage`` is None where the server did not report it. ``cost`` in US dollars, None if the usage
    or the price is not known. ``seconds`` and ``cached`` hold for this run only and are left out of
    ``judgments.jsonl``, so that an interrupted run ends with the same bytes.
    """

    stage: str
    request: str
    rung: str
    finish: str
    usage: Usage | None
    cost: float | None
    text: str
    seconds: float = 0.0
    cached: bool = False


class Judgment(Record):
    """The verdict of one judge on one trajectory (AgentRewardBench section 3.1).

    Labels are None where they were not asked or not answered, and all of them unless ``status`` is
    ok; ``detail`` then says why. ``score`` is the judge's own for success, from 0 to 1, and
    ``optimality`` goes from 1 to 4. ``calls`` have tokens, US dollars and seconds. ``sample``
    counts repeated judgments from 0; ``record`` is written to a file next to ``judgments.jsonl``.
    """

    key: TrajectoryKey
    judge: str
    sample: int = 0
    status: Status
    success: bool | None = None
    side_effect: bool | None = None
    repetition: bool | None = None
    optimality: int | None = Field(default=None, ge=1, le=4)
    score: float | None = Field(default=None, ge=0, le=1)
    scores: dict[str, float] = Field(default_factory=dict)
    reasoning: str = ""
    fallback: str = ""
    detail: str = ""
    calls: tuple[Call, ...] = ()
    record: dict[str, JsonValue] | None = Field(default=None, repr=False)
    process: bool | None = None
    failure_step: int | None = Field(default=None, ge=0)
    failure_type: str | None = None


class Model(Protocol):
    """Interface through which a judge calls a model: messages in, reply out; everything else is
    hidden.

    ``stage`` names the call in the ledger, ``rung`` the truncation level of the prompt. ``model``
    is given when the judge's options name another model than the run's (a captioner). ``assume`` is
    a reply of the expected kind: a dry run, which gets no reply, continues with it and estimates
    costs by its length. ``parameters`` override the run's (``max_tokens``, ``temperature``, ...).
    Raises CallFailed (``judges.adapters.errors``).
    """

    def __call__(
        self,
        messages: Sequence[Message],
        *,
        stage: str = "verdict",
        rung: str = "full",
        model: str | None = None,
        assume: str = "",
        **parameters: JsonValue,
    ) -> Awaitable[Reply]: ...


class Judge(Protocol):
    """Reads a trajectory and gives a verdict.

    One that asks a model has a ``prompt_hash``, and a ``text_hash`` where it asks in its source's
    own words.

    Raises ``judges.replies.ParseFailure`` if the reply holds no verdict, ``Skipped`` if the
    trajectory lacks what the judge needs; ``judges.judging.judge_trajectory`` turns these and
    CallFailed into a Judgment with the status.
    """

    def __call__(self, trajectory: Trajectory, ask: Model) -> Awaitable[Verdict]: ...


class Skipped(Exception):
    """The judge cannot judge this trajectory; the message says what is missing."""
