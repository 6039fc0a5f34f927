"""The review application over a large run, and ``trajudge report`` of 10^4 judgments, each bar met
or not met: ``python -m benchmarks.app [--only pages report]``.

``pages``: a synthetic run (seeded; ten judges, ``--judgments`` / 10 trajectories of ``--steps``
steps, each with a screenshot in a sparse file) is read once by the reader of the other commands,
once by pydantic line by line, and once into the table of the pages, all in this process, CPU and
wall time. Then the command serves it in a process of its own, and each kind of page is asked for
over loopback, one request after the other: the first after the start, and the median and 95th
percentile of ``--requests``. Memory is the peak that the kernel tells of the server.

``report``: ``--trajectories`` with a screenshot of words and coloured areas each, judged by
``--judges``: CPU and memory of a process of its own, with the baselines and without, bytes of the
file, screenshots in it, and whether a second call writes the same bytes; then with every wrong
trajectory in a folder.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPConnection
from io import BytesIO
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlencode

import numpy as np
import orjson
from PIL import Image, ImageDraw

from benchmarks.large_runs import AGENTS, BENCHMARKS, REASONING
from trajudge.annotations import Label
from trajudge.app.web import trajectory_link
from trajudge.eval.store.filters import read_view
from trajudge.eval.store.run_folder import (
    CALLS,
    JUDGMENTS,
    judgment_line,
    ledger_lines,
    read_judgments,
    write_labels,
    write_manifest,
    write_rewards,
)
from trajudge.judges.model import Call, Judgment, Status, Usage
from trajudge.trajectories import store
from trajudge.trajectories.model import ImageRef, Observation, Step, Trajectory, TrajectoryKey

SHOT_BYTES = 100_000
PAINTED = 100
"""Screenshots that differ in what they show; painting one takes as long as reporting it."""
MOST_CPU, MOST_MEMORY = 3.0, 200.0
"""Seconds and megabytes that a report of 10^4 judgments may take."""
MOST_FIRST, MOST_TABLE = 1_000.0, 30.0
"""Milliseconds that the first page of a run may take, and of CPU a filtered or sorted table."""
_TREE = "RootWebArea 'Shop'\n" + "\n".join(f"\t[{n}] link 'Item {n}'" for n in range(200))
JUDGES = tuple(f"judge-{number}" for number in range(10))
_FILTERS = (
    *("", "wrong:fp", "judge:judge-3", "score:0.4..0.6", "disagree>=2 expert:no", "status:refused"),
    *("benchmark:webarena -success:yes", "agent:agent-2 cost>0.02", "task:*.1*", '"order 77"'),
)
_SORTS = ("", "score", "-score", "cost", "-cost", "task", "-seconds", "judge", "status", "expert")


class Timing(NamedTuple):
    """Milliseconds of requests for one kind of page; ``cpu`` is the server's for one of them."""

    first: float
    median: float
    p95: float
    worst: float
    cpu: float


