"""What the reward server costs beside a bare echo of aiohttp, and whether its memory grows.

``python -m benchmarks.reward_server [--rounds N] [--seconds S] [--items N]``

Both servers are processes of their own, asked alternately by one client process over kept
connections; every reward is in the server's caches. Calls have the form of OpenRLHF's (4 kB, one
item) and of the server's own protocol (32 items). Printed are calls or items a second, their ratio
to the echo in the same round (median and range), latency and CPU at half of that load, asked
alternately, and the server's memory while N items are asked for.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import aiohttp
import numpy as np
import orjson
from aiohttp import web

from tests.llm_server import LlmServer
from tests.rewards.cases import calibration_file, trajectory
from tests.rewards.server.conftest import Server, record_of, serving

ROOT = Path(__file__).parents[1]
DISTINCT = 200  # trajectories
AT_ONCE = 16  # calls
MANY = 32  # items of a call
WARM = 0.1  # of the items, before memory is looked at


def echo() -> None:
    """Serve the body back, until killed."""

    async def answer(request: web.Request) -> web.Response:
        content = orjson.loads(await request.read())
        return web.Response(body=orjson.dumps(content), content_type="application/json")

    async def run() -> None:
        application = web.Application()
        application.router.add_post("/", answer)
        runner = web.AppRunner(application, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        print(f"http://127.0.0.1:{runner.addresses[0][1]}", flush=True)
        await asyncio.Event().wait()

    asyncio.run(run())


class Calls:
    """Calls to one address whose bodies are sent in turn."""

    def __init__(self, url: str, bodies: Sequence[bytes]) -> None:
        self.url, self.bodies = url, bodies
        self.seconds: list[float] = []
        self.count = 0

    async def one(self, session: aiohttp.ClientSession) -> None:
        body = self.bodies[self.count % len(self.bodies)]
        self.count += 1
        began = time.perf_counter()
        head = {"Content-Type": "application/json"}
        async with session.post(self.url, data=body, headers=head) as answer:
            await answer.read()
            assert answer.status == 200, await answer.text()
        self.seconds.append(time.perf_counter() - began)


async def rate(calls: Calls, seconds: float) -> float:
    """Calls a second, as fast as ``AT_ONCE`` of them go."""
    async with aiohttp.ClientSession() as session:
        end = time.perf_counter() + seconds
        before, began = calls.count, time.perf_counter()

        async def on() -> None:
            while time.perf_counter() < end:
                await calls.one(session)

        await asyncio.gather(*(on() for _ in range(AT_ONCE)))
        return (calls.count - before) / (time.perf_counter() - began)


async def latency(calls: Calls, per_second: float, seconds: float) -> np.ndarray:
    """Milliseconds of calls that begin at fixed times."""
    calls.seconds = []
    async with aiohttp.ClientSession() as session:
        began, tasks = time.perf_counter(), []
        for number in range(int(per_second * seconds)):
            await asyncio.sleep(max(0.0, began + number / per_second - time.perf_counter()))
            tasks.append(asyncio.create_task(calls.one(session)))
        await asyncio.gather(*tasks)
    return 1000 * np.array(calls.seconds)


async def repeat(calls: Calls, count: int) -> None:
    async with aiohttp.ClientSession() as session:

        async def on() -> None:
            for _ in range(count // AT_ONCE):
                await calls.one(session)

        await asyncio.gather(*(on() for _ in range(AT_ONCE)))


def memory(process: int) -> float:
    """Resident megabytes of a process."""
    status = Path(f"/proc/{process}/status").read_text()
    (line,) = [one for one in status.splitlines() if one.startswith("VmRSS")]
    return int(line.split()[1]) / 1024


def cpu(process: int) -> float:
    """Seconds of CPU that a process took."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def push(server: Server) -> None:
    for number in range(DISTINCT):
        item = {"id": f"r{number}", "trajectory": record_of(trajectory(number))}
        assert server.ask("/v1/trajectories", item).status == 201
        assert server.ask("/v1/rewards", {"items": [{"id": f"r{number}"}]}).status == 200


