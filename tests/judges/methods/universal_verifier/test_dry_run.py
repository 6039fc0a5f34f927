"""What a dry run predicts, beside a run whose replies are those that were recorded (real data)."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.judges.methods.universal_verifier.fara import recorded_scores, unscored
from tests.judges.methods.universal_verifier.scripts import StageScript
from tests.judges.runs import mug_run, png
from trajudge.judges.calls.handle import ModelHandle, single_model
from trajudge.judges.calls.settings import CallConfig
from trajudge.judges.judging import CallArgs, judge_trajectory
from trajudge.judges.model import Reply, Request, Status, Usage
from trajudge.judges.registry import make_judge
from trajudge.trajectories.model import Observation, Step, Trajectory
from trajudge.trajectories.tokens import count_tokens

pytestmark = pytest.mark.real_data

STEPS, CRITERIA = 30, 6
WITHIN = 0.15


def long_run() -> Trajectory:
    """Thirty actions of about 200 tokens, a screenshot before each."""
    steps = tuple(
        Step(
            index=index,
            observation=Observation(
                url=f"https://shop.test/page/{index}", screenshot=png(1280, 720 + index)
            ),
            reasoning="I compare the offers of this page with the limits of the task. " * 11,
            action=f"click('{index}')",
        )
        for index in range(STEPS)
    )
    return mug_run(steps=steps)


class RecordedScript(StageScript):
    """Replies of the recorded run, thrice for each of its two criteria; counts what they take."""

    def __init__(self, scores: dict[str, Any], handle: ModelHandle) -> None:
        items = unscored(scores["rubric_items"])["items"] * (CRITERIA // 2)
        self._steps = scores["rubric_intermediate_mm_rubric_steps"]
        rng = np.random.default_rng(0)
        relevance = np.full((STEPS, CRITERIA), 2)
        for criterion in range(CRITERIA):
            relevance[rng.choice(STEPS, 5, replace=False), criterion] = 9
        notes = self._by_index("reality_checks", "reality_notes", "step5_reality_check")
        summary = [
            {"criterion_idx": index, **self._steps["step6_rescoring_summary"][index % 2]}
            for index in range(CRITERIA)
        ]
        scored = [
            {**item, "justification": recorded["justification"], "earned_points": 4}
            for item, recorded in zip(items, scores["rubric_items"] * 3, strict=True)
        ]
        super().__init__(
            scores=relevance.tolist(),
            rubric=json.dumps({"items": items}),
            baseline=json.dumps({"items": scored}),
            reality=notes,
            rescore=json.dumps({"items": summary}),
            outcome=json.dumps(self._steps["step8_outcome_verification"]),
        )
        self._handle = handle
        self.dollars = 0.0

    def _by_index(self, name: str, field: str, step: str) -> str:
        texts = self._steps[step]
        listed = [
            {"criterion_idx": index, field: texts[str(index % 2)]} for index in range(CRITERIA)
        ]
        return json.dumps({name: listed})

    async def answer(self, call_args: CallArgs) -> Reply:
        reply = await super().answer(call_args)
        if call_args.stage == "evidence":
            reply = Reply(text=self._evidence(reply.text))
        request = Request(
            endpoint="e", model=self._handle.model, messages=tuple(call_args.messages)
        )
        usage = Usage(input=self._handle.estimate(request).input, output=count_tokens(reply.text))
        self.dollars += self._handle.price(self._handle.model, usage) or 0
        return reply

    def _evidence(self, assumed: str) -> str:
        """The recorded analyses, in the form that was asked for."""
        fields = json.loads(assumed)
        recorded = self._steps["step4_evidence_by_criterion"]
        for entry in fields.get("analyses", [fields]):
            entry.update(recorded[str(entry["criterion_idx"] % 2)][entry["criterion_idx"] % 3])
        return json.dumps(fields)


@pytest.mark.slow
def test_a_dry_run_of_thirty_steps_predicts_calls_and_price(
    real_data: Path, tmp_path: Path
) -> None:
    handle = single_model("gpt-4o", CallConfig(dry_run=True, cache=str(tmp_path / "cache")))
    facts = {"max_prompt_tokens": handle.max_prompt_tokens, "images": handle.images}
    name, judge = make_judge("universal-verifier", facts)
    run = long_run()
    dry = handle.dry_ask(handle.open_cache(), 0, batch=False)
    predicted = asyncio.run(judge_trajectory(name, judge, run, dry))
    assert predicted.status is Status.OK, predicted.detail
    truth = RecordedScript(recorded_scores(real_data), handle)
    assert asyncio.run(judge_trajectory(name, judge, run, truth)).status is Status.OK
    dollars = sum(call.cost or 0 for call in predicted.calls)
    assert len(predicted.calls) == pytest.approx(len(truth.asked), rel=WITHIN)
    assert dollars == pytest.approx(truth.dollars, rel=WITHIN)
