"""Record the bundled sample again: ``python -m tests.environments.recording.sample_again``.

It is a cut of the reference set (docs/environments.md): of its cases those of ``SCENARIOS``, done
by the scripted agents of known behaviour, in Chromium for the pictures. The checkers of other tasks
judge their ends, and the folder gets what came of it. ``make sample`` does this and then writes the
screens of the README and the tutorial anew.
"""

from __future__ import annotations

import shutil
import sys
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image

from trajudge.environments.model.case import Case, read_cases, write_cases
from trajudge.eval.cli import main
from trajudge.trajectories import store
from trajudge.trajectories.model import ImageRef, Step, Trajectory
from trajudge.trajectories.sample import sample_path

SCENARIOS = (
    "shop.buy",
    "shop.cheapest-month",
    "moderation.settle-appeal",
    "helpdesk.manager-of",
    "almanac.busiest-month",
    "toolbox.run-job",
    "console.revoke-key",
    "press.image-fee",
)
OTHER_GOALS = 40
FILES = ("labels.jsonl", "facts.jsonl", "cases.jsonl", "goals.jsonl")


def case_of(name: str, file: Path) -> Case:
    """Return the reference set's case of a scenario, which depends on no other scenario."""
    app, _, scenario = name.partition(".")
    words = ["--app", app, "--scenario", scenario, "--count", "1", "--save", str(file)]
    if main(["env", "generate", *words]):
        raise RuntimeError(f"no case of {name} was generated")
    return read_cases(file)[0]


def record_again(folder: Path, workers: int) -> None:
    """Record the sample in a folder, anew."""
    with TemporaryDirectory() as scratch:
        made = Path(scratch) / "recorded"
        cases, goals = Path(scratch) / "cases.jsonl", made / "goals.jsonl"
        write_cases(cases, [case_of(name, cases) for name in SCENARIOS])
        for words in (
            ["record", "--cases", str(cases), "--out", str(made), "--workers", str(workers)],
            ["verify", str(made), "--other-goals", str(OTHER_GOALS), "--save", str(goals)],
        ):
            if main(["env", *words]):
                raise RuntimeError(f"trajudge env {words[0]} failed")
        shutil.rmtree(folder / "images", ignore_errors=True)
        runs = (run for run in store.read(made) if isinstance(run, Trajectory))
        store.write(folder, map(smaller, runs), compress="zst")
        for name in FILES:
            shutil.copy(made / name, folder)


def smaller(run: Trajectory) -> Trajectory:
    """Return the run with its pictures as WebP without loss, which take little more than half."""
    return run.model_copy(update={"steps": tuple(map(_smaller, run.steps))})


def _smaller(step: Step) -> Step:
    picture = step.observation.screenshot
    if picture is None:
        return step
    file = BytesIO()
    Image.open(BytesIO(picture.read())).convert("RGB").save(file, "WEBP", lossless=True, method=6)
    seen = step.observation.model_copy(update={"screenshot": ImageRef(data=file.getvalue())})
    return step.model_copy(update={"observation": seen})


if __name__ == "__main__":
    record_again(sample_path(), int(sys.argv[1]) if len(sys.argv) > 1 else 2)
