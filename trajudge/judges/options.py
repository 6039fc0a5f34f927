"""Options of a judge as a command line or a caller gives them, parsed into the judge's own
class."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson
from pydantic import ValidationError

from trajudge.judges.defences import OF_EVERY, own_options
from trajudge.trajectories.model import Record
from trajudge.util.errors import UserError
from trajudge.util.files import read_utf8
from trajudge.util.validation import refused_value


def read_json(option: str, path: Path, wanted: str) -> Any:
    """Read the JSON file that an option names. Raises UserError, which says what is ``wanted``, for
    a file that cannot be read or is not JSON."""
    try:
        return orjson.loads(read_utf8(path))
    except OSError as error:
        raise UserError(f"{option} {path}: cannot be read ({error.strerror})") from error
    except orjson.JSONDecodeError as error:
        raise UserError(f"{option} {path}: is not JSON ({error}); {wanted}") from error


def read_options(name: str, kind: type[Record], options: Mapping[str, Any]) -> Record:
    """Parse ``options`` into the judge's own class; those that every judge takes are left out.

    Raises UserError for an option that the judge does not take."""
    options = own_options(kind, options)
    for option in options:
        if option not in kind.model_fields:
            takes = ", ".join(kind.model_fields) or "none of its own"
            every = ", ".join(OF_EVERY)
            raise UserError(
                f"judge {name}: no option {option!r}; it takes {takes}; every judge takes {every}"
            )
    try:
        return kind.model_validate(options)
    except ValidationError as error:
        option, value, why, missing = refused_value(error)
        if missing:
            raise UserError(f"judge {name}: needs the option {option}=VALUE") from error
        shown = "" if isinstance(value, Mapping | list) else f" = {value!r}"
        what = f"{option}{shown}: " if option else ""  # options that do not go together have none
        raise UserError(f"judge {name}: {what}{why}; mend this option") from error
