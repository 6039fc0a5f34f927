"""Record the scripted agents in the shop: ``python -m environments.record --out DIR``.

Writes the trajectories in the project's own format (``trajectories.jsonl.gz``, ``images/``), their
labels as annotations (``labels.jsonl``) and what the final states showed (``facts.jsonl``). The
same seed gives the same text; pictures may differ between versions of Chromium.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from environments.agents import AGENTS
from environments.browser import launch
from environments.run import Recorded, record
from environments.tasks import TASKS
from trajectories import store
from trajectories.errors import UserError
from trajectories.exits import DONE, Parser, user_errors

ANNOTATOR = "final-state"
_LABELS_HEADER = {"format": "trajudge-annotations", "version": 1}


def record_all(tasks: Sequence[str], agents: Sequence[str], seed: int) -> Iterator[Recorded]:
    """All runs of the agents on the tasks, one browser for all of them.

    Raises UserError for a name that does not exist, and what ``launch`` raises.
    """
    for kind, names, known in (("task", tasks, TASKS), ("agent", agents, AGENTS)):
        for name in names:
            if name not in known:
                raise UserError(f"no {kind} is called {name!r}: choose from {', '.join(known)}")
    with launch() as browser:
        for task in tasks:
            for agent in agents:
                yield record(browser, TASKS[task], agent, seed)


def write(folder: Path, runs: Sequence[Recorded]) -> Path:
    """Write trajectories, labels and facts into ``folder``; returns the trajectories' file.

    Raises UserError if the folder cannot be written.
    """
    file = store.write(folder, (run.trajectory for run in runs), compress="gz")
    try:
        _write_lines(folder / "labels.jsonl", [_LABELS_HEADER, *map(annotation, runs)])
        _write_lines(folder / "facts.jsonl", map(_known, runs))
    except OSError as error:
        raise UserError(f"{folder}: cannot be written ({error.strerror or error})") from error
    return file


def annotation(run: Recorded) -> dict[str, Any]:
    """The labels of a run in the project's annotation format."""
    return {
        "key": run.trajectory.key.model_dump(),
        "raw_task_id": run.trajectory.raw_task_id,
        "annotator": ANNOTATOR,
        **run.labels._asdict(),
    }


def _known(run: Recorded) -> dict[str, Any]:
    return {
        "key": run.trajectory.key.model_dump(),
        "behaviour": run.behaviour.value,
        **run.facts,
    }


def _write_lines(path: Path, records: Iterable[dict[str, Any]]) -> None:
    lines = [json.dumps(entry, ensure_ascii=False) + "\n" for entry in records]
    path.write_text("".join(lines), encoding="utf-8")


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"--out {folder}: cannot be made ({error.strerror or error})") from error


@user_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    parser = Parser(prog="python -m environments.record", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("recorded"), help="folder to write into")
    parser.add_argument("--seed", type=int, default=0, help="seed of the agents (default 0)")
    parser.add_argument("--tasks", nargs="+", default=list(TASKS), metavar="TASK")
    parser.add_argument("--agents", nargs="+", default=list(AGENTS), metavar="AGENT")
    options = parser.parse_args(arguments)
    if options.seed < 0:
        raise UserError(f"--seed is {options.seed}: give a number from 0")
    _make(options.out)  # a folder that cannot be made should not cost a recording
    runs = list(record_all(options.tasks, options.agents, options.seed))
    file = write(options.out, runs)
    sys.stdout.write(f"{len(runs)} trajectories in {file}\n")
    return DONE


if __name__ == "__main__":
    sys.exit(main())
