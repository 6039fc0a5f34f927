"""What is wrong with one value. None of these ends a batch: a value that fails is not equal.

::

    InvalidValue               not a value of its kind
    ├── TooLarge               longer, deeper or more than the limits allow
    └── Undecided              the comparison cannot be made: unknown, never the agent's failure
        ├── TooSlow            a pattern that did not finish in time
        └── BadSpecification   what no answer can be held against
            └── BadPattern     a specification's pattern that is no regular expression
"""

from __future__ import annotations


class InvalidValue(Exception):
    """``str()`` is one sentence that says why; it quotes at most a few words of the value."""


class TooLarge(InvalidValue):
    """The value was not read: its size alone is beyond what any honest answer needs."""


class Undecided(InvalidValue):
    """Whether the value is the specification's cannot be told, for no fault of the value's."""


class TooSlow(Undecided):
    """Matching was stopped at its time limit."""


class BadSpecification(Undecided):
    """The specification's mistake, not the agent's."""


class BadPattern(BadSpecification):
    """A pattern, or a path, that cannot be read."""
