"""Judge perturbed runs with the engine of ``trajudge judge`` (cache, limits, budget, resume):
plain, with defences, and with perturbations of the call on the unchanged runs."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from trajudge.eval.runs.execution import RunsFailed, run_until_interrupted
from trajudge.eval.runs.jobs import run_interruptible, terminate_as_interrupt
from trajudge.eval.runs.plan import RunPlan, plan_runs, say_sources
from trajudge.eval.runs.pricing import dry_run, may_spend
from trajudge.eval.runs.session import RunResult
from trajudge.eval.runs.settings import DataConfig, RunConfig, RunRequest
from trajudge.eval.store.run_folder import dollars_in_all
from trajudge.judges.defences import DEFENCES
from trajudge.judges.engine.budget import BudgetSpent
from trajudge.judges.registry import find_judge, unfit
from trajudge.robustness.adaptive import AdaptiveSuccess, attacked_adaptively
from trajudge.robustness.model import CallChange, Perturbation
from trajudge.robustness.perturb import (
    VariantLine,
    expanded,
    limited,
    read_variants,
    recorded_again,
    suite,
)
from trajudge.robustness.settings import RobustConfig
from trajudge.robustness.subjects import Subjects, subjects
from trajudge.util.commands import INTERRUPTED, OK
from trajudge.util.errors import UserError, did_you_mean
from trajudge.util.terminal import one_line, progress_bar

# Perturbations of the call on unchanged runs.


def call_change_requests(
    request: RunRequest,
    perturbations: Sequence[Perturbation],
    variants: Sequence[VariantLine],
    named: Sequence[str] = (),
) -> Iterator[RunRequest]:
    """Yield for each perturbation of the call the request of the judges that support it, on the
    sources of ``variants`` only. Raises UserError if no judge supports one that is ``named``."""
    agents = tuple(sorted({one.of.agent for one in variants}))
    sources = request.data.model_copy(update={"agent": agents})
    for one in perturbations:
        if one.asking is None:
            continue
        if one.asking.dated:  # measured if runs of both names are requested
            if one.name in named and len(request.models) < 2:
                raise UserError(
                    f"--perturbation {one.name}: compares two names of a model: name both, as in "
                    "--model gpt-4o --model gpt-4o-2024-08-06"
                )
            continue
        judges = tuple(name for name in request.judges if _can(name, one.asking, request))
        if judges:
            yield _with_call_change(
                request.model_copy(update={"data": sources}), judges, one.asking
            )
        elif one.name in named:
            raise UserError(
                f"--perturbation {one.name}: {_why_not(one.asking)}: leave it out, or name another "
                "--judge"
            )


def _can(name: str, asking: CallChange, request: RunRequest) -> bool:
    """Return True if a judge has the options, with other values, or calls a model."""
    entry = find_judge(name)
    if not asking.options:
        return entry.needs_model or entry.composed
    takes = entry.options_class.model_fields
    options: Mapping[str, Any] = request.judge.options
    if request.judge.success_last:
        options = {**options, "success": "last"}
    return all(
        option in takes and value != options.get(option, takes[option].default)
        for option, value in asking.options.items()
    )


def _why_not(asking: CallChange) -> str:
    if asking.options:
        wanted = ", ".join(f"{option}={value}" for option, value in asking.options.items())
        return f"no judge takes {wanted}, or each is called so already"
    return "no judge asks a model"


def _with_call_change(
    request: RunRequest, judges: tuple[str, ...], asking: CallChange
) -> RunRequest:
    options = {**request.judge.options, **asking.options}
    update: dict[str, Any] = {
        "judges": judges,
        "judge": request.judge.model_copy(update={"judge": judges[0], "options": options}),
    }
    if asking.temperature is not None:
        update["calls"] = request.calls.model_copy(update={"temperature": asking.temperature})
    if asking.samples > 1:
        update["run"] = request.run.model_copy(update={"samples": asking.samples})
    return request.model_copy(update=update)


# Behind defences.

EACH = "each"
# Default values of names without one.
_DEFAULTS = {
    **dict.fromkeys(("hide", "two_pass"), "answer,reasoning"),
    **dict.fromkeys(("datamark", "sandwich"), "true"),
    **dict.fromkeys(("nonce", "canary"), "0"),
    "cross_modal": "abstain",
}


def read_defences(words: Sequence[str]) -> list[Mapping[str, str]]:
    """Read what ``--defence`` names, each once: ``NAME[=VALUE]``, several that go together with
    ``+``, or ``each`` for every one alone. Raises UserError."""
    made: list[Mapping[str, str]] = []
    for word in words:
        variants = [{n: _DEFAULTS[n]} for n in DEFENCES] if word == EACH else [_defences(word)]
        made += [one for one in variants if one not in made]
    return made


def _defences(word: str) -> dict[str, str]:
    options: dict[str, str] = {}
    for part in word.split("+"):
        written, equals, value = part.partition("=")
        name = written.replace("-", "_")
        if name not in DEFENCES:
            close = did_you_mean(name, DEFENCES)
            raise UserError(
                f"--defence {word}: {written!r} is not a defence{close or ';'} there are "
                f"{', '.join(DEFENCES)}, and {EACH} for every one alone"
            )
        if name in options:
            raise UserError(f"--defence {word}: names {written} twice")
        options[name] = value if equals else _DEFAULTS[name]
    return options


def defended_requests(request: RunRequest, words: Sequence[str]) -> Iterator[RunRequest]:
    """Yield the request, then one for each variant with the judges that support it. Raises
    UserError if none does."""
    yield request
    for options in read_defences(words):
        reasons = {
            name: [why for defence in options if (why := unfit(find_judge(name), defence))]
            for name in request.judges
        }
        judges = tuple(name for name, why in reasons.items() if not why)
        if not judges:
            name, (why, *_) = next(iter(reasons.items()))
            raise UserError(
                f"--defence {'+'.join(options)}: judge {name} {why}: leave it out, or name a judge "
                "that can have it"
            )
        judge = request.judge.model_copy(
            update={"judge": judges[0], "options": {**request.judge.options, **options}}
        )
        yield request.model_copy(update={"judges": judges, "judge": judge})


# Plan and execute.

NO_SUBJECTS = Subjects((), {})


class JudgedRuns(NamedTuple):
    """``folders`` of the finished runs, and the folder of the perturbed runs. ``code`` is not 0
    if there is nothing to measure; ``adaptive`` are the results of the adaptive attacker by
    judge; ``failed`` are the errors of the other runs."""

    code: int
    folders: tuple[Path, ...]
    attacked: Path
    adaptive: Mapping[str, AdaptiveSuccess] = {}
    failed: RunsFailed | None = None


class CarriedOut(NamedTuple):
    """The exit code, the ``results`` of the finished runs, and the errors of the others."""

    code: int
    results: Sequence[RunResult] = ()
    failed: RunsFailed | None = None

    @property
    def folders(self) -> tuple[Path, ...]:
        """The folders of the finished runs."""
        return tuple(result.plan.folder for result in self.results)


def judge_changed_runs(request: RunRequest, config: RobustConfig) -> JudgedRuns:
    """Perturb the runs, unless done before, and judge them with every judge of the request; with
    ``--dry-run`` print the cost. Raises UserError."""
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
    with progress_bar("attacking the judges"):
        adaptive = _adaptive(done.results, known, config) if done.code == OK else {}
    return JudgedRuns(done.code, done.folders, attacked, adaptive, done.failed)


def carried_out(request: RunRequest, runs: Sequence[RunPlan]) -> CarriedOut:
    """Judge as planned; without results for a dry run or if the user declines the cost. Raises
    UserError if no run finishes."""
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
    """Run the adaptive attacker on every judge within the rest of the budget."""
    made = {}
    spent = dollars_in_all([one.spent for one in results])
    for one in (result.plan for result in results if config.adaptive):
        try:
            success = attacked_adaptively(one, known, config.adaptive or 0, config.seed, spent)
        except BudgetSpent as error:
            sys.stderr.write(f"warning: the adaptive attacker ended early: {error}\n")
            break
        if success is not None:
            made[one.judge_id] = success
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
    """Plan a run of each judge on the perturbed runs, below ``config.out``, one with each defence,
    and one on the sources for each perturbation of the call. Raises UserError.

    An attack that makes a judge fail does not end the run, because such failures are measured.
    """
    out = config.out
    on_changed = request.model_copy(
        update={
            "data": DataConfig(data=f"trajudge:{attacked}"),
            # Other wordings use tags, because the answer's form must not change with the wording.
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
    requests += _call_changes(on_changed, attacked, config)
    for one in requests:
        runs += plan_runs(one, runs[0].source if runs else None)
    together = out / "runs"
    runs = [one.below(together) if one.folder == together else one for one in runs]
    _check_distinct(runs)
    say_sources(runs)
    return runs


def _call_changes(
    request: RunRequest, attacked: Path, config: RobustConfig
) -> Iterator[RunRequest]:
    """Yield the requests of perturbations of the call."""
    chosen = [one for one in suite(config.suite, config.perturbation) if one.asking]
    if chosen:
        yield from call_change_requests(
            request, chosen, read_variants(attacked), config.perturbation
        )


def _check_distinct(runs: Sequence[RunPlan]) -> None:
    folders = [one.folder for one in runs]
    if twice := [one.judge_id for one in runs if folders.count(one.folder) > 1]:
        raise UserError(f"--defence: {twice[0]} is named twice: name each defence once")


def _say(results: Sequence[RunResult]) -> None:
    """Print which runs ended early, and why judgments failed."""
    texts = dict.fromkeys(text for one in results for text in one.warnings)
    sys.stderr.writelines(f"warning: {one_line(text)}\n" for text in texts)
    for one in results:
        if one.code == INTERRUPTED:
            sys.stderr.writelines(f"{one_line(text)}\n" for text in one.notes[1:])
