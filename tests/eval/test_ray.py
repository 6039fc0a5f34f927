"""Runs whose judgments are made by actors of a real Ray; some are killed, and the driver too."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from subprocess import PIPE

import pytest

from tests.eval.unattributed import Till
from tests.llm_replies import Incoming
from tests.llm_server import LlmServer
from tests.pinned import pinned_python
from tests.waiting import wait_until
from trajudge.eval.cli import main
from trajudge.util.machine import PinnedPackage

ROOT = Path(__file__).parents[2]
RAY = PinnedPackage(
    name="ray",
    pins=Path(__file__).with_name("ray.txt"),
    module="msgpack",  # Ray itself needs what the tests have
    variable="TRAJUDGE_RAY_PYTHON",
)
# A cluster that lasts until its standard input ends.
CLUSTER = """
import sys, ray
ray.init(address="local", include_dashboard=False, num_cpus=4, log_to_driver=False)
print(ray.get_runtime_context().gcs_address, flush=True)
sys.stdin.read()
"""
AT_ONCE = 4
SAME = ("judgments.jsonl", "labels.jsonl", "rewards.jsonl", "results.json", "results.csv")


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, str]]:
    """What the environment of a driver says: where Ray's packages are, the cluster and its key."""
    (packages,) = pinned_python(RAY).parents[1].glob("lib/python*/site-packages")
    key = tmp_path_factory.mktemp("ray") / "token"
    key.write_text(secrets.token_hex(32))
    settings = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join((str(ROOT), str(packages))),
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN_PATH": str(key),
        "RAY_USAGE_STATS_ENABLED": "0",
    }
    command = [sys.executable, "-c", CLUSTER]
    with subprocess.Popen(
        command, cwd=ROOT, env=settings, stdin=PIPE, stdout=PIPE, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdout
        assert process.stdin
        yield {**settings, "RAY_ADDRESS": process.stdout.readline().decode().strip()}
        process.stdin.close()


def words(server: LlmServer, folder: Path, *more: str) -> list[str]:
    return [
        *("judge", "--data", "sample", "--model", "gpt-4o", "--base-url", f"{server.url}/v1"),
        *("--concurrency", str(AT_ONCE), "--cache", str(folder / "replies.sqlite")),
        *("--out", str(folder / "run"), *more),
    ]


def start(cluster: Mapping[str, str], options: list[str]) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "trajudge", *options, "--ray", "2"]
    return subprocess.Popen(command, cwd=ROOT, env=cluster, stdout=PIPE, stderr=PIPE)


def ended(driver: subprocess.Popen[bytes], code: int = 0) -> str:
    shown, said = driver.communicate(timeout=120)
    assert driver.returncode == code, said.decode()
    return (shown + said).decode()


def actors(run: Path) -> list[int]:
    """The processes that run and were named in the run's log."""
    log = run / "run.log"
    lines = log.read_text().splitlines() if log.is_file() else []
    named = [int(line.rpartition(" ")[2]) for line in lines if "actor in process" in line]
    return [pid for pid in named if Path(f"/proc/{pid}").exists()]


def some_failing(incoming: Incoming) -> str | None:
    """A fault by the request's content, so that every run meets the same ones."""
    faults = ("content-policy", "length", "refusal", "overflow")
    number = int(incoming.digest[:4], 16) % 20
    return faults[number] if number < len(faults) else None


@pytest.mark.slow
def test_actors_and_the_driver_may_die(cluster: Mapping[str, str], tmp_path: Path) -> None:
    more = ("--samples", "2", "--max-failures", "100%", "--yes")
    alone, shared = tmp_path / "alone", tmp_path / "shared"
    run = shared / "run"
    with LlmServer(latency=0.1, script=some_failing, record=10_000) as server:
        assert main(words(server, alone, *more)) == 0
        there = Counter(seen.body for seen in server.seen)
        server.seen.clear()
        driver = start(cluster, words(server, shared, *more))
        for enough in (15, 40, 65):
            wait_until(lambda: len(server.seen) >= enough and actors(run), driver)  # noqa: B023
            os.kill(actors(run)[-1], signal.SIGKILL)
        wait_until(lambda: len(server.seen) >= 110, driver)
        assert len(there) > 120, "the kills fall into the run"
        driver.kill()
        driver.communicate()
        before = len(server.seen)
        shown = ended(start(cluster, words(server, shared, *more)))
        asked = Counter(seen.body for seen in server.seen)
    assert len(server.seen) > before
    assert asked.keys() == there.keys()
    assert sum(asked.values()) - len(asked) <= 4 * AT_ONCE, "what was in flight at each kill"
    assert "Coverage" in shown
    for name in SAME:
        assert (run / name).read_bytes() == (alone / "run" / name).read_bytes(), name


@pytest.mark.slow
def test_rates_and_calls_at_once_hold_over_all_actors(
    cluster: Mapping[str, str], tmp_path: Path
) -> None:
    """The server refuses what comes faster than 1,200 a minute."""
    with LlmServer(latency=0.05, rpm=1_200) as server:
        ended(start(cluster, words(server, tmp_path, "--rpm", "1200", "--limit", "60")))
    assert server.stats.answered == 60
    assert server.stats.refused == 0
    assert server.stats.max_in_flight <= AT_ONCE


@pytest.mark.slow
def test_dollars_hold_over_all_actors(cluster: Mapping[str, str], tmp_path: Path) -> None:
    prices = tmp_path / "prices.toml"
    prices.write_text('[models."gpt-4o"]\ninput = 250.0\noutput = 1000.0\n')
    till = Till()
    with LlmServer(text=till, latency=0.05) as server:
        more = ("--prices", str(prices), "--max-cost", "20", "--max-failures", "100%")
        shown = ended(start(cluster, words(server, tmp_path, *more)), code=1)
        paid = sum(till.charged)
        assert 10 < paid <= 20
        assert "--max-cost 20" in " ".join(shown.split()), "wherever its line breaks"
        ended(start(cluster, words(server, tmp_path, *more)), code=1)
    assert sum(till.charged) <= 20, "of all sessions"


@pytest.mark.slow
def test_a_judge_without_a_model(cluster: Mapping[str, str], tmp_path: Path) -> None:
    options = ["judge", "--judge", "heuristic", "--data", "sample", "--out"]
    assert main([*options, str(tmp_path / "alone")]) == 0
    in_python = f"trajudge.judge('sample', 'heuristic', out={str(tmp_path / 'shared')!r}, ray=2)"
    command = [sys.executable, "-c", f"import trajudge; {in_python}"]
    ended(subprocess.Popen(command, cwd=ROOT, env=cluster, stdout=PIPE, stderr=PIPE))
    for name in (*SAME, "manifest.json"):
        here, there = ((tmp_path / run / name).read_bytes() for run in ("alone", "shared"))
        assert here == there, name


def test_ray_is_an_extra_and_no_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    own = ["judge", "--judge", "heuristic", "--data", "sample", "--out", str(tmp_path / "run")]
    assert main([*own, "--ray", "2"]) == 2
    assert "pip install 'trajudge[ray]'" in capsys.readouterr().err
    assert main([*own, "--ray", "2", "--batch"]) == 2
    assert "--ray spreads live calls" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()
