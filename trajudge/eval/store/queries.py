"""The filter grammar of the app and pages of rows: terms, what they mean in SQL, sorting, several
runs as one.
"""

from __future__ import annotations

import json
import math
import re
import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from weakref import finalize

from trajudge.eval.sources import are_parts
from trajudge.eval.store.manifest import configuration_of
from trajudge.eval.store.run_folder import read_manifest
from trajudge.eval.store.run_index import (
    FLAGS,
    INDEXES,
    LIMIT,
    TABLES,
    UNSURE,
    VOTES,
    RunIndex,
    match_of,
    reading_from,
    spread,
)
from trajudge.eval.store.table import FileIdentity, KeyColumns
from trajudge.judges.model import Status
from trajudge.trajectories.store import KeyFields
from trajudge.util.errors import UserError, did_you_mean

JUDGMENT, TRAJECTORY = "judgment", "trajectory"

_MOST_STARS = 4

_RANGE = re.compile(r"(?P<low>[^.]*(?:\.\d+)?)\.\.(?P<high>.*)")


class FilterError(ValueError):
    """A ``term`` that cannot be read; the message is one sentence for who wrote it."""

    def __init__(self, term: str, sentence: str) -> None:
        super().__init__(sentence)
        self.term = term


class Clause(NamedTuple):
    """A condition in SQL on ``judgment j`` and ``trajectory t``, with the values it binds."""

    sql: str
    parameters: tuple[str | float, ...] = ()


Make = Callable[[str, str], Clause]

"""From an operator and a value to the condition. Raises FilterError."""


class FilterField(NamedTuple):
    """A field of one of the two tables; ``example`` is shown in the help."""

    table: str
    clause: Make
    example: str


def _named(column: str, name: str) -> Make:
    def make(operator: str, value: str) -> Clause:
        _only_colon(name, operator, value)
        if "*" not in value:
            return Clause(f"{column} = ?", (value,))
        if value.count("*") > _MOST_STARS:
            raise FilterError(value, f"{name}:{value}: at most {_MOST_STARS} stars are understood.")
        return Clause(f"{column} glob ?", (re.sub(r"[?\[]", r"[\g<0>]", value),))

    return make


def _chosen(name: str, conditions: Mapping[str, str]) -> Make:
    def make(operator: str, value: str) -> Clause:
        _only_colon(name, operator, value)
        if value.lower() not in conditions:
            raise FilterError(
                value,
                f"{name}:{value}: use one of {', '.join(conditions)}"
                f"{did_you_mean(value, conditions)}.",
            )
        return Clause(conditions[value.lower()])

    return make


def _number(column: str, name: str) -> Make:
    def make(operator: str, value: str) -> Clause:
        if operator != ":":
            return Clause(f"{column} {operator} ?", (_read(name, value),))
        ends = _RANGE.fullmatch(value)
        if ends is None:
            return Clause(f"{column} = ?", (_read(name, value),))
        bounds = [("<=", ends["high"]), (">=", ends["low"])]
        given = [(sign, _read(name, end)) for sign, end in bounds if end]
        if not given:
            raise FilterError(value, f"{name}:{value}: name an end, as in {name}:0.4..0.6.")
        return Clause(
            " and ".join(f"{column} {sign} ?" for sign, _ in given), tuple(n for _, n in given)
        )

    return make


def _read(name: str, value: str) -> float:
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise FilterError(value, f"{name}: {value!r} is not a number, as in {name}>0.5.")
    return number


def _only_colon(name: str, operator: str, value: str) -> None:
    if operator != ":":
        raise FilterError(value, f"{name} is not compared by size: write {name}:{value}.")


def _free_text(operator: str, value: str) -> Clause:
    text = re.sub(r"[%_!]", r"!\g<0>", value)
    columns = (
        *("j.judge", "j.head", "t.task_id", "t.goal", "t.answer"),
        *("t.benchmark", "t.agent"),
    )
    sql = " or ".join(f"coalesce({column}, '') like ? escape '!'" for column in columns)
    words = (
        "j.id in (select rowid from said where said match ?) "
        "or t.id in (select rowid from told where told match ?)"
    )
    return Clause(f"({sql} or {words})", (*(f"%{text}%",) * len(columns), *(match_of(value),) * 2))


