"""``trajudge judge``: judge trajectories, and score the judge against experts and rules."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from trajudge.eval.runs.options import parse
from trajudge.util.commands import INTERRUPTED, OK, user_errors
from trajudge.util.machine import limit_threads
from trajudge.util.terminal import one_line

if TYPE_CHECKING:
    from trajudge.eval.runs.plan import PlannedRun
    from trajudge.eval.runs.session import SessionOpening
    from trajudge.eval.runs.settings import RunRequest


@user_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the command line asks for; return the exit code (``util.commands``)."""
    limit_threads()
    request = parse(sys.argv[1:] if arguments is None else arguments)
    from trajudge.eval.runs.plan import plan_runs, say_sources  # noqa: PLC0415 - --help needs none of these

    runs = plan_runs(request)
    say_sources(runs, is_asked=request.batch.batch_files is None)
    if request.calls.dry_run:
        import asyncio  # noqa: PLC0415

        from trajudge.eval.runs.pricing import dry_run  # noqa: PLC0415

        return asyncio.run(dry_run(runs, batch=request.batch))
    from trajudge.eval.runs.pricing import may_spend  # noqa: PLC0415 - brings what a dry run needs

    if not may_spend(request, runs):
        sys.stderr.write("cancelled; no model calls were made\n")
        return INTERRUPTED
    from trajudge.eval.runs.jobs import terminate_as_interrupt  # noqa: PLC0415
    from trajudge.eval.runs.session import session_opening  # noqa: PLC0415

    with session_opening(request) as opening, terminate_as_interrupt():
        return _execute(runs, request, opening)


def _execute(
    runs: Sequence[PlannedRun], request: RunRequest, opening: SessionOpening | None
) -> int:
    """Do the runs one after the other, then show one screen for all; the worst exit code."""
    from trajudge.eval.runs import session  # noqa: PLC0415
    from trajudge.eval.runs.jobs import run_interruptible  # noqa: PLC0415
    from trajudge.eval.runs.outputs import show  # noqa: PLC0415

    started, failed = time.monotonic(), None
    try:
        results = run_interruptible(session.run_until_interrupted(runs, opening))
    except session.RunsFailed as error:
        results, failed = error.results, error
    if results:
        scores = session.scores_of_all(runs, results)
        warnings = [f"warning: {one_line(text)}" for result in results for text in result.warnings]
        notes = [note for result in results for note in result.notes]
        show(scores, time.monotonic() - started, warnings, notes, full=request.full)
    if failed:
        raise failed
    return max((result.code for result in results), default=OK)


if __name__ == "__main__":
    sys.exit(main())
