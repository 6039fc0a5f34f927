"""Errors of a call in terms of its parameters: the code behind it names a command's options."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from inspect import get_annotations, iscoroutinefunction, signature
from pathlib import Path
from typing import Any, TypeVar, cast

from trajudge.trajectories.util.errors import UserError

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