FREE_TEXT: Make = _free_text

_TRUTH = {"yes": " = 1", "no": " = 0", "none": " is null"}


def _truth(name: str, column: str) -> Make:
    return _chosen(name, {word: column + test for word, test in _TRUTH.items()})


_EXPERT = {
    **{word: f"t.expert{test}" for word, test in _TRUTH.items()},
    "unsure": f"t.expert = {UNSURE}",
}

_WRONG = {
    "fp": "j.success = 1 and j.expert = 0",
    "fn": "j.success = 0 and j.expert = 1",
    "any": "j.expert >= 0 and j.success <> j.expert",
}

_DISSENT = "min(t.yes, t.no)"

FIELDS: Mapping[str, FilterField] = {
    "judge": FilterField(JUDGMENT, _named("j.judge", "judge"), "judge:simplified*"),
    "status": FilterField(
        JUDGMENT, _chosen("status", {str(s): f"j.status = '{s}'" for s in Status}), "status:refused"
    ),
    "success": FilterField(JUDGMENT, _truth("success", "j.success"), "success:yes"),
    "expert": FilterField(TRAJECTORY, _chosen("expert", _EXPERT), "expert:unsure"),
    "rule": FilterField(TRAJECTORY, _truth("rule", "t.rule"), "rule:no"),
    "wrong": FilterField(JUDGMENT, _chosen("wrong", _WRONG), "wrong:fp"),
    "disagree": FilterField(TRAJECTORY, _number(_DISSENT, "disagree"), "disagree>=2"),
    "score": FilterField(JUDGMENT, _number("j.score", "score"), "score:0.4..0.6"),
    "benchmark": FilterField(TRAJECTORY, _named("t.benchmark", "benchmark"), "benchmark:webarena"),
    "agent": FilterField(TRAJECTORY, _named("t.agent", "agent"), "agent:GenericAgent*"),
    "task": FilterField(TRAJECTORY, _named("t.task_id", "task"), "task:webarena.1*"),
    "steps": FilterField(TRAJECTORY, _number("t.steps", "steps"), "steps>30"),
    "cost": FilterField(JUDGMENT, _number("j.cost", "cost"), "cost>0.05"),
    "tokens": FilterField(JUDGMENT, _number("j.tokens", "tokens"), "tokens>10000"),
    "seconds": FilterField(JUDGMENT, _number("j.seconds", "seconds"), "seconds>60"),
    "sample": FilterField(JUDGMENT, _number("j.sample", "sample"), "sample:0"),
    "split": FilterField(
        TRAJECTORY,
        _chosen("split", {"dev": "t.split = 'dev'", "test": "t.split = 'test'"}),
        "split:test",
    ),
    "flag": FilterField(
        JUDGMENT,
        _chosen("flag", {name: f"j.flags & {bit}" for name, bit in FLAGS.items()}),
        "flag:elided",
    ),
}

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


PAGE = 50

"""Rows of a page, unless told otherwise."""

MOST = 200

SORTS: Mapping[str, str] = {
    "place": "j.id",
    "task": "t.task_id",
    "benchmark": "t.benchmark",
    "agent": "t.agent",
    "judge": "j.judge",
    "success": "j.success",
    "expert": "j.expert",
    "rule": "j.rule",
    "score": "j.score",
    "status": "j.status",
    "cost": "j.cost",
    "tokens": "j.tokens",
    "seconds": "j.seconds",
}

"""What a table may be sorted by; ``-`` before a name: falling. Unknown values come last."""

_COLUMNS = """
j.id, j.run, j.place, t.benchmark, t.agent, t.task_id, t.attempt, j.judge, j.sample, j.status,
j.success, j.score, j.cost, j.tokens, j.seconds, j.flags, j.head, j.expert, j.rule
"""

_FROM = "from judgment j join trajectory t on t.id = j.trajectory"

