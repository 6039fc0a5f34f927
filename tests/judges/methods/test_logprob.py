"""The log-probability judge: Yes against No, or a clear word on why not."""

from __future__ import annotations

from math import exp
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.judges.http_judging import judged_over_http
from tests.judges.methods.replies import logprobs
from tests.judges.runs import seen_run
from tests.llm_replies import Incoming, Outgoing, answer
from tests.llm_server import LlmServer, always
from trajudge.judges.adapters.errors import BadRequest
from trajudge.judges.methods.logprob import Logprob, LogprobOptions, probability_of_yes
from trajudge.judges.model import Reply
from trajudge.judges.replies import ParseFailure


def serving(text: str, given: Any) -> LlmServer:
    def reply(incoming: Incoming) -> Outgoing:
        return answer(incoming, text, logprobs=given)

    return LlmServer(text=reply)


def judge(**options: object) -> Logprob:
    return Logprob(LogprobOptions.model_validate(options))


def test_the_score_is_the_share_of_yes(tmp_path: Path) -> None:
    offered = {"Yes": 0.5, " yes": 0.1, "No": 0.2, "Maybe": 0.2}
    with serving("Yes", logprobs(("Yes", offered))) as server:
        judgment = judged_over_http(server, judge(), seen_run(), tmp_path)
        strict = judged_over_http(server, judge(threshold=0.8), seen_run(), tmp_path)
    assert judgment.status == "ok"
    assert judgment.score == pytest.approx(0.6 / 0.8)
    assert (judgment.success, strict.success) == (True, False)
    sent = server.seen[0].payload
    assert (sent["logprobs"], sent["top_logprobs"]) == (True, 20)


def test_thoughts_among_the_tokens_are_no_answer(tmp_path: Path) -> None:
    thoughts = [(word, {word: 1.0}) for word in ("<think>", "No", ", or", " yes", "</think>")]
    with serving("Yes", logprobs(*thoughts, ("Yes", {"Yes": 0.9, "No": 0.1}))) as server:
        judgment = judged_over_http(server, judge(), seen_run(), tmp_path)
    assert judgment.score == pytest.approx(0.9)


def test_the_probabilities_come_out_of_the_cache_too(tmp_path: Path) -> None:
    with serving("No", logprobs(("No", {"Yes": 0.1, "No": 0.9}))) as server:
        first = judged_over_http(server, judge(), seen_run(), tmp_path)
        again = judged_over_http(server, judge(), seen_run(), tmp_path)
        assert server.stats.requests == 1
    assert first.score == again.score == pytest.approx(0.1)


def test_a_provider_without_logprobs_is_said_in_one_sentence(tmp_path: Path) -> None:
    with serving("Yes", None) as server:
        judgment = judged_over_http(server, judge(), seen_run(), tmp_path)
    assert judgment.status == "provider_error"
    assert "needs a model and a server that give logprobs" in judgment.detail
    assert judgment.success is None


def test_another_word_was_sampled(tmp_path: Path) -> None:
    """The alternatives of its place count, and a place that offers neither is unparsable."""
    offered = {"Perhaps": 0.6, "Yes": 0.1, "No": 0.3}
    with serving("Perhaps", logprobs(("Perhaps", offered))) as server:
        judgment = judged_over_http(server, judge(), seen_run(), tmp_path)
    assert judgment.score == pytest.approx(0.25)
    assert judgment.success is False
    with serving("Perhaps", logprobs(("Perhaps", {"Perhaps": 0.9, "Maybe": 0.1}))) as server:
        judgment = judged_over_http(server, judge(), seen_run(task="2"), tmp_path)
    assert judgment.status == "unparsable"
    assert judgment.detail.endswith("neither Yes nor No, and offered neither")


@pytest.mark.parametrize(("fault", "status"), [("refusal", "refused"), ("500", "provider_error")])
def test_trouble_has_its_own_status(tmp_path: Path, fault: str, status: str) -> None:
    with LlmServer(script=always(fault)) as server:
        judgment = judged_over_http(server, judge(), seen_run(), tmp_path)
    assert judgment.status == status


def test_a_quote_before_the_word_is_stepped_over() -> None:
    given = logprobs(('"', {'"': 1.0}), ("Yes", {"Yes": 0.9, "No": 0.1}))
    assert probability_of_yes(Reply(text='"Yes', logprobs=given)) == pytest.approx(0.9)


def test_a_token_without_alternatives_counts_itself() -> None:
    given = {"content": [{"token": "No", "logprob": -0.1}]}
    assert probability_of_yes(Reply(text="No", logprobs=given)) == 0.0


@given(st.floats(-30, 0), st.floats(-30, 0))
def test_the_score_is_between_0_and_1_and_grows_with_yes(yes: float, no: float) -> None:
    offered = [{"token": "Yes", "logprob": yes}, {"token": "No", "logprob": no}]
    given = {"content": [{"token": "Yes", "logprob": yes, "top_logprobs": offered}]}
    score = probability_of_yes(Reply(text="Yes", logprobs=given))
    assert score == pytest.approx(exp(yes) / (exp(yes) + exp(no)))


nested = st.recursive(
    st.none() | st.floats() | st.text(max_size=4) | st.sampled_from(["Yes", "No"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["content", "token", "logprob", "top_logprobs"]), inner, max_size=4
        )
    ),
    max_leaves=12,
)


@given(nested)
def test_any_shape_gives_a_score_or_a_failure(given: Any) -> None:
    try:
        assert 0 <= probability_of_yes(Reply(text="?", logprobs={"content": [given]})) <= 1
    except (ParseFailure, BadRequest) as failure:
        assert str(failure)
