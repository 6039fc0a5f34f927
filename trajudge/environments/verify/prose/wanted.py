"""What a message must say."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from trajudge.environments.verify.prose.passages import Finder


@dataclass(frozen=True)
class Wanted:
    """What a message must say. ``forms`` are the right values' forms, ``find`` sees the values in a
    sentence, ``same`` compares forms, ``tidy`` is applied to each line before; ``in_goal`` gives
    the values that the goal itself states; ``hint`` tells whether a text has every part of values
    that were not found."""

    forms: tuple[str, ...]
    family: str
    find: Finder
    same: Callable[[str, str], bool] = str.__eq__
    tidy: Callable[[str], str] = str
    in_goal: Callable[[], frozenset[str]] = frozenset
    hint: Callable[[str, Sequence[str]], bool] = lambda message, missing: False

    def has(self, form: str) -> bool:
        """Tell whether a form is a right one."""
        return any(self.same(wanted, form) for wanted in self.forms)
