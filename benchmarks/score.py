"""Scoring speed beside AgentRewardBench's way: ``python -m benchmarks.score [--judges 13]``.

Makes judgment files in the published layout (13 judges x 1,302 trajectories of 50 kB, most of it
the chat messages that no scorer needs), then scores them twice in one run: the peer loads every
file whole with ``json.load``, cuts the tags out of the reply and counts in Python loops; ours is
``eval.sources`` and ``eval.scoring``, without and with the bootstrap's intervals. Both give the
same counts, which is checked. Best of several runs, files in the page cache; the peer's time is
that of the part of the work that both do.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from annotations import Annotation, Labels
from eval.scores import Scores
from eval.scoring import score
from eval.sources import read_published_folder
from eval.uncertainty import Bootstrap
from trajectories.model import TrajectoryKey

AGENTS = tuple(f"agent-{number}" for number in range(4))
BENCHMARKS = ("assistantbench", "visualwebarena", "webarena", "workarena")
TAGS = ("success", "side", "loop")
Cell = tuple[str, str, str]


def make_files(root: Path, judges: int, trajectories: int, size: int) -> Labels:
    """Judgments below ``root`` and the labels of their trajectories."""
    rng = random.Random(0)
    labels: dict[TrajectoryKey, Annotation] = {}
    page = "".join(rng.choices("abcdefghij \n\"<>/[]{}'é", k=size))
    for number in range(trajectories):
        agent = AGENTS[number % len(AGENTS)]
        task = number // len(AGENTS)
        benchmark = BENCHMARKS[task % len(BENCHMARKS)]
        key = TrajectoryKey(benchmark=benchmark, agent=agent, task_id=f"{benchmark}.{task}")
        truth = rng.random() < 0.27
        labels[key] = Annotation(
            key=key,
            raw_task_id=key.task_id,
            annotator="A",
            success=truth,
            side_effect=rng.random() < 0.06,
            repetition=rng.random() < 0.5,
        )
        for judge in range(judges):
            said = truth if rng.random() < 0.85 else not truth
            folder = root / "judgments" / benchmark / agent / f"judge-{judge:02}"
            folder.mkdir(parents=True, exist_ok=True)
            cut = rng.randrange(1000)
            text = json.dumps(judgment(key, said, page[cut : size - 4000 + cut]))
            (folder / f"{key.task_id}.json").write_text(text)
    return labels


def judgment(key: TrajectoryKey, said: bool, page: str) -> dict[str, Any]:
    """One file: the fields of the published ones, in their order."""
    content = (
        f"<reasoning>The agent did what it was asked.</reasoning>"
        f"<success>{'Successful' if said else 'Unsuccessful'}</success>"
        "<side>No</side><optimal>3. Somewhat Optimal</optimal><loop>Yes</loop>"
    )
    message = {"role": "assistant", "content": content, "refusal": None}
    return {
        "benchmark": key.benchmark,
        "goal": "Buy the cheapest lamp.",
        "agent": key.agent,
        "judge": "judge",
        "judge_model_name": "model",
        "provider": "openai",
        "judge_args": {"use_screenshot": False, "use_axtree": True, "invert_sys_prompt": False},
        "completion_args": {"max_completion_tokens": 1024, "temperature": 0.0, "seed": 0},
        "cost": {"total_cost": 0.01},
        "response": {
            "id": "1",
            "choices": [{"finish_reason": "stop", "index": 0, "message": message}],
            "usage": {"completion_tokens": 90, "prompt_tokens": 9000, "total_tokens": 9090},
        },
        "chat_messages": {
            "regular": [{"role": "user", "content": page}],
            "pruned": [],
        },
        "trajectory_info": {
            "valid": True,
            "model": key.agent,
            "seed": 0,
            "model_args": {"temperature": 0.0},
            "flags": {"use_screenshot": False},
            "summary_info": {"n_steps": 9, "cum_reward": 1.0, "err_msg": None},
        },
    }


def peer(root: Path, labels: Labels) -> dict[tuple[str, Cell], list[int]]:
    """(judge, (benchmark, agent, tag)) -> [tp, fp, fn, tn], overall and all agents included."""
    truth = {
        (key.benchmark, key.agent, key.task_id): (a.success, a.side_effect, a.repetition)
        for key, a in labels.items()
    }
    pairs: dict[tuple[str, Cell], tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
    for path in sorted((root / "judgments").glob("*/*/*/*.json")):
        with path.open() as file:
            loaded = json.load(file)
        content = loaded["response"]["choices"][0]["message"]["content"]
        benchmark, agent, judge = path.parts[-4:-1]
        for tag, expert in zip(TAGS, truth[benchmark, agent, path.stem], strict=True):
            found = re.search(rf"<{tag}>(.*?)</{tag}>", content, re.DOTALL)
            word = found.group(1).strip().lower() if found else ""
            for where in (benchmark, "overall"):
                for who in (agent, "all"):
                    human, said = pairs[judge, (where, who, tag)]
                    human.append(int(bool(expert)))
                    said.append(int(word in ("successful", "yes")))
    cells = {}
    for cell, (human, said) in pairs.items():
        counts = [0, 0, 0, 0]
        for right, verdict in zip(human, said, strict=True):
            counts[2 * (1 - verdict) + 1 - right] += 1
        cells[cell] = counts
    return cells


def ours(root: Path, labels: Labels, resamples: int) -> Scores:
    """The command's work between its options and its tables."""
    source = read_published_folder(root, with_labels=False)
    return score(
        source.judgments,
        labels,
        rewards=source.rewards,
        by_agent=True,
        bootstrap=Bootstrap(resamples),
    )


