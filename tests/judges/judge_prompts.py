"""Judges whose prompts are recorded, and prompts of untrusted text."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from tests.judges.runs import StagedAsk
from trajudge.judges.adapters.errors import BadRequest
from trajudge.judges.judging import CallArgs
from trajudge.judges.registry import make_judge
from trajudge.judges.replies import ParseFailure
from trajudge.trajectories.model import Trajectory

JUDGES: dict[str, tuple[str, dict[str, object]]] = {
    "aer-c-agentrewardbench": ("aer-c", {}),
    "aer-c-original": ("aer-c", {"variant": "original"}),
    "aer-v-agentrewardbench": ("aer-v", {}),
    "aer-v-original": ("aer-v", {"variant": "original"}),
    "nnetnav": ("nnetnav", {}),
    "webvoyager": ("webvoyager", {"screenshots": 2}),
    "webjudge-general": ("webjudge", {}),
    "webjudge-online-mind2web": ("webjudge", {"variant": "online-mind2web"}),
    "simplified-frames": ("simplified", {"representation": "screenshot", "frames": 2}),
    "simplified-schema": ("simplified", {"representation": "none", "answer": "schema"}),
    "insta": ("insta", {"observations": 2}),
    "rubric-screenshot": ("rubric", {"per_criterion": 1}),
    "browser-use": ("browser-use", {"screenshots": 2}),
    "browser-use-none": ("browser-use", {"representation": "none", "date": "2026-01-31 12:00 UTC"}),
    "logprob-axtree": ("logprob", {}),
    "logprob-screenshot": ("logprob", {"representation": "screenshot"}),
    "rubric-none": ("rubric", {"representation": "none"}),
    "claims-first": ("claims-first", {"pages": 2}),
    "simplified-defended": (
        "simplified",
        {"datamark": True, "sandwich": True, "nonce": 1, "canary": 1},
    ),
}


KINDS: dict[str, tuple[str, dict[str, object]]] = {
    **JUDGES,
    "simplified": ("simplified", {"representation": "both"}),
    "panel": (
        "panel",
        {"of": {"members": [{"name": "simplified"}, {"name": "logprob"}]}},
    ),
}


def prompts(kind: str, run: Trajectory, ask: StagedAsk) -> list[CallArgs]:
    """Everything that the judge asks of the model about the run."""
    name, options = KINDS[kind]
    _, judge = make_judge(name, options)
    with suppress(ParseFailure, BadRequest):
        asyncio.run(judged(judge, run, ask))
    return ask.asked


async def judged(judge: object, run: Trajectory, ask: StagedAsk) -> None:
    await judge(run, ask)  # type: ignore[operator]
