"""Runs that several workers share: throughput, the common rate, and what a kill costs.

    python -m benchmarks.shards                                # all, about 5 minutes
    python -m benchmarks.shards --only throughput --workers 1 2 4
    python -m benchmarks.shards --only rate --seconds 60
    python -m benchmarks.shards --only kills --kills 20
    python -m benchmarks.shards --only size --judgments 1000000    # not in all; about 40 minutes

Workers are processes of their own, each with a cache of its own, and share a folder; the model is a
server on loopback that answers after 200 ms. ``throughput``: judgments a second in the middle of a
run, over those of one worker times their number. ``rate``: requests that the server saw under
``--rpm``, while workers join and are killed, over what the rate allows. ``kills``: a worker is
killed at a random moment, another goes on, and so forth; requests that were asked again, and
whether the merged run has the bytes of a run on one machine. ``size``:
synthetic trajectories (those of ``large_runs``) are judged by two workers through the scripted
adapter, one of which is killed ``--kills`` times; the peaks of workers and of the merge, and
whether the bytes are those of one run.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from benchmarks.large_runs import command as judge_words
from tests.eval.judge_command import SAMPLE
from tests.llm_server import LlmServer

LATENCY = 0.2
AT_ONCE = 16
RPM = 1_200


def command(server: LlmServer, run: Path, cache: Path, *more: str) -> list[str]:
    return [
        *(sys.executable, "-m", "trajudge", "run", "work", "--shared", str(run)),
        *("--data", "sample", "--model", "gpt-4o", "--base-url", f"{server.url}/v1"),
        *("--concurrency", str(AT_ONCE), "--cache", str(cache), *more),
    ]


def started(words: Sequence[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def sampled(server: LlmServer, alive: Callable[[], bool]) -> list[tuple[float, int]]:
    """Times and numbers of requests so far, looked at every 50 ms."""
    rows = []
    while alive():
        rows.append((time.monotonic(), server.stats.requests))
        time.sleep(0.05)
    return [*rows, (time.monotonic(), server.stats.requests)]


def judged_a_second(workers: int, samples: int, folder: Path) -> float:
    """Let so many workers make ``samples`` judgments of each trajectory; return the rate."""
    with LlmServer(latency=LATENCY) as server:
        words = ("--samples", str(samples), "--shard-size", "10")
        running = [
            started(command(server, folder / "run", folder / f"{n}.sqlite", *words))
            for n in range(workers)
        ]
        rows = sampled(server, lambda: any(one.poll() is None for one in running))
        assert all(one.returncode == 0 for one in running)
    total = rows[-1][1]
    # Without the first and the last tenth: workers start and end at different times.
    times = np.interp([0.1 * total, 0.9 * total], [n for _, n in rows], [at for at, _ in rows])
    return float(0.8 * total / (times[1] - times[0]))


def throughput(workers: Sequence[int]) -> None:
    alone = 0.0
    for number in workers:
        with tempfile.TemporaryDirectory() as name:
            rate = judged_a_second(number, 6 * number, Path(name))
        alone = alone or rate / number
        ideal = number * AT_ONCE / LATENCY
        print(
            f"{number} workers: {rate:7.1f} judgments a second, {rate / ideal:.2f} of the ideal, "
            f"{rate / (number * alone):.2f} of {number} times one   goal 0.9",
            flush=True,
        )


def rate(seconds: float, rng: np.random.Generator) -> None:
    """Workers come and are killed; the rate of all stays."""
    with tempfile.TemporaryDirectory() as name, LlmServer(latency=LATENCY) as server:
        folder, count = Path(name), 0
        running: list[subprocess.Popen[bytes]] = []
        words = ("--samples", "40", "--shard-size", "5", "--rpm", str(RPM), "--claim", "5")
        rows: list[tuple[float, int]] = []
        begun = 0.0
        following = 0.0
        while not begun or time.monotonic() < begun + seconds:
            now = time.monotonic()
            if now >= following:
                if len(running) >= 3:
                    victim = running.pop(int(rng.integers(len(running))))
                    victim.kill()
                    victim.wait()
                cache = folder / f"{count}.sqlite"
                running.append(started(command(server, folder / "run", cache, *words)))
                count += 1
                following = now + 8
            if not begun and server.stats.requests >= RPM / 60:
                begun = now
            if begun:
                rows.append((now, server.stats.requests))
            time.sleep(0.05)
        for one in running:
            one.kill()
            one.wait()
    took, sent = rows[-1][0] - rows[0][0], rows[-1][1] - rows[0][1]
    share = sent / (took * RPM / 60)
    print(
        f"{sent} requests in {took:.1f} s, {count} workers joined, {max(0, count - 3)} were "
        f"killed: {share:.3f} of {RPM} a minute   goal 0.98 to 1.02",
        flush=True,
    )


def kills(count: int, rng: np.random.Generator) -> None:
    """Kill a worker ``count`` times, then let one end; compare with a run on one machine."""
    with tempfile.TemporaryDirectory() as name, LlmServer(latency=LATENCY) as server:
        folder = Path(name)
        words = ("--samples", "3", "--shard-size", "20", "--claim", "1.5")
        for number in range(count):
            cache = folder / f"{number}.sqlite"
            one = started(command(server, folder / "run", cache, *words))
            before = server.stats.requests
            until = before + int(rng.integers(1, 25))
            while server.stats.requests < until and one.poll() is None:
                time.sleep(0.002)
            one.send_signal(signal.SIGKILL)
            one.wait()
        one = started(command(server, folder / "run", folder / "last.sqlite", *words))
        assert one.wait() == 0
        requests = server.stats.requests
        again = requests - 3 * SAMPLE  # one request a judgment
        merged, alone = folder / "merged", folder / "alone"
        trajudge = [sys.executable, "-m", "trajudge"]
        merge = ["run", "merge", "--shared", str(folder / "run"), "--out", str(merged)]
        assert started([*trajudge, *merge]).wait() == 0
        judge = command(server, folder, folder / "alone.sqlite", "--samples", "3")[7:]
        assert started([*trajudge, "judge", *judge, "--out", str(alone)]).wait() == 0
        one_run, other = (folder / "judgments.jsonl" for folder in (merged, alone))
        same = one_run.read_bytes() == other.read_bytes()
    print(
        f"{count} kills: {again} of {requests} requests asked again ({again / max(1, count):.1f} a "
        f"kill, at most {AT_ONCE + AT_ONCE // 2}); same bytes as one machine: {same}",
        flush=True,
    )


def ended(words: Sequence[str]) -> tuple[str, float, float]:
    """Run a command to its end; what it printed, its seconds, and MB at its peak."""
    begun = time.monotonic()
    with tempfile.TemporaryFile() as output:
        one = subprocess.Popen(words, stdout=output, stderr=output)
        megabytes = peak_of(one)
        output.seek(0)
        text = output.read().decode()
    assert one.returncode == 0, text[-900:]
    return text, time.monotonic() - begun, megabytes


def peak_of(process: subprocess.Popen[bytes]) -> float:
    """Wait for a process; MB at its peak, as the kernel counted them."""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_maxrss / 1e3


def size(judgments: int, count: int, rng: np.random.Generator) -> None:
    """Two workers on a large run, one of them killed again and again; the peaks and the bytes."""
    trajudge = [sys.executable, "-m", "trajudge"]
    with tempfile.TemporaryDirectory() as name:
        base = Path(name)
        data, run, merged = base / "data", base / "run", base / "merged"
        # In a process of its own: what this one had in memory would count as its children's peak.
        written = f"make_data(Path({str(data)!r}), {judgments})"
        code = f"from pathlib import Path; from benchmarks.large_runs import make_data; {written}"
        subprocess.run([sys.executable, "-c", code], check=True)
        own = judge_words(base, "alone")
        shared = own[: own.index("--cache")]  # a cache for each worker

        def worker(number: int) -> subprocess.Popen[bytes]:
            cache = ["--cache", str(base / f"{number}.sqlite"), "--claim", "3"]
            return started([*trajudge, "run", "work", "--shared", str(run), *shared, *cache])

        begun, peaks = time.monotonic(), []
        steady, killed = worker(0), worker(1)
        for number in range(count):
            time.sleep(float(rng.uniform(0, judgments * 1.2e-3 / count)))
            killed.kill()
            peaks.append(peak_of(killed))
            killed = worker(2 + number)
        peaks += [peak_of(steady), peak_of(killed)]
        took = time.monotonic() - begun
        assert (steady.returncode, killed.returncode) == (0, 0)
        print(
            f"{judgments:,} judgments by 2 workers, {count} kills: {took:.0f} s, worker's peak "
            f"{max(peaks):.0f} MB   goal 1,500",
            flush=True,
        )
        text, took, peak = ended(
            [*trajudge, "run", "merge", "--shared", str(run), "--out", str(merged)]
        )
        (said,) = (line for line in text.splitlines() if "changed hands" in line)
        print(f"merge: {took:.0f} s, peak {peak:.0f} MB   goal 1,500; {said.strip()}", flush=True)
        _, took, peak = ended([*trajudge, "judge", *own])
        same = all(
            (base / "alone" / part).read_bytes() == (merged / part).read_bytes()
            for part in ("judgments.jsonl", "labels.jsonl", "rewards.jsonl")
        )
        print(f"one machine: {took:.0f} s, peak {peak:.0f} MB; same bytes: {same}", flush=True)


def main() -> None:
    """Measure what ``--only`` names."""
    made = argparse.ArgumentParser(description=__doc__)
    parts = ("throughput", "rate", "kills")
    made.add_argument("--only", nargs="+", choices=(*parts, "size"), default=parts)
    made.add_argument("--workers", nargs="+", type=int, default=[1, 2, 4])
    made.add_argument("--seconds", type=float, default=60.0)
    made.add_argument("--kills", type=int, default=20)
    made.add_argument("--judgments", type=int, default=1_000_000)
    made.add_argument("--seed", type=int, default=0)
    options = made.parse_args()
    rng = np.random.default_rng(options.seed)
    print(f"{os.cpu_count()} cores", flush=True)
    if "throughput" in options.only:
        throughput(options.workers)
    if "rate" in options.only:
        rate(options.seconds, rng)
    if "kills" in options.only:
        kills(options.kills, rng)
    if "size" in options.only:
        size(options.judgments, options.kills, rng)


if __name__ == "__main__":
    main()
