"""What a success rate from a text-only judge is worth: ``python -m benchmarks.self_report``.

browser-use published 300 final answers on Online-Mind2Web's tasks with a model's verdict on each,
given from the text. Nobody labelled these runs; but people labelled six other agents on most of the
tasks. Beside the published rate stand: how many answers claim success by a fixed rule, what the
judge accepts where none of the six labelled agents succeeded, and the labelled agents' rates on the
tasks of both. Needs ``--answers`` and ``--labels``, or ``TRAJUDGE_REAL_DATA``.
"""

from __future__ import annotations

import argparse
import os
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from trajudge.annotations import open_annotations
from trajudge.annotations.published import open_verdicts
from trajudge.eval.baselines import claims_success
from trajudge.stats.intervals import wilson
from trajudge.trajectories.loaders import open_source
from trajudge.trajectories.model import Trajectory
from trajudge.util.tables import Table, text

Row = tuple[str, str, str]


def rows(answers: str, labels: str) -> list[Row]:
    """One row a rate: its name, itself with Wilson's 95 % interval, and on how many tasks."""
    judged = {one.key.task_id: bool(one.success) for one in open_verdicts(answers)}
    runs = [run for run in open_source(answers) if isinstance(run, Trajectory)]
    claimed = {run.key.task_id: claims_success(run) for run in runs}
    people: dict[str, dict[str, bool]] = defaultdict(dict)
    for label in open_annotations(labels):
        people[label.key.task_id][label.key.agent] = bool(label.success)
    shared = [task for task in judged if task in people]
    unsolved = [task for task in shared if not any(people[task].values())]
    found = [
        _row("the publisher's judge: success", judged.values()),
        _row("the answer claims success", claimed.values()),
        _row("judge and claim agree", (judged[task] == claimed[task] for task in judged)),
        _row("judge: success, tasks that people labelled", (judged[task] for task in shared)),
        _row("judge: success, none of the six succeeded", (judged[task] for task in unsolved)),
    ]
    agents = sorted({agent for task in shared for agent in people[task]})
    return found + [
        _row(f"people: {agent}", (people[task][agent] for task in shared)) for agent in agents
    ]


def _row(name: str, values: Iterable[bool]) -> Row:
    kept = [*values]
    interval = wilson(sum(kept), len(kept))
    low, high = 100 * float(interval.low), 100 * float(interval.high)
    return name, f"{100 * sum(kept) / len(kept):.1f} [{low:.1f}, {high:.1f}]", str(len(kept))


def main() -> None:
    """Print the table."""
    data = Path(os.environ.get("TRAJUDGE_REAL_DATA", "."))
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--answers", default=f"browser-use-answers:{data / 'browser_use_om2w'}")
    parser.add_argument("--labels", default=f"online-mind2web:{data / 'online-mind2web'}")
    options = parser.parse_args()
    head = ("rate", "% [95 %]", "tasks")
    print(text(Table("", head, rows(options.answers, options.labels), names=1)).lstrip("\n"))


if __name__ == "__main__":
    main()
