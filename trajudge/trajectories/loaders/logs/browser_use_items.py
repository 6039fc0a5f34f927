"""The items of a browser-use history, one a step, whichever release wrote them.

``state`` was taken when the step began: address and screenshot are what the agent saw before its
action. A result's error belongs to the action just done, so that the agent saw it on the next
step; an item without model output failed before an action, and its error is its own.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec import Raw

from trajudge.trajectories.loaders.common.lazy_json import (
    NULL,
    decoded,
    elements,
    fields,
    scalar,
    value,
    whole_string,
)
from trajudge.trajectories.loaders.common.pictures import inline_picture, named_picture
from trajudge.trajectories.loaders.files import Damaged, numbers, readable
from trajudge.trajectories.loaders.values import Values
from trajudge.trajectories.model import ImageRef, Observation, Step
from trajudge.trajectories.util.safe_files import DataFolder

# The words before the parts of the agent's reasoning, and the names that releases gave them.
_THOUGHTS = (
    ("Evaluation", ("evaluation_previous_goal", "valuation_previous_goal")),
    ("Memory", ("memory",)),
    ("Next goal", ("next_goal",)),
)

_TextOf = Callable[[dict[str, Raw], str], str | None]


class Item(NamedTuple):
    """One item. ``errors`` are its results', each at the place of its action (None: it had none);
    ``had_output``: the model answered, so that they are errors of the actions done. ``results`` are
    the texts that actions extracted, likewise, without the last, which is the answer."""

    url: str | None
    screenshot: ImageRef | None
    reasoning: str | None
    action: str | None
    had_output: bool
    errors: tuple[str | None, ...]
    results: tuple[str | None, ...]
    is_done: bool
    answer: str | None
    self_report: bool | None
    seconds: float | None
    input_tokens: float | None

    @property
    def failures(self) -> tuple[str, ...]:
        """The errors without the places of actions that had none."""
        return tuple(filter(None, self.errors))


def read_item(raw: Raw, number: int, folder: Path, root: DataFolder, warnings: list[str]) -> Item:
    """Read one item; ``number`` counts from 1. Raises Damaged for what is no object."""
    item = fields(raw)
    if not item:
        raise Damaged(f"item {number} of its history is no object")
    output, state = fields(item.get("model_output", NULL)), fields(item.get("state", NULL))
    values, place = Values(warnings), f"of item {number}"
    listed = elements(item.get("result", NULL))
    results = [fields(result) for result in listed]
    for result, read in zip(listed, results, strict=True):
        if not read and not isinstance(other := decoded(result), dict):
            values.refuse(other, "result", place)
    last = results[-1] if results else {}

    def text(record: dict[str, Raw], name: str) -> str | None:
        return values.text(decoded(record.get(name, NULL)), name, place)

    is_done = values.flag(decoded(last.get("is_done", NULL)), "is_done", place) is True
    shown = [result for result in results if not (is_done and result is last)]
    return Item(
        url=text(state, "url"),
        screenshot=_screenshot(state, number, folder, root, warnings),
        reasoning=_reasoning(output, text),
        action=_action(output.get("action", NULL)),
        had_output=bool(output),
        errors=_texts(results, "error", text),
        results=_texts(shown, "extracted_content", text),
        is_done=is_done,
        answer=text(last, "extracted_content"),
        self_report=values.flag(decoded(last.get("success", NULL)), "success", place),
        **_measured(fields(item.get("metadata", NULL))),
    )


def steps_of(items: Sequence[Item]) -> tuple[Step, ...]:
    """Make a step of each item, with the errors that the agent saw when it began."""
    steps = []
    before: tuple[str, ...] = ()
    for index, item in enumerate(items):
        own = () if item.had_output and index + 1 < len(items) else item.failures
        observation = Observation(
            url=item.url,
            screenshot=item.screenshot,
            page_error="\n".join((*before, *own)) or None,
        )
        steps.append(
            Step(
                index=index,
                observation=observation,
                reasoning=item.reasoning,
                action=item.action,
            )
        )
        before = item.failures if item.had_output else ()
    return tuple(steps)


def _texts(results: Sequence[dict[str, Raw]], name: str, text: _TextOf) -> tuple[str | None, ...]:
    """Return a text for each result up to the last that has one, None for one without."""
    texts = [text(result, name) for result in results]
    while texts and texts[-1] is None:
        texts.pop()
    return tuple(texts)


def _screenshot(
    state: dict[str, Raw], number: int, folder: Path, root: DataFolder, warnings: list[str]
) -> ImageRef | None:
    """Take the picture that stands in the item, else the file that it names."""
    inline = state.get("screenshot", NULL)
    if inline != NULL:
        text = whole_string(inline)
        return inline_picture(text if text is not None else 0, f"of step {number}", warnings)
    path = state.get("screenshot_path", NULL)
    recorded = scalar(path) if path != NULL else None
    return named_picture(recorded, [folder / "screenshots", folder], root, warnings)


def _reasoning(output: dict[str, Raw], text: _TextOf) -> str | None:
    """Join the thoughts, which stand in the output or in its ``current_state``."""
    where = fields(output.get("current_state", NULL)) | output
    lines = [*filter(None, [text(where, "thinking")])]
    for word, names in _THOUGHTS:
        if thought := next(filter(None, (text(where, name) for name in names)), None):
            lines.append(f"{word}: {thought}")
    return "\n".join(lines) or None


def _action(raw: Raw) -> str | None:
    """Write one action a line, as ``name({"parameter": value})``; what is no object as its JSON."""
    lines = []
    for action in elements(raw):
        named = fields(action)
        for name, parameters in named.items():
            arguments = value(parameters)
            text = json.dumps({} if arguments is None else arguments, ensure_ascii=False)
            lines.append(readable(f"{name}({text})"))
        if not named and (other := value(action)):
            lines.append(readable(other if isinstance(other, str) else json.dumps(other)))
    return "\n".join(lines) or None


def _measured(metadata: dict[str, Raw]) -> dict[str, float | None]:
    """Return the step's seconds and input tokens, None where they were not recorded."""
    known = numbers({name: scalar(raw) for name, raw in metadata.items()})
    start, end = known.get("step_start_time"), known.get("step_end_time")
    seconds = end - start if start is not None and end is not None else None
    return {"seconds": seconds, "input_tokens": known.get("input_tokens")}
