"""``judge`` and ``ajudge``: what ``trajudge judge`` does, from Python."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple

from trajudge.eval.runs.execution import run_all, session_opening
from trajudge.eval.runs.jobs import StopSignal
from trajudge.eval.runs.plan import plan_runs, say_sources, without_effect
from trajudge.eval.runs.pricing import ASK_ABOVE, is_unlimited, predict
from trajudge.eval.runs.session import RunResult
from trajudge.eval.runs.settings import RunRequest
from trajudge.eval.store.inputs import in_memory
from trajudge.face.calls import check_keywords, one_or_several, run_in_thread
from trajudge.face.results import Run, read_run
from trajudge.judges.model import Judge
from trajudge.judges.registry import JUDGES, given_judges
from trajudge.trajectories.model import Trajectory
from trajudge.util.commands import INTERRUPTED
from trajudge.util.errors import UserError
from trajudge.util.settings import make
from trajudge.util.terminal import one_line


class PanelSpec(NamedTuple):
    """A panel of judges that vote, made by ``panel``."""

    members: tuple[str | Judge, ...]
    votes: dict[str, Any]


def panel(
    *members: str | Judge,
    rule: Literal["majority", "unanimous", "mean"] = "majority",
    quorum: int | None = None,
    tie: Literal["success", "failure"] = "failure",
) -> PanelSpec:
    """Define a panel for ``judge``: members are names of judges, optionally with their own model as
    ``"NAME:MODEL"``, or functions.

    ``rule`` combines the votes, ``quorum`` is the number of members that must answer (None: the
    majority), ``tie`` the verdict when the votes are tied. Raises UserError for fewer than two
    members.
    """
    if len(members) < 2:
        raise UserError("panel: name two judges or more:  panel('NAME:MODEL', 'NAME:MODEL')")
    return PanelSpec(members, {"rule": rule, "quorum": quorum, "tie": tie})


def judge(
    runs: str | Path | Iterable[Trajectory],
    judge: str | Judge | PanelSpec = "simplified",
    model: str | None = None,
    *,
    annotations: str | None = None,
    out: str | Path | None = None,
    max_cost: float | None = None,
    **settings: Any,
) -> Run:
    """Judge trajectories, or the data that a string names, and return the judgments.

    ``judge`` is a judge's name, a path to a file that defines one, ``panel(...)``, or an ``async
    def`` that takes a trajectory and ``ask`` and returns a Verdict; ``model`` is the model that it
    calls. ``annotations`` names the expert labels, KIND:PATH, if they are not beside the data. The
    run is kept in the folder ``out`` (None: ``runs/``, named by its settings), and the same call
    resumes it; ``max_cost`` limits its cost in US dollars. The other keywords are the options of
    ``trajudge judge``, whose ``--help-all`` describes them: ``limit=20`` is ``--limit 20``;
    ``options`` are the judge's own, as a mapping.

    Works inside a running event loop, too. Raises UserError where the command exits with code 2,
    TypeError for an unknown keyword, and KeyboardInterrupt after Ctrl-C, when the judgments in
    progress are finished and kept. Limitations of the result are given as warnings.
    """
    settings |= {"annotations": annotations, "out": out, "max_cost": max_cost, "model": model}
    done = run_in_thread(lambda stop: _judge(runs, judge, settings, stop))
    if done.result.code == INTERRUPTED:
        raise KeyboardInterrupt("; ".join(done.result.notes))
    return _judgments(done)


async def ajudge(
    runs: str | Path | Iterable[Trajectory],
    judge: str | Judge | PanelSpec = "simplified",
    model: str | None = None,
    *,
    annotations: str | None = None,
    out: str | Path | None = None,
    max_cost: float | None = None,
    **settings: Any,
) -> Run:
    """Do what ``judge`` does, in the caller's event loop; the caller handles signals.

    Judgments that were made before a cancellation are kept. Raises what ``judge`` raises.
    """
    settings |= {"annotations": annotations, "out": out, "max_cost": max_cost, "model": model}
    return _judgments(await _judge(runs, judge, settings, StopSignal()))


class _Done(NamedTuple):
    """A run that came to its end; ``warnings`` say what weakens it."""

    folder: Path
    result: RunResult
    warnings: Sequence[str]


async def _judge(
    runs: str | Path | Iterable[Trajectory],
    judge: str | Judge | PanelSpec,
    settings: dict[str, Any],
    stop: StopSignal,
) -> _Done:
    """Plan the run, see that its cost is agreed to, execute it. Raises UserError."""
    data: list[Trajectory] | None = None
    if isinstance(runs, str | Path):
        source = {"data": str(runs)}
    else:
        source = {}
        data = one_or_several("judge", runs, Trajectory, "trajectories, or data that holds them")
        if not data:
            raise UserError("judge: runs is empty: give at least one trajectory")
        if settings.get("goals") is not None:
            raise UserError("--goals is for runs that are read from files: give it to load")
    check_keywords("judge", settings)
    # A row names its judge: the default of the argument is none of the caller's.
    names_judge = judge != "simplified" or settings.get("reproduce") is None
    with _named(judge, has_model=settings["model"] is not None, names_judge=names_judge) as named:
        request = make(RunRequest, {**settings, **named, **source})
        held = data and in_memory(data, request.data.annotations, request.data.labels_by)
        [planned] = plan = await asyncio.to_thread(plan_runs, request, held or None)
        say_sources(plan)
        weakened = without_effect(request.judges, request.models, request.judge, request.calls)
        if is_unlimited(request, plan):
            weakened += _check_cost(await predict(plan))
        if request.run.ray and not all(isinstance(one, str) for one in _members(judge)):
            raise UserError("--ray: a function is not on every node: write the judge into a file")
        with session_opening(request) as opening:
            [result] = await run_all(plan, stop, opening)
    # The first note names the folder, the others say why the run is not whole.
    return _Done(planned.folder, result, [*weakened, *result.warnings, *result.notes[1:]])


@contextmanager
def _named(
    judge: str | Judge | PanelSpec, *, has_model: bool, names_judge: bool
) -> Iterator[dict[str, Any]]:
    """Yield the settings that name the judge, none without ``names_judge``; functions have a name
    inside the block only."""
    members = _members(judge)
    functions = [one for one in members if not isinstance(one, str)]
    with given_judges(functions, needs_model=has_model, taken=JUDGES) as names:
        given = iter(names)
        named = [one if isinstance(one, str) else next(given) for one in members]
        if isinstance(judge, PanelSpec):
            yield {"judge": "panel", "members": ",".join(named), **judge.votes}
        else:
            yield {"judge": named[0]} if names_judge else {}


def _members(judge: str | Judge | PanelSpec) -> Sequence[str | Judge]:
    return judge.members if isinstance(judge, PanelSpec) else (judge,)


def _check_cost(cost: float | None) -> list[str]:
    """Return a warning where the cost is not known. Raises UserError for a dear run."""
    if cost is None:
        return ["the price of a model is not known: its cost is not counted"]
    if cost > ASK_ABOVE:
        raise UserError(f"predicted to cost ${cost:.2f}: give --max-cost DOLLARS or --yes")
    return []


def _judgments(done: _Done) -> Run:
    """Read what the run's folder holds now; warn of everything that weakens it."""
    for warning in done.warnings:
        warnings.warn(one_line(warning), stacklevel=3)
    return read_run(done.folder)
