"""Adapters of trainers whose packages are not installed here, held to the calls that they make."""

from __future__ import annotations

import ast
import asyncio
import json
import re
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests import http_thread
from tests.llm_server import LlmServer
from tests.rewards.cases import calibrated_words, trajectory
from tests.rewards.server.conftest import record_of, serving
from trajudge.rewards import trainers
from trajudge.rewards.client import URL, RewardClient, RewardUnavailable
from trajudge.rewards.reward import Abstained

BASE_RATE = 0.3
FAILED = "r1"  # of r0, r1, r2: its judge refuses


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server with three pushed trajectories."""
    folder = tmp_path_factory.mktemp("group")
    words = calibrated_words(folder, BASE_RATE)
    with (
        LlmServer(script=lambda one: "refusal" if "Do task 1\n" in one.prompt else None) as model,
        serving(folder, *words, "--base-url", f"{model.url}/v1") as server,
    ):
        for number in range(3):
            item = {"id": f"r{number}", "trajectory": record_of(trajectory(number))}
            assert server.ask("/v1/trajectories", item).status == 201
        yield server.url


@pytest.fixture(autouse=True)
def at_the_server(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(URL, url)


def ask(url: str, path: str, content: object) -> dict[str, Any]:
    request = urllib.request.Request(
        url + path, json.dumps(content).encode(), {"Content-Type": "application/json"}
    )
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=60) as answer:
        found: dict[str, Any] = json.load(answer)
    return found


def samples() -> list[SimpleNamespace]:
    return [
        SimpleNamespace(metadata={"trajectory_id": f"r{n}"}, remove_sample=False) for n in range(3)
    ]


@pytest.mark.slow
def test_slime_moves_no_mean_and_leaves_the_sample_out_of_the_loss() -> None:
    group = samples()
    first, failed, third = asyncio.run(trainers.slime_group_reward(None, group))
    assert [sample.remove_sample for sample in group] == [False, True, False]
    assert failed == pytest.approx((first + third) / 2)
    alone = samples()[1]
    assert asyncio.run(trainers.slime_reward(None, alone)) == BASE_RATE
    assert alone.remove_sample


def test_areal_calls_it_in_another_process() -> None:
    with ProcessPoolExecutor(1) as pool:
        known, failed = (
            pool.submit(
                trainers.areal_reward, "p", "c", [1], [2], trajectory_id=name, level=3
            ).result()
            for name in ("r0", FAILED)
        )
    assert known != BASE_RATE
    assert failed == BASE_RATE


def test_skyrl_gets_the_keys_of_a_step(packages: Path) -> None:
    """Those of the package, by its own class."""
    step = trainers.skyrl_step(FAILED)
    assert step["reward"] == BASE_RATE
    assert step["metadata"]["abstained"] == "failed"
    assert step["done"]
    source = (packages / "skyrl_gym" / "envs" / "base_text_env.py").read_text(encoding="utf-8")
    body = source.partition("class BaseTextEnvStepOutput(TypedDict):")[2].partition("\nclass ")[0]
    assert list(step) == [
        line.partition(":")[0].strip() for line in body.split("\n") if ":" in line
    ]


def test_nemo_gym_gets_its_row_back_with_a_mask(url: str) -> None:
    row = {"responses_create_params": {"input": "x"}, "response": {"id": "1"}}
    known = ask(url, "/verify", {**row, "trajectory_id": "r0"})
    failed = ask(url, "/verify", {**row, "verifier_metadata": {"trajectory_id": FAILED}})
    assert known.items() >= {**row, "mask_sample": False, "failure_reason": None}.items()
    assert (failed["reward"], failed["mask_sample"]) == (BASE_RATE, True)
    assert failed["failure_reason"].startswith("failed: ")
    metrics = ask(url, "/aggregate_metrics", {"verify_responses": [known, failed]})
    assert metrics["agent_metrics"] == {"masked": 1, "mean/reward": known["reward"]}
    assert ask(url, "/seed_session", {}) == {}


def test_an_abstention_is_an_exception_for_verifiers() -> None:
    traces = {name: SimpleNamespace(info={"trajectory_id": name}) for name in ("r0", FAILED)}
    assert asyncio.run(trainers.verifiers_reward(traces["r0"])) != BASE_RATE
    with pytest.raises(Abstained, match=r"^shop/a/t1: failed \("):
        asyncio.run(trainers.verifiers_reward(traces[FAILED]))
    with pytest.raises(RewardUnavailable, match="trajectory_id"):
        asyncio.run(trainers.verifiers_reward(SimpleNamespace(info={})))


@dataclass
class EvalOutput:
    """The fields of rLLM's, which no package index has: from its repository, August 2026."""

    reward: float
    is_correct: bool
    signals: list[object] = field(default_factory=list)
    metadata: dict[str, object] = field(default_factory=dict)


def test_rllm_gets_its_output_or_an_exception() -> None:
    """The id stands in the episode or in the task, as rows of today and of earlier versions."""
    evaluator = trainers.RllmEvaluator(output=EvalOutput)
    named, empty = {"trajectory_id": "r0"}, SimpleNamespace(artifacts={}, metadata={})
    given = (
        (SimpleNamespace(metadata={}), SimpleNamespace(artifacts=named, metadata={})),
        (SimpleNamespace(metadata=named), empty),
        (named, empty),
    )
    found = [evaluator.evaluate(task, episode) for task, episode in given]
    assert len({one.reward for one in found}) == 1
    assert found[0].metadata["judge"] == "simplified-axtree:mock"
    with pytest.raises(Abstained, match=r"^shop/a/t1: failed \("):
        evaluator.evaluate({"trajectory_id": FAILED}, empty)
    with pytest.raises(RewardUnavailable, match="a task without trajectory_id"):
        evaluator.evaluate({}, empty)
    with pytest.raises(RewardUnavailable, match="install rllm"):
        trainers.RllmEvaluator().evaluate(named, empty)


