"""Labels that are acknowledged are there: 8 annotators in two processes, killed at random moments.

``python -m benchmarks.labelling [--submissions 500] [--kills 100]`` prints submissions that were
acknowledged and lost, events that are there twice, items above their wanted count, and "database
is locked" errors. Each annotator drafts and submits; a process that is killed (SIGKILL) is started
again and its annotators go on.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np

from trajudge.annotations.queue import (
    LabelQueue,
    QueueItem,
    QueueSettings,
    create_queue,
)
from trajudge.trajectories.model import TrajectoryKey

ANNOTATORS = 8
PROCESSES = 2

WORKER = """
import os, sys
from pathlib import Path
from threading import Thread
from trajudge.annotations.queue import FormAnswers, LabelQueue

store = LabelQueue(Path(sys.argv[1]))
acknowledged = os.open(sys.argv[2], os.O_WRONLY | os.O_APPEND)
answers = FormAnswers(success="yes", side_effect="no", repetition="no", optimality=4)

def work(person):
    while (offer := store.claim_next(person)) is not None:
        who = (person, offer.item)
        version = store.own_reading(*who).version
        version = store.save_draft(*who, FormAnswers(success="yes"), version)
        event = store.submit(*who, answers, version, f"request {offer.item}")
        os.write(acknowledged, f"{event} {person} {offer.item}\\n".encode())

threads = [Thread(target=work, args=(int(person),)) for person in sys.argv[3:]]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


def main() -> None:
    """Run the job, kill its processes, and print what was lost."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--submissions", type=int, default=500, help="of each annotator")
    options.add_argument("--kills", type=int, default=100)
    options.add_argument("--seed", type=int, default=0)
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        labels = ANNOTATORS * chosen.submissions
        items = [_item(number) for number in range(labels // 2)]
        create_queue(folder / "queue", QueueSettings(), items)
        store = LabelQueue(folder / "queue")
        crowd = [store.add_person(f"annotator {n}")[0].id for n in range(ANNOTATORS)]
        started = time.perf_counter()
        kills, errors = _run(folder, crowd, chosen.kills, np.random.default_rng(chosen.seed))
        _print(store, folder, labels, kills, errors, time.perf_counter() - started)


def _item(number: int) -> QueueItem:
    key = TrajectoryKey(benchmark="webarena", agent="agent", task_id=f"webarena.{number}")
    return QueueItem(key=key, raw_task_id=key.task_id, position=number, wanted=2)


def _run(
    folder: Path, crowd: list[int], kills: int, random: np.random.Generator
) -> tuple[int, bytes]:
    """Start the processes, kill one of them after random waits, and go on until all is labelled."""
    (folder / "acknowledged").touch()
    halves = [[str(person) for person in crowd[place::PROCESSES]] for place in range(PROCESSES)]
    errors = (folder / "errors").open("wb")

    def start(place: int) -> subprocess.Popen[bytes]:
        words = [WORKER, str(folder / "queue"), str(folder / "acknowledged"), *halves[place]]
        return subprocess.Popen([sys.executable, "-c", *words], stderr=errors)

    workers = [start(place) for place in range(PROCESSES)]
    killed = 0
    while killed < kills and any(worker.poll() is None for worker in workers):
        time.sleep(float(random.uniform(0.15, 0.8)))
        place = int(random.integers(PROCESSES))
        if workers[place].poll() is None:
            workers[place].kill()
            workers[place].wait()
            killed += 1
            workers[place] = start(place)
    for worker in workers:
        worker.wait()
    errors.close()
    return killed, (folder / "errors").read_bytes()


def _print(
    store: LabelQueue, folder: Path, labels: int, kills: int, errors: bytes, seconds: float
) -> None:
    lines = (folder / "acknowledged").read_text().splitlines()
    acknowledged = {tuple(map(int, line.split())) for line in lines}
    events = list(store.events())
    submitted = [(e["id"], e["person"], e["item"]) for e in events if e["kind"] == "submitted"]
    pairs = Counter((person, item) for _, person, item in submitted)
    of_item = Counter(item for item, _ in {(item, person) for _, person, item in submitted})
    figures = {
        "submissions wanted": labels,
        "submissions in the log": len(submitted),
        "acknowledged": len(acknowledged),
        "acknowledged and lost": len(acknowledged - set(submitted)),
        "there twice": sum(times > 1 for times in pairs.values()),
        "items above their wanted count": sum(times > 2 for times in of_item.values()),
        "kills": kills,
        '"database is locked"': errors.count(b"locked"),
        "other errors": errors.count(b"Traceback") - errors.count(b"locked"),
        "seconds": f"{seconds:.0f}",
    }
    for name, value in figures.items():
        print(f"{name:<32}{value}")


if __name__ == "__main__":
    main()