def openrlhf_bodies() -> list[bytes]:
    text = "w" * 2_000
    return [
        orjson.dumps({"query": [text], "prompts": [text], "labels": [f"r{number}"]})
        for number in range(DISTINCT)
    ]


def own_bodies() -> list[bytes]:
    places = [[(start + i) % DISTINCT for i in range(MANY)] for start in range(0, DISTINCT, MANY)]
    return [orjson.dumps({"items": [{"id": f"r{n}"} for n in numbers]}) for numbers in places]


def measure(server: Server, echo: int, echo_url: str, options: argparse.Namespace) -> None:
    bare = Calls(echo_url, openrlhf_bodies())
    single = Calls(f"{server.url}/get_reward", openrlhf_bodies())
    many = Calls(f"{server.url}/v1/rewards", own_bodies())
    rates = np.array(
        [
            [asyncio.run(rate(calls, options.seconds)) for calls in (bare, single, many)]
            for _ in range(options.rounds)
        ]
    )
    rates[:, 2] *= MANY
    for name, place in (("one item a call", 1), (f"{MANY} items a call", 2)):
        ratio = rates[:, place] / rates[:, 0]
        print(
            f"{name}: {np.median(rates[:, place]):,.0f} items/s, "
            f"{np.median(rates[:, 0]):,.0f} echoes/s, "
            f"ratio {np.median(ratio):.2f} ({ratio.min():.2f} to {ratio.max():.2f})"
        )
    half = float(np.median(rates[:, 1])) / 2
    sides = {"reward": (single, server.process.pid), "echo": (bare, echo)}
    rows = {name: np.empty((options.rounds, 3)) for name in sides}  # p50, p99, CPU of a call, in ms
    for number in range(options.rounds):
        for name, (calls, process) in sides.items():
            before = cpu(process)
            found = asyncio.run(latency(calls, half, options.seconds))
            spent = 1000 * (cpu(process) - before) / len(found)
            rows[name][number] = (*np.quantile(found, [0.5, 0.99]), spent)
    for name, row in rows.items():
        p50, p99, spent = np.median(row, axis=0)
        print(f"{name} at {half:,.0f}/s: p50 {p50:.2f} ms, p99 {p99:.2f} ms, CPU {spent:.3f} ms")
    p50, p99, spent = np.median(rows["reward"] / rows["echo"], axis=0)
    print(f"ratios in the same round: p50 {p50:.2f}, p99 {p99:.2f}, CPU {spent:.2f}")
    sizes = []
    for share in (WARM, *[(1 - WARM) / 9] * 9):
        asyncio.run(repeat(many, int(options.items * share / MANY)))
        sizes.append(memory(server.process.pid))
    shown = ", ".join(f"{size:.0f}" for size in sizes)
    print(f"memory while {options.items:,} items were asked for, in MB: {shown}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5, metavar="N")
    parser.add_argument("--seconds", type=float, default=4.0, metavar="S", help="of a measurement")
    parser.add_argument("--items", type=int, default=1_000_000, metavar="N")
    parser.add_argument("--echo", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.echo:
        echo()
        return
    command = [sys.executable, "-m", "benchmarks.reward_server", "--echo"]
    with (
        tempfile.TemporaryDirectory() as name,
        LlmServer(record=0) as model,
        subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as bare,
    ):
        path = calibration_file(
            Path(name) / "map.json", "simplified-axtree:mock", {"model": "mock"}
        )
        words = ["--model", "mock", "--representation", "axtree", "--calibration-file", str(path)]
        words += ["--base-url", f"{model.url}/v1", "--audit-share", "0", "--neutral-value", "0.5"]
        assert bare.stdout
        echo_url = bare.stdout.readline().strip()
        try:
            with serving(Path(name), *words) as server:
                push(server)
                measure(server, bare.pid, echo_url, options)
        finally:
            bare.kill()


if __name__ == "__main__":
    main()
