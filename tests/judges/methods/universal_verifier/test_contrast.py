"""Every rule of the source has a contrast case: two traces that differ only in what it decides. The
prompt of its stage holds the rule and the difference, and a model that follows the rule gets two
verdicts through our parsing and totals, over HTTP."""

from __future__ import annotations

import asyncio
import re
from base64 import b64encode
from pathlib import Path

import pytest

from tests.judges.http_judging import judged_over_http
from tests.judges.methods.universal_verifier.contrast import (
    OPTIONS,
    ORDER,
    Contrast,
    Deciding,
    Trace,
    contrasts,
    decided_right,
    drawn,
    facts_of,
    reply,
    satisfied,
)
from tests.judges.methods.universal_verifier.scripts import stage_of_prompt
from tests.llm_replies import Incoming
from tests.llm_server import LlmServer
from trajudge.judges.fidelity import read_fidelity
from trajudge.judges.judging import BaseClient, CallArgs
from trajudge.judges.methods.universal_verifier.judge import Verification, VerifierRecord
from trajudge.judges.methods.universal_verifier.model import UniversalVerifierOptions
from trajudge.judges.model import Model, Picture, Reply, Status
from trajudge.judges.registry import make_judge
from trajudge.prompts.render import Prompt, load_prompt, prompt_of

CASES = contrasts()
SETTINGS = UniversalVerifierOptions.model_validate(OPTIONS)


def shown(messages: CallArgs) -> str:
    """The texts and the encoded pictures of a call."""
    parts = [part for message in messages.messages for part in message.parts]
    return "\n".join(
        b64encode(part.data).decode() if isinstance(part, Picture) else part.text
        for part in parts
        if isinstance(part, Picture) or part.kind == "text"
    )


class Following(BaseClient):
    """A model that follows the rule of a case on the evidence that the prompt shows it."""

    calls: tuple[()] = ()

    def __init__(self, case: Contrast, trace: Trace) -> None:
        self._case, self._trace = case, trace
        self.decided: list[str] = []

    async def answer(self, call_args: CallArgs) -> Reply:
        prompt = shown(call_args)
        trace: Trace | None = self._trace
        if call_args.stage == self._case.stage:
            self.decided.append(prompt)
            trace = self._case.shown(prompt)
            assert trace, "the prompt does not hold what the traces differ in"
        assert trace
        return Reply(text=reply(trace, call_args.stage, prompt, decides=self._case.stage))


def record_of(ask: Model, trace: Trace, prompt: Prompt | None = None) -> VerifierRecord:
    prompt = prompt or load_prompt("universal-verifier")
    verification = Verification(ask, SETTINGS, prompt, trace.run(), None)

    async def work() -> VerifierRecord:
        return await verification.record()

    return asyncio.run(work())


@pytest.fixture(scope="module")
def marked() -> Prompt:
    """The prompts with their rules' ids printed before the rules."""
    files = load_prompt("universal-verifier").files
    return prompt_of(
        {
            name: re.sub(r"^\{# R (.+) #\}$", r"[R \1 ]\n", text, flags=re.MULTILINE)
            for name, text in files.items()
        }
    )


def test_every_rule_has_a_case_of_its_stage() -> None:
    rules = read_fidelity()["universal-verifier"].rules
    assert [case.rule for case in CASES] == list(rules)
    # Ids are numbered within their stage: each number belongs to one stage, in the order of calls.
    numbers = list(dict.fromkeys((case.rule.rpartition(".")[0], case.stage) for case in CASES))
    assert [stage for _, stage in numbers] == list(ORDER)
    assert len({number for number, _ in numbers}) == len(ORDER)


def test_no_case_is_an_example_of_the_prompts() -> None:
    """A model that decides a case must not find it in the prompt."""
    prompt = runs_of_words(" ".join(load_prompt("universal-verifier").files.values()))
    for case in CASES:
        for trace in (case.a, case.b):
            for text in (trace.goal, trace.answer, *trace.actions, *trace.screens):
                assert not runs_of_words(text) & prompt, (case.rule, text)


