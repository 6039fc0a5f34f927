"""Tasks in the form of WebArena and its descendants, and recorded runs.

The harnesses of the family read the same fields by different rules; each ``Dialect`` is declared
once, here, and recognised by words (keys, checks, markers) that no other dialect has. Unknown keys
in a specification (``eval``) are errors, because a misspelt check would check nothing. Keys of
other benchmarks among them are kept and reported (``load_tasks``); outside the specification
unknown keys are ignored.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from trajudge.rules.files import TaskFlaw, decode, flaw_of, read_bytes, task_id_of, template_of
from trajudge.util.errors import UserError
from trajudge.util.files import DataFolder

Form = Literal["webarena", "verified", "real"]
_ANSWERS = frozenset({"exact_match", "must_include", "fuzzy_match"})
_CONTENTS = frozenset({"exact_match", "must_include"})
_CHECKS = frozenset({"string_match", "url_match", "program_html"})
_VISUAL_CONTENTS = _CONTENTS | {"must_exclude", "required_values", "fuzzy_match"}
_VERIFIED_CHECKS = ("AgentResponseEvaluator", "NetworkEventEvaluator", "BackendStateEvaluator")


@dataclass(frozen=True)
class Harness:
    """How a harness of WebArena's family reads a specification.

    ``answers``, ``contents`` and ``checks`` are the names that it reads in ``reference_answers``,
    ``required_contents`` and ``eval_types``. ``alternatives`` separates the alternatives of an
    answer's ``must_include``, "" without alternatives; ``folds_options``: they are split after
    cleaning. ``whole_words``: a reference of one word must be a word of the text ("parts": words
    joined by "/" also count separately); "lone": only if it is the list's only reference and one
    character long. ``partial``: the score of a list is the share that holds. ``strips``: outer
    white space is ignored. ``joined`` joins the references of a fuzzy match into one question, None
    asks one question each. ``exact_urls``: addresses must be equal, or with the note "GOLD in PRED"
    a substring of the last page's; otherwise the base must be a substring of its base and the
    query's values among its values. ``folds_urls``: the case of addresses is ignored.
    ``unescapes``: entities in a page's text are resolved. ``or_entries``: ``or`` lists alternative
    addresses and page checks.
    """

    answers: frozenset[str] = _ANSWERS
    contents: frozenset[str] = _CONTENTS
    checks: frozenset[str] = _CHECKS
    alternatives: str = ""
    folds_options: bool = False
    whole_words: Literal["lone", "words", "parts"] = "lone"
    partial: bool = False
    strips: bool = True
    joined: str | None = None
    exact_urls: bool = False
    folds_urls: bool = False
    unescapes: bool = True
    or_entries: bool = False


@dataclass(frozen=True)
class Dialect:
    """One dialect. ``form`` is the form of its records; ``words`` are those that no other
    dialect of the form has; ``extends`` names a dialect whose words it may also contain."""

    name: str
    title: str
    form: Form
    words: frozenset[str] = frozenset()
    extends: str = ""
    harness: Harness = Harness()


_VISUAL = Harness(
    answers=_ANSWERS | {"must_exclude", "one_of", "required_values"},
    contents=_VISUAL_CONTENTS,
    checks=_CHECKS | {"page_image_query"},
    alternatives=" |OR| ",
    whole_words="words",
    strips=False,
    exact_urls=True,
    unescapes=False,
)

DIALECTS: Mapping[str, Dialect] = {
    row.name: row
    for row in (
        Dialect("webarena", "WebArena", "webarena"),
        Dialect(
            "webchorearena",
            "WebChoreArena",
            "webarena",
            words=frozenset({"start_url_lite", "required_obs", "type_main", "or", " |or| "}),
            harness=Harness(
                alternatives=" |or| ",
                folds_options=True,
                partial=True,
                joined="; ",
                folds_urls=True,
                or_entries=True,
            ),
        ),
        Dialect(
            "visualwebarena",
            "VisualWebArena",
            "webarena",
            words=frozenset(
                {"visual_difficulty", "page_image_query", "must_exclude", "one_of"}
                | {"required_values", "EXACT"}
            ),
            harness=_VISUAL,
        ),
        Dialect(
            "webarena-lite",
            "WebArena-Lite",
            "webarena",
            words=frozenset({"old_task_id"}),
            extends="visualwebarena",
            harness=Harness(
                answers=_VISUAL.answers,
                contents=_VISUAL.contents,
                checks=_VISUAL.checks,
                alternatives=" |OR| ",
                whole_words="parts",
                strips=False,
                joined=", ",
                exact_urls=True,
                unescapes=False,
            ),
        ),
        Dialect("verified", "WebArena Verified", "verified"),
        Dialect("real", "REAL", "real"),
    )
}


def dialect(name: str) -> Dialect:
    """Return a dialect by name. Raises UserError for an unknown name."""
    if name not in DIALECTS:
        raise UserError(f"no dialect {name!r} of task files: use one of {', '.join(DIALECTS)}")
    return DIALECTS[name]


def detected(path: Path) -> Dialect:
    """Return the dialect of a task file, or of a folder by its first file.

    Raises UserError if no dialect or more than one fits.
    """
    records = list(_records(path))
    forms = {form for record in records if (form := _form(record))}
    if len(forms) != 1:
        what = f"are of several dialects ({', '.join(sorted(forms))})" if forms else "are of none"
        raise UserError(f"{path}: its tasks {what} of {', '.join(DIALECTS)}: name it by --dialect")
    rows = [row for row in DIALECTS.values() if row.form in forms]
    used = frozenset(word for record in records for word in _words(record))
    met = {row.name: row.words & used for row in rows if row.words & used}
    for row in rows:
        if row.name in met:
            met.pop(row.extends, None)
    if len(met) > 1:
        held = " and ".join(f"{name} ({', '.join(sorted(met[name]))})" for name in met)
        raise UserError(f"{path}: its tasks hold words of {held}: name one by --dialect")
    return DIALECTS[next(iter(met))] if met else rows[0]


def _records(path: Path) -> Iterator[Mapping[str, Any]]:
    """Yield the records of the first file that are objects. Raises UserError without any."""
    folder = DataFolder(path) if path.is_dir() else None
    file = next(iter(sorted(path.glob("*.json"))), None) if folder else path
    if file is None:
        raise UserError(f"{path}: holds no .json file: name a file of tasks, or a folder of them")
    made = raw_records(read_bytes(file, folder=folder), file)
    if not made:
        raise UserError(f"{file}: holds no task: name a file of tasks (see rules/schema.md)")
    for raw in made:
        record = msgspec.json.decode(raw)
        if isinstance(record, dict):
            yield record


def raw_records(data: bytes, file: Path) -> Sequence[msgspec.Raw]:
    """Return the records of a JSON list, or of a single object. Raises UserError."""
    if data.lstrip().startswith(b"["):
        listed: list[msgspec.Raw] = decode(data, list[msgspec.Raw], file)
        return listed
    decode(data, dict[str, Any], file)
    return [decode(data, msgspec.Raw, file)]


def _form(record: Mapping[str, Any]) -> Form | None:
    spec = record.get("eval")
    if isinstance(spec, dict) and "eval_types" in spec:
        return "webarena"
    if isinstance(spec, list) and spec:
        named = (check.get("evaluator") for check in spec if isinstance(check, dict))
        return "verified" if any(name in _VERIFIED_CHECKS for name in named) else None
    return "real" if "evals" in record and "goal" in record else None


def _words(record: Mapping[str, Any]) -> Iterator[str]:
    """Yield the words of a task in WebArena's form by which dialects are recognised."""
    yield from record
    spec = record.get("eval")
    if not isinstance(spec, dict):
        return
    yield from spec
    yield from _texts([spec.get("eval_types"), spec.get("url_note")])
    answers = spec.get("reference_answers")
    if isinstance(answers, dict):
        yield from answers
        if any(" |or| " in text for text in _texts([answers.get("must_include")])):
            yield " |or| "
    for check in spec.get("program_html") or ():
        if isinstance(check, dict):
            yield from check
            contents = check.get("required_contents")
            yield from contents if isinstance(contents, dict) else ()


