"""Replies that judges read, each as its model writes them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from math import log
from typing import Any

from tests.llm_replies import Incoming

JUDGEMENT = {
    "reasoning": "The cart was never opened.",
    "verdict": False,
    "failure_reason": "A captcha stopped the agent.",
    "impossible_task": False,
    "reached_captcha": True,
}
BROWSER_USE = json.dumps(JUDGEMENT)


SCORES = '{"success": 0.8, "efficiency": 0.4, "self_correction": 1}'
INSTA = f"It searched and bought.\n```json\n{SCORES}\n```"


def logprobs(*tokens: tuple[str, dict[str, float]]) -> dict[str, Any]:
    """Tokens as OpenAI gives them: each with the probabilities of its alternatives."""
    return {
        "content": [
            {
                "token": token,
                "logprob": log(offered.get(token, 0.5)),
                "top_logprobs": [{"token": t, "logprob": log(p)} for t, p in offered.items()],
            }
            for token, offered in tokens
        ]
    }


CRITERIA = json.dumps(
    {
        "criteria": [
            {"criterion": "The cart holds a red mug.", "critical": True},
            {"criterion": "It holds nothing else.", "critical": False},
        ]
    }
)
RELEVANCE = json.dumps({"relevance": [7, 2]})


def findings(first: float = 1, second: float = 0.5, **changes: Any) -> str:
    return json.dumps(
        {
            "reasoning": "Step 2 puts it in.",
            "findings": [
                {"criterion": 1, "steps": [2, 3], "score": first},
                {"criterion": 2, "steps": [], "score": second},
            ],
            "side_effect_steps": [],
            "side_effect": False,
            "outcome": True,
        }
        | changes
    )


def rubric_stage_of(incoming: Incoming) -> str:
    prompt = incoming.prompt
    if "You write the rubric" in prompt:
        return "criteria"
    return "relevance" if "how much a screenshot" in prompt else "verdict"


def answers(**replies: str) -> Callable[[Incoming], str]:
    told: Mapping[str, str] = {
        "criteria": CRITERIA,
        "relevance": RELEVANCE,
        "verdict": findings(),
        **replies,
    }
    return lambda incoming: told[rubric_stage_of(incoming)]