def test_an_abstention_waits_for_the_others_of_its_group(url: str) -> None:
    """They are asked for one by one; the same member counts once."""

    def item(name: str) -> dict[str, Any]:
        return {"items": [{"id": name, "group": "g", "group_size": 3}], "deadline": 10}

    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(ask, url, "/v1/rewards", item(FAILED))
        known = [ask(url, "/v1/rewards", item(name)) for name in ("r0", "r0", "r2")]
        neutral = waiting.result()["neutral_values"]
    values = [one["rewards"][0]["value"] for one in known]
    assert neutral == [pytest.approx((values[1] + values[2]) / 2)]
    alone = {"items": [{"id": FAILED, "group": "lone", "group_size": 2}], "deadline": 0.3}
    assert ask(url, "/v1/rewards", alone)["neutral_values"] == [BASE_RATE]


def test_members_without_an_id_are_told_apart_over_requests(url: str) -> None:
    """Each is the first of its own request, which says nothing of the group."""

    def given(number: int) -> dict[str, Any]:
        item = {"trajectory": record_of(trajectory(number)), "group": "inline", "group_size": 3}
        return ask(url, "/v1/rewards", {"items": [item], "deadline": 10})

    known = [given(number)["rewards"][0]["value"] for number in (0, 2)]
    assert given(1)["neutral_values"] == [pytest.approx(sum(known) / 2)]


@contextmanager
def gateway(status: int, body: bytes, retry_after: str) -> Iterator[tuple[str, list[str]]]:
    """Serve one answer: the address, and the paths that were asked for."""
    asked: list[str] = []

    class Gateway(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append(self.path)
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(status)
            self.send_header("Retry-After", retry_after)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with http_thread.serving(ThreadingHTTPServer(("127.0.0.1", 0), Gateway)) as address:
        yield address, asked


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (503, b'{"message": "no healthy upstream"}'),
        (502, b"<html>Bad Gateway</html>"),
        (502, b"null"),
    ],
)
def test_a_gateway_whose_server_is_away_is_an_abstention(status: int, body: bytes) -> None:
    with gateway(status, body, "Fri, 27 Nov 2026 19:00:00 GMT") as (address, _):
        asked = asyncio.run(RewardClient(address, deadline=0.5).ask("r0"))
    assert (asked.reward.value, asked.neutral_value) == (None, None)
    assert asked.reward.detail == f"{address}: it answered with status {status}"


@pytest.mark.parametrize(
    ("status", "body", "told"),
    [
        (404, b'{"detail": "Not Found"}', "it answered with status 404"),
        (200, b"{}", "the server is not  trajudge serve: check the address"),
    ],
)
def test_what_a_gateway_answers_is_no_reward(status: int, body: bytes, told: str) -> None:
    """What stands between trainer and server answers in forms of its own."""

    date = "Fri, 27 Nov 2026 19:00:00 GMT"
    with (
        gateway(status, body, date) as (address, _),
        pytest.raises(RewardUnavailable) as raised,
    ):
        asyncio.run(RewardClient(address, deadline=0.5).ask("r0"))
    assert str(raised.value) == f"{address}: {told}"


@pytest.mark.parametrize("told", ["0", "inf", "nan", "-1", "soon"])
def test_a_gateway_that_names_no_pause_is_asked_again_after_a_second(told: str) -> None:
    with gateway(503, b"null", told) as (address, asked):
        asyncio.run(RewardClient(address, deadline=2.5).ask("r0"))
        assert 2 <= len(asked) <= 3


def test_an_abstention_leaves_its_group_of_art() -> None:
    group = SimpleNamespace(trajectories=samples())
    kept = asyncio.run(trainers.art_group(group))
    assert kept is group
    assert [one.metadata["trajectory_id"] for one in group.trajectories] == ["r0", "r2"]
    assert all(isinstance(one.reward, float) for one in group.trajectories)
    lone = SimpleNamespace(trajectories=samples()[:2])
    assert asyncio.run(trainers.art_group(lone)) is None


def test_a_row_without_an_id_is_told_what_it_lacks() -> None:
    row = SimpleNamespace(metadata={}, info={})
    for asked, told in (
        (trainers.slime_reward(None, row), "a sample's metadata"),
        (trainers.art_group(SimpleNamespace(trajectories=[row])), "a trajectory's metadata"),
        (trainers.verifiers_reward(row), "a trace's info"),
    ):
        with pytest.raises(RewardUnavailable, match=f"^{told} without trajectory_id: give"):
            asyncio.run(asked)


def test_the_table_in_the_docs_lists_the_functions_of_all_trainers() -> None:
    page = (Path(__file__).parents[2] / "docs" / "trainers.md").read_text(encoding="utf-8")
    rows = page.split("|---|---|---|---|\n")[1].split("\n\n")[0].splitlines()
    listed = {name for row in rows for name in re.findall(r"`(\w+)`", row.split("|")[2])}
    defined = {
        node.name
        for node in ast.parse(Path(trainers.__file__).read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        and not node.name.startswith("_")
    }
    # That of verl is a class made on first use; the others are types that the functions use.
    helpers = {"RewardSource", "pushed_name"}
    assert listed == (defined - helpers) | {"TrajudgeRewardManager"}
