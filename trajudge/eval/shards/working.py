"""What ``trajudge run work`` does with its options."""

from __future__ import annotations

import sys

from trajudge.eval.runs.grid import plan_runs, say_sources
from trajudge.eval.runs.settings import RunRequest
from trajudge.eval.runs.workers import run_interruptible, terminate_as_interrupt
from trajudge.eval.shards.objects.opening import open_store
from trajudge.eval.shards.plan import shared_plan
from trajudge.eval.shards.worker import ShardWorker
from trajudge.trajectories.util.errors import UserError
from trajudge.trajectories.util.terminal import count_of


def work(request: RunRequest, address: str, size: int | None, seconds: float) -> int:
    """Work on the run at ``address`` until it is finished; return the exit code. Raises
    UserError."""
    check_shareable(request)
    store = open_store(address)
    (planned,) = plan_runs(request)
    say_sources([planned])
    plan = shared_plan(store, planned, size)
    worker = ShardWorker(store, plan, planned, seconds=seconds)
    with terminate_as_interrupt():
        code = run_interruptible(worker.work())
    sys.stderr.write(
        f"{worker.name}: {count_of(worker.judged, 'judgment')} of "
        f"{count_of(len(plan.shards), 'shard')}\n"
    )
    return code


def check_shareable(request: RunRequest) -> None:
    """Raise UserError for what a shared run does not do."""
    if len(request.judges) != 1 or len(request.models) > 1:
        raise UserError("a shared run has one --judge and at most one --model: start one for each")
    refused = {
        "--out": request.run.out,
        "--batch": request.batch.is_on,
        "--retry-failed": request.run.retry_failed,
        "--export": request.run.export,
        "--dry-run": request.calls.dry_run,
    }
    for flag, given in refused.items():
        if given:
            raise UserError(
                f"trajudge run work takes no {flag}: use  trajudge judge {flag}, for the whole run "
                "before it or on the merged folder after it"
            )
