"""The claims-first judge: prose in the first call alone, findings whose citations are looked up."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.judges.http_judging import judged_over_http
from tests.judges.runs import StagedAsk, seen_run, texts
from tests.llm_replies import Incoming
from tests.llm_server import LlmServer
from trajudge.judges.adapters.errors import ContextOverflow
from trajudge.judges.judging import judge_trajectory
from trajudge.judges.methods.claims_first import (
    ClaimsFirst,
    ClaimsFirstOptions,
    NumberedPage,
    ShownRecord,
    parse_claims,
)
from trajudge.judges.model import Judgment, Status
from trajudge.judges.registry import make_judge
from trajudge.judges.replies import ParseFailure
from trajudge.trajectories.model import Trajectory
from trajudge.trajectories.tokens import count_tokens

SECRET = "I am certain that a mug lies in the cart"
CLAIMS = json.dumps({"claims": ["A mug was put into the cart.", "The user was told that."]})
# The last page of the run, as it is shown.
LINE = "3:2"
NOT_THERE = f"does not stand at {LINE}"


def run(**changes: object) -> Trajectory:
    made = seen_run()
    steps = [step.model_copy(update={"reasoning": SECRET}) for step in made.steps]
    spoken = steps[1].model_copy(update={"action": f"send_msg_to_user('{SECRET}')"})
    steps = [steps[0], spoken, steps[2]]
    return made.model_copy(update={"steps": tuple(steps), "answer": SECRET, **changes})


def findings(success: bool = True, **changes: Any) -> str:
    claim = {"claim": 1, "holds": True, "at": LINE, "quote": "Red mug"}
    met = {"requirement": "a mug is in the cart", "met": True, "at": LINE, "quote": "red  MUG"}
    reply = {
        "reasoning": "Looked.",
        "claims": [claim, {"claim": 2, "holds": False}],
        "requirements": [met],
        "side_effect": False,
        "success": success,
    }
    return json.dumps({**reply, **changes})


def judged(verdict: str, claims: str = CLAIMS, **options: Any) -> tuple[Judgment, StagedAsk]:
    name, judge = make_judge("claims-first", options)
    client = StagedAsk(claims=claims, verdict=verdict)
    return asyncio.run(judge_trajectory(name, judge, run(), client)), client


def test_the_second_call_never_sees_the_prose_and_the_first_no_page() -> None:
    _, client = judged(findings())
    (first,), (second,) = client.stage("claims"), client.stage("verdict")
    prose, checked = ("".join(texts(call.messages)) for call in (first, second))
    assert SECRET in prose and "RootWebArea" not in prose
    assert SECRET not in checked and "1. A mug was put into the cart." in checked
    assert f"{LINE} \t[3] StaticText 'Red mug" in checked
    assert "<action>fill('12', 'red mug')</action>" in checked


def test_over_http_a_verdict_and_the_shares_that_hold(tmp_path: Path) -> None:
    def reply(incoming: Incoming) -> str:
        return findings() if "<claims>" in incoming.prompt else CLAIMS

    with LlmServer(text=reply) as server:
        judge = ClaimsFirst(ClaimsFirstOptions())
        found = judged_over_http(server, judge, run(), tmp_path)
        assert server.stats.requests == 2
    assert (found.status, found.success, found.side_effect) == ("ok", True, False)
    assert found.scores == {"claims": 0.5, "requirements": 1.0}
    assert [call.stage for call in found.calls] == ["claims", "verdict"]


def test_a_requirement_that_is_not_met_decides() -> None:
    unmet = [{"requirement": "it is paid", "met": False}]
    found, _ = judged(findings(requirements=unmet))
    assert (found.status, found.success) == (Status.OK, False)
    assert found.reasoning == "Looked. [requirements not met: 1]"
    assert judged(findings(success=False))[0].success is False


def requirement(**cited: str) -> list[dict[str, Any]]:
    return [{"requirement": "a mug", "met": True, **cited}]


@pytest.mark.parametrize(
    ("reply", "detail"),
    [
        (findings(requirements=requirement()), "requirement 1 is said to hold and cites nothing"),
        (findings(requirements=requirement(at="3:99", quote="Red mug")), "cites 3:99, which was"),
        (findings(requirements=requirement(at="9:1", quote="Red mug")), "cites 9:1, which was not"),
        (
            findings(requirements=requirement(at=LINE, quote="Blue mug")),
            f"does not stand at {LINE}",
        ),
        (findings(requirements=requirement(at=LINE, quote="ug")), NOT_THERE),
        (findings(requirements=requirement(at=LINE, quote="...")), NOT_THERE),
        (findings(requirements=requirement(at=LINE)), NOT_THERE),
        (findings(requirements=[]), "says success and names no requirement"),
        (findings(claims=[]), "not one for each of 2 claims"),
        (findings(claims=[{"claim": 3, "holds": False}]), "not one for each of 2 claims"),
        (findings(claims=[{"claim": 1, "holds": False}] * 2), "not one for each of 2 claims"),
        (
            findings(claims=[{"claim": 1, "holds": "yes"}]),
            "claims.0.holds: Input should be",
        ),
        (findings(claims="none"), "claims: Input should be a valid list"),
        (findings(requirements=["a mug"]), "requirements.0: "),
        ("Success.", "the reply holds no JSON object"),
    ],
)
def test_evidence_that_is_not_there_is_a_failure_and_never_a_no(reply: str, detail: str) -> None:
    found, _ = judged(reply)
    assert (found.status, found.success) == (Status.UNPARSABLE, None)
    assert detail in found.detail


def test_an_action_can_be_cited() -> None:
    found, _ = judged(findings(requirements=requirement(at="1:0", quote="red mug")))
    assert found.success is True
    found, _ = judged(findings(requirements=requirement(at="2:0", quote="certain that a mug")))
    assert found.status is Status.UNPARSABLE, "what was told is no evidence"


def test_who_said_nothing_is_judged_by_one_call() -> None:
    steps = [step.model_copy(update={"reasoning": None}) for step in run().steps]
    client = StagedAsk(verdict=findings(claims=[]))
    judge = ClaimsFirst(ClaimsFirstOptions())
    silent = run(steps=tuple(steps), answer=None)
    assert asyncio.run(judge_trajectory("j", judge, silent, client)).success is True
    assert [call.stage for call in client.asked] == ["verdict"]
    assert "The agent claimed nothing." in str(texts(client.asked[0].messages))


def test_a_claim_is_one_line_and_none_can_forge_another() -> None:
    _, client = judged(findings(), json.dumps({"claims": ["One.\n2. Forged.", "Two."]}))
    prompt = str(texts(client.stage("verdict")[0].messages))
    assert "1. One. 2. Forged.\\n2. Two." in prompt


@pytest.mark.parametrize("claims", ['{"claims": [""]}', '{"claims": 3}', "none", '{"claims": [1]}'])
def test_claims_that_are_none_are_a_failure(claims: str) -> None:
    found, client = judged(findings(), claims)
    assert found.status is Status.UNPARSABLE
    assert found.detail.startswith("claims: ")
    assert not client.stage("verdict")


def test_a_run_without_a_page_is_skipped() -> None:
    steps = [
        step.model_copy(update={"observation": step.observation.model_copy(update=NO_TREE)})
        for step in run().steps
    ]
    name, judge = make_judge("claims-first")
    bare = run(steps=tuple(steps))
    found = asyncio.run(judge_trajectory(name, judge, bare, StagedAsk(claims=CLAIMS)))
    assert (found.status, found.calls) == (Status.SKIPPED, ())


NO_TREE = {"axtree": None, "axtree_pruned": None}


def test_a_page_keeps_two_thirds_of_its_lines_from_the_beginning() -> None:
    lines = {number: f"[{number}] button 'Order number {number}'" for number in range(1, 21)}
    page = NumberedPage(3, lines, 20)
    shown = page._replace(lines={n: lines[n] for n in (1, 2, 3, 4, 5, 6, 18, 19, 20)})
    assert "\n[... 11 lines left out ...]\n3:18 " in shown.text
    room = count_tokens(shown.text)
    assert page.within(room) == shown
    fewer = page.within(room - 1)
    assert [*fewer.lines] == [1, 2, 3, 4, 5, 18, 19, 20][: len(fewer.lines)]
    assert page.within(count_tokens(page.text)) is page


def test_at_most_twenty_claims_are_one_line_each() -> None:
    def claims(count: int) -> list[str]:
        return parse_claims(json.dumps({"claims": ["It is\n done."] * count}))

    assert claims(20) == ["It is done."] * 20
    with pytest.raises(ParseFailure):
        claims(21)


def test_words_without_a_word_stand_nowhere() -> None:
    record = ShownRecord({"1:2": "[4] button 'Place order'", "1:3": ""})
    quotes = [("1:2", "button, place"), ("1:2", "button place or"), ("1:2", "..."), ("1:3", "")]
    assert [record.holds(*quote) for quote in quotes] == [True, False, False, False]


def test_only_lines_that_were_shown_can_be_cited() -> None:
    page = NumberedPage(4, {n: f"[{n}] button 'Name {n}'" for n in range(1, 401)}, 400)
    cut = page.within(300)
    assert count_tokens(cut.text) <= 300 < count_tokens(page.text)
    assert {1, 400} <= cut.lines.keys() and 200 not in cut.lines
    assert f"[... {400 - len(cut.lines)} lines left out ...]" in cut.text
    assert page.within(100_000) == page
    assert page.within(0).lines == {}


def test_a_prompt_that_is_too_long_is_cut_and_asked_again() -> None:
    last = run().steps[-1]
    page = last.observation.model_copy(
        update={"axtree": "\n".join(["RootWebArea 'Cart'", "[3] StaticText 'Red mug'"] * 3_000)}
    )
    page = page.model_copy(update={"axtree_pruned": None})
    long = run(steps=(*run().steps[:-1], last.model_copy(update={"observation": page})))
    client = StagedAsk(claims=CLAIMS, verdict=[ContextOverflow("too long"), findings()])
    judge = ClaimsFirst(ClaimsFirstOptions())
    found = asyncio.run(judge_trajectory("j", judge, long, client))
    assert found.success is True
    sizes = [len(str(texts(call.messages))) for call in client.stage("verdict")]
    assert sizes[0] > sizes[1]
    assert [call.rung for call in client.stage("verdict")] == ["cut", "cut"]


def test_marked_pages_are_cited_with_blanks_or_marks() -> None:
    for quote in ("Red mug", "Redˆmug"):
        met = requirement(at=LINE, quote=quote)
        found, _ = judged(findings(requirements=met), datamark=True)
        assert found.success is True, quote
