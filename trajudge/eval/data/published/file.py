"""The few fields of a published judgment's file that scoring needs, without decoding the rest."""

from __future__ import annotations

import os
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from trajudge.trajectories.util import python_json

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
    cum_reward: float | None = None


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
    return JudgmentFile(
        judge_model_name=start.judge_model_name or "",
        use_axtree=arguments.use_axtree,
        use_screenshot=arguments.use_screenshot,
        answer=_answer(start.response) if start.response and start.response.choices else None,
        error=str(error)[:500] if error else "",
        official_reward=info.summary_info.cum_reward,
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