def best(work: Callable[[], Any], repeats: int) -> tuple[float, float, Any]:
    """Wall and CPU seconds of the best of ``repeats``, and what it gave."""
    wall = cpu = float("inf")
    for _ in range(repeats):
        started, used = time.perf_counter(), time.process_time()
        found = work()
        wall = min(wall, time.perf_counter() - started)
        cpu = min(cpu, time.process_time() - used)
    return wall, cpu, found


def check(scores: Scores, cells: dict[tuple[str, Cell], list[int]]) -> None:
    """Equal counts. Raises ValueError where they differ."""
    tags = dict(zip(("success", "side_effect", "repetition"), TAGS, strict=True))
    for s in scores.scores:
        if not s.baseline:
            c = s.counts
            theirs = cells[s.judge, (s.benchmark, s.agent, tags[s.label])]
            if [c.tp, c.fp, c.fn, c.tn] != theirs:
                raise ValueError(f"{s.judge} on {s.benchmark}: {c} here, {theirs} there")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--judges", type=int, default=13)
    options.add_argument("--trajectories", type=int, default=1302)
    options.add_argument("--bytes", type=int, default=50_000)
    options.add_argument("--repeats", type=int, default=3)
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        labels = make_files(root, chosen.judges, chosen.trajectories, chosen.bytes)
        files = [path.stat().st_size for path in root.rglob("*.json")]
        print(f"{len(files):,} files, {sum(files) / len(files) / 1000:.0f} kB each")
        rows = [("peer: json.load and loops", *best(lambda: peer(root, labels), chosen.repeats))]
        reading = best(lambda: read_published_folder(root, with_labels=False), chosen.repeats)
        rows.append(("ours, reading alone", *reading))
        for resamples in (0, 2000):
            work = best(partial(ours, root, labels, resamples), chosen.repeats)
            rows.append((f"ours, {resamples} resamples", *work))
        check(rows[-1][-1], rows[0][-1])
    peer_wall, peer_cpu = rows[0][1:3]
    for name, wall, cpu, _ in rows:
        ratios = f"{peer_wall / wall:8.1f} x wall{peer_cpu / cpu:8.1f} x cpu"
        print(f"{name:28}{wall:8.2f} s{cpu:8.2f} cpu s{ratios}")


if __name__ == "__main__":
    main()
