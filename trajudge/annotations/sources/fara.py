"""Verdicts in ``scores/`` of Fara's task folders, each a JSON file {``score``,
``gpt_response_text``}.

``mmrubric_*`` is the Universal Verifier's: the text is JSON with its rubric, its outcome and the
stages between them. ``gpt_eval*`` is WebVoyager's judge, ``WebJudge_*`` is WebJudge: their score is
0 or 1, and the text is the reasoning. Other files are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from trajudge.annotations.published import PublishedVerdict
from trajudge.trajectories.loaders._files import Damaged, decode
from trajudge.trajectories.loaders._run import RunSource
from trajudge.trajectories.loaders.fara import task_folders
from trajudge.util import jsonl as python_json

_JUDGES = {"mmrubric": "universal-verifier", "gpt_eval": "webvoyager", "WebJudge": "webjudge"}
_NAME = re.compile(rf"({'|'.join(_JUDGES)})_?(.*)")
_JSON = msgspec.json.Decoder(dict[str, Any])


class _Scores(msgspec.Struct):
    score: Any = None
    gpt_response_text: Any = None


def read_verdicts(path: Path) -> Iterator[PublishedVerdict]:
    """Yield the verdicts of every task folder, in the order of the trajectories' keys.

    Each setting of a judge (the numbers in its files' names) is a separate judge. Raises UserError
    without a task folder.
    """
    files = [
        (source, file, named)
        for source in task_folders(path)
        for file in sorted((source.path / "scores").glob("*.json"))
        if (named := _NAME.fullmatch(file.stem))
    ]
    settings: dict[str, set[str]] = {}
    for _, _, named in files:
        settings.setdefault(named[1], set()).add(named[2])
    for source, file, named in files:
        several = len(settings[named[1]]) > 1
        judge = _JUDGES[named[1]] + (f"({named[2] or 'default'})" if several else "")
        yield _verdict(source, file, judge)


def _verdict(source: RunSource, file: Path, judge: str) -> PublishedVerdict:
    try:
        scores = decode(source.data, file, _Scores)
    except Damaged as error:
        return PublishedVerdict(key=source.key, judge=judge, status="skipped", detail=str(error))
    fields: Mapping[str, Any]
    if judge.startswith("universal-verifier"):
        fields = verifier_fields(scores.gpt_response_text)
    else:
        fields = score_fields(scores.score, scores.gpt_response_text)
    return PublishedVerdict(key=source.key, judge=judge, **fields)


def score_fields(score: object, text: object) -> dict[str, Any]:
    """Return the fields of a verdict that is a score of 0 or 1 and a text."""
    reasoning = text if isinstance(text, str) else ""
    if score not in (0, 1):
        detail = f"the score is {score!r}, where 0 or 1 is a verdict"
        return {"status": "unparsable", "detail": detail, "reasoning": reasoning}
    return {"success": bool(score), "reasoning": reasoning}


def verifier_fields(text: object) -> dict[str, Any]:
    """Return the fields of a Universal Verifier's verdict: its outcome, whether its process
    score reached its threshold, that score, and whether it reported a side effect."""
    rubric = rubric_of(text)
    if rubric is None:
        return {"status": "unparsable", "detail": "its text is no JSON with a rubric"}
    verification = _object(rubric.get("rubric_outcome_verification"))
    steps = _object(rubric.get("rubric_intermediate_mm_rubric_steps"))
    outcome = rubric.get("outcome_success")
    if outcome is None:
        outcome = verification.get("output_success")
    fields: dict[str, Any] = {
        "process": flag(rubric.get("rubric_is_success")),
        "scores": _process_score(rubric),
        "side_effect": flag(steps.get("step7_requires_penalty")),
        "reasoning": str(verification.get("reasoning") or rubric.get("outcome_reasoning") or ""),
        "record": dict(rubric),
    }
    if flag(outcome) is None:
        return fields | {"status": "unparsable", "detail": "it gives no outcome"}
    return fields | {"success": flag(outcome)}


def rubric_of(text: object) -> Mapping[str, Any] | None:
    """Parse a Universal Verifier's text; None if it is not a JSON object with ``rubric_items``."""
    if not isinstance(text, str):
        return None
    try:
        rubric = python_json.decode(text.encode("utf-8", "replace"), _JSON)
    except (ValueError, RecursionError):
        return None
    return rubric if isinstance(rubric.get("rubric_items"), list) else None


def _process_score(rubric: Mapping[str, Any]) -> dict[str, float]:
    earned, most = rubric.get("rubric_total_earned_points"), rubric.get("rubric_total_max_points")
    if not isinstance(earned, int | float) or not isinstance(most, int | float) or most <= 0:
        return {}
    return {"process_score": earned / most}


def _object(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def flag(value: object) -> bool | None:
    """Convert 0, 1 or a truth value to a truth value; None for other values."""
    return bool(value) if value in (0, 1) else None
