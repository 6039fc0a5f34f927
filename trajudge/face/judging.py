"""``judge`` and ``ajudge``: what ``trajudge judge`` does, from Python."""

from __future__ import annotations

import asyncio
import json
import warnings
from collections.abc import Iterable, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypedDict, Unpack

from pydantic import JsonValue

from trajudge.annotations import LabelsBy
from trajudge.eval.runs.execution import run_all, session_opening
from trajudge.eval.runs.jobs import StopSignal
from trajudge.eval.runs.plan import plan_runs, say_sources, without_effect
from trajudge.eval.runs.pricing import ASK_ABOVE, is_unlimited, predict
from trajudge.eval.runs.session import RunResult
from trajudge.eval.runs.settings import (
    DataConfig,
    JudgeConfig,
    RepresentationName,
    RunConfig,
    RunRequest,
    check_request,
)
from trajudge.eval.settings import Split
from trajudge.eval.sources import read_run
from trajudge.eval.store.inputs import in_memory
from trajudge.face.calls import (
    check_keywords,
    flags,
    in_parameters,
    in_python,
    one_or_several,
    run_in_thread,
    settings,
)
from trajudge.face.panels import PanelSpec, check_members
from trajudge.face.results import Judgments
from trajudge.judges.calls.settings import CallConfig
from trajudge.judges.model import Judge
from trajudge.judges.registry import JUDGES, given_judges
from trajudge.trajectories.model import Trajectory
from trajudge.util.commands import INTERRUPTED
from trajudge.util.errors import UserError
from trajudge.util.terminal import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator


class JudgeSettings(TypedDict, total=False):
    """The keywords of ``judge`` beside its own: the options of ``trajudge judge`` by their names,
    with the same defaults (``trajudge.eval.runs.settings``).

    ``options`` are the judge's own, ``export`` a folder for the judgments in AgentRewardBench's
    published layout (``export_restricted``: of data whose licence forbids it, too), ``yes`` agrees
    to a predicted cost without a limit. ``models`` are entries of the user's own, as a file or as
    what such a file holds.
    """

    options: Mapping[str, JsonValue]
    representation: RepresentationName
    captioner_model: str
    describer_model: str
    light_model: str
    success_last: bool
    prompts: Literal["trajudge", "agentrewardbench", "browser-use", "fara"]
    labels_by: LabelsBy
    goals: str | Path
    split: Split
    benchmark: str | Sequence[str]
    agent: str | Sequence[str]
    task: str | Sequence[str]
    limit: int
    stratified: bool
    strict: bool
    adapter: str
    script: str | Path
    base_url: str
    temperature: float
    max_tokens: int
    seed: int
    concurrency: int
    rpm: float
    tpm: float
    context: int
    timeout: float
    reasoning_effort: str
    thinking_budget: int
    extra_body: Mapping[str, JsonValue]
    extra_headers: Mapping[str, str]
    wait: float
    models: str | Path | Mapping[str, JsonValue]
    prices: str | Path
    cache: str | Path
    samples: int
    retry_failed: bool
    max_failures: int | float
    protocol: Literal["default", "agentrewardbench"]
    export: str | Path
    export_restricted: bool
    ray: int
    yes: bool


# Options of the command that have another name here, or are keywords of ``panel``.
_RENAMED = {"data": "runs", "judge_option": "options", "rule": "rule", "quorum": "quorum"}


@in_python(JudgeSettings, **_RENAMED)
def judge(
    runs: str | Path | Iterable[Trajectory],
    judge: str | Judge | PanelSpec = "simplified",
    model: str | None = None,
    *,
    annotations: str | None = None,
    out: str | Path | None = None,
    max_cost: float | None = None,
    **more: Unpack[JudgeSettings],
) -> Judgments:
    """Judge trajectories, or the data that a string names, and return the judgments.

    ``judge`` is a judge's name, a path to a file that defines one, ``panel(...)``, or an ``async
    def`` that takes a trajectory and ``ask`` and returns a Verdict; ``model`` is the model that it
    calls. ``annotations`` names the expert labels, KIND:PATH, if they are not beside the data. The
    run is kept in the folder ``out`` (None: ``runs/``, named by its settings), and the same call
    resumes it; ``max_cost`` limits its cost in US dollars. The other keywords are the options of
    ``trajudge judge``, whose ``--help`` describes them; ``options`` are the judge's own.

    Works inside a running event loop, too. Raises UserError where the command exits with code 2,
    and KeyboardInterrupt after Ctrl-C, when the judgments in progress are finished and kept.
    Limitations of the result are given as warnings.
    """
    call = _Call(runs, judge, model, _given(annotations, out, max_cost, more))
    done = run_in_thread(lambda stop: _judge(call, stop))
    if done.result.code == INTERRUPTED:
        raise KeyboardInterrupt("; ".join(done.result.notes))
    return _judgments(done, call)


@in_python(JudgeSettings, **_RENAMED)
async def ajudge(
    runs: str | Path | Iterable[Trajectory],
    judge: str | Judge | PanelSpec = "simplified",
    model: str | None = None,
    *,
    annotations: str | None = None,
    out: str | Path | None = None,
    max_cost: float | None = None,
    **more: Unpack[JudgeSettings],
) -> Judgments:
    """Do what ``judge`` does, in the caller's event loop; the caller handles signals.

    Judgments that were made before a cancellation are kept.
    """
    call = _Call(runs, judge, model, _given(annotations, out, max_cost, more))
    return _judgments(await _judge(call, StopSignal()), call)


