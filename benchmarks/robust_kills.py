"""Whether ``trajudge robust`` goes on after ``kill -9`` as if nothing had been, and costs what its
dry run says: ``python -m benchmarks.robust_kills [--kills N] [--limit N]``.

A loopback server answers as a model that obeys whatever it reads, and counts the tokens of each
prompt with tiktoken, as a provider does. One measurement runs through; another is killed at random
moments and begun again until it ends. Printed: the dry run's price of the input beside what the
server billed, requests that were answered and asked again for each kill, and which files differ.
Exit code 1 for a difference of the results, or of the price of more than 5 %.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import NamedTuple

import numpy as np

from benchmarks.token_estimates import encodings
from tests.llm_replies import Incoming
from tests.llm_server import LlmServer
from tests.robustness.models import obeys_every_instruction

ROOT = Path(__file__).parents[1]
RESULTS = ("robustness.json", "robustness.csv", "matrix.csv", "contamination.csv")
_TOKENS = re.compile(r"input tokens +([\d,]+)")


class Billing:
    """Answers as a gullible model, and adds up the tokens of what it was sent."""

    def __init__(self) -> None:
        self.encoding = encodings()["o200k"]
        self.tokens = 0
        self._lock = Lock()

    def __call__(self, incoming: Incoming) -> str:
        count = len(self.encoding.encode_ordinary(incoming.prompt))
        with self._lock:
            self.tokens += count
        return obeys_every_instruction(incoming)


class RobustCommand(NamedTuple):
    """One ``trajudge robust`` with a cache and a folder of its own."""

    server: LlmServer
    folder: Path
    limit: int

    def command(self, *more: str) -> list[str]:
        where = [
            "--base-url",
            f"{self.server.url}/v1",
            "--cache",
            str(self.folder / "cache.sqlite"),
        ]
        words = ["--judge", "simplified", "--model", "gpt-4o", "--limit", str(self.limit)]
        words += ["--out", str(self.folder / "out"), "--seed", "18", *more]
        return [sys.executable, "-m", "trajudge.eval.cli", "robust", *words, *where]

    def run(self, *more: str) -> tuple[float, str]:
        """Run it to its end; return the seconds that it took, and what it printed."""
        began = time.monotonic()
        done = subprocess.run(
            self.command(*more), check=False, cwd=ROOT, capture_output=True, text=True
        )
        if done.returncode:
            raise SystemExit(done.stderr)
        return time.monotonic() - began, done.stdout

    def killed(self, after: float) -> bool:
        """Run it and kill it; return whether it was still running."""
        command = self.command("--yes")
        null = subprocess.DEVNULL
        with subprocess.Popen(command, cwd=ROOT, stdout=null, stderr=null) as process:
            try:
                process.wait(after)
            except subprocess.TimeoutExpired:
                process.kill()
                return True
        return False


def judgments(folder: Path) -> list[str]:
    """Read what was judged, in a stable order: the journal is in the order of the answers."""
    files = sorted(folder.glob("out/runs/**/judgments.jsonl"))
    return sorted(line for file in files for line in file.read_text().splitlines())


def differing(one: Path, other: Path) -> list[str]:
    """List the results that are not the same bytes."""
    names = [name for name in RESULTS if (one / "out" / name).is_file()]
    wrong = [name for name in names if _bytes(one / "out" / name) != _bytes(other / "out" / name)]
    attacked = Path("out", "attacked", "variants.jsonl")
    if (one / attacked).read_bytes() != (other / attacked).read_bytes():
        wrong.append("variants.jsonl")
    if judgments(one) != judgments(other):
        wrong.append("judgments.jsonl")
    return wrong


def _bytes(file: Path) -> bytes:
    """Read a result; the folder that it names is that of the run."""
    return file.read_bytes().replace(str(file.parent).encode(), b"OUT")


def main(arguments: Sequence[str] | None = None) -> int:
    """Price, measure, kill, and compare."""
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--kills", type=int, default=20)
    options.add_argument("--limit", type=int, default=150, help="runs that are changed")
    options.add_argument("--seed", type=int, default=0)
    chosen = options.parse_args(arguments)
    rng = np.random.default_rng(chosen.seed)
    with tempfile.TemporaryDirectory() as made:
        folder, billing = Path(made), Billing()
        with LlmServer(text=billing, record=0) as server:
            whole = RobustCommand(server, folder / "whole", chosen.limit)
            predicted = sum(
                int(found.replace(",", "")) for found in _TOKENS.findall(whole.run("--dry-run")[1])
            )
            seconds, _ = whole.run("--yes")
            requests, billed = server.stats.requests, billing.tokens
            port = int(server.url.rpartition(":")[2])
        off = predicted / billed - 1
        print(
            f"priced {predicted:,} tokens of input, billed {billed:,} ({100 * off:+.2f} %); "
            f"{requests:,} requests, {seconds:.0f} s"
        )
        # At the same address, which is a part of what a judge is.
        with LlmServer(port=port, text=Billing(), record=0) as server:
            cut = RobustCommand(server, folder / "cut", chosen.limit)
            moments = rng.uniform(0, seconds, chosen.kills).tolist()
            kills = sum(cut.killed(moment) for moment in moments)
            cut.run("--yes")
            again = server.stats.answered_again
        wrong = differing(whole.folder, cut.folder)
        print(f"{kills} kills: {again} requests that had been answered were asked again")
        print(f"results that differ: {', '.join(wrong) or 'none'}")
        print(json.dumps({"kills": kills, "again": again, "priced": predicted, "billed": billed}))
    return int(bool(wrong) or abs(off) > 0.05)


if __name__ == "__main__":
    sys.exit(main())
