"""A scripted model for the verifier: a rubric and relevance of the test's, else assumed replies."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from trajudge.judges.adapters.errors import CallFailed
from trajudge.judges.judging import BaseClient, CallArgs
from trajudge.judges.methods.universal_verifier.replies import (
    ASSUMED,
    assumed_baseline,
    assumed_evidence,
    assumed_reality,
    assumed_relevance,
    assumed_rescore,
    parse_rubric,
)
from trajudge.judges.model import Picture, Reply


def rubric_reply(*conditions: str | None, points: float = 3) -> str:
    """A rubric of one criterion for each condition, None for none."""
    items = [
        {
            "criterion": f"criterion number {index} of the rubric",
            "description": "d",
            "max_points": points,
            "justification": "",
            "earned_points": "",
            **({"condition": condition} if condition else {}),
        }
        for index, condition in enumerate(conditions)
    ]
    return json.dumps({"items": items})


class StageScript(BaseClient):
    """``replies``: of a stage, one for every call or a list in order; a CallFailed is raised.
    ``scores`` are the relevance, with shape (screenshots, criteria)."""

    def __init__(
        self,
        *,
        scores: Any = None,
        **replies: str | CallFailed | list[str],
    ) -> None:
        self._scores: Sequence[Sequence[int]] | None = scores
        self._replies = replies
        self._count: Counter[str] = Counter()
        self.asked: list[CallArgs] = []
        self.calls: tuple[()] = ()

    async def answer(self, call_args: CallArgs) -> Reply:
        self.asked.append(call_args)
        stage = call_args.stage.partition("#")[0]
        number = self._count[stage]
        self._count[stage] += 1
        if stage == "relevance" and self._scores is not None:
            column = dict(enumerate(self._scores[number]))
            return Reply(text=json.dumps(column))
        reply = self._replies.get(stage, call_args.assume)
        if isinstance(reply, list):
            reply = reply[number]
        if isinstance(reply, CallFailed):
            raise reply
        return Reply(text=reply)

    def stage(self, name: str) -> list[CallArgs]:
        """The calls of a stage, with those that were asked again."""
        return [call for call in self.asked if call.stage.partition("#")[0] == name]

    @property
    def stages(self) -> Counter[str]:
        return Counter(call.stage.partition("#")[0] for call in self.asked)


STAGES = {
    "You classify tasks": "critical_point",
    "Write a rubric by which": "rubric",
    "Review a rubric": "dependencies",
    "Score the run of a computer-use agent": "baseline",
    "Say how much the screenshot tells": "relevance",
    "Describe what one screenshot": "evidence",
    "Some criteria of a rubric count only": "conditions",
    "A rubric was written before": "reality",
    "Score a run against its rubric again": "rescore",
    "Find out whether the agent did something": "side_effects",
    "Decide whether the user got": "outcome",
    "Decide whether the agent crossed": "violation",
    "Find the points at which": "failures",
    "Decide whether a task was ambiguous": "validity_after",
    "Decide from its words alone": "validity_before",
}


def stage_of_prompt(prompt: str) -> str | None:
    """Which stage of the verifier asks; None for another judge's prompt."""
    return next((stage for words, stage in STAGES.items() if words in prompt), None)


def reply_to(prompt: str) -> str | None:
    """What a model that understands the verifier's prompts would answer; None for others."""
    stage = stage_of_prompt(prompt)
    if stage is None:
        return None
    items = parse_rubric(ASSUMED["rubric"])
    if stage == "evidence":
        criteria = [int(found) for found in re.findall(r"^criterion_idx (\d+):", prompt, re.M)]
        return assumed_evidence(criteria, items)
    made = {
        "baseline": assumed_baseline(items),
        "relevance": assumed_relevance(0, 1, len(items)),
        "reality": assumed_reality(len(items)),
        "rescore": assumed_rescore(items),
    }
    return (made | ASSUMED).get(stage, ASSUMED["validity"])


def hashes(calls: Sequence[CallArgs]) -> set[str]:
    """The pictures of the calls."""
    parts: list[Any] = [part for c in calls for m in c.messages for part in m.parts]
    return {part.sha256 for part in parts if isinstance(part, Picture)}


def rescore_reply(*points: float) -> str:
    items = [
        {
            "criterion_idx": index,
            "applicable_evidence": "e",
            "post_image_justification": "j",
            "post_image_earned_points": earned,
        }
        for index, earned in enumerate(points)
    ]
    return json.dumps({"items": items})


def outcome_reply(*, success: bool) -> str:
    return json.dumps({"primary_intent": "p", "reasoning": f"{success}", "output_success": success})