Cursor = tuple[str | float | None, int]

"""The sorted value of a row, and its number."""


class JudgmentRow(NamedTuple):
    """A judgment as a table shows it; ``place`` is its line in the file of the ``run``."""

    id: int
    run: int
    place: int
    benchmark: str
    agent: str
    task_id: str
    attempt: int
    judge: str
    sample: int
    status: str
    success: int | None
    score: float | None
    cost: float | None
    tokens: int
    seconds: float | None
    flags: int
    head: str
    expert: int | None
    rule: int | None

    @property
    def wrong(self) -> str:
        """Name the mistake: "false positive", "false negative", "" for none."""
        if self.success is None or self.expert not in (0, 1) or self.success == self.expert:
            return ""
        return "false positive" if self.success else "false negative"


class JudgmentPage(NamedTuple):
    """Rows with the cursors of the pages beside them, None at either end."""

    rows: list[JudgmentRow]
    before: str | None
    after: str | None


class Sorting(NamedTuple):
    """A name of SORTS, and whether it falls."""

    name: str = "place"
    falling: bool = False

    def __str__(self) -> str:
        return f"{'-' if self.falling else ''}{self.name}"


def parse_sorting(text: str) -> Sorting:
    """Read ``cost`` or ``-cost``. Raises UserError for what nothing is sorted by."""
    name = text.removeprefix("-") or "place"
    if name not in SORTS:
        raise UserError(
            f"sort={text}: nothing is sorted by this{did_you_mean(name, SORTS)}; use one of "
            f"{', '.join(SORTS)}"
        )
    return Sorting(name, text.startswith("-"))


def judgment_page(
    connection: sqlite3.Connection,
    chosen: Filter,
    sorting: Sorting = Sorting(),  # noqa: B008 - immutable
    *,
    after: str = "",
    before: str = "",
    limit: int = PAGE,
) -> JudgmentPage:
    """Read the rows behind the cursor ``after``, or those in front of ``before``. Raises UserError
    for a cursor that is none."""
    limit = min(max(limit, 1), MOST)
    backwards = bool(before)
    sql, parameters = _selection(chosen, sorting, before or after, backwards)
    found = connection.execute(f"{sql} limit ?", (*parameters, limit + 1)).fetchall()
    more = len(found) > limit
    found = found[:limit]
    if backwards:
        found.reverse()
    if not found:
        return JudgmentPage([], None, None)
    first, last = _cursor(found[0]), _cursor(found[-1])
    return JudgmentPage(
        [JudgmentRow(*row[:-1]) for row in found],
        first if (more if backwards else bool(after)) else None,
        last if (backwards or more) else None,
    )


def judgments_beside(
    connection: sqlite3.Connection, chosen: Filter, sorting: Sorting, number: int
) -> tuple[JudgmentRow | None, JudgmentRow | None]:
    """Read the rows before and after the row ``number`` in a filtered and sorted table, in which it
    need not stand itself; None at either end. Raises UserError for a number of no row."""
    sql = f"select j.id, {SORTS[sorting.name]} {_FROM} where j.id = ?"
    row = connection.execute(sql, (number,)).fetchone()
    if row is None:
        raise UserError(f"There is no judgment {number:,} in this run.")
    cursor = _cursor(row)
    before = judgment_page(connection, chosen, sorting, before=cursor, limit=1).rows
    after = judgment_page(connection, chosen, sorting, after=cursor, limit=1).rows
    return next(iter(before), None), next(iter(after), None)


def judgment_rows(
    connection: sqlite3.Connection, chosen: Filter, sorting: Sorting
) -> Iterator[JudgmentRow]:
    """Yield all rows, as they are read."""
    sql, parameters = _selection(chosen, sorting, "", False)
    for row in connection.execute(sql, parameters):
        yield JudgmentRow(*row[:-1])


def count_judgments(connection: sqlite3.Connection, chosen: Filter) -> int:
    """Count the rows that a filter keeps."""
    clause = chosen.judgments()
    sql = f"select count(*) {_FROM} where {clause.sql}"
    return int(connection.execute(sql, clause.parameters).fetchone()[0])


