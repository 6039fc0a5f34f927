"""Several runs as one index: for what is said of trajectories over all their judges.

It is a temporary file, copied from the runs' own indexes, and copied again when one of them has
changed. A judge that several runs have is told apart by its run's name, unless they are parts of
what one judge judged (``sources.are_parts``).
"""

from __future__ import annotations

import json
import sqlite3
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing
from pathlib import Path
from weakref import finalize

from trajudge.eval.data.index.cache_place import FileIdentity
from trajudge.eval.data.index.keys import KeyColumns
from trajudge.eval.data.manifest import configuration_of
from trajudge.eval.data.run_folder import read_manifest
from trajudge.eval.data.run_index.database import LIMIT, reading_from
from trajudge.eval.data.run_index.index import RunIndex
from trajudge.eval.data.run_index.schema import INDEXES, TABLES, VOTES
from trajudge.eval.data.run_index.trajectories import spread
from trajudge.eval.data.sources import are_parts
from trajudge.trajectories.stored_lines import KeyFields

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
