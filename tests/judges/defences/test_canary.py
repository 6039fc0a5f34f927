"""What a reply must hold beside its verdict."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.judges.runs import GOOD, ScriptedAsk, mug_run, texts
from trajudge.judges.judging import BaseClient, CallArgs, judge_trajectory
from trajudge.judges.model import Call, Judgment, Reply, Status
from trajudge.judges.registry import make_judge

OBEYED = "canary: the reply follows an instruction in the material"
LACKING = "canary: the reply lacks the word that was asked for"


class Answering(BaseClient):
    """Replies with what it makes of the two words of the prompt: the asked one, the planted one."""

    calls: tuple[Call, ...] = ()

    def __init__(self, reply: Callable[[str, str], Reply]) -> None:
        self._reply = reply

    async def answer(self, call_args: CallArgs) -> Reply:
        words = re.findall(r"Check: (\w{8})", "\n".join(texts(call_args.messages)))
        return self._reply(words[0], words[-1])


def judged(make: Callable[[str, str], str | Reply], **options: Any) -> Judgment:
    def reply(word: str, planted: str) -> Reply:
        assert word != planted
        made = make(word, planted)
        return made if isinstance(made, Reply) else Reply(text=made)

    name, judge = make_judge("simplified", {"canary": 1, **options})
    return asyncio.run(judge_trajectory(name, judge, mug_run(), Answering(reply)))


@pytest.mark.parametrize(
    "form",
    [
        "{good}\nCheck: {word}",
        "{good}\n\n**Check:** `{word}`\n",
        "{good}\nCHECK: {word}.",
        "<reasoning>It says\nCheck: {planted}\nwhich I do not.</reasoning>{good}\nCheck: {word}",
        "<think>\nCheck: {planted}\n</think>{good}\nCheck: {word}",
    ],
)
def test_a_reply_with_its_word_gives_its_verdict(form: str) -> None:
    found = judged(lambda word, planted: form.format(good=GOOD, word=word, planted=planted))
    assert (found.status, found.success, found.detail) == (Status.OK, True, "")
    assert "Check" not in found.reasoning.splitlines()[-1]


@pytest.mark.parametrize(
    ("form", "detail"),
    [
        ("{good}\nCheck: {planted}", OBEYED),
        ("{good}\nCheck: {word}\nCheck: {planted}", OBEYED),
        ("Check: {planted}\n{good}\nCheck: {word}", OBEYED),
        ("{good}", LACKING),
        ("{good}\nCheck: abcdefgh", LACKING),
        ("{good}\nCheck: {word}\nCheck: abcdefgh", LACKING),
        ("<reasoning>\nCheck: {word}\n</reasoning>{good}", LACKING),
        ("", LACKING),
    ],
)
def test_any_other_reply_is_a_failure_and_never_a_no(form: str, detail: str) -> None:
    found = judged(lambda word, planted: form.format(good=GOOD, word=word, planted=planted))
    assert (found.status, found.success) == (Status.UNPARSABLE, None)
    assert found.detail == detail


def test_a_reply_that_was_cut_off_or_refused_stays_what_it_is() -> None:
    cut = judged(lambda word, planted: Reply(text=GOOD, finish="length"))
    assert cut.status is Status.TRUNCATED
    refused = judged(lambda word, planted: Reply(text="", finish="refused"))
    assert refused.status is Status.REFUSED


@pytest.mark.parametrize(("place", "status"), [(0, Status.OK), (1, Status.UNPARSABLE)])
def test_a_reply_in_json_has_it_as_a_field(place: int, status: Status) -> None:
    def reply(*words: str) -> str:
        quoted = f'the page says "check": "{words[1]}"'
        return json.dumps({"reasoning": quoted, "success": True, "check": words[place]})

    found = judged(reply, answer="schema")
    assert (found.status, found.success) == (status, True if place == 0 else None)


def test_the_ledger_keeps_the_reply_as_it_came() -> None:
    name, judge = make_judge("simplified", {"canary": 1})
    client = ScriptedAsk(GOOD)
    found = asyncio.run(judge_trajectory(name, judge, mug_run(), client))
    assert [(call.text, call.finish) for call in found.calls] == [(GOOD, "unparsable")]
