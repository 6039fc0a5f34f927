"""The review application beside two peers: ``inspect view`` and AgentRewardBench's demo (goal 2).

``python -m benchmarks.review_peers --inspect PYTHON [--demo CHECKOUT --demo-python PYTHON]
[--samples N] [--trajectories N] [--rounds N]``

PYTHON is an interpreter of an environment of its own with ``inspect-ai``, or with ``gradio``,
``orjson``, ``pillow`` and ``pyparsing``; CHECKOUT is a clone of AgentRewardBench. Servers stand
beside ours on the same machine and are asked in turns by one Chromium. Milliseconds until a
person sees it:

- ``list``: a run of 10,000 judgments, a new visit (nothing in the browser's cache) until the first
  row is there. The peer's log holds as many samples with messages and scores of the same size.
- ``trajectory``: one of 1,000 trajectories of 20 steps with screenshots, until its goal and all its
  pictures are there. Both stand open already: another task is chosen in the demo, ours goes to its
  address. The demo shows every step at once, ours one step and the film strip. Both have the same
  pictures of 1280 x 720 pixels, and no two of one trajectory are alike.
"""

from __future__ import annotations

import argparse
import csv
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.request import urlopen

import numpy as np
import orjson
from PIL import Image

from benchmarks.large_runs import REASONING
from benchmarks.review_app import key, serving, write_run
from benchmarks.review_data import write_trajectories
from trajudge.app.web import trajectory_link
from trajudge.util.machine import installed_chromium

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

STEPS = 20
AGENT = "GenericAgent-gpt-4o-2024-11-20"
DEMO_JUDGES = (
    *("aer", "nnetnav", "claude-3.7-sonnet-noaxtree", "gpt-4o-noaxtree"),
    *("qwen-2.5-vl-noaxtree", "llama-3.3-70b-noscreen"),
)
WRITE_LOG = """
import sys
from inspect_ai.log import EvalConfig, EvalDataset, EvalLog, EvalSample, EvalSpec, write_eval_log
from inspect_ai.model import ChatMessageAssistant, ChatMessageUser, ModelOutput
from inspect_ai.scorer import Score

path, count, said = sys.argv[1], int(sys.argv[2]), sys.argv[3]
samples = [
    EvalSample(
        id=f"shop.{n}", epoch=1, input=f"When was order {n} placed?", target="C",
        messages=[ChatMessageUser(content=f"When was order {n} placed?"),
                  ChatMessageAssistant(content=said)],
        output=ModelOutput.from_content("gpt-4o", said),
        scores={"judge": Score(value="C" if n % 3 else "I", explanation=said)},
    )
    for n in range(count)
]
spec = EvalSpec(
    created="2026-11-01T00:00:00+00:00", task="judged", model="gpt-4o", config=EvalConfig(),
    dataset=EvalDataset(name="orders", samples=count),
)
write_eval_log(EvalLog(status="success", eval=spec, samples=samples), path)
"""
ALL_LOADED = """text => {
    const said = [...document.querySelectorAll("textarea")].map(one => one.value);
    said.push(document.body.innerText);
    const shown = "main img, .gradio-container .image-container img";
    const images = [...document.querySelectorAll(shown)]
        .filter(image => image.loading !== "lazy" || image.complete);
    return said.some(one => one.includes(text)) && images.length > 0 &&
        images.every(image => image.complete && image.naturalWidth > 0);
}"""


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@contextmanager
def server(words: list[str], port: int, folder: Path) -> Iterator[str]:
    """Start a peer; its address once it answers."""
    address = f"http://127.0.0.1:{port}/"
    env = {**os.environ, "GRADIO_ANALYTICS_ENABLED": "False", "HF_HUB_OFFLINE": "1"}
    with (folder / "peer.log").open("wb") as log:
        process = subprocess.Popen(words, cwd=folder, stdout=log, stderr=log, env=env)
    try:
        _wait_for(address, process, folder / "peer.log")
        yield address
    finally:
        process.terminate()
        process.wait()


