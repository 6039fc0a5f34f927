"""Runs of 100,000 judgments and more: CPU, wall time and memory of every stage.

``python -m benchmarks.large_runs [--judgments N] [--scored N] [--only STAGE ...] [--repeat N]
[--folder DIR] [--out FILE]``

Synthetic trajectories (seeded) are judged through the scripted adapter, then the same folder goes
through every stage that a user meets, each in a process of its own: imports are part of it, and
its peak is its own. The bytecode of modules is kept, as Python does by default, and so is what a
stage leaves in the user's cache for the next.

- ``long``: the command over one trajectory of 100 steps with trees of 500 kB, a line of 50 MB, for
  the heuristic judge.
- ``judge``: the command, from nothing.
- ``finish``: the command over the folder as it is after the last judgment, its journal in order of
  arrival: put it into the order of the trajectories, score, write the results.
- ``again``: the command over the finished folder.
- ``read``: ``trajudge.read_run``, every judgment looked at. Beside it, in alternation, what
  decoding the lines of ``judgments.jsonl`` takes: ``json``, orjson, and msgspec without types.
- ``score``: the command over the folder, and over a written folder of ``--scored`` judgments.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from pathlib import Path
from typing import NamedTuple

import msgspec
import orjson

from trajudge.annotations import Label
from trajudge.annotations import store as labels_store
from trajudge.eval import judge as judge_command
from trajudge.trajectories import store
from trajudge.trajectories.model import Observation, Step, Trajectory, TrajectoryKey

BENCHMARKS = ("assistantbench", "visualwebarena", "webarena", "workarena")
AGENTS = tuple(f"agent-{number}" for number in range(5))
DECODERS: dict[str, Callable[[bytes], object]] = {
    "json": json.loads,
    "orjson": orjson.loads,
    "msgspec": msgspec.json.decode,
}
REASONING = "The last page shows the order that the goal names, and the date stands beside it. " * 9


class Stage(NamedTuple):
    """What one stage took: seconds of CPU, of these without the interpreter and the first imports,
    seconds of the clock, and MB at its peak."""

    cpu: float
    work: float
    wall: float
    peak: float


def keys(count: int) -> Iterator[TrajectoryKey]:
    """Yield distinct keys, in the order of the files."""
    for number in range(count):
        benchmark = BENCHMARKS[number % len(BENCHMARKS)]
        agent = AGENTS[number // len(BENCHMARKS) % len(AGENTS)]
        task = number // (len(BENCHMARKS) * len(AGENTS))
        yield TrajectoryKey(benchmark=benchmark, agent=agent, task_id=f"{benchmark}.{task}")


def trajectory(key: TrajectoryKey, rng: random.Random) -> Trajectory:
    """Make a run of two steps."""
    number = rng.randrange(10**6)
    url = f"https://shop.example/orders/{number}"
    tree = f"[1] RootWebArea 'Order {number}'\n  [2] StaticText 'placed on day {number % 365}'"
    steps = (
        Step(
            index=0, observation=Observation(url=url), reasoning="Open the order.", action="click"
        ),
        Step(index=1, observation=Observation(url=url, axtree=tree)),
    )
    return Trajectory(
        key=key,
        raw_task_id=key.task_id,
        goal=f"When was order {number} placed?",
        steps=steps,
        answer=str(number % 365),
        official_reward=float(rng.random() < 0.3),
    )


def label(key: TrajectoryKey, rng: random.Random) -> Label:
    """Make an expert's label."""
    return Label(
        key=key,
        raw_task_id=key.task_id,
        annotator="A",
        success=rng.random() < 0.3,
        side_effect=rng.random() < 0.05,
        repetition=rng.random() < 0.4,
    )


def make_data(folder: Path, count: int) -> None:
    """Write trajectories, their labels and a script of replies into ``folder``."""
    rng = random.Random(0)
    store.write(folder, (trajectory(key, rng) for key in keys(count)))
    labels_store.write(folder / "labels.jsonl", [label(key, rng) for key in keys(count)])
    replies = [
        {
            "text": f"<reasoning>{REASONING}</reasoning><success>{word}</success>"
            "<side>No</side><optimal>4</optimal><loop>No</loop>",
            "match": match,
        }
        for word, match in (("Successful", "7"), ("Unsuccessful", ""))
    ]
    (folder / "script.jsonl").write_bytes(b"".join(orjson.dumps(r) + b"\n" for r in replies))


def make_long(folder: Path) -> None:
    """Write one trajectory of 100 steps, each with a tree of 500 kB."""
    (key,) = keys(1)
    trees = (f"[{100 + number}] link 'Item {number}'\n" * 25_000 for number in range(100))
    steps = tuple(
        Step(index=index, observation=Observation(axtree=tree[:500_000]), action="click")
        for index, tree in enumerate(trees)
    )
    goal = "When was the order placed?"
    store.write(folder, [Trajectory(key=key, raw_task_id=key.task_id, goal=goal, steps=steps)])


def judge_long(base: Path) -> None:
    words = ["--judge", "heuristic", "--data", f"trajudge:{base / 'long'}"]
    if code := judge_command.main([*words, "--out", str(base / "judged")]):
        raise SystemExit(f"exit code {code} of  trajudge judge {' '.join(words)}")


