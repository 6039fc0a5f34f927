"""Find what is weak in the specifications of original WebArena tasks.

``published`` holds the categories of WebArena Verified's audit (section 3.2, Table 14),
``pitfalls`` our own: markers and fields that are never read, patterns taken literally, references
that more answers satisfy than their authors meant.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from trajudge.rules.findings import Finding, Severities, Severity
from trajudge.rules.weaknesses.pitfalls import PITFALLS
from trajudge.rules.weaknesses.published import PUBLISHED, UNIONS
from trajudge.rules.webarena.model import Task

# A run that did nothing passes, or no run that is right does.
_ERRORS = frozenset({"unachievable", "dead_marker", "vacuous", "given_away"})
_NOTES = frozenset({"llm_evaluation", "redundant"})

CATEGORIES: Severities = {
    name: Severity.ERROR
    if name in _ERRORS
    else Severity.NOTE
    if name in _NOTES
    else Severity.WARNING
    for name in (*PUBLISHED, *PITFALLS)
}

__all__ = ["CATEGORIES", "UNIONS", "weaknesses"]


def weaknesses(tasks: Iterable[Task]) -> Iterator[Finding]:
    """Yield every finding, task by task and category by category."""
    for task in tasks:
        for detectors in (PUBLISHED, PITFALLS):
            for detect in detectors.values():
                yield from detect(task)
