"""What the agent says of itself is kept from a judge, whatever judge it is."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from tests.judges.runs import mug_run
from trajudge.judges.defences import NOT_SHOWN, without
from trajudge.judges.judging import NoModel
from trajudge.judges.model import Message, Reply, Text, Verdict
from trajudge.judges.registry import JUDGES, make_judge, needs_of
from trajudge.robustness.apply import apply
from trajudge.robustness.catalogue import catalogue
from trajudge.robustness.model import Channel, NotApplicable
from trajudge.robustness.subjects import subjects
from trajudge.trajectories.model import Trajectory
from trajudge.util.errors import UserError

SECRET = "the order was placed beyond any doubt"
CLAIMS = frozenset({Channel.REASONING, Channel.ANSWER, Channel.ACTION})


class Recording:
    """A model client that keeps the text of every prompt, and answers what parses anywhere."""

    def __init__(self) -> None:
        self.text = ""

    async def __call__(self, messages: Sequence[Message], **_: Any) -> Reply:
        parts = (part for message in messages for part in message.parts)
        self.text += "".join(part.text for part in parts if isinstance(part, Text))
        return Reply(text="no")


@pytest.fixture(scope="module")
def run() -> Trajectory:
    (first, *_) = (one for one in subjects("sample").trajectories if one.answer)
    steps = tuple(step.model_copy(update={"reasoning": SECRET}) for step in first.steps)
    *before, last = steps
    spoken = last.model_copy(update={"action": f"send_msg_to_user('{SECRET}')"})
    return first.model_copy(update={"steps": (*before, spoken), "answer": SECRET})


def prompt(judge: str, run: Trajectory, **options: Any) -> str:
    client = Recording()
    made = make_judge(judge, options)[1]
    try:
        asyncio.run(made(run, client))  # type: ignore[arg-type]
    except Exception as error:
        assert client.text, error
    return client.text


def test_the_words_of_the_agent_are_nowhere(run: Trajectory) -> None:
    hidden = without(run, ("answer", "reasoning"))
    assert SECRET not in hidden.model_dump_json()
    assert hidden.answer == NOT_SHOWN
    assert SECRET not in without(run, ("reasoning",)).steps[0].model_dump_json()
    assert without(run, ("reasoning",)).answer == SECRET
    assert [s.observation for s in hidden.steps] == [s.observation for s in run.steps]


@pytest.mark.parametrize("judge", ["simplified", "logprob", "nnetnav", "insta", "aer-c"])
def test_no_prompt_of_a_judge_holds_them(judge: str, run: Trajectory) -> None:
    assert SECRET in prompt(judge, run)
    assert SECRET not in prompt(judge, run, hide="answer,reasoning")


def test_a_rewritten_reasoning_leaves_every_prompt_as_it_was() -> None:
    loaded = subjects("sample")
    tried = 0
    for one in catalogue().values():
        if one.channels != {Channel.REASONING}:
            continue
        for source in loaded.trajectories[:4]:
            made = apply(one, source, loaded.facts[source.key])
            if not isinstance(made, NotApplicable):
                tried += 1
                before = prompt("simplified", source, hide="reasoning")
                assert prompt("simplified", made.trajectory, hide="reasoning") == before, one.name
    assert tried > 10


def test_such_a_judge_is_another_judge() -> None:
    name, plain = make_judge("simplified")
    hiding, judge = make_judge("simplified", {"hide": ["reasoning", "answer"]})
    assert hiding == f"{name}-no-answer-reasoning"
    assert judge.prompt_hash != plain.prompt_hash  # type: ignore[attr-defined]
    assert needs_of("simplified", {"hide": "reasoning"}) == needs_of("simplified")


@pytest.mark.parametrize("value", ["", "thoughts", "answer,", 3])
def test_what_cannot_be_hidden_is_said(value: object) -> None:
    with pytest.raises(UserError, match="name answer, reasoning, or both"):
        make_judge("simplified", {"hide": value})


def test_every_judge_takes_it() -> None:
    others = {"of": ["heuristic", "simplified"]}
    taken = 0
    for name, entry in JUDGES.items():
        options = others if entry.composed else {}
        try:
            plain = make_judge(name, options)[0]
        except UserError:  # it needs a file
            continue
        hiding = make_judge(name, {**options, "hide": "reasoning"})[0]
        assert hiding == f"{plain}-no-reasoning"
        taken += 1
    assert taken > 10


def test_what_is_not_there_is_not_hidden() -> None:
    silent = mug_run(answer=None)
    assert without(silent, ("answer",)) == silent
    hidden = without(mug_run(), ("reasoning",))
    assert hidden.answer == "Done."
    assert [step.reasoning for step in hidden.steps] == [NOT_SHOWN, NOT_SHOWN, None]
    assert [step.action for step in hidden.steps] == [step.action for step in mug_run().steps]


def test_a_judge_without_a_model_reads_no_reasoning(run: Trajectory) -> None:
    judge = make_judge("heuristic", {"hide": "answer,reasoning"})[1]

    async def judged() -> Verdict:
        return await judge(run, NoModel())

    assert asyncio.run(judged()).success is not None