def key(number: int) -> TrajectoryKey:
    """Name a trajectory."""
    benchmark = BENCHMARKS[number % len(BENCHMARKS)]
    agent = AGENTS[number // len(BENCHMARKS) % len(AGENTS)]
    task = number // (len(BENCHMARKS) * len(AGENTS))
    return TrajectoryKey(benchmark=benchmark, agent=agent, task_id=f"{benchmark}.{task}")


def write_trajectories(
    folder: Path, count: int, steps: int, key_of: Callable[[int], TrajectoryKey]
) -> None:
    """Write ``count`` trajectories of ``steps`` steps in trajudge's own format, each step with a
    screenshot of its own: 1280 x 720 pixels in a sparse file of ``SHOT_BYTES``."""
    images = folder / "images"
    images.mkdir(parents=True)
    buffer = BytesIO()
    Image.new("RGB", (1280, 720), (240, 240, 235)).save(buffer, "PNG")
    with (folder / "trajectories.jsonl").open("wb") as file:
        for number in range(count):
            names = [f"{number * steps + step:064x}" for step in range(steps)]
            for name in names:
                _write_sparse(images / f"{name}.png", buffer.getvalue() + name.encode())
            file.write(orjson.dumps(_line(number, names, key_of(number))) + b"\n")


def _write_sparse(path: Path, head: bytes) -> None:
    descriptor = os.open(path, os.O_CREAT | os.O_WRONLY)
    os.write(descriptor, head)
    os.ftruncate(descriptor, SHOT_BYTES)
    os.close(descriptor)


def _line(number: int, names: list[str], key: TrajectoryKey) -> dict[str, object]:
    steps = [
        {
            "index": step,
            "observation": {
                "url": f"http://shop.test/{number}/{step}",
                "axtree": _TREE,
                "screenshot": name,
            },
            "reasoning": "The item that the goal names is in the list. " * 9,
            "action": f"click('{step}')",
        }
        for step, name in enumerate(names)
    ]
    return {
        "format": 1,
        "key": key.model_dump(mode="json"),
        "raw_task_id": key.task_id,
        "goal": f"Order item {number} and report its code. " * 4,
        "answer": f"The code is {number}. " * 9,
        "steps": steps,
    }


def judgment(place: int, number: int, rng: random.Random) -> Judgment:
    """Make what one of the judges said of a trajectory, about two kilobytes."""
    failed = rng.random() < 0.02
    call = Call(
        stage="verdict",
        request=f"{rng.getrandbits(256):064x}",
        rung="full" if rng.random() < 0.8 else "last",
        finish="stop",
        usage=Usage(input=rng.randrange(2_000, 30_000), output=rng.randrange(100, 900)),
        cost=round(rng.random() * 0.05, 5),
        text=f"<reasoning>{REASONING}</reasoning>",
        seconds=round(rng.expovariate(0.3), 3),
    )
    return Judgment(
        key=key(number),
        judge=JUDGES[place % len(JUDGES)],
        status=Status.REFUSED if failed else Status.OK,
        success=None if failed else rng.random() < 0.4,
        score=None if failed else round(rng.random(), 3),
        reasoning=f"Order {rng.randrange(10**5)}. {REASONING}",
        calls=(call,),
    )


def write_run(
    folder: Path, count: int, judges: int = len(JUDGES), data: str = "trajudge:absent"
) -> Path:
    """Write the folder of a run of ``count`` judgments on ``data``."""
    rng = random.Random(0)
    folder.mkdir(parents=True)
    with (folder / JUDGMENTS).open("wb") as lines, (folder / CALLS).open("wb") as ledger:
        for place in range(count):
            made = judgment(place % judges, place // judges, rng)
            lines.write(judgment_line(made))
            ledger.write(b"".join(ledger_lines(made)))
    numbers = range(-(-count // judges))
    truth = {number: rng.random() < 0.35 for number in numbers}
    write_labels(
        folder,
        [
            Label(key=key(n), raw_task_id=key(n).task_id, annotator="A", success=truth[n])
            for n in numbers
        ],
    )
    write_rewards(folder, {key(n): float(truth[n] != (rng.random() < 0.1)) for n in numbers})
    write_manifest(folder, {"judge": "several", "data": data, "protocol": "default"})
    return folder


@contextmanager
def serving(folder: Path) -> Iterator[tuple[int, int]]:
    """Start the command; give its port and the number of its process."""
    words = [sys.executable, "-m", "trajudge.eval.cli", "inspect", str(folder), "--no-token"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        found = re.search(r":(\d+)/", process.stdout.readline())
        assert found is not None
        try:
            yield int(found[1]), process.pid
        finally:
            process.send_signal(signal.SIGINT)


def ask(port: int, path: str, accept: str = "text/html") -> tuple[float, str]:
    """Ask for a page; give the milliseconds until its last byte, and its text."""
    connection = HTTPConnection("127.0.0.1", port, timeout=900)
    start = time.perf_counter()
    connection.request("GET", path, headers={"Accept": accept})
    response = connection.getresponse()
    text = response.read().decode()
    took = 1_000 * (time.perf_counter() - start)
    connection.close()
    assert response.status == 200, (path, response.status, text[-900:])
    return took, text


def pages(run: str, rng: random.Random) -> Mapping[str, Callable[[], str]]:
    """Name the kinds of pages; each gives the address of one of them."""
    table = f"/run/{run}/judgments"
    return {
        "list of runs": lambda: "/",
        "table": lambda: table,
        "table, sorted": lambda: f"{table}?{urlencode({'sort': rng.choice(_SORTS)})}",
        "table, filtered": lambda: f"{table}?{urlencode({'f': rng.choice(_FILTERS)})}",
        "table, both": lambda: (
            f"{table}?{urlencode({'f': rng.choice(_FILTERS), 'sort': rng.choice(_SORTS)})}"
        ),
        "overview": lambda: f"/run/{run}",
    }


def timed(port: int, process: int, address: Callable[[], str], count: int) -> Timing:
    """Ask for pages of a kind, one after the other."""
    took, cpu = [], cpu_milliseconds(process)
    for _ in range(count):
        took.append(ask(port, address())[0])
        time.sleep(0.01)  # below the limit of requests in a time
    return _timing(took, cpu_milliseconds(process) - cpu)


def _timing(took: list[float], cpu: float) -> Timing:
    median, p95 = np.quantile(took[1:], [0.5, 0.95]).tolist()
    return Timing(took[0], median, p95, max(took[1:]), cpu / len(took))


def cpu_milliseconds(process: int) -> float:
    """Read the CPU that a process has had."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return 1_000 * (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def next_pages(port: int, process: int, run: str, count: int) -> Timing:
    """Follow the link to the next page, again and again."""
    path = f"/run/{run}/judgments?sort=-score"
    took, cpu = [], cpu_milliseconds(process)
    for _ in range(count):
        milliseconds, text = ask(port, path, "application/json")
        took.append(milliseconds)
        path = json.loads(text)["next"]
        time.sleep(0.01)
    return _timing(took, cpu_milliseconds(process) - cpu)


def step_changes(port: int, process: int, count: int) -> Timing:
    """Open trajectories and go from step to step; the first step of each is not counted.

    Of many, the seven first openings are not counted either: they fill the server's caches.
    """
    took, cpu = [0.0], cpu_milliseconds(process)
    openings = 7 if count > 7 else 0
    for number in range(count):
        for step in (1, 2, 3):
            path = f"{trajectory_link(key(number % 7))}?step={step + 3 * (number // 7 % 5)}"
            milliseconds, _ = ask(port, path)
            if number >= openings and step > 1:
                took.append(milliseconds)
        time.sleep(0.02)
    return _timing(took, (cpu_milliseconds(process) - cpu) / 3)


def _validated(path: Path) -> None:
    with path.open("rb") as file:
        for line in file:
            Judgment.model_validate_json(line)


def until_shown(port: int, run: str, folder: Path) -> float:
    """Append a judgment; give the milliseconds until the table counts it."""
    path = f"/run/{run}/judgments?limit=1"
    before = json.loads(ask(port, path, "application/json")[1])["total"]
    made = judgment(0, 0, random.Random(1)).model_copy(update={"sample": 1})
    start = time.perf_counter()
    with (folder / JUDGMENTS).open("ab") as file:
        file.write(judgment_line(made))
    while json.loads(ask(port, path, "application/json")[1])["total"] == before:
        time.sleep(0.01)
    return 1_000 * (time.perf_counter() - start)


def peak_megabytes(process: int) -> float:
    """Read the most memory that a process has had."""
    status = Path(f"/proc/{process}/status").read_text()
    (kilobytes,) = re.findall(r"VmHWM:\s+(\d+) kB", status)
    return int(kilobytes) / 1e3


def measured(work: Callable[[], object]) -> tuple[float, float]:
    """Give the seconds of CPU and of the clock that a work takes."""
    cpu, wall = time.process_time(), time.perf_counter()
    work()
    return time.process_time() - cpu, time.perf_counter() - wall


class WrittenReport(NamedTuple):
    """CPU seconds and most megabytes of the call, bytes of the page, and its screenshots."""

    cpu: float
    memory: float
    size: int
    pictures: int


def screenshot(rng: random.Random) -> bytes:
    """Paint something like a page: areas, a photograph's noise, a hundred lines of words."""
    image = Image.new("RGB", (1280, 720), "white")
    draw = ImageDraw.Draw(image)
    for _ in range(12):
        x, y = rng.randrange(1200), rng.randrange(650)
        colour = rng.randrange(256), rng.randrange(256), rng.randrange(256)
        draw.rectangle((x, y, x + rng.randrange(40, 300), y + rng.randrange(20, 120)), fill=colour)
    image.paste(Image.frombytes("RGB", (160, 120), rng.randbytes(160 * 120 * 3)), (900, 80))
    for line in range(100):
        at = rng.randrange(len(REASONING) // 2)
        draw.text(
            (20 + 420 * (line % 3), 20 * (line // 3) + 8), REASONING[at : at + 60], fill="black"
        )
    encoded = BytesIO()
    image.save(encoded, "PNG")
    return encoded.getvalue()


def recorded(count: int) -> Iterator[Trajectory]:
    """Make the trajectories that ``write_run`` judges."""
    rng = random.Random(1)
    painted = [screenshot(rng) for _ in range(min(count, PAINTED))]
    for number in range(count):
        content = painted[number % PAINTED] + str(number).encode()  # no two files are the same
        seen = Observation(url=f"http://shop.test/{number}", screenshot=ImageRef(data=content))
        yield Trajectory(
            key=key(number),
            raw_task_id=key(number).task_id,
            goal=f"Order {rng.randrange(10**6)}. " + REASONING[:200],
            answer=REASONING[:300],
            steps=(Step(index=0, observation=seen, action="send_msg_to_user('Done.')"),),
        )


def written(run: Path, out: Path, *words: str) -> WrittenReport:
    """Write a report in a process of its own."""
    command = [sys.executable, "-m", "trajudge.eval.cli", "report", str(run), *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        screen = process.stdout.read()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    pictures = re.search(r"(\d+)\s+pictures", screen)
    assert not status, screen
    assert pictures is not None, screen
    cpu = used.ru_utime + used.ru_stime
    return WrittenReport(cpu, used.ru_maxrss / 1e3, out.stat().st_size, int(pictures[1]))


def bar(value: float, most: float, unit: str) -> str:
    """Write a figure beside the most that it may be."""
    return f"{value:.4g} {unit} (at most {most:g}: {'met' if value <= most else 'NOT MET'})"


def reported(place: Path, trajectories: int, judges: int) -> None:
    """Write the run into ``place`` and report it four times."""
    data, run, out = place / "data", place / "run", place / "report.html"
    store.write(data, recorded(trajectories))
    write_run(run, trajectories * judges, judges, f"trajudge:{data}")
    print(f"report of {trajectories:,} trajectories x {judges} judges")
    contents = []
    for title, words in (
        ("with baselines", ()),
        ("again", ()),
        ("without baselines", ("--baselines", "off")),
    ):
        made = written(run, out, "--out", str(out), *words)
        contents.append(out.read_bytes())
        print(
            f"{title:<18} CPU {bar(made.cpu, MOST_CPU, 's')}, peak "
            f"{bar(made.memory, MOST_MEMORY, 'MB')}; {made.size / 1e6:.2f} MB, {made.pictures} "
            "screenshots"
        )
    print(f"{'the same' if contents[0] == contents[1] else 'OTHER'} bytes again")
    folder = place / "folder"
    wide = ("--folder", str(folder), "--show", str(trajectories))
    whole = written(run, folder / "index.html", *wide)
    print(
        f"as a folder with every wrong one: CPU {whole.cpu:.1f} s, peak {whole.memory:.0f} MB; "
        f"{whole.size / 1e6:.1f} MB and {whole.pictures} screenshots"
    )


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parts = ("pages", "report")
    options.add_argument("--only", nargs="*", default=parts, choices=parts, metavar="PART")
    options.add_argument("--judgments", type=int, default=100_000)
    options.add_argument("--steps", type=int, default=20)
    options.add_argument("--requests", type=int, default=100)
    options.add_argument("--trajectories", type=int, default=2_000)
    options.add_argument("--judges", type=int, default=5)
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        os.environ["TRAJUDGE_CACHE"] = str(folder / "cache" / "replies.sqlite")
        if "pages" in chosen.only:
            data, count = folder / "data", -(-chosen.judgments // len(JUDGES))
            write_trajectories(data, count, chosen.steps, key)
            run = write_run(folder / "run", chosen.judgments, data=f"trajudge:{data}")
            _figures(run, chosen.requests)
        if "report" in chosen.only:
            reported(folder / "report", chosen.trajectories, chosen.judges)


def _figures(run: Path, requests: int) -> None:
    size = (run / JUDGMENTS).stat().st_size / 1e6
    built = measured(lambda: read_view(run))
    read = measured(lambda: read_judgments(run))
    validated = measured(lambda: _validated(run / JUDGMENTS))
    print(f"{size:.0f} MB")
    print(f"validating read  CPU {read[0]:6.2f} s  wall {read[1]:6.2f} s")
    print(f"table with texts CPU {built[0]:6.2f} s  wall {built[1]:6.2f} s")
    print(f"pydantic         CPU {validated[0]:6.2f} s  wall {validated[1]:6.2f} s")
    print(
        f"table / read     CPU {built[0] / read[0]:6.2f}, / pydantic {built[0] / validated[0]:.2f}"
    )
    start = time.perf_counter()
    with serving(run) as (port, process):
        started = time.perf_counter() - start
        first = ask(port, f"/run/{run.name}/judgments")[0]
        print(f"start {started:.2f} s, first page after it {bar(first, MOST_FIRST, 'ms')}")
        print(
            f"read / first page {1e3 * read[1] / first:.0f}, pydantic / first page "
            f"{1e3 * validated[1] / first:.0f}"
        )
        scored = measured(lambda: ask(port, f"/run/{run.name}", "application/json"))
        print(f"scores after {scored[1]:.1f} s")
        for name, address in pages(run.name, random.Random(2)).items():
            timing = timed(port, process, address, requests)
            _shown(name, timing)
            if name.startswith("table"):
                print(f"{'':<16} {bar(timing.cpu, MOST_TABLE, 'ms of CPU')}")
        _shown("next page", next_pages(port, process, run.name, requests))
        _shown("step change", step_changes(port, process, requests))
        appended = until_shown(port, run.name, run)
        peak = peak_megabytes(process)
    print(f"an appended line is shown after {appended:.0f} ms")
    print(f"peak of the server {peak:.0f} MB")


def _shown(name: str, timing: Timing) -> None:
    print(
        f"{name:<16} first {timing.first:7.1f}  median {timing.median:7.1f}  "
        f"p95 {timing.p95:7.1f}  worst {timing.worst:7.1f}  "
        f"CPU {timing.cpu:6.1f} ms"
    )


if __name__ == "__main__":
    main()
