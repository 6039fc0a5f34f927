"""Spaces of Unicode text and of JSON values, which Gymnasium's processes can share memory for.

Gymnasium's own text holds the characters of a list alone. Its vector of processes writes
observations into shared memory: for these spaces a block a value, which holds the value's length
and its UTF-8 text.
"""

from __future__ import annotations

import multiprocessing
import re
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

import orjson
from gymnasium import Space
from gymnasium.vector.utils.shared_memory import (
    create_shared_memory,
    read_from_shared_memory,
    write_to_shared_memory,
)

from trajudge.environments.chromium.action_syntax import MAX_TEXT, write
from trajudge.environments.chromium.axtree import Element
from trajudge.environments.model.spec import TODAY
from trajudge.util.errors import UserError

_LETTERS = "abcdefghijklmnopqrstuvwxyz "
_LENGTH = 8  # bytes that say how long a shared value is
_DAY = re.compile(r"\d{4}-\d\d-\d\d")

V = TypeVar("V")


class SharedSpace(Space[V]):
    """Values without a fixed size, of at most ``most`` bytes where processes share them."""

    def __init__(self, most: int, seed: int | None = None) -> None:
        super().__init__((), None, seed)
        self.most = most

    @property
    def is_np_flattenable(self) -> bool:
        return False

    def encode(self, value: V) -> bytes:
        """Return the bytes of a value."""
        return orjson.dumps(value)

    def decode(self, content: bytes) -> V:
        """Return the value of its bytes."""
        value: V = orjson.loads(content)
        return value

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.most == self.most

    def __hash__(self) -> int:
        return hash((type(self), self.most))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.most})"


class UnicodeText(SharedSpace[str]):
    """Any text; ``most`` bytes of UTF-8 at most."""

    def sample(self, mask: Any = None, probability: Any = None) -> str:
        """Draw up to twelve letters."""
        count = int(self.np_random.integers(0, min(13, self.most + 1)))
        return "".join(self.np_random.choice(list(_LETTERS), count))

    def contains(self, x: Any) -> bool:
        return isinstance(x, str) and len(self.encode(x)) <= self.most

    def encode(self, value: str) -> bytes:
        return value.encode(errors="replace")

    def decode(self, content: bytes) -> str:
        return content.decode()


class JsonValue(SharedSpace[Any]):
    """Anything that JSON can say: BrowserGym's trees, messages and lists of pages. ``example`` is
    what ``sample`` gives."""

    def __init__(self, most: int, example: Any, seed: int | None = None) -> None:
        super().__init__(most, seed)
        self.example = example

    def sample(self, mask: Any = None, probability: Any = None) -> Any:
        """Return a fresh copy of the example."""
        return orjson.loads(orjson.dumps(self.example))

    def contains(self, x: Any) -> bool:
        return isinstance(x, type(self.example))


class ActionText(UnicodeText):
    """An action in BrowserGym's syntax, as ``click('12')``. A text that is none is in the space,
    too: the page answers it with an error, as it does to a model's."""

    def __init__(self, seed: int | None = None) -> None:
        super().__init__(4 * MAX_TEXT, seed)
        self.goal = ""
        self.elements: Sequence[Element] = ()

    def offered(self) -> list[list[str]]:
        """Return actions on what the page of the environment shows, an element's together, in
        document order: clicks, choices, and words of the goal to fill in. Two that need no element
        are last."""
        words = (word.strip(".,:;!?'\"()") for word in self.goal.split())
        texts = [word for word in dict.fromkeys(words) if word]
        return [*_on_elements(self.elements, texts), ["go_back()"], ["noop()"]]

    def sample(self, mask: Any = None, probability: Any = None) -> str:
        """Draw one of the actions that the page offers; one element is as likely as another."""
        offered = self.offered()
        chosen = offered[int(self.np_random.integers(len(offered)))]
        return chosen[int(self.np_random.integers(len(chosen)))]


def _on_elements(elements: Sequence[Element], texts: Sequence[str]) -> Iterator[list[str]]:
    choices = ""
    options: list[str] = []
    for element in elements:
        bid, role = element.bid, element.role
        if options and role != "option":
            yield options
            options = []
        if role in ("combobox", "listbox"):
            choices = bid
        elif role == "option":
            options.append(write("select_option", choices or bid, element.name))
        elif role in ("textbox", "searchbox"):
            yield [write("fill", bid, text) for text in (*texts, "")]
        elif role == "spinbutton":
            numbers = [text for text in texts if text.isdecimal()]
            yield [write("fill", bid, number) for number in (*numbers, "1", "2", "3")]
        elif role == "Date":
            yield [write("fill", bid, day) for day in (*filter(_DAY.fullmatch, texts), TODAY)]
        else:
            yield [write("click", bid)]
    if options:
        yield options


# --- what Gymnasium's vector of processes asks of a space ---


class SharedBatch(Sequence[Any]):
    """The values of all environments as they stand in shared memory now; a deep copy, which the
    vector hands out, is a tuple that stays as it is."""

    def __init__(self, space: SharedSpace[Any], memory: Any, count: int) -> None:
        self._space, self._memory, self._count = space, memory, count

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return tuple(self)[index]
        start = range(self._count)[index] * (_LENGTH + self._space.most)
        length = int.from_bytes(self._memory[start : start + _LENGTH], "big")
        start += _LENGTH
        if not length:
            return None
        return self._space.decode(self._memory[start : start + length - 1])

    def __deepcopy__(self, memo: object) -> tuple[Any, ...]:
        return tuple(self)


@create_shared_memory.register(SharedSpace)
def _create(space: SharedSpace[Any], n: int = 1, ctx: Any = multiprocessing) -> Any:
    return ctx.RawArray("c", n * (_LENGTH + space.most))


@read_from_shared_memory.register(SharedSpace)
def _read(space: SharedSpace[Any], shared_memory: Any, n: int = 1) -> SharedBatch:
    return SharedBatch(space, shared_memory, n)


@write_to_shared_memory.register(SharedSpace)
def _write(space: SharedSpace[Any], index: int, value: Any, shared_memory: Any) -> None:
    content = space.encode(value)
    if len(content) > space.most:
        raise UserError(
            f"an observation of {len(content):,} bytes has no room in the {space.most:,} that "
            "processes share: give make_vec  vector_kwargs={'shared_memory': False}"
        )
    start = index * (_LENGTH + space.most)
    # One more than the length: 0 says that nothing was written yet.
    shared_memory[start : start + _LENGTH] = (len(content) + 1).to_bytes(_LENGTH, "big")
    shared_memory[start + _LENGTH : start + _LENGTH + len(content)] = content
