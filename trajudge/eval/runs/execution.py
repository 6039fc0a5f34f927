"""The runs of a command, one after the other within one budget, scored next to each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial

from trajudge.eval.runs.jobs import StopSignal, graceful_interrupt
from trajudge.eval.runs.outputs import missing_policy
from trajudge.eval.runs.plan import RunPlan, labels_of_runs
from trajudge.eval.runs.ray import ray_sessions
from trajudge.eval.runs.session import RunResult, RunSession
from trajudge.eval.runs.settings import RunRequest
from trajudge.eval.scoring.compute import score
from trajudge.eval.scoring.estimates import with_estimated_rates
from trajudge.eval.scoring.records import ScoreReport
from trajudge.eval.scoring.usage import paid_in_all
from trajudge.eval.sources import known_rewards, names_apart
from trajudge.eval.store.run_folder import CALLS, JUDGMENTS, RunDollars, in_all, spent_in
from trajudge.eval.store.table import concatenate, read_run_judgments
from trajudge.judges.batch.ledger import Ledger, ledger_path
from trajudge.judges.calls.handle import cache_path
from trajudge.judges.model import Judgment
from trajudge.util.errors import UserError


class RunsFailed(UserError):
    """What ended some of several runs, each ``failed`` one by its judge; ``results`` are those of
    the others."""

    def __init__(
        self, failed: Sequence[tuple[str, UserError]], of: int, results: list[RunResult]
    ) -> None:
        self.results = results
        judges: dict[str, list[str]] = {}
        for judge, error in failed:
            judges.setdefault(str(error), []).append(judge)
        said = "; ".join(f"{', '.join(names)}: {why}" for why, names in judges.items())
        super().__init__(f"{len(failed)} of {of} runs failed: {said}")


SessionOpening = Callable[[RunPlan, Sequence[RunDollars], StopSignal], RunSession]


def session_opening(request: RunRequest) -> AbstractContextManager[SessionOpening | None]:
    """Return what makes the sessions of a request's runs while it is entered; None: sessions that
    ask live, in this process. Raises UserError where Ray cannot be reached."""
    if request.run.ray:
        return ray_sessions(request.run.ray)
    if not request.batch.is_on:
        return nullcontext()
    from trajudge.eval.runs.batches import BatchSession  # noqa: PLC0415 - brings the batch APIs

    return nullcontext(partial(BatchSession, config=request.batch))


async def run_all(
    runs: Sequence[RunPlan], stop: StopSignal, opening: SessionOpening | None = None
) -> list[RunResult]:
    """Execute the runs one after the other, within one budget, until ``stop`` is interrupted;
    ``opening`` makes their sessions. Raises UserError as ``RunSession.execute``; of several runs
    RunsFailed at the end: what ends one is mostly its judge's or its model's own. Where the user
    interrupts, a note of the last result names what failed."""
    results: list[RunResult] = []
    failed: list[tuple[str, UserError]] = []
    spent = [_spent_before(plan) for plan in runs] if len(runs) > 1 else [RunDollars({}, {})]
    for place, plan in enumerate(runs):
        elsewhere = [*spent[:place], *spent[place + 1 :]]
        session = (opening or RunSession)(plan, elsewhere, stop)
        session.spent = spent[place]
        try:
            results.append(await session.execute())
        except UserError as error:
            if len(runs) == 1:
                raise
            failed.append((plan.judge_id, error))
        spent[place] = session.spent
        stop.forget_run()
        if stop.reason is not None:
            break
    if failed:
        ended = RunsFailed(failed, len(runs), results)
        if stop.reason is None or not results:
            raise ended
        # A loop of the user's shell ends at the code of Ctrl-C alone.
        results[-1] = results[-1]._replace(notes=(*results[-1].notes, str(ended)))
    return results


def _spent_before(plan: RunPlan) -> RunDollars:
    """Read what earlier sessions of a run have spent, or reserved in batches, where dollars are
    limited."""
    if plan.calls.max_cost is None:
        return RunDollars({}, {})
    folder = plan.folder
    judgments: Sequence[Judgment] = ()
    with suppress(UserError):  # which the run itself tells
        if (folder / JUDGMENTS).is_file():
            judgments = read_run_judgments(folder / JUDGMENTS, folder / CALLS)
    spent = spent_in(folder, judgments)
    path = ledger_path(cache_path(plan.calls.cache))
    if not path.is_file():
        return spent
    ledger = Ledger(path)
    try:
        reserved = ledger.reserved(str(folder.resolve()))
    finally:
        ledger.close()
    return spent._replace(noted=in_all([spent.noted, reserved]))


async def run_until_interrupted(
    runs: Sequence[RunPlan], opening: SessionOpening | None = None
) -> list[RunResult]:
    """Execute the runs as ``run_all`` does; Ctrl-C and SIGTERM end them early."""
    stop = StopSignal()
    with graceful_interrupt(stop):
        return await run_all(runs, stop, opening)


def scores_of_all(runs: Sequence[RunPlan], results: Sequence[RunResult]) -> ScoreReport:
    """Score the runs beside each other; those of a single run are known already. Judges of one
    name, as two files may have, are told apart by their folders."""
    if len(results) == 1:
        return results[0].scores.model_copy(update={"label_policy": ""})
    plans = [result.plan for result in results]
    renamed = names_apart([(str(plan.folder), [plan.judge_id]) for plan in plans])
    judgments = concatenate(
        [result.judgments.renamed(names) for result, names in zip(results, renamed, strict=True)]
    )
    rewards = known_rewards([result.rewards for result in results])
    labels = labels_of_runs(runs)
    missing = missing_policy(runs[0].run.protocol)
    training = {
        names[judge]: keys
        for plan, names in zip(plans, renamed, strict=True)
        for judge, keys in plan.training.items()
    }
    scores = score(judgments, labels, rewards=rewards, missing=missing, training=training)
    scores = with_estimated_rates(scores, judgments, labels, training)
    more = {
        "unattributed_cost": paid_in_all(result.scores.unattributed_cost for result in results),
        "unfinished": tuple(
            run.model_copy(update={"judge": names[run.judge]})
            for result, names in zip(results, renamed, strict=True)
            for run in result.scores.unfinished
        ),
    }
    return scores.model_copy(update=more)
