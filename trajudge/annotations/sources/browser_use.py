"""Verdicts of browser-use's built-in judge, which releases since 0.9.7 write into the last
result of a history: ``judgement`` with ``verdict``, ``reasoning``, ``failure_reason``,
``impossible_task`` and ``reached_captcha``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from trajudge.annotations.published import PublishedVerdict
from trajudge.trajectories.loaders._files import items_of, read_object, readable, reason, record_of
from trajudge.trajectories.loaders.browser_use import history_files

_JUDGE = "browser-use"
_FLAGS = ("impossible_task", "reached_captcha")


def read_verdicts(path: Path) -> Iterator[PublishedVerdict]:
    """Yield the verdict of every history that has one, in the order of the trajectories' keys.

    Raises UserError without a history.
    """
    for source in history_files(path):
        try:
            history = items_of(read_object(source.data, source.path).get("history"))
            results = items_of(record_of(history[-1]).get("result")) if history else []
            judgement = record_of(record_of(results[-1]).get("judgement")) if results else {}
            verdict = _fields(judgement) if judgement else None
        except (ValueError, RecursionError) as error:
            verdict = {"status": "skipped", "detail": reason(error)}
        if verdict is not None:
            yield PublishedVerdict(key=source.key, judge=_JUDGE, **verdict)


def _fields(judgement: dict[str, Any]) -> dict[str, Any]:
    texts = (judgement.get(name) for name in ("reasoning", "failure_reason"))
    flags = {name: judgement.get(name) for name in _FLAGS}
    scalars = {name: flag for name, flag in flags.items() if not isinstance(flag, dict | list)}
    more: dict[str, Any] = {
        "reasoning": "\n".join(readable(t) for t in texts if isinstance(t, str) and t.strip()),
        "record": dict.fromkeys(_FLAGS) | scalars,
    }
    verdict = judgement.get("verdict")
    if not isinstance(verdict, bool):
        return more | {"status": "unparsable", "detail": "its verdict is neither true nor false"}
    return more | {"success": verdict}
