"""What the throughput benchmark measures is the real path: every judgment is made."""

from __future__ import annotations

import pytest

from benchmarks.judge_clients import job, through_judge
from tests.llm_server import LlmServer

pytestmark = pytest.mark.anyio


@pytest.mark.slow
async def test_the_whole_path_judges_every_trajectory() -> None:
    async with LlmServer() as server:
        words = ["--base-url", f"{server.url}/v1"]
        assert await through_judge(words, [job(index) for index in range(9)], 4) == 9
        assert server.stats.requests == 9
        assert all(15_000 < len(seen.prompt) < 25_000 for seen in server.seen)
