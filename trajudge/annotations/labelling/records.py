"""The records of the label store: people, items, events, and the answers of a form."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Literal, NamedTuple

from pydantic import Field, model_validator

from trajudge.annotations.model import EvidenceMark, SampleFrame
from trajudge.trajectories.model import Record, TrajectoryKey

Choice = Literal["yes", "no", "unsure"]
Question = Literal["success", "side_effect", "repetition", "optimality"]
QUESTIONS: tuple[Question, ...] = ("success", "side_effect", "repetition", "optimality")
PersonRole = Literal["annotator", "adjudicator", "viewer"]
TEXT_LIMIT = 20_000
"""Characters of a comment, a reason or a note."""


class EventKind(StrEnum):
    """What an event records. ``draft`` is what a form held, ``revised`` the second stage after the
    verdicts were shown, ``returned`` an item that the adjudicator sent back, ``reviewed`` what was
    decided of a rule."""

    OPENED = "opened"
    DRAFT = "draft"
    SUBMITTED = "submitted"
    VERDICTS_SHOWN = "verdicts_shown"
    REVISED = "revised"
    SKIPPED = "skipped"
    RELEASED = "released"
    REOPENED = "reopened"
    RETURNED = "returned"
    ADJUDICATED = "adjudicated"
    COMMENTED = "commented"
    GUIDELINE_SHOWN = "guideline_shown"
    REVIEWED = "reviewed"


class FormAnswers(Record):
    """What a form holds; None: not answered yet. ``seconds`` is how long the page was visible."""

    success: Choice | None = None
    side_effect: Choice | None = None
    repetition: Choice | None = None
    optimality: Literal[1, 2, 3, 4, "unsure"] | None = None
    unsure_why: dict[Question, str] = Field(default_factory=dict)
    evidence: tuple[EvidenceMark, ...] = Field(default=(), max_length=200)
    comment: str = Field(default="", max_length=TEXT_LIMIT)
    confidence: int | None = Field(default=None, ge=1, le=3)
    seconds: float | None = Field(default=None, ge=0)
    guideline_version: str | None = None

    @model_validator(mode="after")
    def _bounded(self) -> FormAnswers:
        notes = [*self.unsure_why.values(), *(mark.note for mark in self.evidence)]
        if any(len(note) > TEXT_LIMIT for note in notes):
            raise ValueError(f"a note is longer than {TEXT_LIMIT:,} characters")
        return self

    def value(self, question: Question) -> str:
        """Return the answer as text, "" where there is none."""
        answer = getattr(self, question)
        return "" if answer is None else str(answer)


class Person(NamedTuple):
    """Who labels; ``token_hash`` is None where nobody has to sign in."""

    id: int
    name: str
    role: PersonRole
    token_hash: str | None
    active: bool


class ReadingId(NamedTuple):
    """Whose reading of which item: numbers of the store."""

    person: int
    item: int


class QueueItem(Record):
    """A trajectory to label: ``wanted`` is by how many people, independently of each other.

    ``inclusion_probability`` is that of the draw, None for a hidden check (``gold`` holds its known
    labels), which no estimate counts. ``position`` is the place in the queue.
    """

    key: TrajectoryKey
    raw_task_id: str
    stratum: str = ""
    inclusion_probability: float | None = Field(default=None, gt=0, le=1)
    reason: str = ""
    position: int = Field(default=0, ge=0)
    wanted: int = Field(default=1, ge=1)
    gold: dict[Question, Any] | None = None


class StoredItem(NamedTuple):
    """An item with its number in the store."""

    id: int
    item: QueueItem


class LabelEvent(NamedTuple):
    """A line of the log. ``at`` is in milliseconds since 1970; ``payload`` is JSON. ``request`` is
    the idempotency key of who sent it; ``person`` and ``item`` are numbers of the store."""

    id: int
    at: int
    person: int | None
    item: int | None
    kind: str
    payload: str
    request: str | None


class QueueSettings(Record):
    """How a queue was built and what it asks; ``frame`` is what was drawn from."""

    strategy: str = "random"
    seed: int = 0
    questions: tuple[Question, ...] = QUESTIONS
    informed: bool = False
    data: tuple[str, ...] = ()
    runs: tuple[str, ...] = ()
    annotations: str | None = None
    frame: SampleFrame | None = None
