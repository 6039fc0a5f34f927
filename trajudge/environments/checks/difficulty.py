"""The seven difficulty dimensions of WebForge (section 3.2), measured on the oracle's walk.

They make no level. The paper's rules for one are no function (of the 2,187 vectors they leave 568
without a level and give 21 two), and a sum of dimensions makes one and the same question harder
where the list is longer. A case's level is the demand of its scenario; how much there is to look
through is its ``load`` (``model.case``), and ``agents.ladder`` measures what both are worth.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from trajudge.environments.checks.walk import Walk
from trajudge.environments.kit.reading import options, texts
from trajudge.environments.model.spec import Derive, Scenario

DIMENSIONS = (
    "depth",
    "breadth",
    "interaction",
    "visual",
    "information",
    "reasoning",
    "risk",
)
Vector = tuple[int, int, int, int, int, int, int]

FEW, SEVERAL = 2, 5  # transitions, options, actions on a page: 1-2, 3-5, 6 and more (the paper's)
# Words of data on the pages of the oracle's walk: the lower and the upper third of what 301
# configurations had (10th percentile 91, thirds 198 and 348, 90th percentile 665).
PROMINENT, MODERATE = 200, 350


class Measures(NamedTuple):
    """What the dimensions are read from: page transitions, the most things to choose from on one
    page, the most actions on one page, charts to be read, words of data on the way, operations of
    the answer's query (see ``operations``), and whether the site asked before each irreversible
    step."""

    transitions: int
    options: int
    actions: int
    charts: int
    words: int
    operations: int
    risks: tuple[bool, ...]


def measure(scenario: Scenario, walk: Walk) -> Measures:
    """Return what the oracle's walk took."""
    asks = any(answer.kind != "code" for answer in scenario.answers)
    last = options(walk.page) if asks else 1  # an answer is sought in the list it ends on
    return Measures(
        transitions=len(walk.visits) - 1,
        options=max(last, *(visit.options for visit in walk.visits)),
        actions=max(visit.actions for visit in walk.visits),
        charts=scenario.charts,
        words=sum(len(" ".join(texts(visit.page)).split()) for visit in walk.visits),
        operations=operations(scenario),
        risks=tuple(walk.risks),
    )


def vector(measures: Measures) -> Vector:
    """Return the seven dimensions, 1 to 3 each, in the order of ``DIMENSIONS``."""
    risk = 3 if not all(measures.risks) else 2 if measures.risks else 1
    return (
        _grade(measures.transitions, FEW, SEVERAL),
        _grade(measures.options, FEW, SEVERAL),
        _grade(measures.actions, FEW, SEVERAL),
        _grade(measures.charts, 0, 1),
        _grade(measures.words, PROMINENT, MODERATE),
        _grade(measures.operations, 0, 2),
        risk,
    )


def _grade(amount: int, low: int, middle: int) -> int:
    return 1 if amount <= low else 2 if amount <= middle else 3


# --- reasoning -----------------------------------------------------------------------------------

_GUARD = re.compile(r"\bHAVING\b.*", re.IGNORECASE | re.DOTALL)  # that there is an answer at all
_TIE = re.compile(r"\bON\s+[\w.]+\s*=\s*[\w.]+", re.IGNORECASE)
_JOIN = re.compile(r"\bJOIN\b", re.IGNORECASE)
_AGGREGATE = re.compile(r"\b(?:count|sum|avg|min|max|total)\s*\(|\bDISTINCT\b", re.IGNORECASE)
_ORDER = re.compile(r"\b(?:ORDER|GROUP) BY\b", re.IGNORECASE)
_COLUMN = re.compile(
    r"(\w+)\)?\s*(?:[<>=!]=?|<>|\bNOT\s+IN\b|\bIN\b|\bLIKE\b|\bBETWEEN\b)", re.IGNORECASE
)


@lru_cache(maxsize=1024)
def operations(scenario: Scenario) -> int:
    """Return how much has to be put together beyond looking one thing up: aggregations, joins,
    orderings and conditions beyond the first, in the answers' queries and in what follows from the
    slots, conditions beyond the first on the state that is wanted, answers beyond the first."""
    derived = [slot.sql for slot in scenario.slots.values() if isinstance(slot, Derive)]
    queries = [answer.sql for answer in scenario.answers if answer.kind != "code"]
    conditions = sum(max(1, len(expect.values)) for expect in scenario.expect)
    steps = sum(map(_operations, [*derived, *queries]))
    return steps + max(0, conditions - 1) + max(0, len(scenario.answers) - 1)


def _operations(sql: str) -> int:
    sql = _TIE.sub("", _GUARD.sub("", sql))
    columns = {name.casefold() for name in _COLUMN.findall(sql)}
    kinds = {aggregate.casefold() for aggregate in _AGGREGATE.findall(sql)}
    joins, orders = len(_JOIN.findall(sql)), len(_ORDER.findall(sql))
    return len(kinds) + joins + orders + max(0, len(columns) - 1)
