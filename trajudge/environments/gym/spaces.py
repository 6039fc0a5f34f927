"""Spaces of text in any script: Gymnasium's own holds the characters of a list alone."""

from __future__ import annotations

from typing import Any

from gymnasium import Space

from trajudge.environments.chromium.action_syntax import MAX_TEXT, write

_LETTERS = "abcdefghijklmnopqrstuvwxyz "


class UnicodeText(Space[str]):
    """Any text of at most ``most`` characters."""

    def __init__(self, most: int, seed: int | None = None) -> None:
        super().__init__((), None, seed)
        self.most = most

    @property
    def is_np_flattenable(self) -> bool:
        return False

    def sample(self, mask: Any = None, probability: Any = None) -> str:
        """Draw up to twelve letters."""
        count = int(self.np_random.integers(0, min(13, self.most + 1)))
        return "".join(self.np_random.choice(list(_LETTERS), count))

    def contains(self, x: Any) -> bool:
        return isinstance(x, str) and len(x) <= self.most

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, UnicodeText) and type(other) is type(self) and other.most == self.most
        )

    def __hash__(self) -> int:
        return hash((type(self), self.most))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.most})"


class ActionText(UnicodeText):
    """An action in BrowserGym's syntax, as ``click('12')``. A text that is none is in the space,
    too: the page answers it with an error, as it does to a model's."""

    def __init__(self, seed: int | None = None) -> None:
        super().__init__(MAX_TEXT, seed)

    def sample(self, mask: Any = None, probability: Any = None) -> str:
        """Draw a click on one of the first elements, a step back or a pause."""
        drawn = int(self.np_random.integers(0, 42))
        return write("click", str(drawn)) if drawn < 40 else ("go_back()", "noop()")[drawn - 40]
