"""What verl's reward manager and OpenRLHF's client make of a judge that fails.

``python -m benchmarks.reward_trainers [--items N]`` asks a reward server for N rewards each, in
groups of 8, of which a quarter fail for good and a fifth of the calls once. Printed is, of verl,
whether all samples have the same keys, how many rewards are no number, and the largest advantage of
an abstention; of OpenRLHF, how many rewards it lost.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np

from tests.rewards.test_trainers import asked
from tests.trainers import TRAINERS


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--items", type=int, default=1_000, metavar="N")
    options = parser.parse_args()
    (packages,) = TRAINERS.python().parents[1].glob("lib/python*/site-packages")
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        answers = asked(packages, Path(folder), options.items)
    extras = [one["reward_extra_info"] for one in answers.verl]
    abstained = np.array([extra["abstained"] for extra in extras], dtype=bool)
    advantages = np.array([one["advantage"] for one in answers.verl])
    scores = np.array([one["reward_score"] for one in answers.verl])
    lost = sum(one["reward"] is None for one in answers.openrlhf)
    print(
        f"verl: {len(extras)} samples, {abstained.sum()} abstained, "
        f"{len({frozenset(extra) for extra in extras})} set of keys, "
        f"{(~np.isfinite(scores)).sum()} no number, "
        f"largest advantage of an abstention {np.abs(advantages[abstained]).max():.1e}, "
        f"of the others {np.abs(advantages[~abstained]).max():.2f}\n"
        f"OpenRLHF: {len(answers.openrlhf)} rewards, {lost} lost; {time.monotonic() - began:.0f} s"
    )


if __name__ == "__main__":
    main()
