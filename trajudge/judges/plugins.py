"""Judges of the users': from a package (entry point group ``trajudge.judges``) or a single file.

Either gives a module with ``judge``, an ``async def judge(trajectory, ask) -> Verdict``; or with
``Options`` (a ``trajectories.model.Record``) and ``judge`` a factory from these options. Beside it
may stand ``needs_model`` (default True), ``summary``, ``representations`` and ``needs`` (a
``trajectories.needs.Needs``; by default everything that was recorded; a property of ``Options``
where it depends on them). Such code is the user's own, and is run when it is named, never to list
it.
"""

from __future__ import annotations

from functools import wraps
from inspect import iscoroutine, iscoroutinefunction, unwrap
from pathlib import Path
from types import ModuleType
from typing import cast

from trajudge.judges.entry import JudgeEntry
from trajudge.judges.model import Judge, ModelClient, Verdict
from trajudge.trajectories.model import Trajectory
from trajudge.trajectories.needs import Needs
from trajudge.trajectories.plugins import Door, mistakes_said
from trajudge.trajectories.util.errors import UserError

DOOR = Door(group="trajudge.judges", option="--judge")


def module_of(name: str) -> ModuleType | None:
    """Return the module of a user's judge: ``name`` is a path to a ``.py`` file or an entry point;
    None if it is neither. Raises UserError if it cannot be loaded."""
    return DOOR.module(name)


def describe(name: str, module: ModuleType) -> JudgeEntry:
    """Describe a user's judge. Raises UserError if the module holds none."""
    if not callable(getattr(module, "judge", None)):
        raise UserError(f"--judge {name}: must define  async def judge(trajectory, ask) -> Verdict")
    return JudgeEntry(
        module=module.__name__,
        judge="judge",
        options="Options" if hasattr(module, "Options") else "",
        needs_model=_flag(name, module),
        summary=str(getattr(module, "summary", module.__doc__ or "")).strip().split("\n")[0],
        representations=tuple(getattr(module, "representations", ())),
        label=Path(name).stem if name.endswith(".py") else name,
        digest=getattr(module, "__digest__", ""),
        needs=check_needs(name, module.needs) if hasattr(module, "needs") else None,
    )


def _flag(name: str, module: ModuleType) -> bool:
    asks: object = getattr(module, "needs_model", True)
    if not isinstance(asks, bool):
        raise UserError(f"--judge {name}: needs_model = {asks!r}: make it True or False")
    return asks


def is_async(judge: object) -> bool:
    """Tell whether a judge, a function or an instance, is to be awaited."""
    called = (unwrap(judge) if callable(judge) else judge, getattr(judge, "__call__", None))  # noqa: B004
    return any(map(iscoroutinefunction, called))


def check_needs(name: str, declared: object) -> Needs:
    """Return what a judge says that it needs. Raises UserError for what says nothing of the
    kind."""
    if not isinstance(declared, Needs):
        raise UserError(
            f"--judge {name}: needs = {declared!r}: make it a trajectories.needs.Needs, for "
            "instance  Needs(screenshots=last(3))"
        )
    return declared


def checked(name: str, judge: object, *, made: bool) -> Judge:
    """Return the user's judge; ``made``: by its factory ``judge(options)``. Raises UserError if it
    is none that can be awaited."""
    if iscoroutine(judge):  # made by a coroutine function; nobody awaits it
        judge.close()
    if not is_async(judge):
        write = "async def judge(trajectory, ask)"
        if made:
            gave = f"judge(options) gave {type(judge).__name__}"
            raise UserError(f"--judge {name}: {gave}: let  def judge(options)  return an  {write}")
        raise UserError(f"--judge {name}: judge is no coroutine function: write  {write}")
    return cast(Judge, judge)


def explained(name: str, judge: Judge) -> Judge:
    """Return the user's judge with its own mistakes said in one sentence.

    The new judge raises UserError, with the judge's line, where the user's code raises an
    exception that is none of ours; the traceback is logged. Everything else passes.
    """
    mend = "correct the judge; what was judged before is kept"
    logged: set[str] = set()  # of trajectories that are judged at once every one fails

    @wraps(judge)
    async def guarded(trajectory: Trajectory, ask: ModelClient) -> Verdict:
        with mistakes_said(f"judge {name} failed on {trajectory.key}", judge, mend, logged):
            return await judge(trajectory, ask)

    return guarded
