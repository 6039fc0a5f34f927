"""Arguments of a call: its keywords as a settings record, and the kinds that it takes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from reprlib import repr as short
from types import UnionType
from typing import Any, TypeVar

from pydantic import ValidationError

from trajudge.trajectories.model import Record
from trajudge.trajectories.util.errors import UserError
from trajudge.trajectories.util.validation import first_error

R = TypeVar("R", bound=Record)


def settings(
    kind: type[R], call: str, given: Mapping[str, Any], renamed: Mapping[str, str] | None = None
) -> R:
    """Make the record from those of ``given`` that it has fields for; None leaves a default.

    ``renamed`` gives the parameter of a field that has another name. Raises UserError naming the
    ``call`` and the value that it does not take.
    """
    taken = {name: given[name] for name in kind.model_fields if given.get(name) is not None}
    try:
        record = kind(**taken)
    except ValidationError as error:
        why = first_error(error, "the call")
        field, is_, rest = why.partition(" is ")
        raise UserError(f"{call}: {(renamed or {}).get(field, field)}{is_}{rest}") from error
    for name, value in taken.items():
        # pydantic takes True for the number 1.
        if isinstance(value, bool) and not isinstance(getattr(record, name), bool):
            raise UserError(f"{call}: {name} is {value} (Input should be a number)")
    return record


def one_or_several(call: str, given: Any, kind: type | UnionType, wanted: str) -> list[Any]:
    """Return what was given, one of ``kind`` or several, as a list. Raises TypeError that names
    what is of another kind and what is ``wanted``."""
    single = isinstance(given, kind) or not isinstance(given, Iterable)
    several = [given] if single else list(given)
    for one in several:
        if not isinstance(one, kind):
            found = f"{short(one)} is of type {type(one).__name__}"
            raise TypeError(f"{call}: {found}: give {wanted}")
    return several


def check_keywords(call: str, given: Mapping[str, object], known: Mapping[str, object]) -> None:
    """Check the keywords. Raises TypeError for one that is not known, as Python does."""
    unknown = given.keys() - known.keys()
    if unknown:
        raise TypeError(f"{call}() got an unexpected keyword argument {min(unknown)!r}")
