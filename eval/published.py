"""AgentRewardBench's published judgments: ``judgments/BENCHMARK/AGENT/JUDGE/TASK_ID.json``.

``read_published`` makes Judgments of them, decoding only the few fields that are needed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from judges.model import Call, Judgment, Status, Usage, Verdict
from judges.parsing import ParseFailure, parse_status_line, parse_tags
from trajectories.errors import UserError
from trajectories.model import TrajectoryKey

# A browser that downloads a file twice writes "name(1).json".
_DUPLICATE = re.compile(r"\(\d+\)$")
_ERROR = "_error"
_SUFFIX = ".json"
_TAGS = ("<reasoning>", "<success>")
_MAX_BYTES = 200_000_000


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


class _Summary(msgspec.Struct):
    cum_reward: float | None = None


class _Info(msgspec.Struct):
    summary_info: _Summary = msgspec.field(default_factory=_Summary)


class _Arguments(msgspec.Struct):
    use_axtree: bool | None = None
    use_screenshot: bool | None = None


class _File(msgspec.Struct):
    judge_model_name: str = ""
    judge_args: _Arguments | None = None
    response: _Response | None = None
    error: Any = None
    trajectory_info: _Info = msgspec.field(default_factory=_Info)


_DECODER = msgspec.json.Decoder(_File)
# Most of a file is the chat messages, which lie between what is needed: enough of its two ends.
_HEAD = 16_384
_TAIL = 8_192
_LARGE_KEY, _LAST_KEY = b'"chat_messages"', b'"trajectory_info"'


def read_published(folder: Path) -> Iterator[PublishedJudgment]:
    """Every judgment below ``folder`` (``judgments``, or the folder that has it), by path.

    Of duplicates and of an ``_error.json`` beside an answer one counts. A file that cannot be
    read gives a judgment with status ``skipped``. Raises UserError if there is no judgment.
    """
    root = folder / "judgments" if (folder / "judgments").is_dir() else folder
    judges = sorted(path for path in root.glob("*/*/*") if path.is_dir())
    # One key object for all judges of a trajectory: it is made and compared once.
    keys: dict[tuple[str, str, str], TrajectoryKey] = {}
    found = False
    for judge in judges:
        benchmark, agent = judge.parts[-3:-1]
        for task_id, path in _one_file_a_task(judge).items():
            found = True
            place = (benchmark, agent, task_id)
            if place not in keys:
                keys[place] = TrajectoryKey(benchmark=benchmark, agent=agent, task_id=task_id)
            yield _read(path, keys[place], task_id)
    if not found:
        raise UserError(
            f"{folder}: holds no judgments in the layout BENCHMARK/AGENT/JUDGE/TASK_ID.json; "
            "give the folder named judgments"
        )


def _one_file_a_task(judge: Path) -> dict[str, Path]:
    """Raw task id -> its file: an answer before an error, an original before a duplicate."""
    candidates = []
    for file in os.listdir(judge):  # noqa: PTH208 - names are enough, and many times quicker
        if not file.endswith(_SUFFIX):
            continue
        name = _without_copy(file.removesuffix(_SUFFIX))
        task_id = _without_copy(name.removesuffix(_ERROR))
        candidates.append((task_id, name.endswith(_ERROR), len(file), file))
    files: dict[str, Path] = {}
    for task_id, _, _, name in sorted(candidates):
        files.setdefault(task_id, judge / name)
    return files


def _without_copy(name: str) -> str:
    return _DUPLICATE.sub("", name) if name.endswith(")") else name


def _read(path: Path, key: TrajectoryKey, task_id: str) -> PublishedJudgment:
    try:
        file = _fields(path)
        ended = _judged(file)
    except (OSError, ValueError, RecursionError, msgspec.DecodeError) as error:
        file = _File()
        ended = {"status": Status.SKIPPED, "detail": f"{path}: cannot be read: {error}"}
    return PublishedJudgment(
        judgment=Judgment(key=key, judge=path.parent.name, **ended),
        raw_task_id=task_id,
        judge_model_name=file.judge_model_name,
        official_reward=file.trajectory_info.summary_info.cum_reward,
        representation=_representation(file.judge_args),
    )


def _fields(path: Path) -> _File:
    """The needed fields, of a large file from its two ends where they hold them.

    What is cut out begins and ends before a key, so the rest is JSON only if both are keys of the
    whole object; otherwise all of the file is decoded.
    """
    with path.open("rb", buffering=0) as file:
        size = os.fstat(file.fileno()).st_size
        if size > _MAX_BYTES:
            raise ValueError(f"larger than {_MAX_BYTES} bytes")
        if size > _HEAD + _TAIL:
            head, tail = file.read(_HEAD), os.pread(file.fileno(), _TAIL, size - _TAIL)
            cut, go_on = head.find(_LARGE_KEY), tail.rfind(_LAST_KEY)
            if cut > 0 and go_on > 0:
                try:
                    return _DECODER.decode(head[:cut] + tail[go_on:])
                except msgspec.DecodeError:
                    pass
            file.seek(0)
        return _DECODER.decode(file.readall())


def _representation(said: _Arguments | None) -> tuple[bool, bool] | None:
    if said is None or said.use_axtree is None or said.use_screenshot is None:
        return None
    return said.use_axtree, said.use_screenshot


def _judged(file: _File) -> dict[str, Any]:
    """Status, verdict and call of a judgment."""
    if file.response is None or not file.response.choices:
        return {
            "status": Status.PROVIDER_ERROR,
            "detail": str(file.error)[:500] if file.error else "the file holds no response",
        }
    choice = file.response.choices[0]
    text = choice.message.content or ""
    verdict = read_verdict(text)
    status = Status.OK if verdict else _failure(choice)
    return {
        "status": status,
        "detail": ""
        if verdict
        else f"no verdict in the reply, which ended with {choice.finish_reason}",
        "calls": (_call(choice, text, file.response.usage or _Usage()),),
        **dict(verdict or Verdict()),
    }


def read_verdict(text: str) -> Verdict | None:
    """The verdict in the tags or, of a reply without them, in its status line; None if it holds
    none."""
    try:
        tagged = any(tag in text for tag in _TAGS)
        return parse_tags(text) if tagged else parse_status_line(text)
    except ParseFailure:
        return None


def _failure(choice: _Choice) -> Status:
    if choice.finish_reason == "length":
        return Status.TRUNCATED
    if choice.finish_reason == "content_filter" or choice.message.content is None:
        return Status.REFUSED
    return Status.UNPARSABLE


def _call(choice: _Choice, text: str, usage: _Usage) -> Call:
    """The call as far as the file tells it: its price is not known, its request is not kept."""
    details = usage.prompt_tokens_details or _PromptDetails()
    cached = details.cached_tokens or 0
    tokens = Usage(
        input=max(0, (usage.prompt_tokens or 0) - cached),
        cache_read=cached,
        output=usage.completion_tokens or 0,
    )
    return Call(
        stage="verdict",
        request="",
        rung="full",
        finish=choice.finish_reason or "",
        usage=tokens,
        cost=None,
        text=text,
    )