def _texts(values: Iterable[Any]) -> Iterator[str]:
    for value in values:
        if isinstance(value, str):
            yield value
        elif isinstance(value, list):
            yield from (one for one in value if isinstance(one, str))


TaskId = int | str
UNACHIEVABLE = "N/A"
Check = Literal["string_match", "url_match", "program_html", "page_image_query"]


class ReferenceAnswers(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The references for the answer, all of which must hold.

    ``fuzzy_match`` is a list of references for a judge model, or "N/A": the task is unachievable.
    """

    exact_match: str | UnsetType = UNSET
    must_include: tuple[str, ...] | UnsetType = UNSET
    must_exclude: tuple[str, ...] | UnsetType = UNSET
    one_of: tuple[str, ...] | UnsetType = UNSET
    required_values: tuple[str, ...] | UnsetType = UNSET
    fuzzy_match: str | tuple[str, ...] | UnsetType = UNSET


class RequiredContents(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The required contents of a page; if several are given, the harness reads only the first."""

    exact_match: str | UnsetType = UNSET
    must_include: tuple[str, ...] | UnsetType = UNSET
    must_exclude: tuple[str, ...] | UnsetType = UNSET
    required_values: tuple[str, ...] | UnsetType = UNSET
    fuzzy_match: str | tuple[str, ...] | UnsetType = UNSET

    @property
    def given(self) -> tuple[str, ...]:
        """The names that are given, starting with the one that the harness reads."""
        return tuple(name for name in self.__struct_fields__ if getattr(self, name) is not UNSET)


class PageCheck(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"alternatives": "or"}
):
    """One entry of ``program_html``: a page, the part of it to read, and the required contents.

    ``url`` is an address, ``last`` or ``func:...``; ``locator`` is blank for the whole page, a
    JavaScript expression, or ``func:...``. Neither is ever executed here.
    """

    url: str
    locator: str
    required_contents: RequiredContents
    prep_actions: tuple[str, ...] | UnsetType = UNSET
    alternatives: tuple[PageCheck, ...] | UnsetType = UNSET


