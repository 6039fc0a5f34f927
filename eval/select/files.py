"""Records read whole, files written whole or not at all; what goes wrong is one sentence."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from trajudge.trajectories.model import Record
from trajudge.trajectories.util.atomic import write_bytes
from trajudge.trajectories.util.errors import UserError
from trajudge.trajectories.util.validation import first_error

R = TypeVar("R", bound=Record)


def read_record(path: Path, record: type[R], hint: str) -> R:
    """Read a JSON file as a record. Raises UserError naming file, field and value, and the
    ``hint``."""
    try:
        return record.model_validate_json(path.read_bytes())
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror}): {hint}") from error
    except ValidationError as error:
        raise UserError(f"{path}: {first_error(error, 'the file')}: {hint}") from error


def write_whole(path: Path, content: bytes) -> None:
    """Write the file whole or not at all. Raises UserError if it cannot be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(path, content)
    except OSError as error:
        raise UserError(
            f"{path}: cannot be written ({error.strerror}): choose another folder"
        ) from error
