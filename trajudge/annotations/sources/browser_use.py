"""The verdict of browser-use's built-in judge, which its releases since 0.9.7 write into the last
result of a history: ``judgement`` with ``verdict``, ``reasoning``, ``failure_reason``,
``impossible_task`` and ``reached_captcha``.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import Raw

from trajudge.annotations.published import PublishedVerdict
from trajudge.trajectories.loaders._files import (
    NULL,
    elements,
    fields,
    read_object,
    reason,
    scalar,
    string,
)
from trajudge.trajectories.loaders.browser_use import history_files

_JUDGE = "browser-use"
_FLAGS = ("impossible_task", "reached_captcha")


def read_verdicts(path: Path) -> Iterator[PublishedVerdict]:
    """Yield the verdict of every history that holds one, in the order of the trajectories' keys.

    Raises UserError if there is no history.
    """
    for source in history_files(path):
        try:
            judgement = _judgement(read_object(source.data, source.path).get("history", NULL))
            verdict = _fields(judgement) if judgement else None
        except (ValueError, RecursionError) as error:
            verdict = {"status": "skipped", "detail": reason(error)}
        if verdict is not None:
            yield PublishedVerdict(key=source.key, judge=_JUDGE, **verdict)


def _judgement(history: Raw) -> dict[str, Raw]:
    """Return the fields of the last result's verdict, none if there is none."""
    items = elements(history)
    outcomes = elements(fields(items[-1]).get("result", NULL)) if items else []
    return fields(fields(outcomes[-1]).get("judgement", NULL)) if outcomes else {}


def _fields(judgement: dict[str, Raw]) -> dict[str, Any]:
    texts = (string(judgement.get(name, NULL)) for name in ("reasoning", "failure_reason"))
    more: dict[str, Any] = {
        "reasoning": "\n".join(filter(None, texts)),
        "record": {name: scalar(judgement.get(name, NULL)) for name in _FLAGS},
    }
    verdict = scalar(judgement.get("verdict", NULL))
    if not isinstance(verdict, bool):
        return more | {"status": "unparsable", "detail": "its verdict is neither true nor false"}
    return more | {"success": verdict}
