"""The record of a run: the agent's goal, observations, thoughts and actions.

A trajectory is o1, (r1, a1), ..., on as in AgentRewardBench section 3.1: every step has an
observation, and the reasoning and the action that followed it; the last step has no action.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from hashlib import sha256
from math import isinf, isnan
from pathlib import Path
from sys import intern
from typing import Annotated, Any, NamedTuple, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    model_validator,
)
from pydantic_core import PydanticSerializationError, to_json

from trajudge.util.commands import LARGEST
from trajudge.util.errors import ImageUnreadable
from trajudge.util.files import UnsafeFile, read_regular, without_surrogates

# Re-hosted variants of a task carry the variant's name as a segment of their id.
_VARIANT_SEGMENTS = {"visualwebarena": "resized", "assistantbench": "improved"}


Seed = Annotated[int, Field(ge=0, le=LARGEST)]
"""The seed of random draws: at most what a file of ours can hold."""


class Record(BaseModel):
    """A frozen record that refuses unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


_GIVEN: dict[frozenset[str], set[str]] = {}
R = TypeVar("R", bound=Record)


def compacted(record: R) -> R:
    """Share the sets of given field names between equal records: pydantic stores one per record,
    which is larger than most keys. It copies the set before changing it."""
    fields_set = record.__pydantic_fields_set__
    object.__setattr__(
        record, "__pydantic_fields_set__", _GIVEN.setdefault(frozenset(fields_set), fields_set)
    )
    return record


def defaults_of(kind: type[Record]) -> dict[str, Any]:
    """Return the default of every field of a class by name; ``PydanticUndefined`` for required
    fields."""
    return {
        name: field.get_default(call_default_factory=True)
        for name, field in kind.model_fields.items()
    }


def checked(kind: type[R], fields: dict[str, Any]) -> R:
    """Create a record from all its fields, in order, without validation, for values of checked
    types: validation takes several times as long."""
    record = kind.__new__(kind)
    _set_fields(record, fields)
    _set_given(record, _every_field(kind))
    _set_extra(record, None)
    _set_private(record, None)
    return record


# The attributes that pydantic's own ``__init__`` sets; to look them up by name takes longer.
_set_fields, _set_given, _set_extra, _set_private = (
    vars(BaseModel)[name].__set__
    for name in (
        "__dict__",
        "__pydantic_fields_set__",
        "__pydantic_extra__",
        "__pydantic_private__",
    )
)


@cache
def _every_field(kind: type[Record]) -> set[str]:
    return _GIVEN.setdefault(frozenset(kind.model_fields), set(kind.model_fields))


def canonical_task_id(benchmark: str, task_id: str) -> str:
    """Return the task id without the segment of a re-hosted variant of the same task."""
    variant = _VARIANT_SEGMENTS.get(benchmark)
    if variant is None or variant not in task_id:
        return task_id
    return ".".join(part for part in task_id.split(".") if part != variant)


class TrajectoryKey(Record):
    """The key that joins trajectories, annotations, judgments and rewards.

    ``task_id`` is canonicalized; records read from files also keep the raw id.
    """

    benchmark: str
    agent: str
    task_id: str
    attempt: int = Field(default=0, ge=0)

    @model_validator(mode="before")
    @classmethod
    def _canonical(cls, fields: Any) -> Any:
        if isinstance(fields, dict) and isinstance(fields.get("task_id"), str):
            task_id = canonical_task_id(str(fields.get("benchmark")), fields["task_id"])
            return {**fields, "task_id": task_id}
        return fields

    @classmethod
    def of_checked(cls, benchmark: str, agent: str, task_id: str, attempt: int) -> TrajectoryKey:
        """Create a key from fields of checked types, several times as fast as with validation;
        equal names share one object. Raises ValueError for a negative attempt."""
        if attempt < 0:
            raise ValueError("the attempt is negative")
        fields = {
            "benchmark": intern(benchmark),
            "agent": intern(agent),
            "task_id": task_id,
            "attempt": attempt,
        }
        if benchmark in _VARIANT_SEGMENTS:
            fields["task_id"] = canonical_task_id(benchmark, task_id)
        return checked(cls, fields)

    @property
    def order(self) -> tuple[str, str, str, int]:
        """The sort key for stable outputs."""
        return (self.benchmark, self.agent, self.task_id, self.attempt)

    def __str__(self) -> str:
        attempt = f"#{self.attempt}" if self.attempt else ""
        return f"{self.benchmark}/{self.agent}/{self.task_id}{attempt}"


MAX_FILE_BYTES = 64 * 2**20  # of an image