def _wait_for(address: str, process: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(600):
        try:
            with urlopen(address):
                return
        except OSError:
            if process.poll() is not None:
                raise SystemExit(log.read_text()[-2_000:]) from None
            time.sleep(0.1)
    raise SystemExit(f"no answer from {address}")


def in_turns(rounds: int, ways: Mapping[str, Callable[[int], float]]) -> dict[str, list[float]]:
    """Take every way once a round, the order turned around each time."""
    took: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(rounds):
        for name in sorted(ways, reverse=bool(number % 2)):
            took[name].append(ways[name](number))
    return took


def printed(what: str, took: Mapping[str, list[float]]) -> None:
    """Print the median and range of each, and of the peer over ours in the same round."""
    for name, each in took.items():
        print(
            f"{what:<10} {name:<13} median {np.median(each):8.0f} ms, {min(each):.0f} to "
            f"{max(each):.0f}",
            flush=True,
        )
    ours = np.array(took["trajudge"])
    for name in took.keys() - {"trajudge"}:
        ratio = np.array(took[name]) / ours
        print(
            f"{what:<10} {name} / trajudge {np.median(ratio):.1f} ({ratio.min():.1f} to "
            f"{ratio.max():.1f})",
            flush=True,
        )


def visited(browser: Browser, address: str, selector: str) -> float:
    """Open an address as a new visitor; milliseconds until the element is seen."""
    context = browser.new_context()
    page = context.new_page()
    start = time.perf_counter()
    page.goto(address, wait_until="commit")
    page.locator(selector).first.wait_for(timeout=120_000)
    took = 1_000 * (time.perf_counter() - start)
    context.close()
    return took


def lists(browser: Browser, python: str, place: Path, samples: int, rounds: int) -> None:
    """Compare the list of a run."""
    logs = place / "logs"
    logs.mkdir()
    path = logs / "2026-11-01T00-00-00+00-00_judged_a.eval"
    subprocess.run([python, "-c", WRITE_LOG, str(path), str(samples), REASONING], check=True)
    write_trajectories(place / "data", samples, 1, key)
    run = write_run(place / "run", samples, judges=1, data=f"trajudge:{place / 'data'}")
    port = free_port()
    words = [python, "-m", "inspect_ai", "view", "--log-dir", str(logs), "--port", str(port)]
    with server(words, port, place) as peer, serving(run) as (own, _):
        table = f"http://127.0.0.1:{own}/run/{run.name}/judgments"
        took = in_turns(
            rounds,
            {
                "inspect view": lambda _: visited(browser, peer, "text=When was order"),
                "trajudge": lambda _: visited(browser, table, "tbody tr"),
            },
        )
    printed("list", took)


def pictures(folder: Path) -> list[Path]:
    """Write screenshots with blocks of colours, as PNG compresses a page."""
    rng = np.random.default_rng(0)
    folder.mkdir(parents=True)
    paths = [folder / f"{number}.png" for number in range(3 * STEPS)]
    for path in paths:
        blocks = rng.integers(0, 256, size=(180, 320, 3), dtype=np.uint8)
        Image.fromarray(blocks).resize((1280, 720), Image.Resampling.NEAREST).save(path)
    return paths


def _same_pictures(images: Path, shots: list[Path]) -> None:
    """Put the pictures in the places of those that ``write_trajectories`` made."""
    for path in images.iterdir():
        path.unlink()
        path.hardlink_to(shots[int(path.stem, 16) % len(shots)])


def demo_data(place: Path, count: int, shots: list[Path]) -> None:
    """Write trajectories, annotations and judgments as AgentRewardBench lays them out."""
    runs = place / "trajectories" / "cleaned" / "webarena" / AGENT / f"{AGENT}_on_webarena"
    judgments = place / "trajectories" / "judgments" / "webarena" / AGENT
    for folder in (runs, place / "apps", *(judgments / name for name in DEMO_JUDGES)):
        folder.mkdir(parents=True)
    said = orjson.dumps({"response": {"choices": [{"message": {"content": REASONING}}]}})
    with (place / "apps" / "annotations.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        answers = ("trajectory_success", "trajectory_side_effect", "trajectory_looping")
        rows.writerow(["benchmark", "model_name", "task_id", *answers])
        for number in range(count):
            rows.writerow(["webarena", AGENT, f"webarena.{number}", *["Successful", "No", "No"]])
            (runs / f"webarena.{number}.json").write_bytes(orjson.dumps(_demo_run(number, shots)))
            for name in DEMO_JUDGES:
                (judgments / name / f"webarena.{number}.json").write_bytes(said)


def _demo_run(number: int, shots: list[Path]) -> dict[str, object]:
    steps = [
        {
            "num": step,
            "action": f"click('{step}')",
            "reasoning": "The item that the goal names is in the list. " * 9,
            "screenshot_path": str(shots[(number * STEPS + step) % len(shots)]),
            "extra_element_properties": {},
        }
        for step in range(STEPS)
    ]
    return {"goal": f"Order item {number} and report its code. " * 4, "steps": steps}


def trajectories(
    browser: Browser, checkout: Path, python: str, place: Path, count: int, rounds: int
) -> None:
    """Compare the opening of one of many trajectories."""
    shots = pictures(place / "trajectories" / "screenshots")
    demo_data(place, count, shots)
    write_trajectories(place / "data", count, STEPS, key)
    _same_pictures(place / "data" / "images", shots)
    run = write_run(place / "run", count, judges=1, data=f"trajudge:{place / 'data'}")
    port = free_port()
    words = [python, str(checkout / "apps" / "demo.py"), "--port", str(port)]
    with server(words, port, place) as peer, serving(run) as (own, _):
        open_demo, open_page = browser.new_page(), browser.new_page()
        open_page.goto(f"http://127.0.0.1:{own}/run/{run.name}/judgments")
        open_demo.goto(peer)
        open_demo.wait_for_function(ALL_LOADED, arg="Order item 0 ", timeout=120_000)

        def demo(number: int) -> float:
            return _chosen(open_demo, 17 + 31 * number)

        def ours(number: int) -> float:
            chosen = 17 + 31 * number
            start = time.perf_counter()
            open_page.goto(f"http://127.0.0.1:{own}{trajectory_link(key(chosen))}")
            open_page.wait_for_function(ALL_LOADED, arg=f"Order item {chosen} ", timeout=120_000)
            return 1_000 * (time.perf_counter() - start)

        printed("trajectory", in_turns(rounds, {"demo": demo, "trajudge": ours}))


def _chosen(page: Page, number: int) -> float:
    box = page.get_by_label("Task ID")
    box.click()
    box.fill(str(number))
    start = time.perf_counter()
    box.press("Enter")
    page.wait_for_function(ALL_LOADED, arg=f"Order item {number} ", timeout=120_000)
    return 1_000 * (time.perf_counter() - start)


def main() -> None:
    """Measure beside the peers that are named."""
    from playwright.sync_api import sync_playwright

    made = argparse.ArgumentParser(description=re.sub("`", "", (__doc__ or "").split("\n\n")[0]))
    made.add_argument("--inspect", metavar="PYTHON")
    made.add_argument("--demo", type=Path, metavar="CHECKOUT")
    made.add_argument("--demo-python", default=sys.executable, metavar="PYTHON")
    made.add_argument("--samples", type=int, default=10_000)
    made.add_argument("--trajectories", type=int, default=1_000)
    made.add_argument("--rounds", type=int, default=7)
    options = made.parse_args()
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as name:
        browser = playwright.chromium.launch(
            executable_path=installed_chromium(), args=["--no-sandbox"]
        )
        for peer in ("lists", "trajectories"):
            (Path(name) / peer).mkdir()
        os.environ["TRAJUDGE_CACHE"] = str(Path(name) / "cache" / "replies.sqlite")
        if options.inspect:
            place = Path(name) / "lists"
            lists(browser, options.inspect, place, options.samples, options.rounds)
        if options.demo:
            trajectories(
                browser,
                options.demo,
                options.demo_python,
                Path(name) / "trajectories",
                options.trajectories,
                options.rounds,
            )
        browser.close()


if __name__ == "__main__":
    main()
