"""Replies that every judge reads, and what judges of papers assume."""

from __future__ import annotations

import json

from tests.judges.http_judging import stage_of
from tests.judges.methods.replies import BROWSER_USE as JUDGEMENT
from tests.judges.methods.replies import CRITERIA, INSTA, logprobs, rubric_stage_of
from tests.judges.methods.universal_verifier.scripts import reply_to as verifier_reply
from tests.llm_replies import Incoming, Outgoing, answer, verdict_text
from trajudge.judges.methods.aer import ASSUMED_CAPTION
from trajudge.judges.methods.nnetnav import ASSUMED_CHANGE
from trajudge.judges.methods.webjudge import ASSUMED_POINTS, ASSUMED_SCORE

ASSUMED = {
    "caption": ASSUMED_CAPTION,
    "describe": ASSUMED_CHANGE,
    "key_points": ASSUMED_POINTS,
    "screenshot": ASSUMED_SCORE,
    "verdict": "Thoughts: fine.\nStatus: success\nReward: 4",
}


def assumed(incoming: Incoming) -> str:
    return ASSUMED[stage_of(incoming)]


NOTHING = "The agent claimed nothing."
UNPROVEN: dict[str, object] = {
    "reasoning": "No line shows it.",
    "claims": [{"claim": 1, "holds": False}],
    "requirements": [{"requirement": "all is done", "met": False}],
    "side_effect": False,
    "success": False,
}
FINDINGS = {
    "reasoning": "Step 1 shows it.",
    "findings": [
        {"criterion": 1, "steps": [1], "score": 1},
        {"criterion": 2, "steps": [], "score": 0.5},
    ],
    "side_effect_steps": [],
    "side_effect": False,
    "outcome": True,
}


def reply(incoming: Incoming) -> str | Outgoing:
    """What a model that understands every prompt would answer."""
    prompt = incoming.prompt
    if incoming.payload.get("logprobs"):
        return answer(incoming, "Yes", logprobs=logprobs(("Yes", {"Yes": 0.8, "No": 0.2})))
    if (verified := verifier_reply(prompt)) is not None:
        return verified
    if "reached_captcha" in prompt:
        return JUDGEMENT
    if "self_correction" in prompt:
        return INSTA
    if "You prepare the examination" in prompt:
        return json.dumps({"claims": ["All was done."]})
    if '"requirements"' in prompt:
        return json.dumps({**UNPROVEN, "claims": [] if NOTHING in prompt else UNPROVEN["claims"]})
    if "You write the rubric" in prompt:
        return CRITERIA
    if "how much a screenshot" in prompt:
        return json.dumps({"relevance": [7, 2]})
    if '"side_effect_steps"' in prompt:
        assert rubric_stage_of(incoming) == "verdict"
        return json.dumps(FINDINGS)
    if "<loop>" in prompt or '"optimality": 1, 2, 3 or 4' in prompt:
        return verdict_text(prompt)
    return ASSUMED[stage_of(incoming)]
