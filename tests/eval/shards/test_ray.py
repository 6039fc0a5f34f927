"""Actors of a real Ray share a run, one of them killed."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from subprocess import PIPE

import orjson
import pytest

from tests.eval.shards.sharing import (
    RUNS,
    check_same,
    ended,
    has_seen,
    merged,
    requests,
    words,
    work,
)
from tests.llm_server import LlmServer
from tests.trainers import packages
from tests.waiting import wait_until
from trajudge.eval.cli import main
from trajudge.eval.runs.workers import workers_for

__all__ = ["packages"]  # a fixture

ROOT = Path(__file__).parents[3]


@pytest.fixture
def settings(packages: Path) -> Mapping[str, str]:
    """The environment of a driver: Ray finds its own packages behind ours in every process."""
    path = os.pathsep.join((str(ROOT), str(packages)))
    return {"PYTHONPATH": path, "RAY_ADDRESS": "local"}


def holder(run: Path) -> int | None:
    """The process that works on a shard now, from its claim (``host-PID-random``)."""
    for claim in sorted(run.glob("claims/*.json")):
        held = orjson.loads(claim.read_bytes())
        if held["expires"]:
            return int(held["worker"].split("-")[-2])
    return None


@pytest.mark.slow
def test_actors_of_ray_finish_a_run_though_one_is_killed(
    settings: Mapping[str, str],
    server: LlmServer,
    alone: Path,
    tmp_path: Path,
) -> None:
    run = tmp_path / "run"
    options = words(server, tmp_path / "cache.sqlite")
    own = ("--ray", "2", "--shard-size", "15", "--claim", "1.5")
    command = [sys.executable, "-m", "trajudge", *work(str(run), *own, *options)]
    driver = subprocess.Popen(
        command, cwd=ROOT, env={**os.environ, **settings}, stdout=PIPE, stderr=PIPE
    )
    wait_until(partial(has_seen, server, 20), driver)
    pid = holder(run)
    assert pid is not None
    assert pid != driver.pid, "an actor is a process of its own"
    os.kill(pid, signal.SIGKILL)
    assert "all are finished" in ended(driver)
    again = sum(requests(server).values()) - len(requests(server))
    assert again <= workers_for(4), "no more than was in flight at the kill"
    assert len(requests(server)) == RUNS
    shown = merged(str(run), tmp_path / "merged")
    assert "0 replies paid for again" in shown
    check_same(tmp_path / "merged", alone)


@pytest.mark.slow
def test_ray_data_reads_a_run_as_the_docs_say(
    settings: Mapping[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run = ("--judge", "heuristic", "--data", "sample", "--out", "runs/merged")
    assert main(["judge", *run]) == 0
    text = (ROOT / "docs" / "sharding.md").read_text()
    (code,) = re.findall(r"```\n(import ray\.data\n.*?)```", text, re.DOTALL)
    start = "import ray\nray.init(num_cpus=2, include_dashboard=False)\n"
    env = {**os.environ, **settings}
    subprocess.run([sys.executable, "-c", start + code], check=True, env=env, capture_output=True)
    rows = [*map(orjson.loads, Path("runs/merged/judgments.jsonl").read_bytes().splitlines())]
    parts = [line for part in Path("accepted").iterdir() for line in part.read_bytes().splitlines()]
    expected = [{"key": row["key"], "score": row["score"]} for row in rows if row["success"]]
    assert expected
    assert sorted(parts) == sorted(map(orjson.dumps, expected))


def test_without_ray_a_sentence_names_the_extra(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    share = ("work", "--shared", str(tmp_path / "run"), "--judge", "heuristic", "--data", "sample")
    assert main(["run", *share, "--ray", "2"]) == 2
    assert "pip install 'trajudge[ray]'" in capsys.readouterr().err
