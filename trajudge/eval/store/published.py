"""AgentRewardBench's published judgments: ``judgments/BENCHMARK/AGENT/JUDGE/TASK_ID.json``.

The few fields that scoring needs are decoded; the chat messages, most of a file, are passed over.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from trajudge.annotations import Labels, open_annotations, primary_labels
from trajudge.annotations.sources import agentrewardbench
from trajudge.eval.sources import Source
from trajudge.eval.store.table import CallFields, JudgmentFields, UsageFields, in_memory
from trajudge.judges.model import Status
from trajudge.judges.replies import ParseFailure, parse_status_line, parse_tags
from trajudge.trajectories.loaders.agentrewardbench_text import is_judgment
from trajudge.trajectories.model import TrajectoryKey
from trajudge.trajectories.store import KeyFields
from trajudge.util import jsonl as python_json
from trajudge.util.errors import UserError
from trajudge.util.files import DataFolder
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


_MAX_BYTES = 200_000_000

# Most of a file is the chat messages, which lie between what is needed: enough of its two ends.
_HEAD, _TAIL = 8_192, 8_192

_LARGE_KEY, _LAST_KEY = b'"chat_messages"', b'"trajectory_info"'

_BLANKS = b" \t\r\n"


class _Message(msgspec.Struct):
    content: str | None = None


class _Choice(msgspec.Struct):
    message: _Message = msgspec.field(default_factory=_Message)
    finish_reason: str | None = None


class _PromptDetails(msgspec.Struct):
    cached_tokens: int | None = None


class _ResponseUsage(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _PromptDetails | None = None


class _ProviderResponse(msgspec.Struct):
    choices: list[_Choice] = msgspec.field(default_factory=list)
    usage: _ResponseUsage | None = None


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
    response: _ProviderResponse | UnsetType | None = UNSET


class JudgmentFile(msgspec.Struct):
    """The fields that are read of a file; ``error`` counts where there is no response."""

    judge_model_name: str = ""
    judge_args: _Arguments | None = None
    response: _ProviderResponse | None = None
    error: Any = None
    trajectory_info: _Info = msgspec.field(default_factory=_Info)

    @property
    def official_reward(self) -> float | None:
        """The trajectory's official reward."""
        reward = self.trajectory_info.summary_info.cum_reward
        return None if isinstance(reward, str) else reward

    @property
    def representation(self) -> tuple[bool, bool] | None:
        """Whether the judge saw the final tree, and the final screenshot; None if not known."""
        shown = self.judge_args
        if shown is None or shown.use_axtree is None or shown.use_screenshot is None:
            return None
        return shown.use_axtree, shown.use_screenshot


_START, _END = msgspec.json.Decoder(_Start), msgspec.json.Decoder(_End)

_WHOLE = msgspec.json.Decoder(JudgmentFile)


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
    return python_json.decode(content, _WHOLE)


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
    info, name, shown = end.trajectory_info, start.judge_model_name, start.judge_args
    if info is UNSET or name is UNSET or shown is UNSET:
        return None
    # Without an answer the error counts, which may be anywhere.
    if not start.response or not start.response.choices:
        return None
    return JudgmentFile(name, shown, start.response, None, info)


# A pipe among the files must not be waited for.
_READING = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)

_NO_LINK = getattr(os, "O_NOFOLLOW", 0)


def _read(data: DataFolder, folder: str, path: str) -> JudgmentFile:
    """Read the fields of a file in ``folder``, which may not lie outside of ``data``. Opening
    alone tells whether it is a link, therefore all other files cost nothing more. Raises OSError,
    ValueError, RecursionError."""
    descriptor = -1
    if _NO_LINK and data.holds_folder(folder):
        try:
            descriptor = os.open(path, _READING | _NO_LINK)
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise
    if descriptor < 0:
        if not data.holds(path):
            raise ValueError("it leads out of the data folder")
        descriptor = os.open(path, _READING)
    try:
        return read_file(descriptor, os.fstat(descriptor).st_size)
    finally:
        os.close(descriptor)


class PublishedJudgment(NamedTuple):
    """A judgment with what else its file holds.

    ``official_reward`` is the trajectory's, ``judge_model_name`` the model that judged
    (``response.model`` may name another). The judge's id is its folder's name, because one model
    judges under several configurations; ``representation`` says whether it saw the final
    accessibility tree, and the final screenshot.
    """

    key: TrajectoryKey
    judgment: JudgmentFields
    raw_task_id: str
    judge_model_name: str
    official_reward: float | None
    representation: tuple[bool, bool] | None = None


def judgments_folder(folder: Path) -> Path:
    """Find the folder of benchmarks: ``judgments`` in ``folder``, else ``folder`` itself."""
    inner = folder / "judgments"
    return inner if inner.is_dir() else folder


