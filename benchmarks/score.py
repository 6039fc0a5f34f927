"""Scoring speed beside two peers: ``python -m benchmarks.score [--judges 13]``.

Makes judgment files in the published layout (13 judges x 1,302 trajectories of 50 kB, most of it
the chat messages that no scorer needs), then scores them several times in one run:

- ``lean peer``: every file whole with ``json.load``, the tags cut out with a regular expression,
  counts in Python loops. The least that a scorer without partial decoding can do.
- ``reconstruction``: AgentRewardBench's way as its paper and its published result files show it,
  in our own words: not its script, which is not run here, so the ratio to it is an estimate. Every
  file whole with ``json.load``, a row a label in a pandas table, and scikit-learn's precision,
  recall, F1, accuracy and confusion matrix (for NPV and TNR) of every cell: judge, benchmark or
  all, agent or all, label.
- ours: ``eval.sources`` and ``eval.scoring.compute``, reading every file or from the index
  beside them (written by a run before), without and with the bootstrap's intervals.

All give the same counts, which is checked. Best of several runs, files in the page cache; with
``--from-disk`` every run begins with its files evicted from it, as on the first day.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from trajudge.annotations import Label, Labels
from trajudge.eval.scoring.compute import score
from trajudge.eval.scoring.observations import Compared
from trajudge.eval.scoring.records import ScoreReport
from trajudge.eval.store.published import read_published_folder
from trajudge.trajectories.model import TrajectoryKey
from trajudge.util.machine import collection_paused

AGENTS = tuple(f"agent-{number}" for number in range(4))
BENCHMARKS = ("assistantbench", "visualwebarena", "webarena", "workarena")
TAGS = ("success", "side", "loop")
Cell = tuple[str, str, str]
Counted = dict[tuple[str, Cell], list[int]]
Work = Callable[[Path, Labels], Counted]


class Timing(NamedTuple):
    """Wall and CPU seconds of the best of several runs, and what it gave."""

    wall: float
    cpu: float
    found: Any


def make_files(root: Path, judges: int, trajectories: int, size: int) -> Labels:
    """Judgments below ``root`` and the labels of their trajectories."""
    rng = random.Random(0)
    labels: dict[TrajectoryKey, Label] = {}
    page = "".join(rng.choices("abcdefghij \n\"<>/[]{}'é", k=size))
    thoughts = "".join(rng.choices("abcdefghij klmno .,", k=20_000))
    for number in range(trajectories):
        agent = AGENTS[number % len(AGENTS)]
        task = number // len(AGENTS)
        benchmark = BENCHMARKS[task % len(BENCHMARKS)]
        key = TrajectoryKey(benchmark=benchmark, agent=agent, task_id=f"{benchmark}.{task}")
        truth = rng.random() < 0.27
        labels[key] = Label(
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
            begin = rng.randrange(19_000)
            reasoning = thoughts[begin : begin + rng.randrange(300, 900)]
            text = json.dumps(judgment(key, said, reasoning, page[cut : size - 4000 + cut]))
            (folder / f"{key.task_id}.json").write_text(text)
    return labels


def judgment(key: TrajectoryKey, said: bool, reasoning: str, page: str) -> dict[str, Any]:
    """One file: the fields of the published ones, in their order."""
    content = (
        f"<reasoning>{reasoning}</reasoning>"
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


def peer(root: Path, labels: Labels) -> Counted:
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


def reconstruction(root: Path, labels: Labels) -> Counted:
    """The same cells as ``peer``, computed with pandas and scikit-learn; the rates are computed,
    too, and dropped."""
    from sklearn import metrics

    pandas: Any = import_module("pandas")

    truth = {(key.benchmark, key.agent, key.task_id): label for key, label in labels.items()}
    rows = []
    for path in sorted((root / "judgments").glob("*/*/*/*.json")):
        with path.open() as file:
            loaded = json.load(file)
        content = loaded["response"]["choices"][0]["message"]["content"]
        benchmark, agent, judge = path.parts[-4:-1]
        expert = truth[benchmark, agent, path.stem]
        known = (expert.success, expert.side_effect, expert.repetition)
        for tag, human in zip(TAGS, known, strict=True):
            word = content.split(f"<{tag}>")[-1].split(f"</{tag}>")[0].strip().lower()
            said = int(word in ("successful", "yes"))
            rows.append((judge, benchmark, agent, tag, int(bool(human)), said))
    table = pandas.DataFrame(rows, columns=["judge", "benchmark", "agent", "tag", "human", "said"])
    cells = {}
    for (judge, tag), mine in table.groupby(["judge", "tag"]):
        for benchmark in ("overall", *BENCHMARKS):
            here = mine if benchmark == "overall" else mine[mine.benchmark == benchmark]
            for agent in ("all", *AGENTS):
                chosen = here if agent == "all" else here[here.agent == agent]
                human, said = chosen.human.to_numpy(), chosen.said.to_numpy()
                metrics.precision_score(human, said, zero_division=0)
                metrics.recall_score(human, said, zero_division=0)
                metrics.f1_score(human, said, zero_division=0)
                metrics.accuracy_score(human, said)
                (tn, fp), (fn, tp) = metrics.confusion_matrix(human, said, labels=[0, 1]).tolist()
                cells[judge, (benchmark, agent, tag)] = [tp, fp, fn, tn]
    return cells


def ours(root: Path, labels: Labels, compared: Compared | None) -> ScoreReport:
    """The command's work between its options and its tables."""
    with collection_paused():
        source = read_published_folder(root, with_labels=False)
        return score(
            source.judgments,
            labels,
            rewards=source.rewards,
            by_agent=True,
            compared=compared,
        )


