"""Limits for untrusted values, so that none takes too much time or memory.

The parsers of ``rules.values`` take time linear in the length of their input, so that a limit on
the length limits the time. Two operations are not linear and are limited here: patterns (by a time
limit) and the Unicode normalisation of long runs of combining marks.

Errors of single values are of the classes below. None of them ends a batch: a value with an error
is not equal.

::

    InvalidValue               not a value of its kind
    ├── TooLarge               longer, deeper or more than the limits allow
    └── Undecided              the comparison cannot be made: unknown, never the agent's failure
        ├── TooSlow            a pattern that did not finish in time
        └── BadSpecification   an error of the specification
            └── BadPattern     a pattern of the specification that is not a regular expression
"""

from __future__ import annotations

import importlib
import math
import re
import time
import unicodedata
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, lru_cache
from typing import Any


class InvalidValue(Exception):
    """``str()`` is one sentence with the reason; it quotes at most a few words of the value."""


class TooLarge(InvalidValue):
    """The value exceeds the limits and was not read."""


class Undecided(InvalidValue):
    """The comparison cannot be decided, for a reason that is not the agent's fault."""


class TooSlow(Undecided):
    """The matching of a pattern exceeded its time limit."""


class BadSpecification(Undecided):
    """The specification has an error."""


class BadPattern(BadSpecification):
    """A pattern or a path of the specification cannot be parsed."""


SCALAR_CHARS = 500
"""Longest text of a number, price, date, duration, distance, point, name or address."""

TEXT_CHARS = 1_000_000
"""Longest free text: string, markdown, JSON, base64."""

WIDE_CHARS = 300_000
"""Longest text beyond ASCII: one of its characters can become eighteen when it is normalised."""

PATTERN_CHARS = 10_000
PATTERN_SECONDS = 0.25
RUN_SECONDS = 60.0  # that the evaluation of one run may take, by default
"""Seconds of the processor: a busy machine makes no pattern slow."""

SLOW_TRIES = 4
TRIES = 6
_MOST = 0.9  # of the time, because two clocks differ slightly
PATTERN_REPEATS = 100_000
"""Bound on the product of a pattern's counted repeats: ``(a{999}){999}`` is unrolled in memory."""

JSON_DEPTH = 100
JSON_NODES = 200_000
_MARKS_IN_A_ROW = 30  # the bound of the Stream-Safe Text Format (Unicode annex 15)
_BEYOND_LATIN = re.compile(rf"[^\x00-\u02ff]{{{_MARKS_IN_A_ROW + 1},}}")
_SLOW: ContextVar[Counter[str] | None] = ContextVar("slow", default=None)
_COUNT_DIGITS = 6
_COUNTED = re.compile(r"\{(?:\d*,)?(\d+)\}")
_SURROGATE = re.compile("[\ud800-\udfff]")


def bounded(text: str, limit: int) -> str:
    """Return the text unchanged. Raises TooLarge beyond ``limit`` characters."""
    if len(text) > limit:
        raise TooLarge(f"{len(text):,} characters, more than the {limit:,} allowed")
    return text


def unicode_text(text: str) -> str:
    """Return a text that can be encoded and normalised: lone surrogates become U+FFFD.

    Raises TooLarge beyond WIDE_CHARS, and for more than 30 combining marks in a row, because the
    time to normalise them is quadratic in their number.
    """
    if text.isascii():
        return text
    bounded(text, WIDE_CHARS)
    for run in _BEYOND_LATIN.finditer(text):
        length = 0
        for char in run[0]:
            length = length + 1 if unicodedata.combining(char) else 0
            if length > _MARKS_IN_A_ROW:
                raise TooLarge(f"more than {_MARKS_IN_A_ROW} combining marks on one character")
    return _SURROGATE.sub("\ufffd", text)


def nfkc(text: str) -> str:
    """Return the NFKC form of a result of ``unicode_text``. Raises TooLarge if it is too long."""
    return text if text.isascii() else bounded(unicodedata.normalize("NFKC", text), TEXT_CHARS)