def _selection(
    chosen: Filter, sorting: Sorting, cursor: str, backwards: bool
) -> tuple[str, tuple[str | float | None, ...]]:
    column = SORTS[sorting.name]
    clause = chosen.judgments()
    beyond, bound = _beyond(column, sorting.falling, cursor, backwards)
    falls = sorting.falling != backwards
    nulls, way = "first" if backwards else "last", "desc" if falls else "asc"
    order = f"{column} {way} nulls {nulls}, j.id {'desc' if backwards else 'asc'}"
    if sorting.name == "place":
        order = f"j.id {way}"
    return (
        f"select {_COLUMNS}, {column} {_FROM} where ({clause.sql}) and ({beyond}) order by {order}",
        (*clause.parameters, *bound),
    )


def _beyond(
    column: str, falling: bool, cursor: str, backwards: bool
) -> tuple[str, tuple[str | float | None, ...]]:
    """Make the condition on rows behind a cursor (``backwards``: in front of it)."""
    if not cursor:
        return "1", ()
    value, number = _read_cursor(cursor)
    later = "<" if backwards else ">"
    if column == "j.id":
        return f"j.id {'<' if falling != backwards else '>'} ?", (number,)
    if value is None:
        same = f"({column} is null and j.id {later} ?)"
        return (f"{column} is not null or {same}" if backwards else same), (number,)
    sign = "<" if falling != backwards else ">"
    unknown = "" if backwards else f" or {column} is null"
    tie = f"({column} = ? and j.id {later} ?)"
    return f"{column} {sign} ? or {tie}{unknown}", (value, value, number)


def _cursor(row: sqlite3.Row) -> str:
    return json.dumps([row[-1], row[0]], separators=(",", ":"))


def _read_cursor(text: str) -> Cursor:
    try:
        value, number = json.loads(text)
        str(value).encode()
    except (ValueError, TypeError, RecursionError):
        value, number = None, None
    fine = isinstance(value, str | int | float | None) and isinstance(number, int)
    if not fine or abs(number) >= 2**63 or (isinstance(value, int) and abs(value) >= 2**63):
        raise UserError("This page's address was changed: go back to the beginning of the table.")
    return value, number


# A run that is being written changes all the time: copying takes at most this share of it.
_SHARE = 0.1

_TRAJECTORIES = """
insert into trajectory (benchmark, agent, task_id, attempt, goal, steps, answer, reward, rule,
                        expert, side_effect, repetition, split, inclusion)
select benchmark, agent, task_id, attempt, goal, steps, answer, reward, rule,
       expert, side_effect, repetition, split, inclusion
from part.trajectory where true
on conflict do update set
  goal = coalesce(goal, excluded.goal), steps = coalesce(steps, excluded.steps),
  answer = coalesce(answer, excluded.answer),
  rule = coalesce(rule, excluded.rule), reward = coalesce(reward, excluded.reward),
  side_effect = iif(excluded.expert is null, side_effect, excluded.side_effect),
  repetition = iif(excluded.expert is null, repetition, excluded.repetition),
  inclusion = iif(excluded.expert is null, inclusion, excluded.inclusion),
  split = iif(excluded.expert is null, split, excluded.split),
  expert = coalesce(excluded.expert, expert)
"""

_OWN = """
from part.{} p join part.trajectory o on o.id = p.trajectory
join trajectory t on (t.benchmark, t.agent, t.task_id, t.attempt)
                   = (o.benchmark, o.agent, o.task_id, o.attempt)
"""

_JUDGMENTS = f"""
insert into judgment
select ?1 + p.id, ?2, p.place, p.offset, p.length, t.id,
       iif(p.judge in (select value from json_each(?3)), p.judge || ' (' || ?4 || ')', p.judge),
       p.sample, p.status, p.success, p.side_effect, p.repetition, p.optimality, p.process,
       p.score, p.cost, p.tokens, p.seconds, p.flags, p.head, null, null
{_OWN.format("judgment")} order by p.id
"""  # noqa: S608 - names of ours

