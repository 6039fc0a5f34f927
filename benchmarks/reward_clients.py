"""Rewards that trainers lose while the model fails and the server is killed.

``python -m benchmarks.reward_clients [--requests N] [--every SECONDS] [--out FILE]``

OpenRLHF's own client (of requirements-scale.txt) asks a reward server for N rewards of a fifth as
many trajectories. The model behind it answers 500 and 429 to some requests, hangs on others until
the call's own timeout, and refuses every tenth trajectory for good. The server is killed with
``kill -9`` every so many seconds and started again at once. Printed is how many rewards the client
lost, how many were null, how many failed judgments came as a number without ``abstained`` beside
it, and how many model calls were answered twice.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from tests.llm_replies import Incoming
from tests.llm_server import LlmServer
from tests.rewards.calibrated import calibration_file
from tests.rewards.cases import trajectory
from tests.rewards.server.conftest import Server, record_of
from tests.trainers import TRAINERS

ROOT = Path(__file__).parents[1]
BASE_RATE = 0.3
REFUSED = 10  # every so many trajectories
_FAULTS = {3: "500", 11: "429", 17: "hang"}  # by the ordinal of a request modulo 40


def troubled(incoming: Incoming) -> str | None:
    """Refuse some trajectories for good, and fail other requests for once."""
    if "Do task refused " in incoming.prompt:
        return "refusal"
    return _FAULTS.get(incoming.ordinal % 40)


def name_of(number: int, distinct: int) -> str:
    return f"r{number % distinct}"


class KilledServer:
    """A reward server on one port, killed every ``every`` seconds and started again."""

    def __init__(self, folder: Path, model: str, every: float) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        path = calibration_file(folder / "map.json", "simplified-axtree:mock", {"model": "mock"})
        whole = json.loads(path.read_text())
        ends = {"low": 0, "high": 0.1, "n": 10, "tasks": 5, "mean_score": 0, "rate": BASE_RATE}
        whole["calibrations"][0]["raw"]["bins"] = [{**ends, "rate_low": None, "rate_high": None}]
        path.write_text(json.dumps(whole))
        self.words = [
            *(sys.executable, "-m", "trajudge", "serve", "--port", str(self.port)),
            *("--store", str(folder / "store"), "--cache", str(folder / "replies.sqlite")),
            *("--model", "mock", "--representation", "axtree", "--calibration-file", str(path)),
            *("--base-url", f"{model}/v1", "--timeout", "3", "--deadline", "60"),
        ]
        self.url = f"http://127.0.0.1:{self.port}"
        self.every, self.kills, self.away = every, 0, list[float]()
        self.process = self._start()
        self._end = threading.Event()

    def _start(self) -> subprocess.Popen[bytes]:
        begun = time.monotonic()
        process = subprocess.Popen(
            self.words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        assert process.stdout
        process.stdout.readline()
        self.away.append(time.monotonic() - begun)
        return process

    def kill_until(self, client: subprocess.Popen[str]) -> None:
        """Kill and start until the client has ended."""
        while True:
            try:
                client.wait(timeout=self.every)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
                self.kills += 1
                self.process = self._start()
            else:
                return


async def ask_all(url: str, count: int, distinct: int, at_once: int) -> list[dict[str, Any]]:
    """What OpenRLHF's client makes of the rewards, so many of them asked for at once."""
    from types import SimpleNamespace

    from openrlhf.utils.agent import SingleTurnAgentExecutor

    from tests.rewards.openrlhf_client import OneAnswer, Words

    executor = SingleTurnAgentExecutor(f"{url}/get_reward")
    settings = SimpleNamespace(max_tokens=4, logprobs=None)
    free = asyncio.Semaphore(at_once)

    async def ask(number: int) -> dict[str, Any]:
        async with free:
            name = name_of(number, distinct)
            told = await executor.execute("p", name, settings, 64, Words(), OneAnswer())
        return {"name": name, "reward": told["reward"], "logs": told["extra_logs"]}

    return list(await asyncio.gather(*(ask(number) for number in range(count))))


def measure(count: int, every: float, packages: Path, folder: Path, at_once: int) -> dict[str, Any]:
    distinct = max(1, count // 5)
    with LlmServer(script=troubled, latency=0.1, record=0) as model:
        server = KilledServer(folder, model.url, every)
        try:
            asking = Server(server.url, server.process)  # type: ignore[arg-type]
            for number in range(distinct):
                task = f"refused {number}" if number % REFUSED == 0 else str(number)
                item = {"id": f"r{number}", "trajectory": record_of(trajectory(task))}
                assert asking.ask("/v1/trajectories", item).status == 201
            words = [str(packages), server.url, str(count), str(distinct), str(at_once)]
            began = time.monotonic()
            client = subprocess.Popen(
                [sys.executable, "-m", "benchmarks.reward_clients", "--client", *words],
                cwd=ROOT,
                stdout=(folder / "answers.json").open("w"),
                text=True,
            )
            server.kill_until(client)
            seconds = time.monotonic() - began
        finally:
            server.process.kill()
        again = model.stats.answered_again
    answers = json.loads((folder / "answers.json").read_text().splitlines()[-1])
    told = _counted(answers)
    return {
        **{"requests": count, "trajectories": distinct, "seconds": round(seconds, 1)},
        **{"kills": server.kills, "longest start": round(max(server.away), 2), **told},
        "answered twice": again,
    }


def _counted(answers: list[dict[str, Any]]) -> dict[str, int]:
    lost = [one for one in answers if one["reward"] is None]
    known = [one for one in answers if one["reward"] is not None]
    nulls = sum(value is None for one in known for value in one["reward"])
    failed = [one for one in known if int(one["name"][1:]) % REFUSED == 0]
    unmarked = sum(one["logs"]["abstained"] != [1.0] for one in failed)
    return {"lost": len(lost), "null": nulls, "failed": len(failed), "unmarked": unmarked}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--requests", type=int, default=10_000, metavar="N")
    parser.add_argument("--every", type=float, default=20.0, metavar="SECONDS")
    parser.add_argument("--at-once", type=int, default=48, metavar="N", help="of the client")
    parser.add_argument("--out", type=Path, help="write the figures as JSON")
    parser.add_argument("--client", nargs=5, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.client:
        packages, url, *numbers = options.client
        sys.path.append(packages)
        found = asyncio.run(ask_all(url, *map(int, numbers)))
        sys.stdout.write("\n" + json.dumps(found))
        return
    (packages,) = TRAINERS.python().parents[1].glob("lib/python*/site-packages")
    with tempfile.TemporaryDirectory() as folder:
        told = measure(options.requests, options.every, packages, Path(folder), options.at_once)
    print(json.dumps(told))
    if options.out:
        options.out.write_text(json.dumps(told, indent=1))


if __name__ == "__main__":
    main()
