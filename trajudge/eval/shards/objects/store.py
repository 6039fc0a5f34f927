"""What a sharded run needs of a store: objects that are made once, and changed only as they were
read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol, TypeVar

import orjson

from trajudge.trajectories.util.errors import UserError


class StoredObject(NamedTuple):
    """The content of an object, and the version that it has."""

    content: bytes
    version: str


class ObjectStore(Protocol):
    """Objects by name (``a/b``). Every method raises UserError if the store cannot be reached."""

    @property
    def address(self) -> str:
        """Where it is, as the user named it."""
        ...

    def read(self, name: str) -> StoredObject | None:
        """Return the object; None if there is none."""
        ...

    def create(self, name: str, content: bytes) -> bool:
        """Make the object; False, and nothing changes, if there is one of that name."""
        ...

    def replace(self, name: str, content: bytes, version: str) -> bool:
        """Change the object; False, and nothing changes, if it has another version by now."""
        ...

    def write(self, name: str, content: bytes) -> None:
        """Make the object, or change it, whatever it was."""
        ...

    def names(self, prefix: str) -> Iterator[str]:
        """Yield the names below ``prefix`` (``a/``), sorted."""
        ...


T = TypeVar("T")


def updated(
    store: ObjectStore, name: str, change: Callable[[dict[str, T]], dict[str, T] | None]
) -> dict[str, T]:
    """Change a JSON object by ``change`` (of what it holds, at first nothing), again where another
    worker was quicker; return what it holds then. ``change`` returns None to leave it as it is.
    Raises UserError."""
    while True:
        stored = store.read(name)
        held: dict[str, T] = decoded(store, name, stored.content) if stored else {}
        wanted = change(held)
        if wanted is None:
            return held
        content = orjson.dumps(wanted)
        if stored is None:
            done = store.create(name, content)
        else:
            done = store.replace(name, content, stored.version)
        if done:
            return wanted


def decoded(store: ObjectStore, name: str, content: bytes) -> dict[str, T]:
    """Decode a JSON object. Raises UserError naming it."""
    try:
        value = orjson.loads(content)
    except orjson.JSONDecodeError as error:
        raise UserError(f"{store.address}, {name}: is no JSON ({error}): remove it") from error
    if not isinstance(value, dict):
        raise UserError(f"{store.address}, {name}: holds no JSON object: remove it")
    return value
