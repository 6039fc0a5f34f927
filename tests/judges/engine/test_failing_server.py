"""A server that answers 500 to everything ends the run; one that answered once does not."""

from __future__ import annotations

import asyncio

import pytest

from tests.judges.engine.parts import Scripted, echo, engine, now, request, run, text_of
from trajudge.judges.adapters.errors import CallFailed, ServerFailed
from trajudge.judges.engine.limits import Limiter
from trajudge.judges.model import Reply, Request
from trajudge.util.errors import UserError

CALLS = 260


async def ask_all(server: Scripted, at_once: int) -> list[object]:
    """Return what comes of 260 different requests."""
    judging = engine(server, limiter=Limiter(concurrency=at_once))
    asked = (judging.ask(request(str(number))) for number in range(CALLS))
    return [*await asyncio.gather(*asked, return_exceptions=True)]


@pytest.mark.parametrize(("at_once", "most"), [(1, 900), (4, 900), (64, 240)])
def test_a_server_that_only_ever_fails_ends_the_run_in_minutes(at_once: int, most: int) -> None:
    async def main() -> float:
        began, results = now(), await ask_all(server, at_once)
        ends = {str(result) for result in results if isinstance(result, UserError)}
        assert {type(result) for result in results} <= {UserError, ServerFailed}
        (end,) = ends
        assert "minutes failed and none was answered: test answered 500: ill; when that" in end
        assert end.endswith("is mended, start again with --retry-failed")
        return now() - began

    server = Scripted(lambda request, nth: ServerFailed("test answered 500: ill"), latency=0.1)
    assert 120 <= run(main()) <= most


@pytest.mark.parametrize(("at_once", "failing"), [(1, 10), (4, 10), (8, 15), (16, 20)])
def test_requests_that_fail_for_ever_and_come_first_do_not_end_the_run(
    at_once: int, failing: int
) -> None:
    def script(request: Request, nth: int) -> Reply | CallFailed:
        ends_well = int(text_of(request)) >= failing
        return echo(request, nth) if ends_well else ServerFailed("500")

    results = run(ask_all(Scripted(script, latency=0.2), at_once))
    assert not [one for one in results if isinstance(one, UserError)]
    assert sum(isinstance(one, ServerFailed) for one in results) == failing


def test_failures_beside_an_answer_never_end_the_run() -> None:
    def script(request: Request, nth: int) -> Reply | CallFailed:
        return echo(request, nth) if text_of(request) == "0" else ServerFailed("500")

    answer, *failures = run(ask_all(Scripted(script), at_once=4))
    assert not isinstance(answer, Exception)
    assert {type(failure) for failure in failures} == {ServerFailed}
