"""Task files and run files in WebArena's form: the benchmarks' own, and the user's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import msgspec

from trajudge.rules.dialects import DIALECTS, Dialect, detected, dialect, raw_records
from trajudge.rules.reading import TaskFlaw, decode, flaw_of, read_bytes, task_id_of
from trajudge.rules.webarena.model import PageCheck, ReferenceAnswers, Run, Specification, Task
from trajudge.util.errors import UserError
from trajudge.util.files import DataFolder

_KNOWN = frozenset(Specification.__struct_encode_fields__) - {"_others"}


class _Keys(msgspec.Struct):
    eval: dict[str, Any]


_TASK = msgspec.json.Decoder(Task)
_KEYS = msgspec.json.Decoder(_Keys)


def load_tasks(
    path: Path, named: str | None = None, *, keep_flawed: bool = False
) -> tuple[Task, ...]:
    """Return the tasks of a JSON list, of one JSON object, or of a folder of such files, in file
    order.

    ``named`` is the dialect, by default the one that the file is recognised to be of. Raises
    UserError for a file that cannot be read or holds no task, and for a task with a flaw unless
    ``keep_flawed``.
    """
    row = dialect(named) if named else detected(path)
    folder = DataFolder(path) if path.is_dir() else None
    files = sorted(path.glob("*.json")) if folder else [path]
    tasks: list[Task] = []
    for file in files:
        for raw in raw_records(read_bytes(file, folder=folder), file):
            tasks.append(_task(bytes(raw), len(tasks) + 1, row))
    if not tasks:
        raise UserError(f"{path}: holds no task: name a file of tasks (see rules/schema.md)")
    counted = Counter(str(task.task_id) for task in tasks)
    made = tuple(
        _flawed(task, TaskFlaw("task_id", "occurs twice: give each task its own", task.task_id))
        if counted[str(task.task_id)] > 1
        else task
        for task in tasks
    )
    flawed = [task for task in made if task.flaw]
    if flawed and not keep_flawed:
        first = flawed[0]
        raise UserError(f"{path}: task {first.task_id!r}: {first.flaw}: correct it (see schema.md)")
    return made


def _task(data: bytes, position: int, row: Dialect) -> Task:
    """Read one task; one that cannot be read has a flaw."""
    try:
        task = _TASK.decode(data)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        flaw, record = flaw_of(error, data)
        named, intent = task_id_of(record, position), str(record.get("intent", ""))
        flaw = _explained(flaw, row)
        return Task(named, intent, Specification(()), dialect=row.name, flaw=flaw)
    task = msgspec.structs.replace(task, dialect=row.name, flaw=None)
    written = _KEYS.decode(data).eval
    others = {name: one for name, one in written.items() if name not in _KNOWN}
    if flaw_met := next(_flaws(task, others, row), None):
        return _flawed(task, flaw_met)
    if others:
        spec = msgspec.structs.replace(task.eval, others=others)
        task = msgspec.structs.replace(task, eval=spec)
    return task


def _flawed(task: Task, flaw: TaskFlaw) -> Task:
    return msgspec.structs.replace(task, eval=Specification(()), flaw=flaw)


def _explained(flaw: TaskFlaw, row: Dialect) -> TaskFlaw:
    """Name what the dialect's harness reads, where the field is none of them."""
    _, found, name = flaw.problem.partition("unknown field `")
    if not found:
        return flaw
    name = name.rstrip("`")
    read = sorted({*row.harness.answers, *row.harness.contents})
    close = get_close_matches(name, read, n=1, cutoff=0.75)
    fix = f"write {close[0]}" if close else f"{row.name} reads {', '.join(read)}"
    return TaskFlaw(flaw.field, f"no rule reads it: {fix}", flaw.value)


def _flaws(task: Task, others: dict[str, Any], row: Dialect) -> Iterator[TaskFlaw]:
    """Yield what the types cannot say: keys that are nearly ours, and what only another dialect's
    harness reads, which would not be checked."""
    for name, value in others.items():
        if close := get_close_matches(name, _KNOWN, n=1, cutoff=0.75):
            yield TaskFlaw(f"eval.{name}", f"no rule reads it: write {close[0]}", value)
    spec, harness = task.eval, row.harness
    for name in spec.eval_types:
        if name not in harness.checks:
            yield _of_others("eval.eval_types", name, "checks", row)
    answers = spec.reference_answers or ReferenceAnswers()
    for name in set(answers.__struct_fields__) - harness.answers:
        if getattr(answers, name) is not msgspec.UNSET:
            yield _of_others(f"eval.reference_answers.{name}", name, "answers", row)
    for index, check in enumerate(spec.program_html):
        yield from _page_flaws(check, f"eval.program_html[{index}]", row)
    if spec.alternatives is not msgspec.UNSET and not harness.or_entries:
        yield _of_others("eval.or", "or", "", row)


def _page_flaws(check: PageCheck, place: str, row: Dialect) -> Iterator[TaskFlaw]:
    for name in check.required_contents.given:
        if name not in row.harness.contents:
            yield _of_others(f"{place}.required_contents.{name}", name, "contents", row)
    if check.alternatives is not msgspec.UNSET:
        if not row.harness.or_entries:
            yield _of_others(f"{place}.or", "or", "", row)
        for index, other in enumerate(check.alternatives):
            yield from _page_flaws(other, f"{place}.or[{index}]", row)


def _of_others(field: str, name: str, part: str, row: Dialect) -> TaskFlaw:
    """Return the flaw of a word that this dialect's harness does not read."""
    readers = [
        other.name
        for other in DIALECTS.values()
        if other.form == row.form
        if (name in getattr(other.harness, part) if part else other.harness.or_entries)
    ]
    problem = f"{name} is not read in the dialect {row.name}: name --dialect {' or '.join(readers)}"
    return TaskFlaw(field, problem, name)


def unread_keys(tasks: Sequence[Task]) -> tuple[str, ...]:
    """Name, in one sentence each, the keys of specifications that no rule reads."""
    counted = Counter(name for task in tasks for name in task.eval.unread)
    return tuple(
        f"eval.{name} ({count} of {len(tasks)} tasks) is none of WebArena's keys: no rule reads it"
        for name, count in counted.items()
    )


def load_runs(path: Path) -> tuple[Run, ...]:
    """Read runs from a JSON list, from JSON Lines, or from an object of answers by task id.

    Raises UserError for a file that cannot be read or holds no run.
    """
    data = read_bytes(path)
    runs = _runs_in(data, path)
    if not runs:
        raise UserError(f"{path}: holds no run: write one JSON object a line with task_id, answer")
    return runs


def _runs_in(data: bytes, path: Path) -> tuple[Run, ...]:
    text = data.strip()
    if text.startswith(b"["):
        listed: tuple[Run, ...] = decode(text, tuple[Run, ...], path)
        return listed
    if _is_one_object(text):
        record: dict[str, Any] = decode(text, dict[str, Any], path)
        if "task_id" in record:
            return (decode(text, Run, path),)
        answers: dict[str, str | None] = decode(text, dict[str, str | None], path)
        return tuple(Run(task_id=task_id, answer=answer) for task_id, answer in answers.items())
    lines = enumerate(text.splitlines(), start=1)
    return tuple(decode(line, Run, f"{path}:{number}") for number, line in lines if line.strip())


def _is_one_object(text: bytes) -> bool:
    try:
        msgspec.json.decode(text, type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return False
    return True