def bounded_json(value: Any) -> None:
    """Raise TooLarge if decoded JSON exceeds the limits of depth or number of values; not
    recursive."""
    levels: list[Iterator[Any]] = [iter((value,))]
    nodes = 0
    while levels:
        for item in levels[-1]:
            nodes += 1
            if isinstance(item, dict | list):
                levels.append(iter(item.values() if isinstance(item, dict) else item))
                break
        else:
            levels.pop()
        if nodes > JSON_NODES:
            raise TooLarge(f"JSON of more than {JSON_NODES:,} values")
        if len(levels) > JSON_DEPTH + 1:
            raise TooLarge(f"JSON nested deeper than {JSON_DEPTH} levels")


def is_pattern(value: object) -> bool:
    """Return True if a specification's value is a pattern, a text of the form ``^...$``."""
    return isinstance(value, str) and value.startswith("^") and value.endswith("$")


@cache
def _regex() -> Any:
    """Import the package ``regex``, whose matching has a time limit; only tasks with patterns
    need it."""
    return importlib.import_module("regex")


@lru_cache(maxsize=1024)
def compiled(pattern: str, flags: int) -> Any:
    """Compile a specification's pattern so that its matching accepts a ``timeout``. Raises
    BadPattern, also for syntax that ``regex`` accepts and Python's ``re`` does not:
    specifications are written for ``re``."""
    regex = _regex()
    if len(pattern) > PATTERN_CHARS:
        raise BadPattern(
            f"a pattern of {len(pattern):,} characters, more than the {PATTERN_CHARS:,} allowed"
        )
    counts = _COUNTED.findall(pattern)
    if any(len(count) > _COUNT_DIGITS for count in counts) or (
        math.prod(max(int(count), 1) for count in counts) > PATTERN_REPEATS
    ):
        raise BadPattern(
            f"the pattern {pattern[:60]!r} repeats more than {PATTERN_REPEATS:,} times"
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of sets whose syntax may change
            re.compile(pattern)
        return regex.compile(pattern, flags)
    except (re.error, regex.error, OverflowError, RecursionError, MemoryError) as error:
        raise BadPattern(
            f"the pattern {pattern[:60]!r} is not a regular expression: {error}"
        ) from error


def fullmatch(
    pattern: str, text: str, *, case_matters: bool = False, seconds: float = PATTERN_SECONDS
) -> bool:
    """Return True if the pattern matches the whole text; ``.`` also matches a line break.

    Raises BadPattern, and TooSlow after ``seconds``. In the sound mode callers pass only patterns
    of the specification, never an agent's text.
    """
    regex = _regex()
    flags = regex.DOTALL if case_matters else regex.DOTALL | regex.IGNORECASE
    return timed(compiled(pattern, int(flags)).fullmatch, pattern, text, seconds)


@contextmanager
def slow_patterns_counted() -> Iterator[None]:
    """Within this context a pattern that was too slow ``SLOW_TRIES`` times is not tried again,
    so that a list of a thousand hostile texts takes no longer than a few of them."""
    token = _SLOW.set(Counter())
    try:
        yield
    finally:
        _SLOW.reset(token)


def timed(match: Callable[..., Any], pattern: str, text: str, seconds: float) -> bool:
    """Return True if a method of a compiled pattern matches within ``seconds`` of this thread's
    processor time. Raises TooSlow, TooLarge."""
    slow = _SLOW.get()
    reason = f"the pattern {pattern[:60]!r} took more than {seconds} s"
    if slow is not None and slow[pattern] >= SLOW_TRIES:
        raise TooSlow(reason)
    bounded(text, TEXT_CHARS)
    limit = seconds
    for _ in range(TRIES):
        started = time.thread_time()
        try:
            return match(text, timeout=limit) is not None
        except TimeoutError:
            # ``regex`` also counts the time of other threads of the process (POSIX ``clock``).
            if time.thread_time() - started >= _MOST * seconds:
                break
            limit *= 2
    if slow is not None:
        slow[pattern] += 1
    raise TooSlow(reason)