def best(work: Callable[[], Any], repeats: int, before: Callable[[], None]) -> Timing:
    """The best of ``repeats`` runs."""
    wall = cpu = float("inf")
    found = None
    for _ in range(repeats):
        del found  # freeing what the run before gave is no part of this one
        before()
        started, used = time.perf_counter(), time.process_time()
        found = work()
        wall = min(wall, time.perf_counter() - started)
        cpu = min(cpu, time.process_time() - used)
    return Timing(wall, cpu, found)


def evict(root: Path) -> None:
    """Have the system forget the contents of all files below ``root`` (Linux)."""
    os.sync()
    for path in root.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def check(scores: ScoreReport, cells: Counted) -> None:
    """Equal counts. Raises ValueError where they differ."""
    tags = dict(zip(("success", "side_effect", "repetition"), TAGS, strict=True))
    for s in scores.scores:
        if not s.baseline:
            c = s.counts
            theirs = cells[s.judge, (s.benchmark, s.agent, tags[s.label])]
            if [c.tp, c.fp, c.fn, c.tn] != theirs:
                raise ValueError(f"{s.judge} on {s.benchmark}: {c} here, {theirs} there")


def measure(
    root: Path, labels: Labels, peers: Mapping[str, Work], timed: Callable[..., Timing]
) -> list[tuple[str, Timing]]:
    """A row for every peer, then for every way of ours; ``timed`` runs and times one."""
    rows = [(name, timed(partial(work, root, labels))) for name, work in peers.items()]
    read = partial(read_published_folder, root, with_labels=False)
    rows.append(("ours: reading", timed(read)))
    for compared in (None, "overall"):
        timing = timed(partial(ours, root, labels, compared))
        rows.append((f"ours: compared {compared}", timing))
        for _, theirs in rows[: len(peers)]:
            check(timing.found, theirs.found)
    return rows


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--judges", type=int, default=13)
    options.add_argument("--trajectories", type=int, default=1302)
    options.add_argument("--bytes", type=int, default=50_000)
    options.add_argument("--repeats", type=int, default=3)
    options.add_argument("--from-disk", action="store_true", help="evict the files before each run")
    chosen = options.parse_args()
    peers = {"lean peer": peer, "reconstruction": reconstruction}
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        labels = make_files(root, chosen.judges, chosen.trajectories, chosen.bytes)
        files = [path.stat().st_size for path in root.rglob("*.json")]
        print(f"{len(files):,} files, {sum(files) / len(files) / 1000:.0f} kB each")
        before = partial(evict, root) if chosen.from_disk else lambda: None
        timed = partial(best, repeats=chosen.repeats, before=before)
        rows = measure(root, labels, peers, timed)
    head = "".join(f"{f'x {name}':>19}{'(cpu)':>7}" for name in peers)
    print(f"{'':28}{'wall s':>9}{'cpu s':>9}{head}")
    for name, timing in rows:
        ratios = "".join(
            f"{other.wall / timing.wall:19.1f}{other.cpu / timing.cpu:7.1f}"
            for _, other in rows[: len(peers)]
        )
        print(f"{name:28}{timing.wall:9.2f}{timing.cpu:9.2f}{ratios}")


if __name__ == "__main__":
    main()
