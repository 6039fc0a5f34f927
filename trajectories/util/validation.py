"""What pydantic refused, in the words of a message to the user."""

from __future__ import annotations

from pydantic import ValidationError


def first_error(error: ValidationError, whole: str) -> str:
    """``FIELD is VALUE (WHY)`` of the first field that is wrong; ``whole`` is what stands there in
    place of a field where the record as a whole is."""
    first = error.errors()[0]
    field = ".".join(map(str, first["loc"])) or whole
    return f"{field} is {first['input']!r:.80} ({first['msg']})"
