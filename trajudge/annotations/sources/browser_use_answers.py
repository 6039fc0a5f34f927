"""The publisher's verdicts on answers of browser-use: a model's score of 0 or 100 from the final
text. These runs have no human labels."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from trajudge.annotations.published import PublishedVerdict
from trajudge.trajectories.loaders.browser_use_answers import FILE
from trajudge.trajectories.model import Unreadable
from trajudge.util import jsonl as python_json

JUDGE = "browser-use-om2w"
_SUCCESS = {0: False, 100: True}


class _Verdict(msgspec.Struct):
    score: float | None = None
    reasoning: str | None = None


class _Judged(msgspec.Struct):
    judge: _Verdict | None = None


_JUDGED = msgspec.json.Decoder(_Judged)


def read_verdicts(path: Path) -> Iterator[PublishedVerdict]:
    """Yield the verdict on every answer, in file order. Raises UserError if there is no file."""
    for line in FILE.runs(path):
        if isinstance(line, Unreadable):
            continue
        try:
            verdict = python_json.decode(line.data, _JUDGED).judge or _Verdict()
        except (ValueError, RecursionError) as error:
            detail = f"the verdict cannot be read: {error}"
            yield PublishedVerdict(key=line.key, judge=JUDGE, status="unparsable", detail=detail)
            continue
        success = None if verdict.score is None else _SUCCESS.get(int(verdict.score))
        reasoning = verdict.reasoning or ""
        if success is None:
            yield PublishedVerdict(
                key=line.key,
                judge=JUDGE,
                status="unparsable",
                detail=f"the score is {verdict.score!r}, where 0 or 100 is a verdict",
                reasoning=reasoning,
            )
        else:
            yield PublishedVerdict(key=line.key, judge=JUDGE, success=success, reasoning=reasoning)