class AddressAlternative(msgspec.Struct, frozen=True):
    """One entry of WebChoreArena's ``eval.or``: an alternative reference address."""

    reference_url: str


class Specification(
    msgspec.Struct,
    frozen=True,
    rename={"answers": "reference_answers", "others": "_others", "alternatives": "or"},
):
    """How a task is judged: every check in ``eval_types`` must pass.

    ``others`` are the keys of other tools, which no rule reads; ``load_tasks`` sets them.
    """

    eval_types: tuple[Check, ...]
    answers: ReferenceAnswers | Literal[""] | None = None
    reference_url: str | None = ""
    program_html: tuple[PageCheck, ...] = ()
    page_image_query: tuple[dict[str, Any], ...] | UnsetType = UNSET
    string_note: str | UnsetType = UNSET
    url_note: str | UnsetType = UNSET
    annotation_note: str | UnsetType = UNSET
    reference_answer_raw_annotation: str | UnsetType = UNSET
    alternatives: tuple[AddressAlternative, ...] | UnsetType = UNSET
    others: Mapping[str, Any] | UnsetType = UNSET

    @property
    def unread(self) -> tuple[str, ...]:
        """The names of ``others``."""
        return () if self.others is UNSET else tuple(self.others)

    @property
    def reference_answers(self) -> ReferenceAnswers | None:
        """The references for the answer; some files have an empty text for none."""
        return self.answers or None