def read_published(folder: Path) -> Iterator[PublishedJudgment]:
    """Read every judgment below ``folder`` (``judgments``, or the folder that has it), by path.

    Of duplicates and of an ``_error.json`` beside an answer one counts. A file that cannot be
    read gives a judgment with status ``skipped``. Raises UserError if there is no judgment.
    """
    root, data = judgments_folder(folder), DataFolder(folder)
    listed = list_published(root) if root != folder or _holds_judgments(root) else []
    if not listed:
        raise UserError(
            f"{folder}: holds no judgments in the layout BENCHMARK/AGENT/JUDGE/TASK_ID.json; "
            "give the folder named judgments"
        )
    # One key object for a trajectory, whichever judge and raw id: it is made and compared once.
    keys: dict[tuple[str, str, str], tuple[TrajectoryKey, KeyFields]] = {}
    same: dict[TrajectoryKey, TrajectoryKey] = {}
    for place, benchmark, agent, judge, files in listed:
        for task_id, name in files.items():
            if (benchmark, agent, task_id) not in keys:
                key = TrajectoryKey(benchmark=benchmark, agent=agent, task_id=task_id)
                fields = KeyFields(benchmark, agent, key.task_id)
                keys[benchmark, agent, task_id] = same.setdefault(key, key), fields
            key, fields = keys[benchmark, agent, task_id]
            path = f"{place}/{name}"
            try:
                file = _read(data, place, path)
                judgment = _judgment(file, fields, judge)
            except (OSError, ValueError, RecursionError) as error:
                file, detail = JudgmentFile(), f"{path}: cannot be read: {error}"
                judgment = JudgmentFields(fields, judge, Status.SKIPPED, detail=detail)
            yield PublishedJudgment(
                key,
                judgment,
                task_id,
                file.judge_model_name,
                file.official_reward,
                file.representation,
            )


_LOOKED_AT = 20


def _holds_judgments(root: Path) -> bool:
    """Return True if files at that depth are judgments: those of a folder further up lie as
    deep."""
    if root.resolve().name == "judgments":
        return True
    files = islice(root.glob("*/*/*/*.json"), _LOOKED_AT)
    return any(is_judgment(file, DataFolder(root)) for file in files)


def _judgment(file: JudgmentFile, key: KeyFields, judge: str) -> JudgmentFields:
    """Make the judgment of a file: status, verdict, and its call as far as the file tells it."""
    response = file.response
    if response is None or not response.choices:
        detail = str(file.error)[:500] if file.error else "the file holds no response"
        return JudgmentFields(key, judge, Status.PROVIDER_ERROR, detail=detail)
    choice, usage = response.choices[0], response.usage or _ResponseUsage()
    text, details = choice.message.content or "", usage.prompt_tokens_details
    cached = (details.cached_tokens if details else None) or 0
    tokens = UsageFields(
        max(0, (usage.prompt_tokens or 0) - cached), cached, 0, usage.completion_tokens or 0
    )
    call = CallFields("verdict", "", "full", choice.finish_reason or "", tokens, None, text)
    verdict = verdict_fields(text)
    if verdict is not None:
        return JudgmentFields(key, judge, Status.OK, calls=(call,), **verdict)
    detail = f"no verdict in the reply, which ended with {choice.finish_reason}"
    return JudgmentFields(key, judge, _failure(choice), detail=detail, calls=(call,))


def _failure(choice: _Choice) -> Status:
    if choice.finish_reason == "length":
        return Status.TRUNCATED
    if choice.finish_reason == "content_filter" or choice.message.content is None:
        return Status.REFUSED
    return Status.UNPARSABLE


_TAGS = ("<reasoning>", "<success>")

_OPEN, _CLOSE = "<reasoning>", "</reasoning>"

# What else than a label's tag would make the text before it matter.
_ENTANGLING = re.compile("reasoning|think|thought|channel|analysis", re.IGNORECASE)

# Thoughts in wrappers that begin without "<" (``trajectories.thoughts``).
_WRAPPED = ("◁", "[THINK]", "[/THINK]")

_ENTANGLED: dict[str, Any] = {}

_SHORT = 400


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


def read_published_folder(folder: Path, *, with_labels: bool = True) -> Source:
    """Read published judgments with the annotations beside them, else the installed package's."""
    with collection_paused():
        found = list(read_published(folder))
        labels: Labels = {}
        if with_labels:
            beside = agentrewardbench.detect(folder)
            spec = f"{agentrewardbench.KIND}:{folder}" if beside else agentrewardbench.KIND
            labels = primary_labels(open_annotations(spec))
        return Source(
            str(folder),
            in_memory([item.judgment for item in found]),
            _rewards(found),
            labels,
            representations={i.judgment.judge: i.representation for i in found if i.representation},
            notes=_unread_note(folder, found),
            models={i.judgment.judge: i.judge_model_name for i in found if i.judge_model_name},
        )


def _rewards(found: Iterable[PublishedJudgment]) -> dict[TrajectoryKey, float | None]:
    """Return the official rewards: the first that a trajectory's files know is its own."""
    # All judges of a trajectory share its key object, and objects are compared quicker.
    keys = {id(item.key): item.key for item in found}
    known: dict[int, float | None] = dict.fromkeys(keys)
    for item in found:
        if known[place := id(item.key)] is None:
            known[place] = item.official_reward
    return {key: known[place] for place, key in keys.items()}


def _unread_note(folder: Path, found: Iterable[PublishedJudgment]) -> list[str]:
    """List the files that cannot be read: a judge's failures may come from them."""
    broken = [i.judgment for i in found if i.judgment.status is Status.SKIPPED]
    if not broken:
        return []
    judges = ", ".join(sorted({j.judge for j in broken}))
    return [
        f"{folder}: {count_of(len(broken), 'file')} of {judges} cannot be read and counted as "
        f"skipped; the first is {broken[0].detail}: fetch what is broken again"
    ]
