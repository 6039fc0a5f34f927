"""Judging the published benchmark as it is fetched: through the real client of the hub, from a hub
on loopback, with a model on loopback that tells which pictures it was shown."""

from __future__ import annotations

import json
from io import BytesIO
from pathlib import Path

import numpy as np
import orjson
import pytest
from PIL import Image

from tests.command_words import instead
from tests.eval.judge_replies import assumed
from tests.hub_server import COMMIT, Hub, serve
from tests.llm_replies import Incoming, verdict_text
from tests.llm_server import LlmServer
from tests.worlds import agentrewardbench_like as like
from trajudge.eval.judge import main
from trajudge.eval.store.run_folder import read_judgments, read_manifest
from trajudge.judges.model import Judgment

pytestmark = pytest.mark.usefixtures("own_folder")

STEPS = 18
HEADER = (
    "annotator_name,benchmark,task_id,model_name,exp_name,trajectory_success,"
    "trajectory_side_effect,trajectory_optimality,trajectory_looping\n"
)
TASK = "webarena.100001"
WHERE = f"webarena/{like.AGENT}"


def published() -> Hub:
    """One trajectory of 18 steps, every screenshot another."""
    made = like.trajectory(np.random.default_rng(0), task_id=TASK, size=9_000, n_steps=STEPS)
    hub = Hub()
    hub.files[f"cleaned/{WHERE}/exp/{TASK}.json"] = orjson.dumps(made)
    for step in range(STEPS):
        buffer = BytesIO()
        Image.new("L", (2, 2), step).save(buffer, "PNG")
        hub.files[shot(step)] = buffer.getvalue()
    row = f"A,webarena,{TASK},{like.AGENT},exp,Successful,No,2. Suboptimal,No\n"
    hub.files["annotations.csv"] = (HEADER + row).encode()
    return hub


def shot(step: int) -> str:
    return f"screenshots/{WHERE}/{TASK}/screenshot_step_{step}.png"


def judge(hub: Hub, monkeypatch: pytest.MonkeyPatch, *words: str) -> tuple[Judgment, list[int]]:
    """The judgment, and how many pictures each request to the model held."""
    monkeypatch.setenv("HF_ENDPOINT", hub.endpoint)
    monkeypatch.setenv("TRAJUDGE_DATA", str(Path("data").absolute()))

    def reply(incoming: Incoming) -> str:
        prompt = incoming.prompt
        of_four = "<loop>" in prompt or '"optimality": 1, 2, 3 or 4' in prompt
        return verdict_text(prompt) if of_four else assumed(incoming)

    with LlmServer(text=reply) as server:
        where = ["--data", "agentrewardbench", "--annotations", "agentrewardbench:data"]
        asked = ["--model", "gpt-4o", "--base-url", f"{server.url}/v1"]
        told = ["--split", "all", *([] if "heuristic" in words else asked)]
        Path("data").mkdir(exist_ok=True)
        Path("data/annotations.csv").write_bytes(hub.files["annotations.csv"])
        main(instead([*where, *told, "--out", "run"], words))
        seen = [json.dumps(one.payload).count("data:image/png") for one in server.seen]
    (found,) = read_judgments(Path("run"))
    return found, seen


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "fetched", "shown"),
    [
        # Key points, a call for every screenshot, the verdict on all of them.
        (["webjudge"], range(STEPS), [0, *[1] * STEPS, STEPS]),
        (["webvoyager", "--judge-option", "screenshots=3"], [15, 16, 17], [3]),
        (["webvoyager"], range(3, STEPS), [15]),
        (["simplified"], [], [0]),
        (["simplified", "--representation", "both"], [17], [1]),
        (["simplified", "--representation", "screenshot", "--judge-option", "frames=3"], None, [3]),
        (["heuristic"], [], []),
    ],
)
def test_a_judge_is_fetched_and_shown_exactly_what_it_needs(
    monkeypatch: pytest.MonkeyPatch, words: list[str], fetched: range | list[int], shown: list[int]
) -> None:
    with serve(published()) as hub:
        judgment, seen = judge(hub, monkeypatch, "--judge", *words)
    assert judgment.status == "ok"
    steps = [0, 8, 17] if fetched is None else fetched
    pictures = [path for path in hub.fetched() if path.endswith(".png")]
    assert sorted(pictures) == sorted(map(shot, steps))
    assert sorted(seen) == sorted(shown)


@pytest.mark.parametrize("name", ["webjudge", "webvoyager"])
def test_a_picture_that_the_hub_lacks_skips_the_judges_that_need_it(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    hub = published()
    del hub.files[shot(5)]
    with serve(hub):
        judgment, seen = judge(hub, monkeypatch, "--judge", name)
    assert judgment.status == "skipped"
    assert "screenshot of step 6: " in judgment.detail
    assert seen == []


def test_a_run_records_the_revision_that_it_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the copy that was fetched, and of the same copy named as a folder."""
    monkeypatch.setenv("TRAJUDGE_DATA", str(Path("data").absolute()))
    with serve(published()) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.endpoint)
        main(
            ["--data", "agentrewardbench", "--judge", "heuristic", "--split", "all", "--out", "run"]
        )
    assert read_manifest(Path("run"))["revision"] == COMMIT
    copy = ["--data", "agentrewardbench:data", "--annotations", "agentrewardbench:data"]
    assert main([*copy, "--judge", "heuristic", "--split", "all", "--out", "again"]) == 0
    assert read_manifest(Path("again"))["revision"] == COMMIT


def test_a_part_of_the_benchmark_on_the_disk_is_not_taken_for_the_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with serve(published()) as hub:
        assert judge(hub, monkeypatch, "--judge", "aer-v")[0].status == "ok"
        words = ["--data", "agentrewardbench:data", "--out", "other", "--judge", "webjudge"]
        _, seen = judge(hub, monkeypatch, *words)
    (judgment,) = read_judgments(Path("other"))
    assert judgment.status == "skipped"
    assert "--screenshots all" in judgment.detail
    assert seen == []
