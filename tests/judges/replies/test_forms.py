"""Replies as models write them, in every form that judges ask for: each is read as a person reads
it, or is no verdict.

The wrappers of thoughts are those of the models' chat templates and of the reasoning parsers of
vLLM, SGLang and llama.cpp.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.judges.http_judging import judged_over_http
from tests.judges.runs import GOOD, seen_run
from tests.llm_replies import Incoming, Outgoing, answer
from tests.llm_server import LlmServer
from trajudge.judges.methods.browser_use import parse_judgement
from trajudge.judges.methods.insta import parse_scores
from trajudge.judges.methods.nnetnav import parse_reward
from trajudge.judges.methods.universal_verifier.replies import (
    ASSUMED,
    parse_critical_point,
    parse_violation,
)
from trajudge.judges.model import Reply
from trajudge.judges.registry import make_judge
from trajudge.judges.replies import (
    ParseFailure,
    ReplyParseError,
    parse_grade_line,
    parse_json,
    parse_reply,
    parse_status_line,
    parse_tags,
)
from trajudge.trajectories.thoughts import SplitText, split_message, split_thoughts

FORMS: dict[str, Callable[[str], Any]] = {
    "tags": lambda text: parse_tags(text).success,
    "status": lambda text: parse_status_line(text).success,
    "score": lambda text: parse_grade_line(text, "score", 1, 5).value,
    "json": lambda text: parse_json(text, ["success"]).fields["success"],
    "reward": lambda text: parse_reward(text).success,
    "insta": lambda text: parse_scores(text)[0][0],
    "browser-use": lambda text: parse_judgement(text).success,
    "violation": lambda text: parse_violation(text).cp_violation,
}
LABELS = "<side>No</side><optimal>1. Complete Failure</optimal><loop>No</loop>"
VIOLATION = json.dumps({"reasoning": "It paid.", "cp_violation": True})
SCORES = '{"success": 0.9, "efficiency": 0.5, "self_correction": 1}'

# Form, reply, what a person reads in it: None is no verdict.
REPLIES: list[tuple[str, str, object]] = [
    # A line with words, decorated, in the punctuation of other scripts.
    ("status", "Thoughts: no filter.\n\nStatus: failure (the price filter is missing)", False),
    ("status", "Status: failure - only one of the two items is in the cart", False),
    ("status", "Status: Failure: the agent stopped at step 12.", False),
    ("status", "Status: success, since the confirmation page is shown", True),
    ("status", "Status: success because all 3 filters are visible in the last screenshot.", True),
    ("status", "Status: failure. It succeeded in searching, not in ordering.", False),
    ("status", "Status: failed to submit the form", False),
    ("status", "**Status:** _failure_ – wrong date", False),
    ("status", "## Final Status: **Success**", True),
    ("status", "Status: ❌ Failure", False),
    ("status", "* **Status**: success ✔️", True),
    ("status", "Thoughts: 已完成。\n\nStatus：success", True),
    ("status", "思考：没有筛选。\n\nＳｔａｔｕｓ：ｆａｉｌｕｒｅ。", False),
    ("status", "Status\u202f: «success»", True),
    ("status", "Pensées : c'est fait.\nStatus\u00a0: success", True),
    ("status", "Thoughts: fine.\r\n\r\nStatus: success\r\n", True),
    ("status", "```\nThoughts: done.\nStatus: success\n```", True),
    ("status", '{"thoughts": "no order", "status": "failure"}', False),
    ("status", "<p>Thoughts: none</p>\n<b>Status:</b> failure<br>", False),
    ("status", "Status: Unsuccessful (order not placed)\n\nLet me know if you need more.", False),
    ("status", "Status: non-successful", False),
    # A line that takes itself back, hedges or says another word.
    ("status", "Status: success\nThe page says so.\nStatus: failure (the filter is missing)", None),
    ("status", "Status: success\n\nFinal status: failure", None),
    ("status", "Status: success\n...\nStatus: cannot be determined", None),
    ("status", "Status: success or failure", None),
    ("status", "Status: success / failure", None),
    ("status", "Status: success (or failure, depending on the year)", None),
    ("status", "Status: partially successful", None),
    ("status", "Status: success, but only for the first of the items", None),
    ("status", "Status: success rate unknown", None),
    ("status", "Status: success?", None),
    ("status", "Status: failure\nThe order page is shown. Status: success", None),
    # Numbers.
    ("score", "Reasoning: the cart.\nScore: 4 – most of it is shown", 4),
    ("score", "Score：5（满分）", 5),
    ("score", "**Final Score**: 3/5 (steps 2 and 4 are missing)", 3),
    ("score", "Score: 4. Step 7 shows the order.", 4),
    ("score", "Score: 2 because 3 of 5 filters are missing", 2),
    ("score", "Score: 5\nScore: N/A", None),
    ("score", "Score: 5\nOn reflection:\nScore: unclear", None),
    ("score", "Score: 4 (out of 10)", None),
    ("score", "Score: 3 or 4", None),
    ("score", "Score: 3–4", None),
    ("score", "Score: 80%", None),
    ("reward", "Thought: bought.\nReward: 5\n", True),
    ("reward", "Rating: 4\n\nReward: cannot be given", None),
    ("insta", SCORES, 0.9),
    ("insta", "Success: 0.9\nEfficiency: 0.5\nSelf-correction: 1\n", None),
    ("insta", SCORES + "\nSuccess: 0.1\nSelf-correction: 0\n" + SCORES[:30], None),
    ("insta", "Success: 0.9\nEfficiency: 0.5\nSelf-correction: 1\n" + SCORES[:-4], None),
    # Objects with the mistakes of models, alone and after a draft.
    ("json", "{'success': False, 'reasoning': 'the agent\\'s cart is \"empty\"'}", False),
    ("json", '{"success": true, "reasoning": "It is\nin the cart."}', True),
    ("json", "```json5\n{success: false, // no order\n}\n```", False),
    ("json", "```python\n{'success': True, 'side_effect': None}\n```", True),
    ("json", "{“success”: false, “reasoning”: “not there”}", False),
    ("json", '{"success": true} then {"success": true}', True),
    (
        "json",
        '{"success": true}\n{"success": false, "reasoning": "he says "no""}',
        None,
    ),
    ("json", '{"success": true}\n{"success": false, "reasoning": "a\nb"}', None),
    ("json", '{"success": true}\nFinal: {"success": False}', None),
    ("json", "{\"success\": true}\n{'success': false}", None),
    ("json", '{"success": true}\n{"final": {"success": false}}', None),
    ("json", '{"success": true}\n{"success": fal', None),
    ("json", '{"success": true, "reasoning": "he wrote "no" to it"}', None),
    ("json", '{"success": true|false, "reasoning": "..."}\n{"success": false}', None),
    ("json", '{"reasoning": "a {b} c", "success": true} {see above}', True),
    ("browser-use", '{"reasoning": "x", "verdict": true}\n{"verdict": False,}', None),
    ("browser-use", "{'verdict': False, 'failure_reason': 'no order'}", False),
    ("violation", VIOLATION, True),
    ("violation", VIOLATION + "\nCorrected:\n{'reasoning': 'no, cp_violation': false}", None),
    # Tags.
    ("tags", f"<success>Unsuccessful</success>{LABELS}", False),
    ("tags", f"<success>Successful</success>{LABELS}<success>✗</success>", None),
    ("tags", f"<success>Successful</success>{LABELS}\nFinal: <success></success>", None),
    ("tags", f"I use <success>, <side> tags.\n<success>Successful</success>{LABELS}", True),
    ("tags", f"<success>Successful</success>{LABELS}<success>Unsure</success>", None),
]


@pytest.mark.parametrize(("form", "reply", "meant"), REPLIES)
def test_a_reply_is_read_as_a_person_reads_it(form: str, reply: str, meant: object) -> None:
    if meant is None:
        with pytest.raises(ParseFailure):
            FORMS[form](reply)
    else:
        assert FORMS[form](reply) == meant


def test_a_type_outside_of_the_block_contradicts_the_one_in_it() -> None:
    assert parse_critical_point(ASSUMED["critical_point"])
    other = "critical_point_type: PERMISSION_GRANTED_INFO_PROVIDED_TASK_SPECIFIED\n"
    with pytest.raises(ParseFailure, match="more than once"):
        parse_critical_point(f"{ASSUMED['critical_point']}\nCorrection:\n{other}")


HARMONY = "<|channel|>analysis<|message|>{}<|end|><|start|>assistant<|channel|>final<|message|>{}"
WRAPPED = {
    "think": "<think>{}</think>{}",
    "thinking": "<thinking>{}</thinking>\n{}",
    "opened in the prompt": "{}\n</think>\n\n{}",
    "thought": "<thought>\n{}\n</thought>\n{}",
    "seed": "<seed:think>{}</seed:think>{}",
    "kimi": "◁think▷{}◁/think▷{}",
    "magistral": "[THINK]{}[/THINK]{}",
    "cohere": "<|START_THINKING|>{}<|END_THINKING|>{}",
    "gemma": "<|channel>thought\n{}<channel|>{}",
    "openthinker": "<|begin_of_thought|>{}<|end_of_thought|>{}",
    "harmony": HARMONY + "<|return|>",
    "harmony with a start": "<|start|>assistant" + HARMONY,
    "harmony with a type": HARMONY.replace("final", "final <|constrain|>json"),
    "harmony without tokens": "analysisWe look. {}assistantfinal{}",
    "reasoning": "<reasoning>{}</reasoning>{}",
}
DRAFTS: dict[str, tuple[str, str]] = {
    "tags": ("Maybe <success>Successful</success>?", f"<success>Unsuccessful</success>{LABELS}"),
    "status": ("Format:\nStatus: success\nNo.", "Thoughts: no.\nStatus: failure"),
    "json": ('Say {"success": true}, or', '{"success": false}'),
    "browser-use": ('{"verdict": true} or', '{"verdict": false}'),
}


@pytest.mark.parametrize("form", DRAFTS)
@pytest.mark.parametrize("wrapper", WRAPPED)
def test_a_draft_in_the_thoughts_is_not_read(form: str, wrapper: str) -> None:
    draft, verdict = DRAFTS[form]
    text = WRAPPED[wrapper].format(draft, verdict)
    parse = FORMS[form]
    assert parse(text) is False
    assert parse_reply(Reply(text=text), parse) is False
    # Cut before its thoughts end, it is cut inside of them, whatever they say.
    end = text.index(draft) + len(draft)
    for cut in (text[:end], text[: end + 3]):
        with pytest.raises(ReplyParseError, match=r"ran out of|holds no|draft"):
            parse_reply(Reply(text=cut, finish="length"), parse)


def test_a_cut_reply_counts_where_its_verdict_is_whole() -> None:
    status = FORMS["status"]
    assert parse_reply(Reply(text=GOOD + " and so", finish="length"), FORMS["tags"]) is True
    assert parse_reply(Reply(text="No.\nStatus: failure", finish="length"), status) is False
    blanks = '```json\n{\n"success": false\n}\n```' + "\n" * 40
    assert parse_reply(Reply(text=blanks, finish="length"), FORMS["json"]) is False
    with pytest.raises(ReplyParseError, match="after a draft"):
        parse_reply(Reply(text="Say\nStatus: success\nThe cart", finish="length"), status)


def test_thoughts_are_kept_apart() -> None:
    split = split_thoughts("<think>a</think><reasoning>b</reasoning>c<reasoning>d", reasoning=True)
    assert (split.thoughts, split.reasoning) == ("<think>a</think>", "b")
    assert (split.closed, split.open) == (True, True)
    assert split.answer.strip() == "c<reasoning>d"
    text = "<reasoning>b</reasoning>c"
    assert split_thoughts(text) == SplitText(text, closed=False, open=False)
    assert split_thoughts(text, reasoning=True) == SplitText("\nc", "", "b", closed=True)
    assert split_thoughts("c<reasoning>d", reasoning=True) == SplitText("c<reasoning>d", open=True)
    assert split_message(" c ") == ([], " c ")
    assert split_message("<think>a</think> c ") == (["a"], "c")
    many = "<think>a</think>" * 1_000
    assert len(split_message(many)[0]) == 1_000
    assert split_message(many + "<think>") == ([], many + "<think>")


def serving(text: str, **fields: Any) -> LlmServer:
    def reply(incoming: Incoming) -> Outgoing:
        return answer(incoming, text, **fields)

    return LlmServer(text=reply)


@pytest.mark.parametrize(
    ("judge", "text", "fields", "status", "said"),
    [
        ("simplified", HARMONY.format("Maybe " + GOOD, GOOD), {}, "ok", ""),
        ("simplified", HARMONY[:33] + GOOD, {"finish": "length"}, "truncated", "inside its"),
        (
            "webvoyager",
            "<reasoning>x\nStatus: success",
            {"finish": "length"},
            "truncated",
            "inside",
        ),
        ("webvoyager", "", {"thoughts": "Status: success"}, "unparsable", "reasoning_content"),
        ("simplified", "", {"thoughts": GOOD}, "unparsable", "--reasoning-parser"),
        ("simplified", "", {"thoughts": "x", "finish": "length"}, "truncated", "inside its"),
        ("logprob", "", {"thoughts": "Yes", "logprobs": {"content": []}}, "unparsable", "parser"),
        ("insta", "", {"thoughts": SCORES}, "unparsable", "check the server's reasoning parser"),
    ],
)
def test_what_a_server_sends_has_its_status(
    tmp_path: Path, judge: str, text: str, fields: dict[str, Any], status: str, said: str
) -> None:
    with serving(text, **fields) as server:
        judgment = judged_over_http(server, make_judge(judge, {})[1], seen_run(), tmp_path)
    assert (judgment.status, judgment.success) == (status, True if status == "ok" else None)
    assert said in judgment.detail


def token(word: str) -> dict[str, Any]:
    return {"token": word, "logprob": -0.1, "top_logprobs": [{"token": word, "logprob": -0.1}]}


@pytest.mark.parametrize(
    ("words", "score"),
    [
        (["[THINK]", "Yes", "[/THINK]", "No"], 0.0),
        (
            [
                "<|channel|>",
                "analysis",
                "<|message|>",
                "No",
                "<|end|>",
                "<|start|>assistant",
                "<|channel|>final<|message|>",
                "Yes",
            ],
            1.0,
        ),
        (["Yes", "/", "No"], None),
        (["Yes", ".", " No", "."], None),
    ],
)
def test_a_probability_is_of_the_answer_alone(
    tmp_path: Path, words: list[str], score: float | None
) -> None:
    logprobs = {"content": [*map(token, words)]}
    with serving("".join(words), logprobs=logprobs) as server:
        judgment = judged_over_http(server, make_judge("logprob", {})[1], seen_run(), tmp_path)
    assert judgment.score == score
    assert (judgment.status == "ok") == (score is not None)
