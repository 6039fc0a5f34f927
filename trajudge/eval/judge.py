"""``trajudge judge``: judge trajectories, and score the judge against experts and rules."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Sequence

from trajudge.eval import cli
from trajudge.eval.runs.execution import (
    RunsFailed,
    SessionOpening,
    run_until_interrupted,
    scores_of_all,
    session_opening,
)
from trajudge.eval.runs.jobs import run_interruptible, terminate_as_interrupt
from trajudge.eval.runs.outputs import show
from trajudge.eval.runs.plan import RunPlan, plan_runs, say_sources, warn_without_effect
from trajudge.eval.runs.pricing import dry_run, may_spend
from trajudge.eval.runs.reproduce import notes
from trajudge.eval.runs.settings import RunRequest
from trajudge.util.commands import INTERRUPTED, OK
from trajudge.util.terminal import log_as_json, one_line, progress_bar


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ``trajudge judge`` with these words (default: the process's own)."""
    return cli.main(["judge", *(sys.argv[1:] if arguments is None else arguments)])


@terminate_as_interrupt()  # a model on this machine takes its time to load, too
def run(request: RunRequest) -> int:
    """Do what is asked for and return the exit code. Raises UserError."""
    if request.log_format == "json":
        log_as_json()
    warn_without_effect(request)
    if request.reproduce:
        for note in notes(request):
            sys.stderr.write(f"note: {note}\n")
    with progress_bar("reading the data"):
        runs = plan_runs(request)
    say_sources(runs, is_asked=request.batch.batch_files is None)
    if request.calls.dry_run:
        with progress_bar("rendering the prompts"):
            return asyncio.run(dry_run(runs, batch=request.batch))
    if not may_spend(request, runs):
        sys.stderr.write("cancelled; no model calls were made\n")
        return INTERRUPTED
    with session_opening(request) as opening:
        return _execute(runs, request, opening)


def _execute(runs: Sequence[RunPlan], request: RunRequest, opening: SessionOpening | None) -> int:
    """Do the runs one after the other, then show one screen for all; the worst exit code."""
    started, failed = time.monotonic(), None
    try:
        results = run_interruptible(run_until_interrupted(runs, opening))
    except RunsFailed as error:
        results, failed = error.results, error
    if results:
        with progress_bar("scoring"):
            scores = scores_of_all(runs, results)
        warnings = [f"warning: {one_line(text)}" for result in results for text in result.warnings]
        notes = [note for result in results for note in result.notes]
        show(scores, time.monotonic() - started, warnings, notes, full=request.full)
    if failed:
        raise failed
    return max((result.code for result in results), default=OK)


if __name__ == "__main__":
    sys.exit(main())