class Task(msgspec.Struct, frozen=True):
    """A task: the agent's intent, the start pages, and the specification of the check.

    ``dialect`` and ``flaw`` are set by ``load_tasks``; a task with a flaw checks nothing.
    """

    task_id: TaskId
    intent: str
    eval: Specification
    sites: tuple[str, ...] = ()
    start_url: str = ""
    require_login: bool = False
    require_reset: bool = False
    storage_state: str | None = None
    geolocation: Any = None
    intent_template: str = ""
    intent_template_id: TaskId | None = None
    instantiation_dict: dict[str, Any] = {}
    string_note: str | UnsetType = UNSET
    dialect: str = "webarena"
    flaw: TaskFlaw | None = None

    @property
    def harness(self) -> Harness:
        """How the harness of the task's dialect reads it."""
        return DIALECTS[self.dialect].harness

    @property
    def template(self) -> str:
        """The template by which statistics group tasks."""
        return template_of(self.intent_template_id, self.task_id)

    @property
    def achievable(self) -> bool:
        """Whether the task can be done: the right answer is not "N/A"."""
        references = self.eval.reference_answers
        return references is None or references.fuzzy_match != UNACHIEVABLE


class StoredPage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A page at the end of the run: its HTML, and the values of locators in it (None for an
    element that did not exist)."""

    url: str
    html: str | None = None
    values: dict[str, str | None] = {}


class Trace(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The record of a run, except for its answer.

    ``url`` is the last page's; ``results`` are the results of helper functions by their text after
    ``func:``.
    """

    url: str | None = None
    pages: tuple[StoredPage, ...] = ()
    results: dict[str, str | None] = {}


class Run(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An agent's answer to a task (None without one), and the trace of its run."""

    task_id: TaskId
    answer: str | None = None
    trace: Trace | None = None


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

    ``named`` is the dialect (None: recognise it). Raises UserError for a file that cannot be read
    or has no task, and for a task with a flaw unless ``keep_flawed``.
    """
    row = dialect(named) if named else detected(path)
    folder = DataFolder(path) if path.is_dir() else None
    files = sorted(path.glob("*.json")) if folder else [path]
    tasks: list[Task] = []
    file_of: dict[str, Path] = {}
    for file in files:
        for raw in raw_records(read_bytes(file, folder=folder), file):
            task = _task(bytes(raw), len(tasks) + 1, row)
            tasks.append(task)
            if (other := file_of.setdefault(str(task.task_id), file)) != file:
                raise UserError(
                    f"{path}: task {task.task_id!r} stands in {other.name} and in {file.name}: "
                    "name one of these files"
                )
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
    """Parse one task; a task that cannot be read has a flaw."""
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
    """List the names that the dialect's harness reads, if the field is none of them."""
    _, found, name = flaw.problem.partition("unknown field `")
    if not found:
        return flaw
    name = name.rstrip("`")
    read = sorted({*row.harness.answers, *row.harness.contents})
    close = get_close_matches(name, read, n=1, cutoff=0.75)
    fix = f"write {close[0]}" if close else f"{row.name} reads {', '.join(read)}"
    return TaskFlaw(flaw.field, f"no rule reads it: {fix}", flaw.value)


def _flaws(task: Task, others: dict[str, Any], row: Dialect) -> Iterator[TaskFlaw]:
    """Yield flaws beyond the types: keys that resemble known ones, and fields that only another
    dialect's harness reads."""
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


def _page_flaws(check: PageCheck, field: str, row: Dialect) -> Iterator[TaskFlaw]:
    for name in check.required_contents.given:
        if name not in row.harness.contents:
            yield _of_others(f"{field}.required_contents.{name}", name, "contents", row)
    if check.alternatives is not msgspec.UNSET:
        if not row.harness.or_entries:
            yield _of_others(f"{field}.or", "or", "", row)
        for index, other in enumerate(check.alternatives):
            yield from _page_flaws(other, f"{field}.or[{index}]", row)


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
    """Describe, in one sentence each, the keys of specifications that no rule reads."""
    counted = Counter(name for task in tasks for name in task.eval.unread)
    return tuple(
        f"eval.{name} ({count} of {len(tasks)} tasks) is none of WebArena's keys: no rule reads it"
        for name, count in counted.items()
    )


def load_runs(path: Path) -> tuple[Run, ...]:
    """Read runs from a JSON list, from JSON Lines, or from an object of answers by task id.

    Raises UserError for a file that cannot be read or has no run.
    """
    if path.is_dir():
        raise UserError(
            f"{path}: is a folder, and no study of BrowserGym: name a file of runs, with one JSON "
            "object a line that has task_id, answer"
        )
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
