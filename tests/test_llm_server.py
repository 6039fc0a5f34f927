"""The test server counts and limits truly; everything else rests on it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import orjson

from tests.llm_server import LlmServer, at, share, spawned


def ask(url: str, prompt: str = "x") -> int:
    body = orjson.dumps({"model": "m", "messages": [{"role": "user", "content": prompt}]})
    try:
        with urlopen(Request(url + "/v1/chat/completions", data=body)) as response:
            return int(response.status)
    except HTTPError as error:
        return error.code


def test_faults_come_at_their_ordinal_and_are_counted() -> None:
    with LlmServer(script=at({1: "500", 2: "bare-429"})) as server:
        assert [ask(server.url) for _ in range(4)] == [200, 500, 429, 200]
        stats = server.stats
    assert (stats.requests, stats.answered, stats.failed, stats.refused) == (4, 2, 1, 1)
    assert (stats.duplicates, stats.answered_again) == (3, 3)
    assert stats.in_flight == 0


def test_slots_admit_no_more_than_so_many_at_once() -> None:
    with LlmServer(slots=2, latency=0.3) as server, ThreadPoolExecutor(4) as pool:
        statuses = sorted(pool.map(ask, [server.url] * 4, "abcd"))
    assert statuses == [200, 200, 429, 429]


def test_a_share_of_faults_is_the_same_for_the_same_seed() -> None:
    first, second = (
        [choose(None) for _ in range(200)]  # type: ignore[arg-type]
        for choose in (share({"500": 0.2}, seed=3), share({"500": 0.2}, seed=3))
    )
    assert first == second
    assert 20 < first.count("500") < 60


def test_in_a_process_of_its_own_it_tells_its_counters() -> None:
    with spawned("--rpm", "60") as url:
        assert [ask(url), ask(url)] == [200, 429]
        with urlopen(url + "/__stats") as response:
            assert orjson.loads(response.read())["answered"] == 1
