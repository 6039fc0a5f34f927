"""``make fuzz SEED=7 MINUTES=10``: run the property tests again and again with new seeds, and the
tests that otherwise try a part (``sampled``) with all of it.

What a search finds is kept in ``.fuzz/`` and tried first by the next one; put it into the test as
an ``@example``, so that every run tries it. Exit code 1 if a test failed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Search until the minutes are over or a test fails; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="of the first round; each adds one")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("tests", nargs="*", default=["tests"], help="only these (default: all)")
    options = parser.parse_args(arguments)
    until, seed = time.monotonic() + 60 * options.minutes, options.seed
    environment = {**os.environ, "TRAJUDGE_FUZZ": os.environ.get("TRAJUDGE_FUZZ", ".fuzz")}
    while seed == options.seed or time.monotonic() < until:
        command = [sys.executable, "-m", "pytest", "-m", "hypothesis or sampled", "-n", "auto"]
        command += [f"--hypothesis-seed={seed}", *options.tests]
        if subprocess.run(command, env=environment, check=False).returncode:
            sys.stderr.write(f"seed {seed} found a failure: make fuzz SEED={seed} repeats it\n")
            return 1
        seed += 1
    sys.stdout.write(f"{seed - options.seed} rounds, nothing found\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
