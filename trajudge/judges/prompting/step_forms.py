"""The steps of a run in other renderings than a judge's own: a numbered list, a table, JSON lines.

All hold the fields of the judge's own rendering, and what they hold can be read back. Texts are
neutralised before they are escaped, for an escape may not join what was taken apart.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import orjson

from trajudge.prompts.render import Prompt, sendable
from trajudge.prompts.untrusted import JUDGE_TAGS, neutralise
from trajudge.trajectories.represent import StepLine
from trajudge.trajectories.truncation import TruncatedView

StepForm = Literal["tags", "list", "table", "json"]
ABSENT = "none"
"""The cell of a field that a step does not have; a text of this one word is written ``\\none``."""

_INDENT = "\n      "
_ESCAPES = {"\\": "\\\\", "|": "\\|", "\n": "\\n", "\r": "\\r"}


def rendered_steps(prompt: Prompt, form: StepForm, view: TruncatedView) -> str:
    """Render the steps of a view by ``steps_FORM`` of the prompt folder."""
    steps = [_FORMS[form](_safe(step, prompt.tags | JUDGE_TAGS)) for step in view.steps]
    return prompt.render(f"steps_{form}", steps=steps, head=view.head, elided=view.elided)


def _safe(step: StepLine, tags: frozenset[str]) -> StepLine:
    texts = (None if text is None else sendable(neutralise(text, tags)) for text in step[1:])
    return StepLine(step.number, *texts)


def _fields(step: StepLine) -> list[tuple[str, str | None]]:
    return [("url", step.url), ("thought", step.reasoning), ("action", step.action)]


def _item(step: StepLine) -> object:
    """Return number and fields; lines after a text's first are indented further than any field."""
    given = [(name, text) for name, text in _fields(step) if text is not None]
    return step.number, [(name, text.replace("\n", _INDENT)) for name, text in given]


def _row(step: StepLine) -> object:
    return step.number, [_celled(text) for _, text in _fields(step)]


def _celled(text: str | None) -> str:
    if text is None:
        return ABSENT
    if text == ABSENT:
        return f"\\{ABSENT}"
    return "".join(_ESCAPES.get(character, character) for character in text)


def _object(step: StepLine) -> object:
    return orjson.dumps({"step": step.number, **dict(_fields(step))}).decode()


_FORMS: dict[StepForm, Callable[[StepLine], object]] = {
    "list": _item,
    "table": _row,
    "json": _object,
}