class _Call(NamedTuple):
    """What ``judge`` was called with; ``settings`` by the names of the settings records."""

    runs: str | Path | Iterable[Trajectory]
    judge: str | Judge | PanelSpec
    model: str | None
    settings: Mapping[str, Any]


class _Done(NamedTuple):
    """A run that came to its end; ``warnings`` say what weakens it."""

    folder: Path
    result: RunResult
    warnings: Sequence[str]


def _given(
    annotations: str | None,
    out: str | Path | None,
    max_cost: float | None,
    given: JudgeSettings,
) -> dict[str, Any]:
    """Return the keywords that were given, as the settings records take them. Raises TypeError for
    an unknown one, as Python does."""
    check_keywords("judge", given, JudgeSettings.__annotations__)
    found: dict[str, Any] = {**given, "annotations": annotations, "max_cost": max_cost}
    found["out"] = None if out is None else Path(out)
    for name in ("benchmark", "agent", "task"):
        if isinstance(found.get(name), str):
            found[name] = (found[name],)
    for name in ("script", "prices", "cache", "models", "extra_body", "extra_headers"):
        if name in found:
            content = found[name]
            found[name] = json.dumps(content) if isinstance(content, Mapping) else str(content)
    if "export" in found:
        found["export"] = ("agentrewardbench", Path(found["export"]))
    return found


async def _judge(call: _Call, stop: StopSignal) -> _Done:
    """Plan the run, see that its cost is agreed to, execute it. Raises UserError."""
    with _named(call) as named:
        request = _request(call, named)
        data = None
        if not isinstance(call.runs, str | Path):
            wanted = "trajectories, or data that holds them"
            given = one_or_several("judge", call.runs, Trajectory, wanted)
            if not given:
                raise UserError("judge: runs is empty: give at least one trajectory")
            data = in_memory(given, request.data.annotations, request.data.labels_by)
        [planned] = runs = await asyncio.to_thread(plan_runs, request, data)
        say_sources(runs)
        weakened = without_effect(request.judges, request.models, request.judge, request.calls)
        if is_unlimited(request, runs):
            weakened += _check_cost(await predict(runs))
        if request.run.ray and not all(isinstance(one, str) for one in _members(call.judge)):
            raise UserError("ray: a function is not on every node: write the judge into a file")
        with session_opening(request) as opening:
            [result] = await run_all(runs, stop, opening)
    # The first note names the folder, the others say why the run is not whole.
    return _Done(planned.plan.folder, result, [*weakened, *result.warnings, *result.notes[1:]])


@contextmanager
def _named(call: _Call) -> Iterator[dict[str, Any]]:
    """Give the judge's settings by name; functions have theirs inside the block only."""
    what = call.judge
    if isinstance(what, str):
        check_members(what)
    members = _members(what)
    functions = [one for one in members if not isinstance(one, str)]
    with given_judges(functions, needs_model=call.model is not None, taken=JUDGES) as names:
        given = iter(names)
        named = [one if isinstance(one, str) else next(given) for one in members]
        if not isinstance(what, PanelSpec):
            yield {"judge": named[0]}
            return
        votes = {"rule": what.rule, "quorum": what.quorum, "tie": what.tie}
        yield {"judge": "panel", "members": ",".join(named), **votes}


def _members(judge: str | Judge | PanelSpec) -> Sequence[str | Judge]:
    return judge.members if isinstance(judge, PanelSpec) else (judge,)


def _request(call: _Call, judge: Mapping[str, Any]) -> RunRequest:
    given = {**call.settings, **judge}
    if isinstance(call.runs, str | Path):
        given["data"] = str(call.runs)
    elif given.get("goals") is not None:
        raise UserError("goals goes with runs that are read from files: give it to load instead")

    whole = {
        "judges": (given["judge"],),
        "models": () if call.model is None else (call.model,),
        "judge": settings(JudgeConfig, "judge", given),
        "data": settings(DataConfig, "judge", given),
        "calls": settings(CallConfig, "judge", given),
        "run": settings(RunConfig, "judge", given),
        "yes": given.get("yes"),
    }
    request = settings(RunRequest, "judge", whole, {"models.0": "model"})
    check_request(request)
    return request


def _check_cost(cost: float | None) -> list[str]:
    """Return a warning where the cost is not known. Raises UserError for a dear run."""
    if cost is None:
        return ["the price of a model is not known: its cost is not counted"]
    if cost > ASK_ABOVE:
        raise UserError(f"predicted to cost ${cost:.2f}: give max_cost=DOLLARS or yes=True")
    return []


def _judgments(done: _Done, call: _Call) -> Judgments:
    """Read what the run's folder holds now; warn of everything that weakens it."""
    names = ("model", *JudgeSettings.__annotations__, *call.settings)
    options = {name: name for name in names}
    values = {**call.settings, **flags(JudgeSettings.__annotations__)}
    for warning in done.warnings:
        warnings.warn(in_parameters(one_line(warning), options, values), stacklevel=4)
    return Judgments(read_run(done.folder), [done.folder])
