"""The goals of the review application that no other benchmark prints: 3 to 12, a line each.

``python -m benchmarks.review_goals [--only N ...] [--data DIR] [--kills 100] [--submissions 500]``

1 and 2 are printed by ``review_app``. 3, 5 and 10 start ``labelling``, ``label_queues`` (with the
published judgments in DIR) and ``report_file``; 4, 6, 7 and 8 are tests in Chromium and over real
sockets, which are started and counted. 9 labels 20 items of the sample in Chromium with the keys of
a clear item: presses, and milliseconds until the next page is loaded. 11 counts the distributions
that the extra adds, as they are installed here, and starts the command; 12 counts lines.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

import numpy as np
from packaging.requirements import Requirement

from trajudge.util.machine import installed_chromium

ROOT = Path(__file__).parents[1]
ITEMS = 20
TESTS: Mapping[int, tuple[str, ...]] = {
    4: ("tests/app/labelling", "-k", "no_byte"),
    6: ("tests/app", "-k", "hostile"),
    7: ("tests/app/server", "tests/app/trajectories/test_images.py"),
    8: ("tests/app", "-k", "axe or keyboard"),
}
LIMITS = {"Python": 3_500, "templates": 1_500, "JavaScript": 600, "CSS": 800}


def command(*words: str) -> str:
    """Run a module of this checkout; what it printed."""
    line = [sys.executable, "-m", *words]
    return subprocess.run(line, cwd=ROOT, check=True, capture_output=True, text=True).stdout


def tested(number: int) -> str:
    """Run the tests of a goal; how they ended."""
    words = ("-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", "-rN", *TESTS[number])
    line = [sys.executable, *words, "-o", "addopts="]
    ran = subprocess.run(line, cwd=ROOT, check=False, capture_output=True, text=True)
    return ran.stdout.strip().splitlines()[-1]


@contextmanager
def serving(*words: str) -> Iterator[tuple[str, float]]:
    """Start a command that serves pages; its address, and the seconds until it was printed."""
    start = time.perf_counter()
    line = [sys.executable, "-m", "trajudge.eval.cli", *words]
    with subprocess.Popen(line, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = process.stdout.readline().split()[0]
        try:
            yield address, time.perf_counter() - start
        finally:
            process.terminate()


def labelled_items(run: Path, place: Path) -> str:
    """Label items in Chromium; presses of each, and the time until the page behind a submission."""
    from playwright.sync_api import sync_playwright

    queue = str(place / "queue")
    cli = "trajudge.eval.cli"
    command(cli, "label", "build", str(run), "--budget", str(ITEMS), "--out", queue)
    command(cli, "label", "people", queue, "--add", "Ann")
    took, presses = [], 0
    with serving("label", "serve", queue) as (address, _), sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=installed_chromium(), args=["--no-sandbox"]
        )
        page = chromium.new_page()
        page.goto(address)
        page.get_by_role("button", name="Go on").click()
        page.goto(f"{address}queue/next")
        for number in range(ITEMS):
            page.wait_for_load_state()
            page.keyboard.press("F" if number % 3 else "S")
            start = time.perf_counter()
            with page.expect_navigation(wait_until="domcontentloaded"):
                page.keyboard.press("Control+Enter")
            took.append(1_000 * (time.perf_counter() - start))
            presses += 2
        chromium.close()
    median, p95 = np.quantile(took, [0.5, 0.95])
    return (
        f"{presses / ITEMS:g} presses an item; next page median {median:.0f}, p95 {p95:.0f}, worst "
        f"{max(took):.0f} ms"
    )


def distributions(extra: str = "") -> set[str]:
    """Name the distributions that this one needs, with an extra, as far as they are installed."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    own = project["dependencies"] + project["optional-dependencies"].get(extra, [])
    known: set[str] = set()
    waiting = [(Requirement(each), "") for each in own]
    while waiting:
        each, wanted = waiting.pop()
        applies = each.marker is None or each.marker.evaluate({"extra": wanted})
        if not applies or each.name.lower() in known:
            continue
        known.add(each.name.lower())
        with suppress(PackageNotFoundError):
            for needed in requires(each.name) or []:
                waiting += [(Requirement(needed), one) for one in ("", *each.extras)]
    return known


def installed(run: Path) -> str:
    """Count what the extra adds, and time the start."""
    added = sorted(distributions("app") - distributions())
    starts = []
    for _ in range(5):
        with serving("inspect", str(run)) as (_, seconds):
            starts.append(seconds)
    return (
        f"adds {len(added)} distributions ({', '.join(added)}); starts in {np.median(starts):.2f} s"
    )


def sizes() -> str:
    """Count the lines of the application, beside their limits."""
    own = [each for each in (ROOT / "trajudge/app/static").glob("*.js") if "htmx" not in each.name]
    counted = {
        "Python": [*(ROOT / "app").rglob("*.py")],
        "templates": [*(ROOT / "trajudge/app/templates").rglob("*.html")],
        "JavaScript": own,
        "CSS": [*(ROOT / "trajudge/app/static").glob("*.css")],
    }
    lines = {n: sum(len(f.read_text().splitlines()) for f in fs) for n, fs in counted.items()}
    return ", ".join(f"{name} {lines[name]:,} of {limit:,}" for name, limit in LIMITS.items())


def main(arguments: list[str] | None = None) -> None:
    """Measure and print a line for each goal."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--only", type=int, nargs="+", choices=range(3, 13))
    options.add_argument("--data", type=Path, metavar="DIR")
    options.add_argument("--kills", default="100")
    options.add_argument("--submissions", default="500")
    options.add_argument("--times", default="2000", help="simulations of goal 5")
    chosen = options.parse_args(arguments)
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary)
        for number, measure in _goals(chosen, place).items():
            if chosen.only is None or number in chosen.only:
                print(f"goal {number}: {measure().strip()}", flush=True)


def _goals(chosen: argparse.Namespace, place: Path) -> Mapping[int, Callable[[], str]]:
    run = place / "heuristic"

    def sample() -> Path:
        if not run.exists():
            words = ("--judge", "heuristic", "--data", "sample", "--out", str(run))
            command("trajudge.eval.cli", "judge", *words)
        return run

    counts = ("--submissions", chosen.submissions, "--kills", chosen.kills)
    queues = ("benchmarks.label_queues", str(chosen.data), "--times", chosen.times)
    absent = "not measured: name the published judgments with --data DIR"
    goals: dict[int, Callable[[], str]] = {
        3: lambda: command("benchmarks.labelling", *counts),
        5: lambda: command(*queues) if chosen.data else absent,
        9: lambda: labelled_items(sample(), place),
        10: lambda: command("benchmarks.report_file"),
        11: lambda: installed(sample()),
        12: sizes,
    }
    goals |= {number: lambda number=number: tested(number) for number in TESTS}  # type: ignore[misc]  # bound now
    return {number: _indented(goals[number]) for number in sorted(goals)}


def _indented(measure: Callable[[], str]) -> Callable[[], str]:
    """Indent what follows the first line."""
    return lambda: re.sub(r"\n(?=.)", "\n  ", measure())


if __name__ == "__main__":
    main()
