"""``trajudge report`` on as many trajectories and judges as AgentRewardBench's test split has.

``python -m benchmarks.report_file [--trajectories 1106] [--judges 5]``

A synthetic run (seeded) with a screenshot of 1280 x 720 pixels a trajectory, of words and coloured
areas, as none are published. Seconds of a process of its own, bytes of the file, screenshots in it,
and whether a second call writes the same bytes; then with every wrong trajectory in a folder.
"""

from __future__ import annotations

import argparse
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

from PIL import Image, ImageDraw

from benchmarks.large_runs import REASONING
from benchmarks.review_app import key, write_run
from trajudge.trajectories import store
from trajudge.trajectories.model import ImageRef, Observation, Step, Trajectory


class WrittenReport(NamedTuple):
    """Seconds of the call, bytes of the page, its screenshots, and what the call printed."""

    seconds: float
    size: int
    pictures: int
    screen: str


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
    for number in range(count):
        seen = Observation(
            url=f"http://shop.test/{number}", screenshot=ImageRef(data=screenshot(rng))
        )
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
    start = time.perf_counter()
    called = subprocess.run(command, check=True, capture_output=True, text=True)
    seconds = time.perf_counter() - start
    pictures = re.search(r"(\d+)\s+pictures", called.stdout)
    assert pictures is not None
    return WrittenReport(seconds, out.stat().st_size, int(pictures[1]), called.stdout)


def main(arguments: list[str] | None = None) -> dict[str, object]:
    """Measure and print; the figures."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--trajectories", type=int, default=1_106)
    options.add_argument("--judges", type=int, default=5)
    chosen = options.parse_args(arguments)
    with tempfile.TemporaryDirectory() as place:
        return measured(Path(place), chosen.trajectories, chosen.judges)


def measured(place: Path, trajectories: int, judges: int) -> dict[str, object]:
    """Write the run into ``place`` and report it three times."""
    data, run, out = place / "data", place / "run", place / "report.html"
    store.write(data, recorded(trajectories))
    write_run(run, trajectories * judges, judges, f"trajudge:{data}")
    first = written(run, out, "--out", str(out))
    content = out.read_bytes()
    again = written(run, out, "--out", str(out))
    same = out.read_bytes() == content
    folder = place / "folder"
    wide = ("--folder", str(folder), "--show", str(trajectories))
    whole = written(run, folder / "index.html", *wide)
    print(
        f"report of {trajectories:,} x {judges}: {first.size / 1e6:.2f} MB, {first.pictures} "
        f"screenshots, {first.seconds:.1f} and {again.seconds:.1f} s, "
        f"{'the same' if same else 'OTHER'} bytes; as a folder with every wrong one: "
        f"{whole.size / 1e6:.1f} MB and {whole.pictures} screenshots, {whole.seconds:.1f} s"
    )
    return {
        "report bytes": first.size,
        "report seconds": first.seconds,
        "report pictures": first.pictures,
        "report same bytes": same,
        "folder page bytes": whole.size,
        "folder pictures": whole.pictures,
        "folder seconds": whole.seconds,
    }


if __name__ == "__main__":
    main()
