"""WebArena Verified as the released package 1.2.3 evaluates it, for comparison with its results.

Written from the package's observed behaviour, its defects included; what it calls an *error* is
``ReleaseError`` here and scores 0, as there.
"""

from __future__ import annotations

from collections.abc import Callable

from trajudge.rules.errors import InvalidValue
from trajudge.rules.verdict import Assertion, Outcome

ERROR = "error"
"""The name of the assertion that stands for what the package calls an error."""


class ReleaseError(Exception):
    """Where the package raises: the task has status error, whatever the other checks say."""


def or_error(made: Callable[[], list[Assertion]]) -> list[Assertion]:
    """Return the assertions of one part of a task, or one named ``error`` where the package
    ends with an error."""
    try:
        return made()
    except (ReleaseError, InvalidValue) as error:
        reason = f"the released package ends with an error: {error}"
        return [Assertion(name=ERROR, outcome=Outcome.FAIL, reason=reason)]
