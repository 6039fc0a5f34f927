"""Where in a JSON value a conversation stands, and which values are one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from trajudge.trajectories.loaders.messages.exchanges import exchanges_of, runs_of

_PLACES = ("messages", "conversation", "trajectory", "input", "output")
_BESIDE = (
    *("task_id", "benchmark", "attempt", "agent", "model", "goal", "task", "instruction"),
    *("reward", "score", "success"),
)
# A message that says nothing: what an API gave next is the agent's next turn.
_BREAK = {"role": "user", "content": None}
_ROLES = {"user", "assistant", "model", "tool", "function", "system", "developer"}
_ITEMS = {"message", "reasoning", "compaction", "item_reference"}


def is_entry(value: object) -> bool:
    """Tell whether the value is a message or an item of a conversation."""
    if not isinstance(value, dict):
        return False
    kind = str(value.get("type", ""))
    is_item = kind in _ITEMS or kind.endswith(("_call", "_call_output"))
    return is_item or (isinstance(role := value.get("role"), str) and role in _ROLES)


def find_records(value: object) -> list[dict[str, Any]]:
    """Return the records of a file, each with one conversation: the object itself, or those of a
    list; a list of entries, or of what an API was sent and gave, is one conversation, of the APIs
    that are sent all of it each time one for each task."""
    if exchanges := exchanges_of(value if isinstance(value, list) else [value]):
        return [{**_stated(fields), "messages": run} for fields, run in runs_of(exchanges)]
    if not isinstance(value, list):
        return [*paired([value])] if isinstance(value, dict) else []
    objects = [*paired([one for one in value if isinstance(one, dict)])]
    if any(is_entry(one) for one in objects) or all(_is_exchange(one) for one in objects):
        return [{**_beside(objects), "messages": find_entries(objects)}] if objects else []
    return objects


def paired(objects: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield requests to the Responses API with their responses, which follow them or stand beside
    them as ``request`` and ``response``, as one object each; others as they are."""
    asking: dict[str, Any] | None = None
    for one in objects:
        request, response = one.get("request"), one.get("response")
        if isinstance(request, dict) and isinstance(response, dict):
            rest = {name: one[name] for name in one if name not in ("request", "response")}
            one = {**rest, **request, **response}  # noqa: PLW2901 - the same exchange
        elif asking is not None and is_given(one):
            one, asking = {**asking, **one}, None  # noqa: PLW2901
        if asking is not None:
            yield asking
        asking = one if is_asking(one) else None
        if asking is None:
            yield one
    if asking is not None:
        yield asking


def is_asking(value: dict[str, Any]) -> bool:
    """Tell whether the value is a request to the Responses API alone."""
    return bool(_sent(value.get("input"))) and not _entries(value.get("output"))


def is_given(value: dict[str, Any]) -> bool:
    """Tell whether the value is a response of the Responses API alone."""
    return not value.get("input") and any(is_entry(one) for one in _entries(value.get("output")))


def find_entries(value: object) -> list[object]:
    """Return the entries of the conversation that the value is or holds; empty if none.

    Of several exchanges with an API, one after the other, those are repeated that the API was told
    again: a request that begins as the first one did holds all that was before.
    """
    if isinstance(value, dict):
        if _is_exchange(value):
            return [*_sent(value.get("input")), *_entries(value.get("output"))]
        lists = (value.get(place) for place in _PLACES)
        return next((entries for one in lists if (entries := find_entries(one))), [])
    if not isinstance(value, list):
        return []
    if any(is_entry(one) for one in value):
        return value
    return _joined([find_entries(one) for one in value if isinstance(one, dict)])


def _is_exchange(value: dict[str, Any]) -> bool:
    """Tell whether the value is a response of the Responses API, with or without its request; its
    field ``conversation`` is null or the name of one."""
    return not any(_entries(value.get(name)) for name in _PLACES[:3]) and any(
        is_entry(one) for one in _entries(value.get("output"))
    )


def _beside(objects: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return what the exchanges say of the run, the last one that says it; their ids are those of
    responses, not the task's."""
    if not _is_exchange(objects[0]):
        return {}
    return {name: value for one in objects for name, value in _stated(one).items()}


def _stated(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: fields[name] for name in _BESIDE if fields.get(name) is not None}


def _sent(value: object) -> list[object]:
    return [{"role": "user", "content": value}] if isinstance(value, str) else _entries(value)


def _entries(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _joined(exchanges: Sequence[list[object]]) -> list[object]:
    entries: list[object] = []
    for exchange in exchanges:
        if entries and exchange and exchange[0] == entries[0]:
            entries = list(exchange)
        else:
            new = list(_new(exchange, entries))
            entries += [*([_BREAK] if entries else []), *new]
    return entries


def _new(exchange: list[object], before: list[object]) -> Iterator[object]:
    known = {_id(entry) for entry in before} - {None}
    return (entry for entry in exchange if _id(entry) not in known)


def _id(entry: object) -> str | None:
    key = entry.get("id") if isinstance(entry, dict) else None
    return key if isinstance(key, str) else None
