"""Arguments of a public call: keywords as a settings record, errors in its parameters' terms, and
coroutines run to their end from code that is not asynchronous.
"""

from __future__ import annotations

import asyncio
import contextvars
import re
import signal
import threading
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from functools import wraps
from inspect import get_annotations, iscoroutinefunction, signature
from pathlib import Path
from reprlib import repr as short
from types import FrameType, UnionType
from typing import Any, TypeVar, cast

from pydantic import BaseModel, ValidationError

from trajudge.eval.runs.jobs import StopSignal
from trajudge.util.errors import UserError
from trajudge.util.validation import first_error

R = TypeVar("R", bound=BaseModel)


def settings(
    kind: type[R], call: str, given: Mapping[str, Any], renamed: Mapping[str, str] | None = None
) -> R:
    """Make the record from those of ``given`` that it has fields for; None leaves a default.

    ``renamed`` gives the parameter of a field that has another name. Raises UserError naming the
    ``call`` and the value that it does not take.
    """
    taken = {name: given[name] for name in kind.model_fields if given.get(name) is not None}
    try:
        record = kind(**taken)
    except ValidationError as error:
        why = first_error(error, "the call")
        field, is_, rest = why.partition(" is ")
        raise UserError(f"{call}: {(renamed or {}).get(field, field)}{is_}{rest}") from error
    for name, value in taken.items():
        # pydantic takes True for the number 1.
        if isinstance(value, bool) and not isinstance(getattr(record, name), bool):
            raise UserError(f"{call}: {name} is {value} (Input should be a number)")
    return record


def one_or_several(call: str, given: Any, kind: type | UnionType, wanted: str) -> list[Any]:
    """Return what was given, one of ``kind`` or several, as a list. Raises TypeError that names
    what is of another kind and what is ``wanted``."""
    single = isinstance(given, kind) or not isinstance(given, Iterable)
    several = [given] if single else list(given)
    for one in several:
        if not isinstance(one, kind):
            found = f"{short(one)} is of type {type(one).__name__}"
            raise TypeError(f"{call}: {found}: give {wanted}")
    return several


def check_keywords(call: str, given: Mapping[str, object], known: Mapping[str, object]) -> None:
    """Check the keywords. Raises TypeError for one that is not known, as Python does."""
    unknown = given.keys() - known.keys()
    if unknown:
        raise TypeError(f"{call}() got an unexpected keyword argument {min(unknown)!r}")


F = TypeVar("F", bound=Callable[..., Any])

# A command line stays as it is: the user types it in a shell, from Python too.
_COMMAND = re.compile(r"(\btrajudge [a-z].*?(?:  |[;)]|$))")

_VALUE = r"'[^']*'|[A-Z][A-Z:/]*(?![\w-])|\w+=[A-Z]+|\d+(?:\.\d+)?"

# The members of a panel, in Python the arguments of a function.
_MEMBERS = re.compile(r"(?:--judge panel )?--members (\S+?)(?=[:;]?(?:\s|$))")

_PLAIN = str | int | float | Path


def in_python(keywords: type | None = None, /, **renamed: str) -> Callable[[F], F]:
    """Let the UserErrors of a function name its parameters where they name a command's options.

    ``keywords`` is the TypedDict of its further keywords; ``renamed`` gives the parameter of an
    option that has another name.
    """

    def decorate(function: F) -> F:
        kinds = {**get_annotations(function), **(keywords.__annotations__ if keywords else {})}

        @contextmanager
        def reworded(args: tuple[object, ...], given: Mapping[str, object]) -> Iterator[None]:
            try:
                yield
            except UserError as error:
                bound = signature(function).bind(*args, **given)
                bound.apply_defaults()
                values = {**bound.arguments, **given, **flags(kinds)}
                options = {name: name for name in kinds} | renamed
                error.args = (in_parameters(str(error), options, values),)
                raise

        if iscoroutinefunction(function):

            @wraps(function)
            async def awaited(*args: object, **given: object) -> object:
                with reworded(args, given):
                    return await function(*args, **given)

            return cast(F, awaited)

        @wraps(function)
        def called(*args: object, **given: object) -> object:
            with reworded(args, given):
                return function(*args, **given)

        return cast(F, called)

    return decorate


def flags(kinds: Mapping[str, object]) -> dict[str, bool]:
    """Return True for every parameter of ``kinds``, its annotations, that is True or False."""
    return {name: True for name, kind in kinds.items() if "bool" in str(kind)}


