"""Tasks of WebArena Verified as published (a JSON list of records), and of a user's own files.

Every field of the published 812 tasks is declared here and unknown fields are mistakes, so that
a misspelt option is not silently without effect. Fields that a record leaves out have the values
that the released package gives them.
Named parts of a file (subsets) are kept as in the package: ids, and a checksum of them.
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
    """What the agent has to answer. ``retrieved_data`` counts for retrieve tasks only; a list
    where the schema has one value holds alternatives."""

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
    """``results_schema`` names the kinds of the values; ``ordered`` lists are kept in order.

    ``shape_only`` (this project's extension): the values say what a right answer looks like and not
    which it is, so that an answer that meets them may still be wrong.
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

    ``changing_urls`` (this project's extension): to which addresses requests of its method and
    status change the site; a further one may have repeated or undone what this one did.
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
    """The state that the site must be in after the run (this project's extension).

    ``probe`` names a probe (see ``rules.verified.state``); ``expected`` maps JSONPaths into its
    reply to values, ``results_schema`` gives their kinds; ``changed`` says whether the reply must
    differ from the one before the run.
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
        """The check of the answer; None for a task that only asks for requests."""
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
        """What statistics group tasks by."""
        return template_of(self.intent_template_id, self.task_id)

    @property
    def achievable(self) -> bool:
        """Whether the task can be done: its expected status is SUCCESS."""
        check = self.answer_check
        return check is None or check.expected.status.upper() == "SUCCESS"


_TASK = msgspec.json.Decoder(Task)


def placeholder(site: str) -> str:
    """``__SHOPPING_ADMIN__`` for ``shopping_admin``."""
    return f"__{site.upper()}__"


def placeholders(text: str) -> set[str]:
    """Return the sites' placeholders in a text of a specification."""
    return {match[0] for match in _PLACEHOLDER.finditer(text)}


def load_tasks(path: Path, *, keep_flawed: bool = False) -> tuple[Task, ...]:
    """Return the tasks of a JSON file, in order.

    Raises UserError that names file, field and mistake, for a task with a flaw only without
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
    """Read one task; one that cannot be read has a flaw."""
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
    """Give a task the flaw that the types cannot say."""
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
    """Return the task as a record that the released package reads: without this project's
    extensions, so that it may accept what they leave open."""
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
    """Return the task ids of a subset, as texts: of a file, or by its name of one next to the task
    file (``NAME.json`` or ``subsets/NAME.json``, as in the package).

    Raises UserError for none, for ids that stand twice, and for a checksum that is not theirs.
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
    """Raise UserError for a name that no file has."""
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
