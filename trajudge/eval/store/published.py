"""AgentRewardBench's published judgments: ``judgments/BENCHMARK/AGENT/JUDGE/TASK_ID.json``.

The few fields that scoring needs are read without decoding the rest, and kept in the user's cache.
"""

from __future__ import annotations

import errno
import os
import re
import time
import zlib
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
from msgspec import UNSET, UnsetType

from trajudge.annotations import Labels, open_annotations, primary_labels
from trajudge.annotations.sources import agentrewardbench
from trajudge.eval.sources import Source
from trajudge.eval.store.labels import RewardColumns, RunRewards
from trajudge.eval.store.table import (
    ABOUT,
    SETTLED,
    TYPES,
    JudgmentColumns,
    NamedColumns,
    PublishedJudgments,
    SavedTable,
    check_lengths,
    columns_from,
    columns_of,
    first_of_each,
    place_in_cache,
    table_of,
)
from trajudge.judges.model import Call, Judgment, Status, Usage
from trajudge.judges.replies import ParseFailure, parse_status_line, parse_tags
from trajudge.trajectories.loaders.agentrewardbench_text import is_judgment
from trajudge.trajectories.model import TrajectoryKey, checked, defaults_of
from trajudge.util import jsonl as python_json
from trajudge.util.errors import UserError
from trajudge.util.files import DataFolder, read_regular, write_bytes
from trajudge.util.machine import collection_paused
from trajudge.util.terminal import count_of

# A browser that downloads a file twice writes "name(1).json".
_DUPLICATE = re.compile(r"\(\d+\)$")

_ERROR = "_error"

_SUFFIX = ".json"

_AMBIGUOUS = (f"){_SUFFIX}", f"{_ERROR}{_SUFFIX}")

_LEVELS = 3  # of folders, down to the judge's


class JudgeFolder(NamedTuple):
    """The folder at ``path`` of one judge of an agent, and its files: raw task id -> name."""

    path: str
    benchmark: str
    agent: str
    judge: str
    files: dict[str, str]


def list_published(root: Path) -> list[JudgeFolder]:
    """List the folders of judges below ``root``, the folder of benchmarks, by path. Raises
    OSError for one that cannot be listed."""
    listed = []
    for path in _folders(root, _LEVELS):
        if files := _one_file_a_task(path):
            benchmark, agent, judge = path.parts[-_LEVELS:]
            listed.append(JudgeFolder(str(path), benchmark, agent, judge, files))
    return listed


def _folders(path: Path, levels: int) -> Iterator[Path]:
    """Yield the folders so many levels below, in the order of their paths; a link to a folder is
    one, and what is below a folder that may not be listed is not seen."""
    if not levels:
        yield path
        return
    names: list[str] = []
    with suppress(PermissionError):
        names = sorted(os.listdir(path))  # noqa: PTH208 - as below
    for name in names:
        if (inside := path / name).is_dir():
            yield from _folders(inside, levels - 1)


def _one_file_a_task(judge: Path) -> dict[str, str]:
    """Raw task id -> its file's name: an answer before an error, an original before a
    duplicate."""
    listed = os.listdir(judge)  # noqa: PTH208 - names are enough, and many times quicker
    names = [name for name in listed if name.endswith(_SUFFIX)]
    if not any(name.endswith(_AMBIGUOUS) for name in names):
        return {task_id: task_id + _SUFFIX for task_id in sorted(n[: -len(_SUFFIX)] for n in names)}
    candidates = []
    for file in names:
        name = _without_copy(file.removesuffix(_SUFFIX))
        task_id = _without_copy(name.removesuffix(_ERROR))
        candidates.append((task_id, name.endswith(_ERROR), len(file), file))
    files: dict[str, str] = {}
    for task_id, _, _, name in sorted(candidates):
        files.setdefault(task_id, name)
    return files


def _without_copy(name: str) -> str:
    return _DUPLICATE.sub("", name) if name.endswith(")") else name


NAME = ".published.msgpack"

_SAW = ("saw_tree", "saw_screenshot")

_TYPES = TYPES | {"rewarded": "i8", "reward": "f8"} | dict.fromkeys(_SAW, "i1")

