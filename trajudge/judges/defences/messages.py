"""Text added to the messages of a call, and clients that change messages on their way."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from trajudge.judges.client import BaseClient, CallArgs, pass_on
from trajudge.judges.model import Message, ModelClient, Part, Reply, Text
from trajudge.prompts.render import Prompt, load_prompt

Change = Callable[[Sequence[Message]], Sequence[Message]]


def notices() -> Prompt:
    """Return the templates of the defences' own words."""
    return load_prompt("defences")


class ChangingClient(BaseClient):
    """Asks with changed messages; everything else of a call stays."""

    def __init__(self, ask: ModelClient, change: Change) -> None:
        self._ask, self._change = ask, change

    async def answer(self, call_args: CallArgs) -> Reply:
        """Raise what the model's own client raises."""
        changed = self._change(call_args.messages)
        return await pass_on(self._ask, call_args._replace(messages=changed))


def in_system(messages: Sequence[Message], text: str) -> list[Message]:
    """Add to the end of the system message; without one, before the first turn of the user."""
    place = _first(messages, "system")
    if place is None:
        return before_material(messages, text)
    return _with(messages, place, _after(messages[place].parts, text))


def before_material(messages: Sequence[Message], text: str) -> list[Message]:
    """Add to the beginning of the user's first turn."""
    place = _first(messages, "user")
    if place is None:
        return [*messages, Message(role="user", parts=(Text(text=text),))]
    first, *rest = messages[place].parts or (Text(text=""),)
    new: tuple[Part, ...] = (Text(text=text), first)
    if isinstance(first, Text):
        new = (Text(text=f"{text}\n\n{first.text}"),)
    return _with(messages, place, (*new, *rest))


def after_material(messages: Sequence[Message], text: str) -> list[Message]:
    """Add to the end of the user's last turn."""
    backwards = _first(messages[::-1], "user")
    if backwards is None:
        return before_material(messages, text)
    place = len(messages) - 1 - backwards
    return _with(messages, place, _after(messages[place].parts, text))


def _first(messages: Sequence[Message], role: str) -> int | None:
    return next((place for place, one in enumerate(messages) if one.role == role), None)


def _with(messages: Sequence[Message], place: int, parts: tuple[Part, ...]) -> list[Message]:
    changed = messages[place].model_copy(update={"parts": parts})
    return [*messages[:place], changed, *messages[place + 1 :]]


def _after(parts: tuple[Part, ...], text: str) -> tuple[Part, ...]:
    """Add to the last text, so that no provider is sent more parts than the judge made."""
    last = parts[-1] if parts else None
    if isinstance(last, Text):
        return (*parts[:-1], Text(text=f"{last.text}\n\n{text}"))
    return (*parts, Text(text=text))
