"""Tasks of WebArena Verified, as published (a JSON list of records) or from a user's own file.

Every field of the 812 published tasks is declared here, and unknown fields are errors, so that a
misspelt option is not ignored silently. Missing fields have the released package's defaults. Named
parts of a file (subsets) have the package's format: ids, and their checksum.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field

from trajudge.rules.files import TaskFlaw, decode, flaw_of, read_bytes, task_id_of, template_of
from trajudge.util.errors import UserError

TaskId: TypeAlias = int | str
TaskType: TypeAlias = Literal["retrieve", "mutate", "navigate"]
Schema: TypeAlias = dict[str, Any]
_EXTENSIONS = ("shape_only", "changing_urls")
_FOLDER_NAME = re.compile(r"(?!\.+\Z)[\w.-]{1,100}")
_PLACEHOLDER = re.compile(r"__([A-Z][A-Z_]*?)__")


class ExpectedAnswer(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The expected answer. ``retrieved_data`` is used for retrieve tasks only; a list for a
    schema of a single value contains alternatives."""

    task_type: TaskType
    status: str
    retrieved_data: Any | UnsetType = UNSET


class AnswerCheck(
    Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    tag_field="evaluator",
    tag="AgentResponseEvaluator",
):
    """A check of the answer: ``results_schema`` has the kinds of the values; ``ordered`` lists are
    compared in order.

    ``shape_only`` (trajudge's extension): the values describe only the form of a right answer, so
    that an answer which matches them may still be wrong.
    """

    expected: ExpectedAnswer
    results_schema: Schema
    ordered: bool = False
    shape_only: bool = False


