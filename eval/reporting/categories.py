"""The categories of judges in AgentRewardBench's Table 1."""

from __future__ import annotations

import re
from collections.abc import Mapping

OFFICIAL, EXISTING, OTHER = "Official", "Existing", "Other"
Representation = tuple[bool, bool]
"""Whether the judge saw the final accessibility tree, and the final screenshot."""

_SIMPLIFIED: dict[Representation, str] = {
    (True, False): "Simplified (A)",
    (False, True): "Simplified (S)",
    (True, True): "Simplified (A+S)",
    (False, False): "Simplified (neither)",
}
CATEGORIES = (OFFICIAL, EXISTING, *_SIMPLIFIED.values(), OTHER)
# Judges of other papers by how their ids begin, ours and those of published judgments.
_EXISTING = re.compile(r"(aer|nnetnav|webvoyager|webjudge|insta)(?![a-z])|aer[cv](?![a-z])", re.I)
_OURS = re.compile(
    r"(logprob|rubric|claims-first|panel|cascade|heuristic|telemetry)(?![a-z])", re.I
)
_SHOWN = re.compile(r"simplified-(axtree|screenshot|both|none)(?![a-z])")
_BY_ID: dict[str, Representation] = {
    "axtree": (True, False),
    "screenshot": (False, True),
    "both": (True, True),
    "none": (False, False),
}


def category(judge: str, representations: Mapping[str, Representation]) -> str:
    """Which of CATEGORIES a judge's id belongs to.

    The rule-based evaluation is the official one, a judge of another paper an existing one. What
    is left are simplified judges, as the paper calls its own, told apart by what they saw of the
    final page; others where that is not known.
    """
    if judge.startswith("rule-based"):
        return OFFICIAL
    if _EXISTING.match(judge):
        return EXISTING
    if _OURS.match(judge):
        return OTHER
    shown = _SHOWN.match(judge)
    representation = _BY_ID[shown[1]] if shown else representations.get(judge)
    return OTHER if representation is None else _SIMPLIFIED[representation]