_LABELS = f"""
insert or replace into label
select t.id, p.annotator, p.role, p.success, p.side_effect, p.repetition, p.optimality
{_OWN.format("label")}
"""

_KEYS = """
select benchmark, agent, task_id, attempt from trajectory
where id in (select trajectory from judgment where judge = ?)
"""


class CombinedIndex:
    """The runs' ``indexes`` by name; a judgment's ``run`` is the place of its run among them. To be
    used from any thread."""

    def __init__(self, indexes: Mapping[str, RunIndex]) -> None:
        self._indexes = dict(indexes)
        self._lock = threading.Lock()
        self._versions: list[tuple[tuple[FileIdentity, ...], int]] = []
        self._copied, self._took = 0.0, 0.0
        self._number = 0
        folder = tempfile.TemporaryDirectory(prefix="trajudge-")
        finalize(self, folder.cleanup)
        self._folder = Path(folder.name)

    @property
    def runs(self) -> tuple[str, ...]:
        """The names of the runs, in the order that judgments count them."""
        return tuple(self._indexes)

    @property
    def version(self) -> int:
        """A number that changes with the runs: what was computed of them holds as long as it
        stays."""
        return self._number

    def reading(self, limit: float = LIMIT) -> AbstractContextManager[sqlite3.Connection]:
        """Bring it up to date and open it for reading, for at most ``limit`` seconds. Raises
        UserError."""
        return reading_from(self._refreshed(), limit)

    def _refreshed(self) -> Path:
        with self._lock:
            place = self._folder / f"{self._number}.sqlite"
            begun = time.monotonic()
            if self._number and begun - self._copied < self._took / _SHARE:
                return place
            for index in self._indexes.values():
                index.refresh()
            versions = [(i.version, i.descriptions) for i in self._indexes.values()]
            if versions == self._versions:
                return place
            self._number += 1
            new = self._folder / f"{self._number}.sqlite"
            self._copy(new)
            place.unlink(missing_ok=True)  # whoever reads it still has it open
            self._versions, self._copied = versions, time.monotonic()
            self._took = self._copied - begun
            return new

    def _copy(self, place: Path) -> None:
        shared = self._shared_judges()
        with closing(sqlite3.connect(place, isolation_level=None)) as connection:
            connection.execute("pragma journal_mode = off")
            connection.execute("pragma synchronous = off")
            connection.executescript(TABLES)
            for number, (name, index) in enumerate(self._indexes.items()):
                connection.execute("attach ? as part", (str(index.place),))
                connection.execute("begin")
                connection.execute(_TRAJECTORIES)
                connection.execute(_LABELS)
                first = connection.execute("select coalesce(max(id), -1) + 1 from judgment")
                connection.execute(_JUDGMENTS, (first.fetchone()[0], number, shared, name))
                connection.execute("commit")
                connection.execute("detach part")
            connection.executescript(f"begin; {INDEXES}")
            connection.execute(VOTES, (0,))
            spread(connection)
            connection.execute("commit")

    def _shared_judges(self) -> str:
        """List the judges to tell apart, which several runs have, as JSON."""
        owners: dict[str, list[RunIndex]] = {}
        for index in self._indexes.values():
            with reading_from(index.place) as connection:
                for (judge,) in connection.execute("select distinct judge from judgment"):
                    owners.setdefault(judge, []).append(index)
        return json.dumps(
            [judge for judge, its in owners.items() if len(its) > 1 and not _is_one(judge, its)]
        )


def _is_one(judge: str, indexes: Sequence[RunIndex]) -> bool:
    settings = {configuration_of(read_manifest(index.folder)) for index in indexes}
    return are_parts(settings, (KeyColumns.of(_judged(judge, index)) for index in indexes))


def _judged(judge: str, index: RunIndex) -> Iterator[KeyFields]:
    with reading_from(index.place) as connection:
        for row in connection.execute(_KEYS, (judge,)):
            yield KeyFields(*row)
