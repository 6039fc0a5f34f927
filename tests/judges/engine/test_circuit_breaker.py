"""When a run is unrecoverable, told from a provider's words by the real adapter over HTTP."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np
import orjson
import pytest

from tests.judges.adapters.requests import adapter_for
from tests.llm_replies import Incoming, Outgoing, answer
from tests.llm_server import LlmServer
from trajudge.judges.adapters.errors import (
    BadRequest,
    Blocked,
    CallFailed,
    ContextOverflow,
    Forbidden,
    Refused,
)
from trajudge.judges.engine.budget import Budget
from trajudge.judges.engine.cache import Cache
from trajudge.judges.engine.engine import Engine
from trajudge.judges.engine.limits import Limiter
from trajudge.judges.engine.retry import Retry
from trajudge.judges.model import Message, Reply, Request, Text
from trajudge.util.errors import UserError

pytestmark = pytest.mark.anyio

Result = Reply | CallFailed | UserError | BaseException


def said(status: int, message: str) -> Outgoing:
    return Outgoing(status, orjson.dumps({"error": {"message": message}}))


MODERATED = 'm requires moderation on Azure. Your input was flagged for "violence".'
FIREWALL = b"<!DOCTYPE html><html><h1>Sorry, you have been blocked</h1></html>"


async def ask(
    server: LlmServer, count: int, *, at_once: int = 4, cache: Path | None = None
) -> list[Result]:
    """The results of ``count`` different requests to one engine."""
    adapter, model = adapter_for("http", server.url)
    engine = Engine(
        adapter,
        cache=Cache(cache) if cache else None,
        limiter=Limiter(concurrency=at_once),
        retry=Retry(np.random.default_rng(0), first=0.001),
        budget=Budget(lambda *_: 0.0),
    )

    def request(number: int) -> Request:
        messages = (Message(role="user", parts=(Text(text=f"number {number}."),)),)
        return Request(endpoint="test", model=model, messages=messages)

    asked = (_asked(engine, request(number)) for number in range(count))
    results = await asyncio.gather(*asked, return_exceptions=True)
    await engine.close()
    return results


async def _asked(engine: Engine, request: Request) -> Reply:
    return (await engine.ask(request)).reply


def is_number(incoming: Incoming, *numbers: int) -> bool:
    return any(f"number {number}." in incoming.prompt for number in numbers)


USAGE_LIMIT = (
    "You have reached your specified API usage limits. You will regain access on 2026-04-01."
)
NOT_ACTIVE = "Your account is not active, please check your billing details on our website."


@pytest.mark.parametrize(
    ("status", "message", "sentence"),
    [
        (402, "Insufficient credits.", "no credit left to ask gpt-4o (402: Insufficient credits.)"),
        (404, "The model does not exist", "does not serve gpt-4o (404: The model does not exist)"),
        (400, "x/y is not a valid model ID", "does not serve gpt-4o (400: x/y is not a valid"),
        (400, USAGE_LIMIT, USAGE_LIMIT[:-1]),
        (400, "This organization has been disabled.", "This organization has been disabled"),
        (400, "User location is not supported for the API use.", "location is not supported"),
        (429, NOT_ACTIVE, NOT_ACTIVE[:-1]),
        (429, "Your prepayment credits are depleted. Please go.", "credits are depleted. Please"),
    ],
)
async def test_a_model_that_cannot_be_asked_ends_the_run_at_once(
    status: int, message: str, sentence: str
) -> None:
    with LlmServer(text=lambda _: said(status, message)) as server:
        results = await ask(server, 40)
        assert server.stats.requests <= 4
    assert {type(result) for result in results} == {UserError}
    assert sentence in str(results[0])


async def test_credit_that_ends_during_a_run_loses_no_answer(tmp_path: Path) -> None:
    def respond(incoming: Incoming) -> Outgoing:
        if incoming.ordinal >= 20:
            return said(402, "Insufficient credits.")
        return answer(incoming, "yes")

    with LlmServer(text=respond) as server:
        first = await ask(server, 60, cache=tmp_path / "cache.sqlite")
        assert "everything that was answered is kept" in str(first[-1])
    with LlmServer(text="yes") as server:
        second = await ask(server, 60, cache=tmp_path / "cache.sqlite")
        assert server.stats.requests == 40
    assert all(isinstance(result, Reply) for result in second)


async def test_ten_403s_without_an_answer_end_the_run_with_a_sentence() -> None:
    with LlmServer(text=lambda _: said(403, "Forbidden")) as server:
        results = await ask(server, 200)
        assert 10 <= server.stats.requests <= 14
    assert sum(isinstance(result, Forbidden) for result in results) <= 9
    ends = {str(result) for result in results if isinstance(result, UserError)}
    (end,) = ends
    assert end.startswith("10 requests were refused and none answered: 127.0.0.1:")
    assert "answered 403: Forbidden: check that the key in OPENAI_API_KEY may use gpt-4o" in end
    assert end.endswith("start again with --retry-failed")


@pytest.mark.parametrize(("status", "kind"), [(400, BadRequest), (413, ContextOverflow)])
async def test_ten_refusals_in_the_same_words_end_the_run_whatever_they_are(
    status: int, kind: type[CallFailed]
) -> None:
    def refused(incoming: Incoming) -> Outgoing:
        words = f"Payload '{incoming.ordinal}' of req_{incoming.ordinal} is odd"
        return said(status, words)

    with LlmServer(text=refused) as server:
        results = await ask(server, 40, at_once=1)
        assert server.stats.requests == 10
    assert [type(result) for result in results[:9]] == [kind] * 9
    assert {type(result) for result in results[9:]} == {UserError}
    assert str(results[9]).startswith("10 requests were refused and none answered: 127.0.0.1:")


async def test_refusals_in_other_words_or_among_answers_do_not_end_the_run() -> None:
    words = ["alpha", "beta", "gamma", "delta", "epsilon"]

    def refused(incoming: Incoming) -> Outgoing:
        return said(400, f"Odd {words[incoming.ordinal % 5]}")

    with LlmServer(text=refused) as server:
        await ask(server, 45, at_once=1)
        assert server.stats.requests == 45, "nine of each"

    def answered(incoming: Incoming) -> Outgoing:
        return said(400, "Odd") if incoming.ordinal != 9 else answer(incoming, "yes")

    with LlmServer(text=answered) as server:
        await ask(server, 40, at_once=1)
        assert server.stats.requests == 40, "the tenth was answered"


async def test_403s_among_answers_are_those_judgments_failures() -> None:
    def respond(incoming: Incoming) -> Outgoing:
        refused = is_number(incoming, *range(1, 40))
        return said(403, "Forbidden") if refused else answer(incoming, "yes")

    with LlmServer(text=respond) as server:
        results = await ask(server, 60, at_once=1)
    assert [type(result) for result in results] == [Reply, *[Forbidden] * 39, *[Reply] * 20]


@pytest.mark.parametrize(
    ("refusal", "kind", "again"),
    [
        (said(403, MODERATED), Refused, 0),
        (Outgoing(403, FIREWALL, {"content-type": "text/html"}), Blocked, 1),
    ],
    ids=["moderation", "firewall"],
)
async def test_what_moderation_refuses_is_kept_and_a_firewalls_page_asked_again_by_the_next_run(
    refusal: Outgoing, kind: type[CallFailed], again: int, tmp_path: Path
) -> None:
    def respond(incoming: Incoming) -> Outgoing:
        return refusal if is_number(incoming, 0) else answer(incoming, "yes")

    for requests in (3, again):
        with LlmServer(text=respond) as server:
            results = await ask(server, 3, cache=tmp_path / "cache.sqlite")
            assert server.stats.requests == requests
        assert [type(result) for result in results] == [kind, Reply, Reply]


async def test_a_firewall_before_every_prompt_ends_the_run() -> None:
    with LlmServer(text=lambda _: Outgoing(403, FIREWALL)) as server:
        results = await ask(server, 200)
        assert server.stats.requests <= 14
    assert any("10 requests were refused" in str(result) for result in results)


async def test_an_answer_that_breaks_off_is_asked_again_and_never_kept(tmp_path: Path) -> None:
    def respond(incoming: Incoming) -> Outgoing:
        finish = "abort" if server.stats.requests <= 2 else "stop"
        return answer(incoming, f"answer {server.stats.requests}", finish=finish)

    with LlmServer(text=respond) as server:
        (first,) = await ask(server, 1, cache=tmp_path / "cache.sqlite")
        (again,) = await ask(server, 1, cache=tmp_path / "cache.sqlite")
        assert server.stats.requests == 3
    assert isinstance(first, Reply)
    assert isinstance(again, Reply)
    assert first.text == again.text == "answer 3"


async def test_a_server_that_never_says_that_it_has_finished_ends_the_run_after_ten_answers() -> (
    None
):
    """Each of them is paid, and would be six times for every trajectory."""
    with LlmServer(text=lambda i: answer(i, "yes", finish="unheard of")) as server:
        results = await ask(server, 200)
        assert server.stats.requests <= 14
    ends = {str(result) for result in results if isinstance(result, UserError)}
    assert any("10 answers came and none can be used" in end for end in ends)
    assert any("finish reason 'unheard of'" in end for end in ends)


async def test_an_answer_that_always_breaks_off_is_a_failure_that_is_not_kept(
    tmp_path: Path,
) -> None:
    with LlmServer(text=lambda i: answer(i, "half of", finish="abort")) as server:
        for requests in (6, 12):
            (result,) = await ask(server, 1, cache=tmp_path / "cache.sqlite")
            assert "broke off its answer (finish reason 'abort')" in str(result)
            assert server.stats.requests == requests
