"""What differs between two trajectories, field by field: a list that no perturbation writes
itself, so that it cannot leave anything out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from hashlib import sha256
from typing import Literal

from pydantic_core import to_json

from trajudge.robustness.model import STEP_CHANNELS, Channel, Edit
from trajudge.trajectories.model import ImageRef, Step, Trajectory

STEP = "step"
# The channel that each field of a trajectory belongs to.
CHANNELS: dict[str, frozenset[Channel]] = {
    "key": frozenset({Channel.METADATA}),
    "raw_task_id": frozenset({Channel.METADATA}),
    "goal": frozenset({Channel.GOAL}),
    "goal_images": frozenset({Channel.GOAL}),
    "answer": frozenset({Channel.ANSWER}),
    "official_reward": frozenset({Channel.METADATA}),
    "terminated": frozenset({Channel.METADATA}),
    "truncated": frozenset({Channel.METADATA}),
    "telemetry": frozenset({Channel.METADATA}),
    "metadata": frozenset({Channel.METADATA}),
    "url": frozenset({Channel.URL}),
    "axtree": frozenset({Channel.AXTREE}),
    "axtree_pruned": frozenset({Channel.AXTREE}),
    "screenshot": frozenset({Channel.SCREENSHOT}),
    "page_error": frozenset({Channel.ERROR}),
    "reasoning": frozenset({Channel.REASONING}),
    "action": frozenset({Channel.ACTION}),
    STEP: STEP_CHANNELS,
}
_WHOLE = (
    *("key", "raw_task_id", "goal", "goal_images", "answer", "official_reward"),
    *("terminated", "truncated", "telemetry", "metadata"),
)
_SEEN = ("url", "axtree", "axtree_pruned", "screenshot", "page_error")
_DONE = ("reasoning", "action")


def edits_between(before: Trajectory, after: Trajectory) -> tuple[Edit, ...]:
    """List every field that differs. Steps that were added, removed or moved are edits of whole
    steps (``STEP``); the others are compared field by field."""
    whole = (
        _edit(None, name, getattr(before, name), getattr(after, name))
        for name in _WHOLE
        if getattr(before, name) != getattr(after, name)
    )
    return (*whole, *_step_edits(before.steps, after.steps))


def _step_edits(before: Sequence[Step], after: Sequence[Step]) -> Iterator[Edit]:
    if len(before) == len(after):
        yield from _each(before, after)
        return
    old, new = [_digest(step) for step in before], [_digest(step) for step in after]
    for tag, i, j, k, m in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "replace" and j - i == m - k:
            yield from _each(before[i:j], after[k:m])
        elif tag != "equal":
            yield from (_edit(n, STEP, before[n], None) for n in range(i, j))
            yield from (_edit(n, STEP, None, after[n]) for n in range(k, m))


def _each(before: Sequence[Step], after: Sequence[Step]) -> Iterator[Edit]:
    """Compare steps one with one; most are the source's own."""
    for old, new in zip(before, after, strict=True):
        if old is new:
            continue
        pairs = [(name, getattr(old, name), getattr(new, name)) for name in _DONE]
        seen, shown = old.observation, new.observation
        pairs += [(name, getattr(seen, name), getattr(shown, name)) for name in _SEEN]
        yield from (_edit(new.index, name, a, b) for name, a, b in pairs if a != b)


def _edit(step: int | None, field: str, before: object, after: object) -> Edit:
    kind: Literal["changed", "added", "removed"] = (
        "added" if before is None else "removed" if after is None else "changed"
    )
    return Edit(
        step=step,
        field=field,
        kind=kind,
        before_sha256=_digest(before),
        after_sha256=_digest(after),
    )


def _digest(value: object) -> str:
    """Hash a field: text as it is, an image's file, a step without its number."""
    if isinstance(value, ImageRef):
        return value.sha256 or sha256(value.data or str(value.path).encode()).hexdigest()
    if isinstance(value, Step):
        seen = value.observation
        texts = [getattr(seen, name) for name in _SEEN if name != "screenshot"]
        picture = _digest(seen.screenshot) if seen.screenshot else None
        value = [*texts, picture, value.reasoning, value.action]
    if isinstance(value, tuple):
        value = [_digest(one) for one in value]
    encoded = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else b""
    if value is not None and not isinstance(value, str):
        encoded = to_json(value)
    return sha256(encoded).hexdigest()
