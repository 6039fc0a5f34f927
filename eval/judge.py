"""``python -m eval.judge``: judge trajectories, and score the judge against experts and rules."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from trajudge.eval.runs.options import parse
from trajudge.trajectories.util.exits import DONE, INTERRUPTED, user_errors

if TYPE_CHECKING:
    from trajudge.eval.runs.grid import Cell
    from trajudge.eval.runs.settings import RunRequest


@user_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the command line asks for; the exit code (``trajectories.util.exits``)."""
    request = parse(sys.argv[1:] if arguments is None else arguments)
    from trajudge.eval.runs.grid import make_cells, say_sources  # noqa: PLC0415 - --help needs none of these

    cells = make_cells(request)
    say_sources(cells)
    if request.calls.dry_run:
        from trajudge.eval.runs.pricing import dry_run  # noqa: PLC0415

        return dry_run(cells)
    if not _may_spend(request, cells):
        sys.stderr.write("not started: nothing was asked\n")
        return INTERRUPTED
    from trajudge.eval.runs.workers import terminate_as_interrupt  # noqa: PLC0415

    with terminate_as_interrupt():
        return _execute(cells)


def _may_spend(request: RunRequest, cells: Sequence[Cell]) -> bool:
    if request.yes or request.calls.max_cost is not None:
        return True
    if all(cell.model is None for cell in cells):
        return True
    from trajudge.eval.runs.pricing import confirm, predict  # noqa: PLC0415

    return confirm(predict(cells))


def _execute(cells: Sequence[Cell]) -> int:
    """The runs one after the other, then one page of tables for all; the worst exit code."""
    from trajudge.eval.data.call_log import spent_in  # noqa: PLC0415
    from trajudge.eval.runs.outputs import missing_policy, show  # noqa: PLC0415
    from trajudge.eval.runs.session import Sitting  # noqa: PLC0415
    from trajudge.eval.scoring.compute import score  # noqa: PLC0415

    started, outcomes = time.monotonic(), []
    spent: dict[str, float] = {}
    for cell in cells:
        outcomes.append(Sitting(cell, spent).execute())
        spent |= spent_in(cell.plan.folder, outcomes[-1].judgments)
        if outcomes[-1].code == INTERRUPTED:
            break
    done = [judgment for outcome in outcomes for judgment in outcome.judgments]
    rewards = {key: reward for outcome in outcomes for key, reward in outcome.rewards.items()}
    labels = {key: label for cell in cells for key, label in cell.plan.labels.items()}
    missing = missing_policy(cells[0].run.protocol)
    training = {judge: keys for cell in cells for judge, keys in cell.plan.training.items()}
    scores = score(done, labels, rewards=rewards, missing=missing, training=training)
    show(scores, time.monotonic() - started, has_labels=bool(labels))
    for outcome in outcomes:
        sys.stderr.write("".join(note + "\n" for note in outcome.notes))
    return max((outcome.code for outcome in outcomes), default=DONE)


if __name__ == "__main__":
    sys.exit(main())