def written_run(run: Path, folder: Path, count: int) -> None:
    """Write a run's folder of ``count`` judgments with the manifest of another run, its labels and
    rewards of the same trajectories."""
    from trajudge.eval.store.run_folder import read_manifest, write_manifest, write_rewards

    folder.mkdir()
    rng = random.Random(1)
    template = orjson.loads((run / "judgments.jsonl").open("rb").readline())
    write_manifest(folder, read_manifest(run) | {"selection": {"trajectories": count}})
    with (folder / "judgments.jsonl").open("wb") as file:
        for key in keys(count):
            template["key"] = key.model_dump()
            template["success"] = rng.random() < 0.4
            template["calls"][0]["request"] = f"{rng.getrandbits(256):064x}"
            file.write(orjson.dumps(template) + b"\n")
    labels_store.write(folder / "labels.jsonl", (label(key, rng) for key in keys(count)))
    write_rewards(folder, {key: float(rng.random() < 0.3) for key in keys(count)})


def arrived_run(run: Path, folder: Path) -> None:
    """Copy a run as it stands after its last judgment: the journal in the order of arrival."""
    folder.mkdir()
    for path in run.iterdir():
        if path.is_file() and not path.name.startswith((".", "results")):
            (folder / path.name).write_bytes(path.read_bytes())
    lines = (run / "judgments.jsonl").read_bytes().splitlines(keepends=True)
    random.Random(2).shuffle(lines)
    (folder / "judgments.jsonl").write_bytes(b"".join(lines))


def command(base: Path, out: str) -> list[str]:
    """Return the words of ``trajudge judge``."""
    data = base / "data"
    return [
        *("--data", f"trajudge:{data}", "--annotations", f"trajudge:{data / 'labels.jsonl'}"),
        *("--model", "gpt-4o", "--script", str(data / "script.jsonl")),
        *("--cache", str(base / "cache.sqlite"), "--yes", "--out", str(base / out)),
    ]


def judge(base: Path, out: str = "run") -> None:
    words = command(base, out)
    code = judge_command.main(words)
    if code:
        raise SystemExit(f"exit code {code} of  trajudge judge {' '.join(words)}")


def finish(base: Path) -> None:
    judge(base, "arrived")


def score(base: Path, folder: str) -> None:
    from trajudge.eval.cli import main

    code = main(["score", str(base / folder), "--baselines", "off"])
    if code:
        raise SystemExit(f"exit code {code} of trajudge score")


def read(base: Path) -> None:
    from trajudge import read_run

    judged = read_run(base / "run")
    if not all(judgment.calls for judgment in judged):
        raise SystemExit("a judgment without a call")


def decode(base: Path, decoder: str) -> None:
    decoded = DECODERS[decoder]
    with (base / "run" / "judgments.jsonl").open("rb") as file:
        for line in file:
            decoded(line)


STAGES: dict[str, Callable[[Path], None]] = {
    "long": judge_long,
    "judge": judge,
    "finish": finish,
    "again": judge,
    "read": read,
    **{f"decode, {name}": partial(decode, decoder=name) for name in DECODERS},
    "score": lambda base: score(base, "run"),
    "score, written": lambda base: score(base, "scored"),
}


def run_stage(name: str, base: Path) -> None:
    """Run one stage in this process and print what it took."""
    started, before = time.perf_counter(), time.process_time()
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()) as said:
        try:
            STAGES[name](base)
        except SystemExit:
            os.write(2, said.getvalue().encode())
            raise
    status = Path("/proc/self/status").read_text()
    peak = int(status.split("VmHWM:")[1].split()[0]) / 1024
    cpu, wall = time.process_time(), time.perf_counter() - started
    took = Stage(cpu, cpu - before, wall, peak)
    sys.stdout.write(json.dumps(took) + "\n")


def measured(name: str, base: Path) -> Stage:
    """Run one stage in a process of its own."""
    words = [sys.executable, "-m", "benchmarks.large_runs", "--stage", name, "--folder", str(base)]
    others = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    shown = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True, env=others).stdout
    return Stage(*json.loads(shown))


def stages(base: Path, count: int, scored: int, repeat: int) -> Iterator[str]:
    """Yield the stages in their order, each when what it needs is there; those that read are
    repeated in alternation."""
    if not (base / "long").is_dir():
        make_long(base / "long")
    yield "long"
    if not (base / "data").is_dir():
        make_data(base / "data", count)
    yield "judge"
    if not (base / "arrived").is_dir():
        arrived_run(base / "run", base / "arrived")
    yield "finish"
    readers = ["again", "read", *(f"decode, {name}" for name in DECODERS), "score"]
    yield from readers * repeat
    if scored:
        if not (base / "scored").is_dir():
            written_run(base / "run", base / "scored", scored)
        yield "score, written"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--judgments", type=int, default=100_000)
    parser.add_argument("--scored", type=int, default=1_000_000, help="0: leave this stage out")
    parser.add_argument(
        "--only", nargs="*", metavar="STAGE", choices=[*STAGES], help="|".join(STAGES)
    )
    parser.add_argument("--repeat", type=int, default=3, help="of the stages that read")
    parser.add_argument("--folder", type=Path, help="keep the files here, and use them again")
    parser.add_argument("--out", type=Path, help="write the rows as JSON")
    parser.add_argument("--stage", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.stage:
        run_stage(options.stage, options.folder)
        return
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        base = options.folder or Path(temporary)
        base.mkdir(exist_ok=True)
        print(f"{'stage':20}{'CPU s':>9}{'of work':>9}{'wall s':>9}{'peak MB':>9}")
        for name in stages(base, options.judgments, options.scored, options.repeat):
            needed = name == "judge" and not (base / "run").is_dir()
            if needed or name in (options.only or [name]):
                took = measured(name, base)
                rows.append({"stage": name, **took._asdict()})
                figures = f"{took.cpu:9.2f}{took.work:9.2f}{took.wall:9.2f}{took.peak:9.0f}"
                print(f"{name:20}{figures}", flush=True)
    if options.out:
        options.out.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