class ExpectedEvent(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One request and its response. Texts of the form ``^...$`` are patterns; None in
    ``post_data`` means that the field must be absent; keys may be JSONPaths (``$...``)."""

    url: str | tuple[str, ...]
    http_method: str = "GET"
    response_status: int = 200
    query_params: dict[str, tuple[Any, ...] | str] | None = None
    headers: dict[str, str | tuple[str, ...]] | None = None
    post_data: dict[str, Any] | None = None
    response_content: dict[str, Any] | None = None
    response_cookies: dict[str, str | tuple[str, ...]] | None = None

    @property
    def urls(self) -> tuple[str, ...]:
        """The alternatives of the address."""
        return (self.url,) if isinstance(self.url, str) else self.url


class NetworkCheck(
    Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    tag_field="evaluator",
    tag="NetworkEventEvaluator",
):
    """A request that the run must have sent, or with ``should_not_exist`` must not have sent.

    ``changing_urls`` (trajudge's extension): addresses at which requests with the same method and
    status change the site; a further one may have repeated or undone the expected change.
    """

    expected: ExpectedEvent
    last_event_only: bool = True
    should_not_exist: bool = False
    decode_base64_query: bool = False
    ignored_query_params: tuple[str, ...] = ()
    ignored_query_params_patterns: tuple[str, ...] = ()
    ignored_post_data_params_patterns: tuple[str, ...] = ()
    query_params_schema: Schema | None = None
    post_data_schema: Schema | None = None
    changing_urls: tuple[str, ...] = ()


class BackendCheck(
    Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    tag_field="evaluator",
    tag="BackendStateEvaluator",
):
    """The required state of the site after the run (trajudge's extension).

    ``probe`` names a probe (see ``rules.verified.state``); ``expected`` maps JSONPaths in its reply
    to values, ``results_schema`` has their kinds; ``changed`` requires that the reply differ, or
    not, from that before the run.
    """

    probe: str
    expected: dict[str, Any] = field(default_factory=dict)
    results_schema: Schema = field(default_factory=dict)
    changed: bool | None = None


Check: TypeAlias = AnswerCheck | NetworkCheck | BackendCheck


class Task(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One task. ``sites`` are lower-case names; ``__NAME__`` stands for a site's address in
    ``start_urls`` and checks. A task with a ``flaw`` (set by ``load_tasks``) checks nothing."""

    task_id: TaskId
    sites: tuple[str, ...]
    intent: str
    eval: tuple[Check, ...]
    intent_template_id: int | str | None = None
    start_urls: tuple[str, ...] = ()
    intent_template: str = ""
    instantiation_dict: dict[str, Any] = field(default_factory=dict)
    revision: int = 1
    flaw: TaskFlaw | None = None

    @property
    def answer_check(self) -> AnswerCheck | None:
        """The check of the answer; None if the task checks requests only."""
        return next((check for check in self.eval if isinstance(check, AnswerCheck)), None)

    @property
    def network_checks(self) -> tuple[NetworkCheck, ...]:
        """The checks of the trace, in order."""
        return tuple(check for check in self.eval if isinstance(check, NetworkCheck))

    @property
    def backend_checks(self) -> tuple[BackendCheck, ...]:
        """The checks of the sites' state, in order."""
        return tuple(check for check in self.eval if isinstance(check, BackendCheck))

    @property
    def template(self) -> str:
        """The template by which statistics group tasks."""
        return template_of(self.intent_template_id, self.task_id)

    @property
    def achievable(self) -> bool:
        """Whether the task can be done: its expected status is SUCCESS."""
        check = self.answer_check
        return check is None or check.expected.status.upper() == "SUCCESS"


_TASK = msgspec.json.Decoder(Task)


def placeholder(site: str) -> str:
    """Return ``__SHOPPING_ADMIN__`` for ``shopping_admin``."""
    return f"__{site.upper()}__"


def placeholders(text: str) -> set[str]:
    """Return the placeholders of sites in a text of a specification."""
    return {match[0] for match in _PLACEHOLDER.finditer(text)}


def load_tasks(path: Path, *, keep_flawed: bool = False) -> tuple[Task, ...]:
    """Return the tasks of a JSON file, in order.

    Raises UserError with file, field and error; for a task with a flaw only without
    ``keep_flawed``.
    """
    made: list[Raw] = decode(read_bytes(path), list[Raw], path)
    if not made:
        raise UserError(f"{path}: holds no task: name a file of tasks (see rules/schema.md)")
    tasks = [_task(bytes(raw), position) for position, raw in enumerate(made, start=1)]
    seen = Counter(str(task.task_id) for task in tasks)
    tasks = [task if task.flaw else _checked(task, seen) for task in tasks]
    flawed = next((task for task in tasks if task.flaw), None)
    if flawed and not keep_flawed:
        raise UserError(f"{path}: task {flawed.task_id!r}: {flawed.flaw}: correct it (schema.md)")
    return tuple(tasks)


def _task(data: bytes, position: int) -> Task:
    """Parse one task; a task that cannot be read has a flaw."""
    try:
        return msgspec.structs.replace(_TASK.decode(data), flaw=None)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        flaw, record = flaw_of(error, data)
        return Task(
            task_id=task_id_of(record, position),
            sites=(),
            intent=str(record.get("intent", "")),
            eval=(),
            flaw=flaw,
        )


def _checked(task: Task, seen: Counter[str]) -> Task:
    """Add a flaw that the types cannot express."""
    flaw = None
    if seen[str(task.task_id)] > 1:
        flaw = TaskFlaw("task_id", "two tasks have it: give each its own", task.task_id)
    elif not _FOLDER_NAME.fullmatch(str(task.task_id)):
        named = str(task.task_id)[:40]
        problem = f"{named!r} names no folder: use letters, digits, dots, dashes and underscores"
        flaw = TaskFlaw("task_id", problem, task.task_id)
    elif not task.eval:
        flaw = TaskFlaw("eval", "holds no check: give it at least one", [])
    elif sum(isinstance(check, AnswerCheck) for check in task.eval) > 1:
        flaw = TaskFlaw("eval", "holds several AgentResponseEvaluators: keep one")
    return msgspec.structs.replace(task, eval=(), flaw=flaw) if flaw else task


def task_record(task: Task) -> dict[str, Any]:
    """Return the task as a JSON object, defaults included, extensions where they are used."""
    record: dict[str, Any] = msgspec.to_builtins(task)
    del record["flaw"]
    for check in record["eval"]:
        for name in _EXTENSIONS:
            if not check.get(name, True):
                del check[name]
    return record


def published_record(task: Task) -> dict[str, Any]:
    """Return the task as a record that the released package reads, without trajudge's
    extensions, so that the package may accept runs that the extensions leave unknown."""
    record = task_record(task)
    record["eval"] = [
        {name: value for name, value in check.items() if name not in _EXTENSIONS}
        for check in record["eval"]
        if check["evaluator"] != "BackendStateEvaluator"
    ]
    return record


_NAME = re.compile(r"(?!\.+\Z)[\w.-]{1,200}")


class _Subset(Struct):
    task_ids: tuple[TaskId, ...]
    checksum: str | None = None


def checksum_of(task_ids: Sequence[TaskId]) -> str:
    """Return the package's checksum: SHA-256 of the sorted ids as compact JSON."""
    ordered = sorted(task_ids, key=lambda one: (isinstance(one, str), one))
    return hashlib.sha256(msgspec.json.encode(ordered)).hexdigest()


def subset_ids(named: str, tasks: Path) -> frozenset[str]:
    """Return the task ids of a subset, as texts: from a file, or by the name of a file next to the
    task file (``NAME.json`` or ``subsets/NAME.json``, as in the package).

    Raises UserError for a subset that does not exist, repeated ids, and a wrong checksum.
    """
    path = _file(named, tasks)
    subset: _Subset = decode(read_bytes(path), _Subset, path)
    twice = [one for one, count in Counter(map(str, subset.task_ids)).items() if count > 1]
    if twice or not subset.task_ids:
        fault = f"names task {twice[0]} twice: keep one" if twice else "names no task: add some"
        raise UserError(f"{path}: {fault}")
    computed = checksum_of(subset.task_ids)
    if subset.checksum is not None and subset.checksum != computed:
        raise UserError(
            f"{path}: its checksum is not that of its {len(subset.task_ids)} task_ids, so they "
            f"were changed: get the file again, or write {computed} if the change is yours"
        )
    return frozenset(map(str, subset.task_ids))


def _file(named: str, tasks: Path) -> Path:
    """Return the subset's file. Raises UserError for a name without one."""
    path = Path(named)
    if path.exists() or not _NAME.fullmatch(named) or path.suffix == ".json":
        return path
    folder = tasks if tasks.is_dir() else tasks.parent
    files = [folder / f"{named}.json", folder / "subsets" / f"{named}.json"]
    for file in files:
        if file.is_file():
            return file
    raise UserError(
        f"--subset {named}: no file of that name, and neither {files[0]} nor {files[1]}: "
        "name the subset's file"
    )
