"""What happens in a conversation between an agent and its tools, whatever API wrote it down."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec

from trajudge.trajectories.loaders.files import readable
from trajudge.trajectories.model import ImageRef

# Makes a reference of what a record gives as an image: a data URL, a URL or the id of a file.
ImageOpener = Callable[[str], ImageRef]


class AgentCall(NamedTuple):
    """One call of a tool. ``text`` is the call as an action shows it, ``name({json})``; ``fields``
    the arguments, empty where they are no JSON object."""

    id: str
    name: str
    text: str
    fields: Mapping[str, Any]

    @property
    def is_computer(self) -> bool:
        """Tell whether the tool is a screen, whose texts are no page."""
        return self.name.lower().rpartition(".")[2] in {"computer", "computer_use"}


class AgentTurn(NamedTuple):
    """What the agent thought, said and called before it saw anything new."""

    thoughts: tuple[str, ...]
    texts: tuple[str, ...]
    calls: tuple[AgentCall, ...]


class CallResult(NamedTuple):
    """What a tool gave back for the call ``call_id``."""

    call_id: str
    texts: tuple[str, ...]
    images: tuple[ImageRef, ...] = ()
    is_error: bool = False
    url: str | None = None


class UserMessage(NamedTuple):
    """What the user, or the program in the user's name, told or showed."""

    texts: tuple[str, ...]
    images: tuple[ImageRef, ...] = ()


Event = AgentTurn | CallResult | UserMessage


def make_call(call_id: object, name: object, arguments: object, warnings: list[str]) -> AgentCall:
    """Make a call of its parts; ``arguments`` is an object or its JSON text. Arguments that are no
    JSON stay as they are, with a warning."""
    label = readable(name) if isinstance(name, str) and name else "tool"
    fields = arguments
    if isinstance(arguments, str):
        try:
            fields = msgspec.json.decode(arguments.encode("utf-8", "replace") or b"{}")
        except (msgspec.DecodeError, RecursionError):
            warnings.append(f"The arguments of a call of {label} are no JSON.")
            return AgentCall(_id(call_id), label, f"{label}({readable(arguments)})", {})
    shown = readable(json.dumps({} if fields is None else fields, ensure_ascii=False))
    by_name = fields if isinstance(fields, dict) else {}
    return AgentCall(_id(call_id), label, f"{label}({shown})", by_name)


def _id(value: object) -> str:
    return value if isinstance(value, str) else ""
