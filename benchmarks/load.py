"""``python -m benchmarks.load``: what a judge needs of AgentRewardBench-like files, per second.

Each method runs in a process of its own over the same files: parsing everything with ``json`` and
with ``orjson``, and our loader up to finished Trajectory objects. Peak memory is the maximum
resident set above that of the process before it read the first file (Linux only).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import orjson

from tests.worlds import agentrewardbench_like as like


def make(root: Path, files: int, seed: int) -> None:
    """``files`` trajectories with sizes spread evenly (in the logarithm) over 1 to 20 MB."""
    rng = np.random.default_rng(seed)
    for number, size in enumerate(np.geomspace(1e6, 2e7, files).astype(int).tolist()):
        task_id = f"webarena.{number}"
        record = like.trajectory(rng, task_id=task_id, size=size, n_steps=5 + number % 16)
        like.write(root, record, task_id)


def _json(root: Path) -> int:
    return sum(len(json.loads(path.read_bytes())["steps"]) for path in _paths(root))


def _orjson(root: Path) -> int:
    return sum(len(orjson.loads(path.read_bytes())["steps"]) for path in _paths(root))


def _loader(root: Path) -> int:
    from trajudge.trajectories.loaders import agentrewardbench
    from trajudge.trajectories.model import Trajectory

    steps = 0
    for found in agentrewardbench.load(root):
        if not isinstance(found, Trajectory):
            raise SystemExit(str(found))
        steps += len(found.steps)
    return steps


METHODS: dict[str, Callable[[Path], int]] = {
    "json": _json,
    "orjson": _orjson,
    "trajudge loader": _loader,
}


def _paths(root: Path) -> list[Path]:
    return sorted(root.rglob("*.json"))


def _peak_mb() -> float:
    """Maximum resident set of this process. Not ru_maxrss, which on Linux begins at the maximum of
    the process that started this one."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def run_one(method: str, root: Path, warm_up: Path) -> None:
    """Prints steps, seconds and megabytes of one method, in this process.

    The small set ``warm_up`` is read first, so that imports and first calls are not counted.
    """
    METHODS[method](warm_up)
    before, start = _peak_mb(), time.perf_counter()
    steps = METHODS[method](root)
    print(json.dumps([steps, time.perf_counter() - start, _peak_mb() - before]))


def measure(method: str, root: Path, warm_up: Path, repeats: int) -> tuple[int, float, float]:
    """The fastest of several processes; memory is the median."""
    command = [sys.executable, "-m", "benchmarks.load", "--run", method, str(root), str(warm_up)]
    runs = [
        json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
        for _ in range(repeats)
    ]
    return runs[0][0], min(run[1] for run in runs), float(np.median([run[2] for run in runs]))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.load", description=__doc__)
    parser.add_argument("--files", type=int, default=24)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--run", nargs=3, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.run:
        run_one(args.run[0], Path(args.run[1]), Path(args.run[2]))
        return
    with TemporaryDirectory() as name:
        root, warm_up = Path(name, "data"), Path(name, "warm-up")
        make(root, args.files, args.seed)
        like.write(warm_up, like.trajectory(np.random.default_rng(1), size=20_000))
        megabytes = sum(path.stat().st_size for path in _paths(root)) / 1e6
        results = {name: measure(name, root, warm_up, args.repeats) for name in METHODS}
    print(f"{args.files} files, {megabytes:.0f} MB; ratios to json\n")
    print(f"{'method':<16}{'seconds':>9}{'MB/s':>8}{'speed':>9}{'peak MB':>9}{'memory':>9}")
    steps, base_seconds, base_peak = results["json"]
    for name, (found, seconds, peak) in results.items():
        if found != steps:
            raise SystemExit(f"{name} read {found} steps, json {steps}")
        speed, memory = base_seconds / seconds, peak / base_peak
        print(
            f"{name:<16}{seconds:>9.2f}{megabytes / seconds:>8.0f}{speed:>8.1f}x"
            f"{peak:>9.1f}{memory:>8.2f}x"
        )


if __name__ == "__main__":
    main()
