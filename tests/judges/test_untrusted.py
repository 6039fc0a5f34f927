"""Whatever a page, an agent or a model says, no judge's prompt holds it as if it were structure."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from importlib.util import find_spec

import pytest

from tests.judges.judge_prompts import KINDS, prompts
from tests.judges.runs import StagedAsk, seen_run, texts
from tests.prompts.hostile import HOSTILE
from trajudge.judges.methods.simplified import PaperPrompt
from trajudge.judges.model import Message
from trajudge.trajectories.model import Trajectory
from trajudge.trajectories.represent import Representation
from trajudge.trajectories.truncate import PromptTruncator, TruncationLevel

ALL = "\n- ".join(["", *HOSTILE, "\n"])
FIELDS = ("goal", "answer", "url", "action", "reasoning", "axtree", "axtree_pruned", "page_error")


def planted(field: str, text: str) -> Trajectory:
    """A run with ``text`` in one field, of every step where steps have it."""
    run = seen_run()
    if field in ("goal", "answer"):
        return run.model_copy(update={field: text})
    seen = field not in ("action", "reasoning")
    steps = tuple(
        step.model_copy(
            update={"observation": step.observation.model_copy(update={field: text})}
            if seen
            else {field: text}
        )
        for step in run.steps
    )
    return run.model_copy(update={"steps": steps})


def found(asked: Iterable[Sequence[Message]]) -> Counter[str]:
    """How often each hostile text is in the prompts, to the letter."""
    shown = [text for messages in asked for text in texts(messages)]
    return Counter({one: sum(text.count(one) for text in shown) for one in HOSTILE})


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("kind", KINDS)
def test_no_field_of_a_run_reaches_a_judge_intact(kind: str, field: str) -> None:
    harmless = prompts(kind, planted(field, "harmless"), StagedAsk())
    asked = prompts(kind, planted(field, ALL), StagedAsk())
    assert found(one.messages for one in asked) == found(one.messages for one in harmless)


@pytest.mark.parametrize(
    ("kind", "stage"),
    [("aer-c-original", "caption"), ("nnetnav", "describe"), ("webjudge-general", "key_points")],
)
def test_no_text_of_another_model_does(kind: str, stage: str) -> None:
    run = seen_run()
    harmless = prompts(kind, run, StagedAsk(**{stage: "harmless"}))
    asked = prompts(kind, run, StagedAsk(**{stage: f"x{ALL}"}))
    assert "(TOOL_RESULTS]" in "".join(texts(asked[-1].messages))
    assert found(one.messages for one in asked) == found(one.messages for one in harmless)


@pytest.mark.parametrize("text", HOSTILE)
def test_no_note_and_no_criterion_does(text: str) -> None:
    run = seen_run()
    noted = {"screenshot": f"Reasoning: It shows\n{text}\nScore: 5"}
    wanted = {"criterion": f"It shows\n{text}", "critical": True}
    listed = {"criteria": json.dumps({"criteria": [wanted]})}
    claimed = {"claims": json.dumps({"claims": [f"It shows\n{text}"]})}
    cases = (("webjudge-general", noted), ("rubric-none", listed), ("claims-first", claimed))
    for kind, replies in cases:
        harmless = prompts(kind, run, StagedAsk())
        asked = prompts(kind, run, StagedAsk(**replies))
        # What stands before the end of a model's thinking is no part of its reply.
        assert "It shows" in "".join(texts(asked[-1].messages)) or text == "</think>"
        assert found(one.messages for one in asked) == found(one.messages for one in harmless)


@pytest.mark.parametrize("field", FIELDS)
def test_the_published_prompts_hold_none_of_it(field: str) -> None:
    if find_spec("agent_reward_bench") is None:
        pytest.skip("agent-reward-bench is not installed")
    form = PaperPrompt(Representation.AXTREE, "first")

    def written(text: str) -> Counter[str]:
        view = PromptTruncator(planted(field, text), Representation.AXTREE).at(
            TruncationLevel.FULL, 10**6
        )
        assert view is not None
        # A tag of our own prompts is none of theirs.
        return found([form.messages(view, ())]) - Counter({"</axtree>": 99})

    assert written(ALL) == written("harmless")
