"""The environments' bars: ``python -m benchmarks.environments [--quick] [--only NAME ...]``.

Rates are for a core: work over the CPU time of this process and of Chromium's, since machines are
shared. Peers are measured in the same run where they are at hand: bare Playwright always, MiniWoB++
with ``--miniwob PYTHON`` (of an environment that has browsergym-miniwob and miniwob), WebArena's
task file and recorded BrowserGym runs with ``--webarena`` and ``--webarena-runs``. ``--only prism``
prints PRISM's five principles as facts that can fail, for these environments and their peers.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.environments import content, engines, ladder, miniwob_probe, prism
from benchmarks.environments.measuring import say
from trajudge.environments.chromium.browser import find_chromium


def probe(python: str | None, tasks: int) -> dict[str, Any] | None:
    """Return what MiniWoB++ shows; None, and a row that says so, where it is not installed."""
    if python is None:
        say("MiniWoB++ through browsergym-miniwob", "not installed", note="--miniwob PYTHON")
        return None
    words = [python, miniwob_probe.__file__, find_chromium(), str(tasks), str(prism.SEEDS)]
    done = subprocess.run(words, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def miniwob(found: dict[str, Any] | None) -> None:
    """Print the speed of MiniWoB++, for which there is no goal."""
    if found is not None:
        note = f"{found['opened']} of {found['tasks']} tasks, delays off, noop"
        say("MiniWoB++: a reset, CPU", f"{found['reset_ms']:.0f} ms", note=note)
        say("MiniWoB++: a step, CPU", f"{found['step_ms']:.0f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a quarter of the work or less")
    parser.add_argument("--only", nargs="*", default=[], metavar="NAME")
    parser.add_argument("--miniwob", metavar="PYTHON", default=os.environ.get("MINIWOB_PYTHON"))
    parser.add_argument("--webarena", type=Path, metavar="FILE", help="test.raw.json")
    parser.add_argument("--webarena-runs", type=Path, metavar="FOLDER", help="BrowserGym's")
    options = parser.parse_args()
    share = 4 if options.quick else 1
    probed: list[dict[str, Any] | None] = []

    def once() -> dict[str, Any] | None:
        if not probed:
            probed.append(probe(options.miniwob, 24 // share))
        return probed[0]

    def facts() -> None:
        columns = {
            "trajudge": prism.own(280 // share, content.LOOKS // share, 12 // share),
            "WebArena": prism.webarena(options.webarena, options.webarena_runs),
            "MiniWoB++": prism.miniwob(once()),
            "WebForge": prism.WEBFORGE,
        }
        print(prism.table(columns), flush=True)

    parts: dict[str, Callable[[], None]] = {
        "counts": content.counts,
        "pages": partial(content.pages, content.LOOKS // share),
        "generation": partial(content.generation, 8 // share, 400 // share),
        "answers": content.answers,
        "ladder": partial(ladder.ladder, max(1, 2 // share)),
        "blind": partial(content.blind, share),
        "equality": partial(engines.equality, 2000 // share**2),
        "labels": partial(engines.labels, 80 // share),
        "gym": partial(engines.gym, 80 // share, 20 // share),
        "memory": partial(engines.memory, 200 // share),
        "steps": partial(engines.steps, 16 // share),
        "miniwob": lambda: miniwob(once()),
        "prism": facts,
    }
    for name in options.only or parts:
        parts[name]()


if __name__ == "__main__":
    main()
