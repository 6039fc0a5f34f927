"""Judges asked about changed runs, in the same engine as any run: cache, limits, budget, resume."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from trajudge.eval.runs.execution import RunsFailed, run_until_interrupted
from trajudge.eval.runs.jobs import run_interruptible, terminate_as_interrupt
from trajudge.eval.runs.plan import RunPlan, plan_runs, say_sources
from trajudge.eval.runs.pricing import dry_run, may_spend
from trajudge.eval.runs.session import RunResult
from trajudge.eval.runs.settings import DataConfig, RunConfig, RunRequest
from trajudge.eval.store.run_folder import dollars_in_all
from trajudge.judges.engine.budget import BudgetSpent
from trajudge.robustness.adaptive.running import attacked_adaptively
from trajudge.robustness.asking.requests import asked_requests
from trajudge.robustness.defences.variants import defended_requests
from trajudge.robustness.measures.adaptive import AdaptiveSuccess
from trajudge.robustness.measures.report import read_variants
from trajudge.robustness.settings import RobustConfig
from trajudge.robustness.sources import Subjects, subjects
from trajudge.robustness.suite import expanded, limited, recorded_again, suite
from trajudge.util.commands import INTERRUPTED, OK
from trajudge.util.errors import UserError
from trajudge.util.terminal import one_line, progress_bar

NO_SUBJECTS = Subjects((), {})


class JudgedRuns(NamedTuple):
    """``folders`` of the runs that came to an end, and where the changed runs are. ``code`` is not
    0 where there is nothing to measure; ``adaptive`` is what an attacker that learns came to, by
    judge; ``failed`` is what ended the others."""

    code: int
    folders: tuple[Path, ...]
    attacked: Path
    adaptive: Mapping[str, AdaptiveSuccess] = {}
    failed: RunsFailed | None = None


class CarriedOut(NamedTuple):
    """The exit code, the ``results`` of the runs that came to an end, and what ended others."""

    code: int
    results: Sequence[RunResult] = ()
    failed: RunsFailed | None = None

    @property
    def folders(self) -> tuple[Path, ...]:
        """Of the runs that came to an end."""
        return tuple(result.plan.folder for result in self.results)


def judge_changed_runs(request: RunRequest, config: RobustConfig) -> JudgedRuns:
    """Change the runs, unless that was done, and ask every judge of the request about them; with
    ``--dry-run`` print what that would cost. Raises UserError."""
    known = NO_SUBJECTS
    with progress_bar("changing the runs"):
        if config.adaptive or not config.attacked:
            known = limited(
                subjects(request.data.data, request.data.annotations, request.data.labels_by),
                config.limit,
            )
        attacked = config.attacked or _expanded(known, config)
        runs = planned(request, attacked, config)
    done = carried_out(request, runs)
    with progress_bar("attacking what the judges said"):
        adaptive = _adaptive(done.results, known, config) if done.code == OK else {}
    return JudgedRuns(done.code, done.folders, attacked, adaptive, done.failed)


def carried_out(request: RunRequest, runs: Sequence[RunPlan]) -> CarriedOut:
    """Judge as planned; without results where the request is only to be priced, or the user does
    not want to spend that. Raises UserError where no run comes to an end."""
    if request.calls.dry_run:
        with progress_bar("rendering the prompts"):
            return CarriedOut(asyncio.run(dry_run(runs)))
    if not may_spend(request, runs):
        sys.stderr.write("cancelled; no model calls were made\n")
        return CarriedOut(INTERRUPTED)
    failed: RunsFailed | None = None
    try:
        with terminate_as_interrupt():
            results = run_interruptible(run_until_interrupted(runs))
    except RunsFailed as error:
        if not error.results:
            raise
        results, failed = error.results, error
    _say(results)
    code = INTERRUPTED if any(one.code == INTERRUPTED for one in results) else OK
    return CarriedOut(code, results, failed)


def _adaptive(
    results: Sequence[RunResult], known: Subjects, config: RobustConfig
) -> dict[str, AdaptiveSuccess]:
    """Let the attacker that learns loose on every judge, within what the runs left of the
    budget."""
    made = {}
    spent = dollars_in_all([one.spent for one in results])
    for one in (result.plan for result in results if config.adaptive):
        try:
            found = attacked_adaptively(one, known, config.adaptive or 0, config.seed, spent)
        except BudgetSpent as error:
            sys.stderr.write(f"warning: the adaptive attacker ended early: {error}\n")
            break
        if found is not None:
            made[one.judge_id] = found
    return made


def _expanded(known: Subjects, config: RobustConfig) -> Path:
    folder = config.out / "attacked"
    taken = suite(config.suite, config.perturbation)
    if not config.perturbation:
        taken += [one for one in recorded_again(known) if one not in taken]
    invalid = expanded(folder, known, taken, config.seed)
    sys.stderr.writelines(f"invalid, left out: {one_line(text)}\n" for text in invalid)
    return folder


def planned(request: RunRequest, attacked: Path, config: RobustConfig) -> list[RunPlan]:
    """Plan a run of each judge on the changed runs, below ``config.out``, also behind each of the
    defences, and one on their sources for each way to ask it otherwise. Raises UserError.

    A judge that an attack makes fail has not failed as a run: that is what is measured.
    """
    out = config.out
    on_changed = request.model_copy(
        update={
            "data": DataConfig(data=f"trajudge:{attacked}"),
            # Other wordings ask for tags: an answer's form is not to change with its wording.
            "judge": request.judge.model_copy(update={"structured": False}),
            "run": RunConfig(
                samples=request.run.samples,
                retry_failed=request.run.retry_failed,
                max_failures=1.0,
                out=out / "runs",
            ),
        }
    )
    runs: list[RunPlan] = []
    requests = [*defended_requests(on_changed, config.defence)]
    requests += _asked(on_changed, attacked, config)
    for one in requests:
        runs += plan_runs(one, runs[0].source if runs else None)
    together = out / "runs"
    runs = [one.below(together) if one.folder == together else one for one in runs]
    _check_distinct(runs)
    say_sources(runs)
    return runs


def _asked(request: RunRequest, attacked: Path, config: RobustConfig) -> Iterator[RunRequest]:
    """Yield the requests of what only changes how a judge is asked."""
    chosen = [one for one in suite(config.suite, config.perturbation) if one.asking]
    if chosen:
        yield from asked_requests(request, chosen, read_variants(attacked), config.perturbation)


def _check_distinct(runs: Sequence[RunPlan]) -> None:
    folders = [one.folder for one in runs]
    if twice := [one.judge_id for one in runs if folders.count(one.folder) > 1]:
        raise UserError(f"--defence: {twice[0]} is named twice: name each defence once")


def _say(results: Sequence[RunResult]) -> None:
    """Say what ended early, and why judgments failed; where the runs are, the screen tells."""
    texts = dict.fromkeys(text for one in results for text in one.warnings)
    sys.stderr.writelines(f"warning: {one_line(text)}\n" for text in texts)
    for one in results:
        if one.code == INTERRUPTED:
            sys.stderr.writelines(f"{one_line(text)}\n" for text in one.notes[1:])