Identity = tuple[int, int, int]

"""Size, nanoseconds of the change and of the status change."""


class PublishedFacts(NamedTuple):
    """What the files tell beside the judgments: the official rewards of their trajectories, whether
    a judge saw the tree and the screenshot, where that is told, and the model of a judge."""

    rewards: Mapping[TrajectoryKey, float | None]
    representations: dict[str, tuple[bool, bool]]
    models: dict[str, str]


class SavedPublished:
    """The side file of the judgments below ``root``, of the files in ``folders``."""

    def __init__(self, root: Path, folders: Sequence[JudgeFolder]) -> None:
        self._place = place_in_cache(root, NAME)
        self._folders = folders
        self._known = ""

    def load(self) -> tuple[JudgmentColumns, PublishedFacts] | None:
        """Return what was kept; None where nothing was, or the files have changed since."""
        if self._place is None or not self._place.is_file():
            return None
        try:
            self._known = self._digest(
                identity_of(os.stat(f"{folder.path}/{name}"))  # noqa: PTH116 - many times quicker
                for folder in self._folders
                for name in folder.files.values()
            )
            table = self._table(self._known).load()
            return None if table is None else _columns(table)
        except (OSError, ValueError, IndexError):
            return None

    def is_of(self, identities: Iterable[Identity]) -> bool:
        """Tell whether what was loaded is of files that are these, in the order of the folders."""
        return self._digest(identities) == self._known

    def keep(
        self, judgments: JudgmentColumns, facts: PublishedFacts, identities: Iterable[Identity]
    ) -> None:
        """Keep the columns of files that were these when they were read, in the order of the
        folders."""
        names, kept = table_of(judgments)
        kept["rewarded"] = first_of_each(judgments.keys)
        kept["reward"] = RewardColumns.of(facts.rewards).reward
        shown, models = facts.representations, facts.models
        for side, name in enumerate(_SAW):
            kept[name] = np.array([saw[side] for saw in shown.values()], dtype=np.int8)
        names = (*names, tuple(shown), tuple(models), tuple(models.values()))
        with suppress(ValueError, OverflowError):  # such as a name that is no text
            self._table(self._digest(identities)).keep(NamedColumns(names, kept))

    def _table(self, digest: str) -> SavedTable:
        return SavedTable(self._place, _TYPES, (*ABOUT, digest))

    def _digest(self, identities: Iterable[Identity]) -> str:
        paths = "\0".join(
            "\0".join([folder.benchmark, folder.agent, folder.judge, *folder.files.values()])
            for folder in self._folders
        )
        digest = blake2b(os.fsencode(paths), digest_size=32)
        numbers = array("q")
        for identity in identities:
            numbers.extend(identity)
        digest.update(numbers)
        return digest.hexdigest()


def identity_of(status: os.stat_result) -> Identity:
    """Return what a published judgment's file is known by."""
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _columns(table: NamedColumns) -> tuple[JudgmentColumns, PublishedFacts]:
    """Make the columns. Raises ValueError, IndexError for what does not belong together."""
    judgments = columns_from(table)
    *_, shown, judges, models = table.names
    rows, reward, *saw = (table.columns[name] for name in _TYPES if name not in TYPES)
    check_lengths([rows], len(reward))
    check_lengths(saw, len(shown))
    seen = zip(*(column.astype(bool).tolist() for column in saw), strict=True)
    facts = PublishedFacts(
        RunRewards(RewardColumns(judgments.keys.at(rows), reward)),
        dict(zip(shown, seen, strict=True)),
        dict(zip(judges, models, strict=True)),
    )
    return judgments, facts


_MAX_BYTES = 200_000_000

# Most of a file is the chat messages, which lie between what is needed: enough of its two ends.
_HEAD, _TAIL = 8_192, 8_192

_LARGE_KEY, _LAST_KEY = b'"chat_messages"', b'"trajectory_info"'

_BLANKS = b" \t\r\n"


