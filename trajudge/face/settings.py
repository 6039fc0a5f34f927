"""Keywords of a call as a settings record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import ValidationError

from trajudge.trajectories.model import Record
from trajudge.trajectories.util.errors import UserError
from trajudge.trajectories.util.validation import first_error

R = TypeVar("R", bound=Record)


def settings(kind: type[R], call: str, given: Mapping[str, Any]) -> R:
    """Make the record from those of ``given`` that it has fields for; None leaves a default.

    Raises UserError naming the ``call`` and the value that it does not take.
    """
    taken = {name: given[name] for name in kind.model_fields if given.get(name) is not None}
    try:
        return kind(**taken)
    except ValidationError as error:
        raise UserError(f"{call}: {first_error(error, 'the call')}") from error


def check_keywords(call: str, given: Mapping[str, object], known: Mapping[str, object]) -> None:
    """Check the keywords. Raises TypeError for one that is not known, as Python does."""
    unknown = given.keys() - known.keys()
    if unknown:
        raise TypeError(f"{call}() got an unexpected keyword argument {min(unknown)!r}")
