"""Whether what the command line names is there: asked once, at the start, and not page by page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from trajudge.annotations import open_labels, parse_labels
from trajudge.eval.store.inputs import open_spec
from trajudge.trajectories.goals import read_goals, split_goals
from trajudge.trajectories.loaders import parse_source
from trajudge.trajectories.sample import SAMPLE
from trajudge.util.errors import UserError
from trajudge.util.files import check_folder


def check_data(specs: Sequence[str]) -> None:
    """Refuse data that could not be opened for a page. Raises UserError."""
    for spec in specs:
        goals = split_goals(spec)[1]
        if goals is not None:
            read_goals(goals)
        if parse_source(open_spec(spec))[1] is None:
            raise UserError(
                f"--data {spec}: names no copy on this machine: write --data {spec}:PATH"
            )


def check_annotations(spec: str) -> None:
    """Refuse labels whose file is not there, or whose annotators differ. Raises UserError."""
    path = None if spec == SAMPLE else parse_labels(spec).path
    if path is not None and not path.exists():
        raise UserError(
            f"--annotations {spec}: there is no file or folder {str(path)!r}: write KIND:PATH with "
            "the path of the labels"
        )
    open_labels(spec)


def check_queues(folder: Path) -> None:
    """Refuse a folder of queues that could not be one. It is made with the first queue, but not
    the folder that it is to lie in: that one would be misspelt. Raises UserError."""
    check_folder(folder, "--queues")
    if not folder.absolute().parent.is_dir():
        raise UserError(
            f"--queues {folder}: there is no folder {str(folder.parent)!r} to make it in: name a "
            "folder that exists, or make that one"
        )
