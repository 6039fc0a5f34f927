"""The filter grammar: terms between spaces, all of which have to hold.

``judge:NAME status:ok success:no expert:yes wrong:fp score:0.4..0.6 steps>30 -flag:elided "words"``

A term names a field and a value, or is free text; ``-`` before it turns it round, ``*`` in a name
stands for anything. ``parse_filter`` reads them, ``fields`` says what each means in SQL. Values are
always bound parameters.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from trajudge.eval.data.run_index.fields import (
    FIELDS,
    FREE_TEXT,
    TRAJECTORY,
    Clause,
    FilterError,
)
from trajudge.trajectories.util.errors import did_you_mean

MOST_TERMS = 40
LONGEST = 2_000

_TERM = re.compile(
    r"""(?P<not>-)?
    (?:(?P<field>[A-Za-z][\w-]*)(?P<op>:|>=|<=|>|<|=))?
    (?:"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<plain>[^\s"]+))
    (?=\s|$)""",
    re.VERBOSE,
)
_OPEN = re.compile(r"[A-Za-z][\w-]*[:<>=]+")
_SPACE = re.compile(r"\s*")


@dataclass(frozen=True)
class FilterTerm:
    """``field`` "" is free text, whose ``operator`` is ":"."""

    field: str
    operator: str
    value: str
    negated: bool = False

    def __str__(self) -> str:
        special = r"\s\"\\" if self.field else r"\s\"\\:<>="
        plain = re.fullmatch(f"[^{special}]+", self.value)
        escaped = self.value.replace("\\", "\\\\").replace('"', '\\"')
        value = self.value if plain and not self.value.startswith("-") else f'"{escaped}"'
        head = f"{self.field}{self.operator}" if self.field else ""
        return f"{'-' if self.negated else ''}{head}{value}"


@dataclass(frozen=True)
class Filter:
    """Terms that all have to hold; none: everything does. ``str`` is what ``parse_filter`` reads
    back as the same."""

    terms: tuple[FilterTerm, ...] = ()

    def judgments(self) -> Clause:
        """Make the condition on rows of ``judgment j`` joined with their ``trajectory t``."""
        return _joined([_clause(term) for term in self.terms])

    def trajectories(self) -> Clause:
        """Make the condition on rows of ``trajectory t``: what is said of judgments has to hold of
        one and the same judgment on it."""
        of_judgments = [t for t in self.terms if not _is_of_trajectory(t)]
        clauses = [_clause(t) for t in self.terms if _is_of_trajectory(t)]
        if of_judgments:
            inner = _joined([_clause(term) for term in of_judgments])
            exists = f"exists (select 1 from judgment j where j.trajectory = t.id and {inner.sql})"  # noqa: S608 - values are bound
            clauses.append(Clause(exists, inner.parameters))
        return _joined(clauses)

    def __str__(self) -> str:
        return " ".join(map(str, self.terms))


def parse_filter(text: str) -> Filter:
    """Read a filter. Raises FilterError, whose message is a sentence for the person who wrote
    it."""
    if len(text) > LONGEST:
        raise FilterError("", f"A filter has at most {LONGEST:,} characters.")
    text = text.encode("utf-8", "replace").decode()
    terms: list[FilterTerm] = []
    at = _SPACE.match(text).end()  # type: ignore[union-attr]  # it matches nothing, too
    while at < len(text):
        match = _TERM.match(text, at)
        if match is None:
            rest = text[at:].split(maxsplit=1)[0]
            raise FilterError(rest, f"{rest}: a quotation mark or a value is missing.")
        terms.append(_term(match))
        _clause(terms[-1])
        at = _SPACE.match(text, match.end()).end()  # type: ignore[union-attr]
    if len(terms) > MOST_TERMS:
        raise FilterError("", f"A filter has at most {MOST_TERMS} terms.")
    return Filter(tuple(terms))


def _term(match: re.Match[str]) -> FilterTerm:
    quoted = match["quoted"]
    if not match["field"] and quoted is None and _OPEN.fullmatch(match["plain"]):
        raise FilterError(match[0], f"{match[0]}: a value is missing.")
    value = match["plain"] if quoted is None else re.sub(r"\\(.)", r"\1", quoted)
    field, operator = match["field"] or "", match["op"] or ":"
    if field and field.lower() not in FIELDS:
        raise FilterError(
            match[0],
            f"{match[0]}: there is no field {field!r}{did_you_mean(field, FIELDS)}; fields are "
            f"{', '.join(FIELDS)}; put text with a colon into quotation marks.",
        )
    return FilterTerm(
        field.lower(), ":" if operator == "=" else operator, value, bool(match["not"])
    )


def _clause(term: FilterTerm) -> Clause:
    make = FIELDS[term.field].clause if term.field else FREE_TEXT
    clause = make(term.operator, term.value)
    # A condition on a value that is not known does not hold, and turned round it does.
    return Clause(f"not coalesce({clause.sql}, 0)", clause.parameters) if term.negated else clause


def _is_of_trajectory(term: FilterTerm) -> bool:
    return bool(term.field) and FIELDS[term.field].table == TRAJECTORY


def _joined(clauses: Sequence[Clause]) -> Clause:
    return Clause(
        " and ".join(f"({clause.sql})" for clause in clauses) or "1",
        tuple(value for clause in clauses for value in clause.parameters),
    )