def runs_of_words(text: str, length: int = 6) -> set[tuple[str, ...]]:
    words = re.findall(r"[\w']+", text.lower())
    return set(zip(*(words[start:] for start in range(length)), strict=False))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.rule)
def test_the_prompt_holds_the_rule_and_the_difference(case: Contrast, marked: Prompt) -> None:
    for trace, other in ((case.a, case.b), (case.b, case.a)):
        ask = Following(case, trace)
        record = record_of(ask, trace, marked)
        assert f" {case.rule} " in " ".join(re.findall(r"\[R( .+ )\]", ask.decided[0]))
        assert case.shown(ask.decided[0]) is trace
        facts = facts_of(trace, case.stage, record)
        assert satisfied(trace, case.stage, record, trace.verdict), facts
        assert not satisfied(trace, case.stage, record, other.verdict), facts


@pytest.mark.parametrize("stage", ORDER)
def test_a_pair_of_every_stage_is_told_apart_over_http(stage: str, tmp_path: Path) -> None:
    """Judge both traces by a server that replies to what the prompts show it alone."""
    case = next(case for case in CASES if case.stage == stage)
    current = [case.a]

    def answer(incoming: Incoming) -> str:
        stage = stage_of_prompt(incoming.prompt)
        assert stage
        trace = case.shown(incoming.prompt) if stage == case.stage else current[0]
        assert trace, stage
        return reply(trace, stage, incoming.prompt, decides=case.stage)

    with LlmServer(text=answer, record=0) as server:
        for name, trace, other in (("a", case.a, case.b), ("b", case.b, case.a)):
            # Folders of replies of their own: what both prompts have in common was answered for a.
            (tmp_path / name).mkdir()
            current[0] = trace
            _, judge = make_judge("universal-verifier", OPTIONS)
            judgment = judged_over_http(server, judge, trace.run(), tmp_path / name)
            assert judgment.status is Status.OK, judgment.detail
            record = VerifierRecord.model_validate(judgment.record)
            assert satisfied(trace, case.stage, record, trace.verdict)
            assert not satisfied(trace, case.stage, record, other.verdict)
            assert judgment.success == record.outcome
            assert judgment.process == (judgment.scores["process_score"] >= 0.8)


def test_a_model_is_asked_for_the_deciding_stage_alone() -> None:
    for case in CASES[::7]:
        for trace in (case.a, case.b):
            model = Following(case, trace)
            ask = Deciding(case, trace, model)
            record = record_of(ask, trace)
            assert len(model.decided) == (len(trace.screens) if case.stage == "evidence" else 1)
            assert ask.replied
            assert satisfied(trace, case.stage, record, trace.verdict), case.rule


def test_a_drawn_page_is_the_same_every_time() -> None:
    assert (
        drawn.__wrapped__("Basket: 1 lamp") == drawn("Basket: 1 lamp") != drawn("Basket: 2 lamps")
    )


class Saying(BaseClient):
    """Gives the same reply to everything."""

    calls: tuple[()] = ()

    def __init__(self, text: str) -> None:
        self._text = text

    async def answer(self, call_args: CallArgs) -> Reply:
        return Reply(text=self._text)


@pytest.mark.parametrize("stage", ORDER)
def test_a_models_decisions_are_counted(stage: str) -> None:
    """Right, wrong, and without a usable reply, which is neither."""
    case = next(case for case in CASES if case.stage == stage)

    def asked(trace: Trace, model: Model) -> bool | None:
        return asyncio.run(decided_right(case, trace, model, SETTINGS))[0]

    for trace, other in ((case.a, case.b), (case.b, case.a)):
        assert asked(trace, Following(case, trace)) is True
        shot = "This is screenshot 1 of 1\n"
        prompt = shot + "".join(f"criterion_idx {n}: \n" for n in range(len(trace.items)))
        contrary = reply(other, stage, prompt, decides=stage)
        assert asked(trace, Saying(contrary)) is False
        assert asked(trace, Saying("I cannot say.")) is None