class Answer(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The judge's reply: its first choice. ``content`` and token counts are None if not told."""

    content: str | None = None
    finish_reason: str | None = None
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    completion_tokens: int | None = None


class JudgmentFile(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What a file tells. ``answer`` is None if the provider gave none, ``error`` then says why;
    ``use_axtree`` and ``use_screenshot`` are None if the file does not tell."""

    judge_model_name: str = ""
    use_axtree: bool | None = None
    use_screenshot: bool | None = None
    answer: Answer | None = None
    error: str = ""
    official_reward: float | None = None


class _Message(msgspec.Struct):
    content: str | None = None


class _Choice(msgspec.Struct):
    message: _Message = msgspec.field(default_factory=_Message)
    finish_reason: str | None = None


class _PromptDetails(msgspec.Struct):
    cached_tokens: int | None = None


class _Usage(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _PromptDetails | None = None


class _Response(msgspec.Struct):
    choices: list[_Choice] = msgspec.field(default_factory=list)
    usage: _Usage | None = None


class _Arguments(msgspec.Struct):
    use_axtree: bool | None = None
    use_screenshot: bool | None = None


class _Summary(msgspec.Struct):
    cum_reward: float | str | None = None  # NaN comes as its name


class _Info(msgspec.Struct):
    summary_info: _Summary = msgspec.field(default_factory=_Summary)


class _End(msgspec.Struct):
    trajectory_info: _Info | UnsetType = UNSET


class _Start(msgspec.Struct):
    judge_model_name: str | UnsetType = UNSET
    judge_args: _Arguments | UnsetType | None = UNSET
    response: _Response | UnsetType | None = UNSET


class _Whole(_Start):
    error: Any = None
    trajectory_info: _Info = msgspec.field(default_factory=_Info)


_START, _END = msgspec.json.Decoder(_Start), msgspec.json.Decoder(_End)

_WHOLE = msgspec.json.Decoder(_Whole)


def read_file(descriptor: int, size: int) -> JudgmentFile:
    """Read the fields of an open file of ``size`` bytes.

    Raises OSError, ValueError, RecursionError.
    """
    if size > _MAX_BYTES:
        raise ValueError(f"larger than {_MAX_BYTES} bytes")
    if size > _HEAD + _TAIL:
        head, tail = os.read(descriptor, _HEAD), os.pread(descriptor, _TAIL, size - _TAIL)
        if (found := from_ends(head, tail)) is not None:
            return found
    return from_whole(os.pread(descriptor, size, 0))


def from_whole(content: bytes) -> JudgmentFile:
    """Decode the fields of a whole file. Raises ValueError, RecursionError."""
    whole = python_json.decode(content, _WHOLE)
    return _fields(whole, whole.trajectory_info, whole.error)


def from_ends(head: bytes, tail: bytes) -> JudgmentFile | None:
    """Decode the fields of a file from its first bytes, ``head``, and its last ones, ``tail``;
    None where these do not settle them.

    If the names in the JSON object are unique, the result equals that of the whole object. The
    part before the large key must be an object once it is closed, and the part from the last key
    on must be one once it is opened; therefore both are keys of the outermost object, and nothing
    between them lies inside either part. Every field must be in one of the two parts, therefore
    none lies between them.
    """
    cut, go_on = head.find(_LARGE_KEY), tail.rfind(_LAST_KEY)
    if cut < 0 or go_on < 0 or tail[go_on - 1 : go_on] == b"\\":
        return None
    try:
        start = _START.decode(head[:cut].rstrip(_BLANKS).removesuffix(b",") + b"}")
        end = _END.decode(b"{" + tail[go_on:])
    except (ValueError, RecursionError):  # the whole file will tell what is wrong, if anything
        return None
    info = end.trajectory_info
    if info is UNSET or start.judge_model_name is UNSET or start.judge_args is UNSET:
        return None
    # Without an answer the error counts, which may be anywhere.
    if not start.response or not start.response.choices:
        return None
    return _fields(start, info, None)


def _fields(start: _Start, info: _Info, error: Any) -> JudgmentFile:
    arguments = start.judge_args or _Arguments()
    reward = info.summary_info.cum_reward
    return JudgmentFile(
        judge_model_name=start.judge_model_name or "",
        use_axtree=arguments.use_axtree,
        use_screenshot=arguments.use_screenshot,
        answer=_answer(start.response) if start.response and start.response.choices else None,
        error=str(error)[:500] if error else "",
        official_reward=None if isinstance(reward, str) else reward,
    )


def _answer(response: _Response) -> Answer:
    choice, usage = response.choices[0], response.usage or _Usage()
    details = usage.prompt_tokens_details
    return Answer(
        content=choice.message.content,
        finish_reason=choice.finish_reason,
        prompt_tokens=usage.prompt_tokens,
        cached_tokens=details.cached_tokens if details else None,
        completion_tokens=usage.completion_tokens,
    )


INDEX_NAME = ".index.msgpack"

# A pipe among the files must not be waited for.
_READING = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)

_NO_LINK = getattr(os, "O_NOFOLLOW", 0)

_MAGIC = b"TJX1"

_INDEX_MAX_BYTES = 2_000_000_000


class _Entry(msgspec.Struct, frozen=True, array_like=True, gc=False):
    size: int
    changed: int
    status_changed: int
    file: JudgmentFile

    def fits(self, status: os.stat_result) -> bool:
        return self.identity == identity_of(status)

    @property
    def identity(self) -> Identity:
        return self.size, self.changed, self.status_changed


_Folders = dict[str, dict[str, _Entry]]

_DECODER = msgspec.msgpack.Decoder(_Folders)


class JudgmentIndex:
    """Reads judgment files below ``root``, those that did not change from the index.

    ``root`` is the folder with BENCHMARK/AGENT/JUDGE, ``data`` what no file may lie outside of
    (``root`` itself, if it is not given). ``notes`` says what went wrong; nothing
    that goes wrong with the index changes what is read. Files that changed less than ``settled``
    nanoseconds ago are not kept.
    """

    def __init__(
        self, root: Path, *, data: DataFolder | None = None, settled: int = SETTLED
    ) -> None:
        self._data = data or DataFolder(root)
        self.notes: list[str] = []
        self._settled = settled
        self._root = str(root)
        self._place = place_in_cache(root, INDEX_NAME)
        self._known = self._load()
        self._seen: _Folders = {}
        self._fresh = 0

    def read(self, folder: str, name: str) -> JudgmentFile:
        """Read the fields of ``folder/name``. Raises OSError, ValueError, RecursionError."""
        path, within = f"{folder}/{name}", folder.removeprefix(self._root)
        entry = self._known.get(within, {}).get(name)
        if entry is None or not entry.fits(os.stat(path)):  # noqa: PTH116 - many times quicker
            entry = _read(folder, path, self._data)
            self._fresh += 1
            if max(entry.changed, entry.status_changed) > time.time_ns() - self._settled:
                return entry.file
        self._seen.setdefault(within, {})[name] = entry
        return entry.file

    def identities(self, folders: Iterable[JudgeFolder]) -> list[Identity] | None:
        """Return what the files of these folders were known by when they were read; None where
        one is not kept."""
        try:
            return [
                seen[name].identity
                for folder in folders
                for seen in [self._seen[folder.path.removeprefix(self._root)]]
                for name in folder.files.values()
            ]
        except KeyError:
            return None

    def save(self) -> None:
        """Write what was read, where something is new or gone; notes where that fails."""
        gone = _count(self._seen) < _count(self._known)
        if not (gone or (self._fresh and self._seen)):
            return
        try:
            body = msgspec.msgpack.encode(self._seen)
        except OverflowError as error:
            self.notes.append(f"the judgments' index was not written: {error}")
            return
        content = _MAGIC + zlib.crc32(body).to_bytes(4, "big") + body
        if self._place is None:
            return
        try:
            self._place.parent.mkdir(parents=True, exist_ok=True)
            write_bytes(self._place, content)
        except OSError as error:
            self.notes.append(
                f"{self._place}: the judgments' index was not written ({error.strerror})"
            )

    def _load(self) -> _Folders:
        if self._place is None:
            return {}
        try:
            return _decode(read_regular(self._place, _INDEX_MAX_BYTES))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, RecursionError) as error:
            self.notes.append(f"{self._place}: is not a readable index and is made anew ({error})")
            return {}


def read_unindexed(data: DataFolder, folder: str, name: str) -> JudgmentFile:
    """Read the fields of ``folder/name`` without an index. Raises as ``JudgmentIndex.read``."""
    return _read(folder, f"{folder}/{name}", data).file


def _read(folder: str, path: str, data: DataFolder) -> _Entry:
    descriptor = _opened(folder, path, data)
    try:
        status = os.fstat(descriptor)
        return _Entry(*identity_of(status), read_file(descriptor, status.st_size))
    finally:
        os.close(descriptor)


def _opened(folder: str, path: str, data: DataFolder) -> int:
    """Open the file in ``folder`` and return its descriptor. Opening alone tells whether
    it is a link, therefore all other files cost nothing more."""
    if _NO_LINK and data.holds_folder(folder):
        try:
            return os.open(path, _READING | _NO_LINK)
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise
    if not data.holds(path):
        raise ValueError("it leads out of the data folder")
    return os.open(path, _READING)


def _decode(content: bytes) -> _Folders:
    """Decode an index. Raises ValueError unless the content is a whole one."""
    if content[:4] != _MAGIC:
        raise ValueError("its first bytes are not an index's")
    if zlib.crc32(memoryview(content)[8:]) != int.from_bytes(content[4:8], "big"):
        raise ValueError("its checksum is wrong")
    return _DECODER.decode(memoryview(content)[8:])


def _count(folders: _Folders) -> int:
    return sum(map(len, folders.values()))


_TAGS = ("<reasoning>", "<success>")

_OPEN, _CLOSE = "<reasoning>", "</reasoning>"

# What else than a label's tag would make the text before it matter.
_ENTANGLING = re.compile("reasoning|think|thought|channel|analysis", re.IGNORECASE)

# Thoughts in wrappers that begin without "<" (``trajectories.thoughts``).
_WRAPPED = ("◁", "[THINK]", "[/THINK]")

_ENTANGLED: dict[str, Any] = {}

_SHORT = 400

_LOOKED_AT = 20


class PublishedJudgment(NamedTuple):
    """A judgment with what else its file tells.

    ``official_reward`` is the trajectory's, ``judge_model_name`` the model that judged
    (``response.model`` may name another). The judge's id is its folder's name, because one model
    judges under several configurations; ``representation`` says whether it saw the final
    accessibility tree, and the final screenshot.
    """

    judgment: Judgment
    raw_task_id: str
    judge_model_name: str
    official_reward: float | None
    representation: tuple[bool, bool] | None = None


def judgments_folder(folder: Path) -> Path:
    """Find the folder of benchmarks: ``judgments`` in ``folder``, else ``folder`` itself."""
    inner = folder / "judgments"
    return inner if inner.is_dir() else folder


def read_published(folder: Path, index: JudgmentIndex | None = None) -> Iterator[PublishedJudgment]:
    """Read every judgment below ``folder`` (``judgments``, or the folder that has it), by path.

    Of duplicates and of an ``_error.json`` beside an answer one counts. A file that cannot be
    read gives a judgment with status ``skipped``. With an ``index`` (of the same folder) only
    files that changed are read. Raises UserError if there is no judgment.
    """
    yield from read_listed(folder, published_folders(folder), index)


def published_folders(folder: Path) -> list[JudgeFolder]:
    """List the judgments below ``folder``. Raises UserError if there is none."""
    root = judgments_folder(folder)
    listed = list_published(root) if root != folder or _holds_judgments(root) else []
    if not listed:
        raise UserError(
            f"{folder}: holds no judgments in the layout BENCHMARK/AGENT/JUDGE/TASK_ID.json; "
            "give the folder named judgments"
        )
    return listed


def read_listed(
    folder: Path, listed: Iterable[JudgeFolder], index: JudgmentIndex | None = None
) -> Iterator[PublishedJudgment]:
    """Read the judgments of ``listed`` folders below ``folder``, as ``read_published``."""
    read = partial(read_unindexed, DataFolder(folder)) if index is None else index.read
    # One key object for a trajectory, whichever judge and raw id: it is made and compared once.
    keys: dict[tuple[str, str, str], TrajectoryKey] = {}
    same: dict[TrajectoryKey, TrajectoryKey] = {}
    for place, benchmark, agent, name, files in listed:
        for task_id, file in files.items():
            key = keys.get((benchmark, agent, task_id))
            if key is None:
                key = TrajectoryKey(benchmark=benchmark, agent=agent, task_id=task_id)
                key = keys[benchmark, agent, task_id] = same.setdefault(key, key)
            yield _published(partial(read, place, file), key, name, task_id, f"{place}/{file}")


def _holds_judgments(root: Path) -> bool:
    """Tell whether files at that depth are judgments: those of a folder further up lie as deep."""
    if root.resolve().name == "judgments":
        return True
    files = islice(root.glob("*/*/*/*.json"), _LOOKED_AT)
    return any(is_judgment(file, DataFolder(root)) for file in files)


def _published(
    read: Callable[[], JudgmentFile], key: TrajectoryKey, judge: str, task_id: str, path: str
) -> PublishedJudgment:
    try:
        file = read()
        ended = _judged(file)
    except (OSError, ValueError, RecursionError) as error:
        file = JudgmentFile()
        ended = {"status": Status.SKIPPED, "detail": f"{path}: cannot be read: {error}"}
    return PublishedJudgment(
        judgment=checked(Judgment, _BLANK | ended | {"key": key, "judge": judge, "scores": {}}),
        raw_task_id=task_id,
        judge_model_name=file.judge_model_name,
        official_reward=file.official_reward,
        representation=_representation(file),
    )


_BLANK = defaults_of(Judgment)


def unread_note(folder: Path, found: Sequence[PublishedJudgment]) -> list[str]:
    """Say which files are broken: a judge's failures may come from them."""
    broken = [i.judgment for i in found if i.judgment.status is Status.SKIPPED]
    if not broken:
        return []
    judges = ", ".join(sorted({j.judge for j in broken}))
    return [
        f"{folder}: {count_of(len(broken), 'file')} of {judges} cannot be read and counted as "
        f"skipped; the first is {broken[0].detail}: fetch what is broken again"
    ]


def _representation(file: JudgmentFile) -> tuple[bool, bool] | None:
    if file.use_axtree is None or file.use_screenshot is None:
        return None
    return file.use_axtree, file.use_screenshot


def _judged(file: JudgmentFile) -> dict[str, Any]:
    """Status, verdict and call of a judgment."""
    answer = file.answer
    if answer is None:
        detail = file.error or "the file holds no response"
        return {"status": Status.PROVIDER_ERROR, "detail": detail}
    text = answer.content or ""
    calls = (_call(answer, text),)
    verdict = verdict_fields(text)
    if verdict is None:
        detail = f"no verdict in the reply, which ended with {answer.finish_reason}"
        return {"status": _failure(answer), "detail": detail, "calls": calls}
    return {**verdict, "status": Status.OK, "calls": calls}


def verdict_fields(text: str) -> dict[str, Any] | None:
    """Parse the verdict from the tags or, in a reply without them, from its status line; None if
    it holds none.

    Of a reply whose reasoning is one block without any tag, what follows the block decides, and its
    reasoning is what is in the block.
    """
    start = text.find("<")
    end = text.find("<", start + 1)
    is_plain = not _ENTANGLING.search(text, 0, max(start, 0)) and not any(
        map(text.__contains__, _WRAPPED)
    )
    if is_plain and text.startswith(_OPEN, max(start, 0)) and text.startswith(_CLOSE, end):
        labels = text[end + len(_CLOSE) :]
        if len(labels) <= _SHORT and (known := _after_reasoning(labels)) is not _ENTANGLED:
            reasoning = text[start + len(_OPEN) : end].strip()
            return known and {**known, "reasoning": reasoning}
    return _parsed(text)


@lru_cache(maxsize=4096)
def _after_reasoning(labels: str) -> dict[str, Any] | None:
    """Parse the verdict after the reasoning, which ends a judge's replies in few ways;
    ``_ENTANGLED`` where that text mentions the reasoning, too."""
    if _ENTANGLING.search(labels):
        return _ENTANGLED
    return _parsed(_OPEN + _CLOSE + labels)


def _parsed(text: str) -> dict[str, Any] | None:
    try:
        tagged = any(tag in text for tag in _TAGS)
        return dict(parse_tags(text) if tagged else parse_status_line(text))
    except ParseFailure:
        return None


def _failure(answer: Answer) -> Status:
    if answer.finish_reason == "length":
        return Status.TRUNCATED
    if answer.finish_reason == "content_filter" or answer.content is None:
        return Status.REFUSED
    return Status.UNPARSABLE


def _call(answer: Answer, text: str) -> Call:
    """Build the call as far as the file tells it: price and request are not in it."""
    cached = answer.cached_tokens or 0
    tokens = {
        "input": max(0, (answer.prompt_tokens or 0) - cached),
        "cache_read": cached,
        "cache_write": 0,
        "output": answer.completion_tokens or 0,
        "reasoning": 0,
        "image": 0,
    }
    call = {
        "stage": "verdict",
        "request": "",
        "rung": "full",
        "finish": answer.finish_reason or "",
        "usage": checked(Usage, tokens),
        "cost": None,
        "text": text,
        "seconds": 0.0,
        "cached": False,
    }
    return checked(Call, call)


def read_published_folder(
    folder: Path, *, with_labels: bool = True, with_index: bool = False
) -> Source:
    """Read published judgments with the annotations beside them, else the installed package's.

    ``with_index``: what is needed of their files is kept in a side file (``JudgmentIndex``), and
    only files that changed are read the next time; nothing else about the result changes.
    """
    read = _read_kept if with_index else _read_files
    judgments, facts, notes = read(folder)
    labels: Labels = {}
    if with_labels:
        beside = agentrewardbench.detect(folder)
        spec = f"{agentrewardbench.KIND}:{folder}" if beside else agentrewardbench.KIND
        labels = primary_labels(open_annotations(spec))
    return Source(
        str(folder),
        judgments,
        facts.rewards,
        labels,
        representations=facts.representations,
        notes=notes,
        models=facts.models,
    )


def _read_files(folder: Path) -> _Published:
    """Read published judgments from their files."""
    with collection_paused():
        found = list(read_published(folder))
    return _Published([item.judgment for item in found], _facts(found), unread_note(folder, found))


def _read_kept(folder: Path) -> _Published:
    """Read published judgments from the side files, the columns or the fields of each file; from
    their own what has changed since, or was never read."""
    root, listed = judgments_folder(folder), published_folders(folder)
    saved = SavedPublished(root, listed)
    kept = saved.load()

    def read() -> tuple[list[PublishedJudgment], JudgmentIndex]:
        with collection_paused():
            index = JudgmentIndex(root, data=DataFolder(folder))
            found = list(read_listed(folder, listed, index))
            index.save()
        return found, index

    def read_again() -> list[Judgment]:
        found, index = read()
        identities = index.identities(listed)
        if identities is None or not saved.is_of(identities):
            raise UserError(f"{folder}: was changed while it was read: read it again")
        return [item.judgment for item in found]

    if kept is not None:
        columns, facts = kept
        return _Published(PublishedJudgments(columns, read_again), facts, [])
    found, index = read()
    judgments, facts = [item.judgment for item in found], _facts(found)
    identities, notes = index.identities(listed), [*index.notes, *unread_note(folder, found)]
    if identities is None or notes:
        return _Published(judgments, facts, notes)
    columns = columns_of(judgments)
    saved.keep(columns, facts, identities)
    return _Published(PublishedJudgments(columns, lambda: judgments), facts, [])


class _Published(NamedTuple):
    judgments: Sequence[Judgment]
    facts: PublishedFacts
    notes: list[str]


def _facts(found: Sequence[PublishedJudgment]) -> PublishedFacts:
    """Return what is told beside the judgments; the first reward that a trajectory's files know is
    its own."""
    # All judges of a trajectory share its key object, and objects are told apart quicker.
    keys = {id(item.judgment.key): item.judgment.key for item in found}
    told: dict[int, float | None] = dict.fromkeys(keys)
    for item in found:
        if told[place := id(item.judgment.key)] is None:
            told[place] = item.official_reward
    return PublishedFacts(
        {key: told[place] for place, key in keys.items()},
        {i.judgment.judge: i.representation for i in found if i.representation},
        {i.judgment.judge: i.judge_model_name for i in found if i.judge_model_name},
    )
