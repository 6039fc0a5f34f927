"""What is wrong with one value. None of these ends a batch: a value that fails is not equal.

::

    InvalidValue           not a value of its kind
    ├── TooLarge           longer, deeper or more than the limits allow
    ├── TooSlow            a pattern that did not finish in time
    └── BadPattern         a specification's pattern that is no regular expression
"""

from __future__ import annotations


class InvalidValue(Exception):
    """``str()`` is one sentence that says why; it quotes at most a few words of the value."""


class TooLarge(InvalidValue):
    """The value was not read: its size alone is beyond what any honest answer needs."""


class TooSlow(InvalidValue):
    """Matching was stopped at its time limit."""


class BadPattern(InvalidValue):
    """The specification's mistake, not the agent's."""
