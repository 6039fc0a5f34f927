"""Several samples of a trajectory pay for its prompt once: the provider has it in its cache."""

from __future__ import annotations

from typing import Any

import pytest

from tests.eval.cases import key
from tests.eval.judge_command import run
from tests.llm_server import LlmServer
from trajudge.eval.runs.jobs import JudgmentJob, first_samples_ahead
from trajudge.trajectories.model import Unreadable

pytestmark = pytest.mark.usefixtures("own_folder")


def asked(server: LlmServer, *words: str) -> list[dict[str, Any]]:
    model = ["--model", "claude-sonnet-4-5", "--base-url", server.url, "--concurrency", "4"]
    assert run(*model, *words) == 0
    return [incoming.payload for incoming in server.seen]


def test_a_prompt_is_answered_before_it_is_asked_again_and_marked_to_be_kept() -> None:
    with LlmServer(latency=0.01) as server:
        bodies = asked(server, "--limit", "12", "--samples", "3")
        assert server.stats.duplicates == 24
        assert server.stats.answered_again == 24, "none of them beside the first"
    assert all(b["messages"][-1]["content"][-1]["cache_control"] for b in bodies)


def test_what_is_asked_once_is_not_marked() -> None:
    with LlmServer() as server:
        (body,) = asked(server, "--limit", "1")
    assert "cache_control" not in body["messages"][-1]["content"][-1]


@pytest.mark.parametrize(("samples", "ahead"), [(1, 4), (3, 4), (5, 40)])
def test_every_job_comes_once(samples: int, ahead: int) -> None:
    tasks = [key(task) for task in range(20)]
    unread = Unreadable(source="x", reason="y")
    jobs = [JudgmentJob(task, unread, sample) for task in tasks for sample in range(samples)]
    ordered = list(first_samples_ahead(iter(jobs), ahead))
    assert sorted(ordered, key=jobs.index) == jobs
    for number, task in enumerate(tasks):
        first, *others = (i for i, job in enumerate(ordered) if job.key == task)
        assert ordered[first].sample == 0
        assert all(other - first > min(ahead, 19 - number) for other in others)
