"""Lines of ``judgments.jsonl``, decoded by a typed decoder that is many times quicker than
validation.

The decoder takes a part of what pydantic takes, and gives the same values for it; a line that it
does not take is validated by pydantic, which takes it or says what is wrong with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType
from pydantic import ValidationError

from trajudge.judges.model import Judgment, Status
from trajudge.trajectories.stored_lines import KeyFields
from trajudge.trajectories.util.errors import UserError
from trajudge.trajectories.util.safe_files import utf8
from trajudge.trajectories.util.validation import first_error


class UsageFields(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """The fields of Usage."""

    input: int = 0
    cache_read: int = 0
    cache_write: int = 0
    output: int = 0
    reasoning: int = 0
    image: int = 0


class CallFields(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """The fields of Call."""

    stage: str
    request: str
    rung: str
    finish: str
    usage: UsageFields | None
    cost: float | None
    text: str
    seconds: float = 0.0
    cached: bool = False


_Optimality = Annotated[int, msgspec.Meta(ge=1, le=4)]
_Score = Annotated[float, msgspec.Meta(ge=0, le=1)]
_Index = Annotated[int, msgspec.Meta(ge=0)]


class JudgmentFields(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """The fields of Judgment. UNSET: an added field that the line leaves out."""

    key: KeyFields
    judge: str
    status: Status
    sample: int = 0
    success: bool | None = None
    side_effect: bool | None = None
    repetition: bool | None = None
    optimality: _Optimality | None = None
    score: _Score | None = None
    scores: dict[str, float] = {}
    reasoning: str = ""
    fallback: str = ""
    detail: str = ""
    calls: tuple[CallFields, ...] = ()
    record: dict[str, Any] | None = None
    process: bool | UnsetType | None = UNSET
    failure_step: _Index | UnsetType | None = UNSET
    failure_type: str | UnsetType | None = UNSET


_DECODER = msgspec.json.Decoder(JudgmentFields)


def decode_fields(line: bytes) -> JudgmentFields | Judgment:
    """Decode a line: its fields, or the whole record where only validation takes the line. Raises
    ValidationError."""
    try:
        fields = _DECODER.decode(line)
    except msgspec.MsgspecError:
        return Judgment.model_validate_json(line)
    return fields if fields.key.attempt >= 0 else Judgment.model_validate_json(line)


class JournalLine(NamedTuple):
    """``number`` counts from 1; ``offset`` is the place of the first byte of ``content``, which
    ends with its newline."""

    number: int
    offset: int
    content: bytes


def whole_lines(path: Path, offset: int = 0) -> Iterator[JournalLine]:
    """Yield the lines of a file of ours from ``offset`` on, one at a time. A last line without its
    newline was torn by a kill and is left out. Raises UserError if the file cannot be read, or is
    UTF-16."""
    try:
        with path.open("rb") as file:
            file.seek(offset)
            for number, content in enumerate(file, start=1):
                text = content if offset else utf8(content, path)
                if not text.endswith(b"\n"):
                    return
                offset += len(content)
                yield JournalLine(number, offset - len(text), text)
    except OSError as error:
        raise unreadable(path, error) from error


def unreadable(path: Path, error: OSError) -> UserError:
    """Say why a file of a run cannot be read."""
    return UserError(f"{path}: cannot be read ({error.strerror}); give the folder of a run")


def bad_line(path: Path, number: int, error: ValidationError) -> UserError:
    """Say what is wrong with a line of ours."""
    return UserError(
        f"{path}, line {number}: {first_error(error, 'the line')}: mend the line or remove it"
    )
