"""Typed settings from what a command was called with."""

from __future__ import annotations

from typing import Any, TypeVar

from pydantic import ValidationError

from trajudge.trajectories.model import Record
from trajudge.trajectories.util.errors import UserError

R = TypeVar("R", bound=Record)


def checked(kind: type[R], **values: Any) -> R:
    """Make settings of a command's options. Raises UserError that names the first wrong option,
    its value and what it has to be."""
    try:
        return kind(**values)
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0]).replace("_", "-")
        raise UserError(f"--{name} is {first['input']!r}: {first['msg'].lower()}") from None
