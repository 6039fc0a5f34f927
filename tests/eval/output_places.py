"""What a command needs besides the place of its output."""

from __future__ import annotations

from collections.abc import Iterator

from tests.eval.parsers import TABLE
from trajudge.eval.cli import named
from trajudge.util.settings import Argument, options_of

MISSING = "missing"  # an input that is not there: a command that looked at it first would name it


def needed(name: str, output: str) -> Iterator[str]:
    """What else the command must be given, as its settings say."""
    for one in options_of(named(TABLE[name].settings)):
        if one.info.is_required() and one.flag != output:
            yield from () if isinstance(one.option, Argument) else (one.flag,)
            yield str(next(iter(one.choices), MISSING))
