"""Judges that a caller hands over as functions: found by name as long as they are in use."""

from __future__ import annotations

import inspect
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from hashlib import sha256
from reprlib import repr as short
from types import CodeType, FunctionType, MappingProxyType

from pydantic import BaseModel

from trajudge.judges.entry import JudgeEntry
from trajudge.judges.model import Judge
from trajudge.judges.plugins import check_needs, is_async
from trajudge.trajectories.util.errors import UserError

# Of this context alone: two calls that run at once may each have a judge of the same name.
_GIVEN: ContextVar[Mapping[str, JudgeEntry]] = ContextVar("given", default=MappingProxyType({}))


def given_entry(name: str) -> JudgeEntry | None:
    """Return the entry of a judge that was handed over, None if there is none of that name."""
    return _GIVEN.get().get(name)


@contextmanager
def given_judges(
    judges: Sequence[Judge], *, needs_model: bool, taken: Collection[str]
) -> Iterator[list[str]]:
    """Let the registry find ``judges`` inside the block, by the names that this yields.

    A judge is named as its function is. Raises UserError for one that is no function, or no ``async
    def``, has a name that is ``taken``, or the name of another.
    """
    entries: dict[str, JudgeEntry] = {}
    for judge in judges:
        if not callable(judge):
            raise UserError(
                f"judge is {short(judge)}: give a judge's name, a function  async def "
                "judge(trajectory, ask)  that returns a Verdict, or leave it out for simplified"
            )
        name = _name(judge)
        if name in taken or name in entries:
            raise UserError(f"the judge function {name!r} has the name of another: rename it")
        entries[name] = _entry(name, judge, needs_model)
    token = _GIVEN.set({**_GIVEN.get(), **entries})
    try:
        yield list(entries)
    finally:
        _GIVEN.reset(token)


def _entry(name: str, judge: Judge, needs_model: bool) -> JudgeEntry:
    if not is_async(judge):
        raise UserError(
            f"the judge {name!r} is no coroutine function: write  async def {name}(trajectory, "
            "ask)  that returns a Verdict"
        )
    declared = getattr(judge, "needs", None)
    return JudgeEntry(
        module="",
        judge=name,
        options="",
        needs_model=needs_model,
        summary=(inspect.getdoc(judge) or "").split("\n")[0],
        label=name,
        digest=digest(judge),
        needs=None if declared is None else check_needs(name, declared),
        function=judge,
    )


def _name(judge: object) -> str:
    inner = judge.func if isinstance(judge, partial) else judge
    name = getattr(inner, "__name__", type(inner).__name__)
    return re.sub(r"\W", "", name) or "judge"


def digest(judge: object) -> str:
    """Return SHA-256 (hexadecimal) over what a function does: its source, the plain values that it
    reads from outside, and the functions of its own module that it calls.

    A run in a folder is known again by it, so a prompt that changed in another cell of a notebook
    is another judge.
    """
    return sha256("\n".join(_content(judge, set())).encode(errors="backslashreplace")).hexdigest()


def _content(thing: object, seen: set[int]) -> Iterator[str]:
    """Yield what makes up a function, class, instance or plain value, each object once."""
    if (plain := _plain(thing)) is not None:
        yield plain
        return
    if id(thing) in seen:
        return
    seen.add(id(thing))
    if isinstance(thing, partial):
        yield from _content(thing.func, seen)
        for value in (*thing.args, *(thing.keywords[name] for name in sorted(thing.keywords))):
            yield from _content(value, seen)
    elif inspect.ismethod(thing):
        yield from _content(thing.__func__, seen)
        yield from _content(thing.__self__, seen)
    elif isinstance(thing, FunctionType):
        yield _source(thing)
        for value in _read_from_outside(thing):
            yield from _content(value, seen)
    elif inspect.isclass(thing):
        yield _source(thing)
    elif callable(thing) and hasattr(thing, "__dict__"):
        yield from _content(type(thing), seen)
        yield from (f"{k}={p}" for k, v in sorted(vars(thing).items()) if (p := _plain(v)))


def _source(thing: FunctionType | type) -> str:
    try:
        return inspect.getsource(thing)
    except (OSError, TypeError):
        return f"{thing.__qualname__} {_compiled(getattr(thing, '__code__', None))}"


def _compiled(code: CodeType | None) -> str:
    """Return what stands for the source of a function that was typed in."""
    if code is None:
        return ""
    constants = [
        _compiled(one) if isinstance(one, CodeType) else repr(one) for one in code.co_consts
    ]
    return f"{code.co_code.hex()} {code.co_names} {constants}"


def _read_from_outside(function: FunctionType) -> Iterator[object]:
    """Yield defaults, what is closed over, and the globals of the function's own module."""
    yield from function.__defaults__ or ()
    yield from (function.__kwdefaults__ or {}).values()
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # not assigned yet
            continue
    for name in sorted(_names(function.__code__)):
        value = function.__globals__.get(name)
        if _plain(value) is not None or getattr(value, "__module__", "") == function.__module__:
            yield value


def _names(code: CodeType) -> set[str]:
    nested = (const for const in code.co_consts if isinstance(const, CodeType))
    return set(code.co_names).union(*map(_names, nested))


def _plain(value: object) -> str | None:
    """Return a value of plain data as text that is the same in every process, None for others."""
    if value is None or isinstance(value, str | bytes | int | float):
        return repr(value)
    if isinstance(value, BaseModel):
        return f"{type(value).__name__} {sorted(value.model_dump().items())!r}"
    if isinstance(value, Mapping):
        parts = [f"{_plain(key)}: {_plain(one)}" for key, one in value.items()]
        return f"{{{', '.join(sorted(parts))}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(str(_plain(one)) for one in value)}]"
    if isinstance(value, set | frozenset):
        return f"{{{', '.join(sorted(str(_plain(one)) for one in value))}}}"
    return None