class ImageRef(Record):
    """A reference to an image, never its pixels: ``trajectories.images`` reads it when a prompt
    needs it.

    Exactly one of ``path``, ``data`` (the encoded file of an inline image) and ``problem`` is set;
    ``problem`` is the reason why an image that the source names cannot be read, as opposed to one
    that was never recorded. ``sha256`` of the encoded bytes, in hexadecimal, if known.
    """

    path: Path | None = None
    data: bytes | None = Field(default=None, repr=False)
    sha256: str | None = None
    problem: str | None = None

    def model_post_init(self, _: object) -> None:
        """Check that there is exactly one source. Raises ValueError."""
        if (self.path is None) + (self.data is None) + (self.problem is None) != 2:
            raise ValueError("an ImageRef has either a path or data, or a problem")

    def read(self) -> bytes:
        """Return the encoded file. Raises ImageUnreadable."""
        if self.data is not None:
            return self.data
        if self.path is None:
            raise ImageUnreadable(self.problem or "no source")
        try:
            return read_regular(self.path, MAX_FILE_BYTES)
        except UnsafeFile as error:
            raise ImageUnreadable(str(error)) from error
        except OSError as error:
            raise ImageUnreadable(f"{self.path} cannot be read ({error.strerror})") from error


class Observation(Record):
    """The browser's state: URL, accessibility tree (full, and pruned), screenshot, error."""

    url: str | None = None
    axtree: str | None = None
    axtree_pruned: str | None = None
    screenshot: ImageRef | None = None
    page_error: str | None = None


class Step(Record):
    """One observation, and the agent's reasoning and action. ``index`` counts from 0."""

    index: int = Field(ge=0)
    observation: Observation = Observation()
    reasoning: str | None = None
    action: str | None = None


REPEAT = "repeat"
"""Entry of a trajectory's metadata: above 0, the run is there to be asked about again."""


def _known_reward(reward: float | None) -> float | None:
    """Return the reward; None for NaN, which means unknown. Raises ValueError for an infinite
    one, which no mean includes."""
    if reward is None or isnan(reward):
        return None
    if isinf(reward):
        raise ValueError("a reward is finite: write null where it is not known")
    return reward


class Trajectory(Record):
    """One run of one agent on one task.

    ``official_reward`` is the benchmark's own (rule-based) reward, possibly fractional, None where
    it is not known;
    ``telemetry`` holds numbers of the run only (steps, tokens, seconds, errors);
    ``metadata["warnings"]`` is a list of sentences about what a loader could not read.
    """

    key: TrajectoryKey
    raw_task_id: str
    goal: str
    goal_images: tuple[ImageRef, ...] = ()
    steps: tuple[Step, ...] = ()
    answer: str | None = None
    official_reward: Annotated[float | None, AfterValidator(_known_reward)] = None
    terminated: bool | None = None
    truncated: bool | None = None
    telemetry: dict[str, float] = Field(default_factory=dict)
    metadata: dict[str, JsonValue] = Field(default_factory=dict)

    @property
    def final(self) -> Observation:
        """The last observation; an empty one if the run has no step."""
        return self.steps[-1].observation if self.steps else Observation()

    def to_json(self, put: Callable[[ImageRef], str] | None = None) -> bytes:
        """Return a line of ``trajectories.jsonl`` without its newline, UTF-8, in which images stand
        as the SHA-256 of their files: what the reward server takes.

        ``put`` (default: reads the file) returns an image's hash; an image for which it raises
        ImageUnreadable is named by its recorded hash, else by ``LOST``, with a warning.
        """
        name, lost = put or _hash_of, list[str]()

        def stored(ref: ImageRef | None, picture: str) -> str | None:
            try:
                return name(ref) if ref is not None else None
            except ImageUnreadable as error:
                lost.append(f"{picture}: {error}")
                return ref.sha256 or LOST if ref else None

        screenshot = {"observation": {"screenshot"}}
        record = self.model_dump(exclude={"goal_images": True, "steps": {"__all__": screenshot}})
        for step, line in zip(self.steps, record["steps"], strict=True):
            line["observation"]["screenshot"] = stored(
                step.observation.screenshot, f"screenshot of step {step.index}"
            )
        hashes = (stored(ref, "goal image") for ref in self.goal_images)
        record["goal_images"] = list(hashes)
        if lost:
            add_warnings(record, lost)
        record = {"format": FORMAT, **record}
        try:
            return to_json(record, inf_nan_mode="strings")
        except PydanticSerializationError:
            return to_json(without_surrogates(record), inf_nan_mode="strings")


FORMAT = 1  # of a line of ``trajectories.jsonl``
LOST = "0" * 64  # in place of the hash of an image that could not be read when it was written


def _hash_of(ref: ImageRef) -> str:
    return sha256(ref.read()).hexdigest()


def add_warnings(record: dict[str, Any], sentences: list[str]) -> None:
    """Put sentences behind the warnings in a record's metadata."""
    metadata = record.get("metadata") or {}
    before = metadata.get("warnings") or []
    record["metadata"] = {**metadata, "warnings": [*before, *sentences]}


class Unreadable(NamedTuple):
    """A trajectory that a loader could not read; the loader goes on with the next one."""

    source: str
    reason: str
    key: TrajectoryKey | None = None


Want = Callable[[TrajectoryKey], bool]
"""Tells a loader which trajectories are wanted, so that files of others need not be read."""

Loaded = Iterator[Trajectory | Unreadable]
"""What a loader yields."""


def accept_all(key: TrajectoryKey) -> bool:
    """Accept every trajectory."""
    return True