def in_parameters(text: str, options: Mapping[str, str], values: Mapping[str, object]) -> str:
    """Write ``split='test'`` for ``--split test``, and ``split=...`` where no value follows.

    ``options`` gives the parameter of each option, ``values`` the value of a parameter; an option
    that stands for no parameter is left. ``--members`` are those of ``panel(...)``.
    """
    pieces = _COMMAND.split(text)
    pieces[::2] = [_MEMBERS.sub(lambda match: panel_of(match[1]), piece) for piece in pieces[::2]]
    text = "".join(pieces)
    for option, parameter in options.items():
        text = _in_parameter(text, option.replace("_", "-"), parameter, values.get(parameter))
    return text


def panel_of(members: str) -> str:
    """Write the members of ``NAME[:MODEL],NAME[:MODEL]`` as a call of ``panel``."""
    names = re.sub(r"[][]", "", members).split(",")
    return f"panel({', '.join(map(repr, names))})"


def _in_parameter(text: str, option: str, parameter: str, value: object) -> str:
    words = [re.escape(str(one)) for one in _plain_parts(value) if one is not True]
    known = [rf"{word}(?![\w-])" for word in words if word]
    wording = re.compile(rf"--{re.escape(option)}(?![\w-])(?: ({'|'.join([*known, _VALUE])}))?")

    def named(match: re.Match[str]) -> str:
        unsaid = "True" if value is True else "..."
        return f"{parameter}={_literal(match[1]) if match[1] else unsaid}"

    pieces = _COMMAND.split(text)
    pieces[::2] = [wording.sub(named, piece) for piece in pieces[::2]]
    return "".join(pieces)


def _plain_parts(value: object) -> Iterator[str | int | float | Path]:
    """Yield a plain value, or those of a list, or of a panel's members."""
    if isinstance(value, list | tuple):
        for part in value:
            yield from _plain_parts(part)
    elif isinstance(value, _PLAIN):
        yield value


def _literal(word: str) -> str:
    """Return a value as Python writes it; placeholders such as ``KIND:PATH`` stay."""
    if re.fullmatch(r"'[^']*'|[A-Z:/]+|[\d.]+", word):
        return word
    name, equals, value = word.partition("=")
    return f"{{{name!r}: {value}}}" if equals else repr(word)


ResultT = TypeVar("ResultT")


def run_in_thread(work: Callable[[StopSignal], Coroutine[Any, Any, ResultT]]) -> ResultT:
    """Run ``work`` in a loop of a thread of its own and return its result; a notebook's own loop,
    and its signals, stay as they are.

    The first Ctrl-C interrupts the stop signal that ``work`` is given, the second cancels it, the
    third gives up waiting. Raises KeyboardInterrupt unless ``work`` ended by itself.
    """
    stop, done = StopSignal(), Future[ResultT]()
    interrupts: list[Callable[[], object]] = []

    async def main() -> ResultT:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        if task is None:
            raise RuntimeError("asyncio.run runs its work in a task")
        cancel = task.cancel
        interrupts[:] = [
            lambda: loop.call_soon_threadsafe(stop.interrupt),
            lambda: loop.call_soon_threadsafe(cancel),
        ]
        return await work(stop)

    def target() -> None:
        try:
            done.set_result(asyncio.run(main()))
        except BaseException as error:  # all of it is the caller's
            done.set_exception(error)

    context = contextvars.copy_context()
    threading.Thread(target=context.run, args=(target,), name="trajudge", daemon=True).start()
    steps = iter(interrupts)
    with _heard(done, steps):
        return _wait(done, steps)


@contextmanager
def _heard(done: Future[ResultT], steps: Iterator[Callable[[], object]]) -> Iterator[None]:
    """Take a step at every Ctrl-C, without an exception: one that is raised while the interpreter
    calls back (collecting garbage, say) is printed and lost, and Ctrl-C with it.

    Elsewhere than in the main thread, and where somebody hears the signal already, nothing changes.
    """
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return

    def come(number: int, frame: FrameType | None) -> None:
        step = None if done.done() else next(steps, None)
        if step is None:
            signal.default_int_handler(number, frame)
        else:
            with suppress(RuntimeError):  # the loop was closed in between
                step()

    signal.signal(signal.SIGINT, come)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _wait(done: Future[ResultT], interrupts: Iterator[Callable[[], object]]) -> ResultT:
    while True:
        try:
            return done.result()
        except asyncio.CancelledError:
            raise KeyboardInterrupt("cancelled") from None
        except KeyboardInterrupt:
            interrupt = next(interrupts, None)
            if interrupt is None or done.done():
                raise
            interrupt()
