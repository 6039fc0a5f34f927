"""A channel that a judge is not shown leaves its prompts as they were: no call, no flip."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import cache

import pytest

from tests.robustness.samples import sample
from trajudge.judges.judging import FAILURES, BaseClient, CallArgs
from trajudge.judges.model import Judge, Reply, Request
from trajudge.judges.registry import JUDGES, make_judge
from trajudge.robustness.apply import apply
from trajudge.robustness.catalogue import catalogue
from trajudge.robustness.injections import injection
from trajudge.robustness.model import Channel, NotApplicable, Perturbation, keeps
from trajudge.robustness.transforms import each_page
from trajudge.trajectories.model import Trajectory

# What touches one channel alone.
TOUCHES: dict[Channel, Perturbation] = {
    Channel.URL: Perturbation(
        name="other-addresses",
        family="A",
        channels=frozenset({Channel.URL}),
        relations=keeps(),
        summary="Every page has another address.",
        change=lambda subject, _: each_page(
            subject.trajectory,
            lambda p: p.model_copy(update={"url": f"http://other.example/{p.url}"}),
        ),
    ),
    Channel.REASONING: injection("reasoning"),
    Channel.AXTREE: injection("tree"),
    Channel.SCREENSHOT: injection("pixels-large"),
    Channel.ERROR: injection("error"),
    Channel.METADATA: catalogue()["agent-frontier"],
    Channel.GOAL: injection("goal"),
}
# What each judge that asks a model is shown beside the goal, as its source's prompt has it.
PAGES = {
    "axtree": {Channel.AXTREE},
    "screenshot": {Channel.SCREENSHOT},
    "both": {Channel.AXTREE, Channel.SCREENSHOT},
    "none": set[Channel](),
}
SHOWN = {
    "simplified": {Channel.URL, Channel.REASONING},
    "aer-c": {Channel.URL, Channel.REASONING},
    "aer-v": {Channel.URL, Channel.REASONING},
    "nnetnav": {Channel.AXTREE},
    "webvoyager": set[Channel](),
    "webjudge": {Channel.REASONING},
    "insta": {Channel.AXTREE, Channel.REASONING},
    "logprob": {Channel.URL, Channel.REASONING},
    "claims-first": {Channel.AXTREE, Channel.URL, Channel.REASONING},
    "rubric": {Channel.URL, Channel.REASONING},
    "browser-use": {Channel.ERROR},
    "universal-verifier": {Channel.REASONING, Channel.ERROR, Channel.URL},
}
CELLS = [
    (name, representation)
    for name in SHOWN
    for representation in (JUDGES[name].representations or ("none",))
]


class Recording(BaseClient):
    """Keeps what it is asked, and replies as a dry run supposes."""

    def __init__(self) -> None:
        self.hashes: list[str] = []

    async def answer(self, call_args: CallArgs) -> Reply:
        messages = tuple(call_args.messages)
        request = Request(endpoint="e", model=call_args.model or "m", messages=messages)
        self.hashes.append(request.hash)
        return Reply(text=call_args.assume)


def asked(judge: Judge, trajectory: Trajectory) -> list[str]:
    """The hashes of all prompts of a judgment."""
    client = Recording()

    async def run() -> None:
        with suppress(*FAILURES):
            await judge(trajectory, client)

    asyncio.run(run())
    return sorted(client.hashes)


@cache
def perturbed(channel: Channel) -> tuple[Trajectory, Trajectory]:
    """A failed run, and the same with one channel changed."""
    source = next(
        one
        for one in sample().trajectories
        if sample().facts[one.key].success is False and one.answer and len(one.steps) < 8
    )
    made = apply(TOUCHES[channel], source, sample().facts[source.key])
    assert not isinstance(made, NotApplicable)
    return source, made.trajectory


def test_judges_that_ask_a_model_are_tried() -> None:
    asking = {name for name in JUDGES if JUDGES[name].needs_model and not JUDGES[name].composed}
    assert SHOWN.keys() <= asking


@pytest.mark.parametrize(("name", "representation"), CELLS)
def test_the_prompts_change_with_what_is_shown_and_with_nothing_else(
    name: str, representation: str
) -> None:
    several = len(JUDGES[name].representations) > 1
    judge = make_judge(name, {"representation": representation} if several else {})[1]
    shown = SHOWN[name] | PAGES[representation] | {Channel.GOAL}
    clean = asked(judge, perturbed(Channel.URL)[0])
    assert clean
    changed = {channel for channel in TOUCHES if asked(judge, perturbed(channel)[1]) != clean}
    assert changed == shown
