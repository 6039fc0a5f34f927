"""Every prompt of every stage, word for word, on one small run.

``TRAJUDGE_WRITE_GOLDEN=1`` writes them anew: read the difference before you commit it.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from pathlib import Path

import pytest

from tests.judges.judge_prompts import JUDGES
from tests.judges.runs import StagedAsk, seen_run
from trajudge.judges.adapters.errors import BadRequest
from trajudge.judges.judging import CallArgs
from trajudge.judges.model import Judge, Picture, Verdict
from trajudge.judges.registry import make_judge
from trajudge.judges.replies import ParseFailure

GOLDEN = Path(__file__).parent / "golden"


def written(asked: CallArgs) -> str:
    """One call as text, its pictures as their width."""
    lines = [f"##### {asked.stage}"]
    for message in asked.messages:
        lines.append(f"### {message.role}")
        for part in message.parts:
            lines.append(f"[picture {part.width}]" if isinstance(part, Picture) else part.text)
    return "\n".join(lines)


async def judged(judge: Judge, ask: StagedAsk) -> Verdict:
    return await judge(seen_run(), ask)


@pytest.mark.parametrize("name", JUDGES)
def test_the_prompts_are_the_golden_ones(name: str) -> None:
    judge_name, options = JUDGES[name]
    ask = StagedAsk()
    _, judge = make_judge(judge_name, options)
    with suppress(ParseFailure, BadRequest):
        asyncio.run(judged(judge, ask))
    prompts = "\n\n".join(map(written, ask.asked)) + "\n"
    golden = GOLDEN / f"{name}.txt"
    if os.environ.get("TRAJUDGE_WRITE_GOLDEN"):
        golden.write_text(prompts, encoding="utf-8")
    assert prompts == golden.read_text(encoding="utf-8")
