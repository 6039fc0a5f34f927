"""Record the bundled sample again: ``python -m tests.environments.recording.sample_again``.

The tasks' configurations are those of its ``cases.jsonl``; goals, levels and lengths are made anew
with the applications of today. Every scripted agent does them in Chromium, the checkers of other
tasks judge their ends, and the folder gets what came of it. ``make sample`` does this and then
writes the screens of the README and the tutorial anew.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from trajudge.environments.apps import load_app
from trajudge.environments.checks.integrity import check
from trajudge.environments.checks.shortest import shortest
from trajudge.environments.model.case import Case, read_cases, write_cases
from trajudge.environments.model.config import Config
from trajudge.eval.cli import main
from trajudge.trajectories.sample import sample_path

OTHER_GOALS = 40
FILES = ("trajectories.jsonl.gz", "labels.jsonl", "facts.jsonl", "cases.jsonl", "goals.jsonl")


def made_anew(config: Config) -> Case:
    """Return the case of a configuration; of the next sound instance where the rows of today give
    none. Raises RuntimeError where no instance is sound."""
    for instance in range(config.instance, config.instance + 100):
        case = check(
            load_app(config.app), config.model_copy(update={"instance": instance, "seed": 0})
        )
        if isinstance(case, Case):
            way = shortest(case)
            return case.model_copy(update={"fewest": way.actions if way.proved else None})
    raise RuntimeError(f"no sound instance of {config.app}.{config.scenario}")


def record_again(folder: Path, workers: int) -> None:
    """Record the sample in a folder, anew."""
    cases = [made_anew(case.config) for case in read_cases(sample_path() / "cases.jsonl")]
    with TemporaryDirectory() as scratch:
        made = Path(scratch) / "recorded"
        listed = Path(scratch) / "cases.jsonl"
        write_cases(listed, cases)
        goals = made / "goals.jsonl"
        for words in (
            ["record", "--cases", str(listed), "--out", str(made), "--workers", str(workers)],
            ["verify", str(made), "--other-goals", str(OTHER_GOALS), "--save", str(goals)],
        ):
            if main(["env", *words]):
                raise RuntimeError(f"trajudge env {words[0]} failed")
        shutil.copy(listed, made)
        shutil.rmtree(folder / "images", ignore_errors=True)
        shutil.copytree(made / "images", folder / "images")
        for name in FILES:
            shutil.copy(made / name, folder)


if __name__ == "__main__":
    record_again(sample_path(), int(sys.argv[1]) if len(sys.argv) > 1 else 2)
