"""One reader of the values in other tools' records: absent, read, or named in a warning.

A field may hold what its format promises, or what a program put there instead: a NumPy scalar, a
subclass of str, a member of an Enum, a list, a number written as text, NaN. ``Values`` reads what
has one meaning and names everything else by field and type, so that nothing vanishes.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from typing import Any

from trajudge.trajectories.loaders._files import Damaged, readable, text
from trajudge.trajectories.model import Step
from trajudge.trajectories.pickles import PickledObject, plain

_LARGEST = 1e300
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_TRUTH = {"true": True, "false": False}
_NOT_FINITE = {"nan", "inf", "infinity", "+inf", "-inf", "+infinity", "-infinity"}
_MAX_LIKE = 5
_MAX_KINDS = 50
_SHOWN = 60


class Values:
    """Reads the values of one trajectory; ``warnings`` gets a sentence for each that is not read,
    for at most five of one field name and type."""

    def __init__(self, warnings: list[str]) -> None:
        self.warnings = warnings
        self._named: dict[tuple[str, str], int] = {}

    def text(self, value: object, field: str, place: str = "") -> str | None:
        """Read a text; None if it is absent or blank, or named in a warning.

        Numbers, truth values, lists and objects are read as their JSON, a list of texts alone as
        its lines, for a program wrote them where their text belongs. Bytes are UTF-8.
        """
        value = plain(value)
        if value is None or (isinstance(value, float) and math.isnan(value)):
            return None
        if isinstance(value, bytes | bytearray):
            try:
                value = bytes(value).decode()
            except UnicodeDecodeError:
                self.refuse(value, field, place)
                return None
        if isinstance(value, str):
            return text(value)
        if isinstance(value, list | tuple) and all(isinstance(one, str) for one in value):
            return text("\n".join(value))
        try:
            return readable(json.dumps(value, ensure_ascii=False, allow_nan=True))
        except (TypeError, ValueError, RecursionError):
            self.refuse(value, field, place)
            return None

    def name(self, value: object, field: str, place: str = "") -> str | None:
        """Read an id or a name: a text, or a whole number."""
        value = plain(value)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 10**100:
            return str(value)
        if value is None or isinstance(value, str):
            return text(value)
        self.refuse(value, field, place)
        return None

    def number(self, value: object, field: str, place: str = "") -> float | None:
        """Read a finite number, also one that is written as text; a truth value is 1 or 0."""
        value = _single(value)
        if isinstance(value, str):
            word = value.strip().casefold()
            if word in _TRUTH:
                value = _TRUTH[word]
            elif word in _NOT_FINITE or _NUMBER.fullmatch(word):
                value = float(word)
            elif word:
                self._say("the text is no number", field, place, "text")
                return None
            else:
                value = None
        if value is None:
            return None
        if not isinstance(value, int | float):
            self.refuse(value, field, place)
            return None
        if abs(value) <= _LARGEST:
            return float(value)
        problem = (
            "is too large" if isinstance(value, int) or math.isfinite(value) else f"is {value}"
        )
        self._say(f"the number {problem}", field, place, problem)
        return None

    def flag(self, value: object, field: str, place: str = "") -> bool | None:
        """Read a truth value, also 1 and 0 and the words of JSON."""
        value = _single(value)
        if isinstance(value, str) and value.strip().casefold() in _TRUTH:
            return _TRUTH[value.strip().casefold()]
        if value is None or value == "":
            return None
        if isinstance(value, int | float) and value in (0, 1):
            return bool(value)
        self.refuse(value, field, place)
        return None

    def whole(self, value: object, field: str, place: str = "") -> int | None:
        """Read a whole number, also one that is written as text or as 5.0."""
        value = _single(value)
        if isinstance(value, str) and re.fullmatch(r"[+-]?\d{1,18}", value.strip(), re.ASCII):
            return int(value)
        if value is None or value == "":
            return None
        if isinstance(value, float) and value.is_integer():
            return int(value)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        self.refuse(value, field, place)
        return None

    def entries(self, value: object, field: str, place: str = "") -> Sequence[Any]:
        """Read a list or tuple; empty if it is absent, or named in a warning."""
        value = plain(value)
        if isinstance(value, list | tuple):
            return value
        if value is not None:
            self.refuse(value, field, place)
        return ()

    def refuse(self, value: object, field: str, place: str = "") -> None:
        """Name a value that is not read: its field and type. The value itself is not shown, for it
        may be the benchmark's verdict."""
        kind = value.name if isinstance(value, PickledObject) else type(value).__name__
        self._say(f"the type {readable(kind)[:_SHOWN]} is not read", field, place, kind)

    def check_actions(self, steps: Sequence[Step]) -> None:
        """Raise Damaged if actions were recorded and none of them is read: such a run would be
        shown as one that did nothing."""
        lost = next((one for one in self.warnings if one.startswith("The action of")), None)
        if lost and not any(step.action for step in steps):
            raise Damaged(f"no action of it can be read. {lost}")

    def _say(self, problem: str, field: str, place: str, kind: str) -> None:
        count = self._named.get((field, kind), 0)
        self._named[field, kind] = count + 1
        if count < _MAX_LIKE and len(self._named) <= _MAX_KINDS:
            where = f" {place}" if place else ""
            self.warnings.append(f"The {field}{where} is not read: {problem}.")


def _single(value: object) -> object:
    """Return a plain value; of a NumPy array of one number, as programs record it, the number."""
    read = plain(value)
    is_array = isinstance(value, PickledObject) and isinstance(read, list) and len(read) == 1
    return read[0] if is_array and isinstance(read, list) else read
