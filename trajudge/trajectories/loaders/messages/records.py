"""The records of message logs: which files they stand in, how a file is divided into them, and
where in a JSON value a conversation stands.

A log of requests and responses is read, too. A request holds the conversation so far under
``messages``, a response only what came next: a chat response under ``choices``, one of Anthropic's
is the agent's message itself. Both may stand in one object. What a request adds stands behind its
last turn of the agent's, whatever the program has removed from the turns before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from trajudge.trajectories.loaders import detection
from trajudge.trajectories.loaders.files import Damaged, decode, name_of, readable, reason
from trajudge.trajectories.loaders.lazy_json import check_structures
from trajudge.trajectories.loaders.messages.dialects import ROLES, is_foreign
from trajudge.trajectories.model import Unreadable
from trajudge.trajectories.util import python_json
from trajudge.trajectories.util.jsonl import Line, read_lines
from trajudge.trajectories.util.safe_files import DataFolder

LEVELS = 1
_SUFFIXES = (".json", ".jsonl")
# Names that tell nothing of the task: the folder has its name.
_NAMELESS = {"messages", "conversation", "trajectory", "history", "log", "responses", "chat"}
# Formats of others whose files look alike.
_OTHERS = {"interact_messages.json", "trajectories.jsonl", "judgments.jsonl"}
_CONTAINER = re.compile(rb'"(?:messages|input|output|conversations?|contents|trajectory)"\s*:\s*\[')
_ENTRY = re.compile(
    rb'"(?:role|type|from)"\s*:\s*"(?:user|assistant|system|developer|tool|message|reasoning'
    rb'|function_call|computer_call|human|ai|model|gpt|constructor)"'
)
# A log of inspect_ai holds messages, too.
_INSPECT = re.compile(rb'"eval"\s*:\s*\{')
_JSON: msgspec.json.Decoder[Any] = msgspec.json.Decoder()


class LogRecord(NamedTuple):
    """A record with a conversation: its place for messages, its fields, and the task id and the
    agent of a record that names none."""

    place: str
    fields: Mapping[str, Any]
    task_id: str
    agent: str


def looks_like_log(file: Path) -> bool:
    """Tell by the first 64 KiB whether the file holds a conversation."""
    if file.suffix not in _SUFFIXES or file.name in _OTHERS:
        return False
    head = detection.head(file).lstrip(b"\xef\xbb\xbf \r\n\t")
    is_listed = head.startswith(b"[") or (file.suffix == ".jsonl" and _ENTRY.search(head[:200]))
    is_log = (is_listed or _CONTAINER.search(head)) and _ENTRY.search(head)
    return bool(is_log) and not _INSPECT.search(head)


def log_files(path: Path) -> list[Path]:
    """List the file itself, or the JSON files in the folder and in those inside it."""
    if path.is_file():
        return [path.resolve()]
    inside = detection.files(path, "*.json*", levels=LEVELS)
    return [file for file in inside if file.suffix in _SUFFIXES and file.name not in _OTHERS]


def read_records(file: Path, root: DataFolder) -> Iterator[LogRecord | Unreadable]:
    """Yield the records of a file; what is none is Unreadable. Raises UserError for a file that
    cannot be opened."""
    if file.suffix == ".jsonl":
        yield from _records_of_lines(file, root)
        return
    try:
        records = find_records(_decoded(bytes(decode(root, file, msgspec.Raw))))
    except (ValueError, RecursionError) as error:
        yield Unreadable(readable(str(file)), reason(error))
        return
    if not records:
        yield Unreadable(readable(str(file)), f"{file.name} holds no conversation")
    for number, fields in enumerate(records, 1):
        yield _record(file, fields, number if len(records) > 1 else None)


def _records_of_lines(file: Path, root: DataFolder) -> Iterator[LogRecord | Unreadable]:
    """Yield one record a line, or a single one where the lines are messages."""
    lines = (_value(file, line) for line in read_lines(file, folder=root))
    first = next(lines, None)
    if is_entry(first):
        rest = list(lines)
        yield from (one for one in rest if isinstance(one, Unreadable))
        entries = [first, *(one for one in rest if not isinstance(one, Unreadable))]
        yield _record(file, {"messages": entries}, None)
        return
    for number, value in _chains(chain([first] if first is not None else [], lines)):
        if isinstance(value, _Responses):
            alone = len(value.objects) == 1
            for fields in find_records(value.objects[0] if alone else value.objects):
                yield _record(file, fields, number)
        elif isinstance(value, Unreadable):
            yield value
        else:
            yield Unreadable(f"{readable(str(file))}:{number}", "the line is no object")


class _Responses(NamedTuple):
    """Responses that name the one before as theirs, or requests and their responses; most objects
    stand alone."""

    objects: list[dict[str, Any]]


def _chains(values: Iterable[object]) -> Iterator[tuple[int, object]]:
    """Yield the values with their numbers, from 1; objects that belong together as one."""
    number, held = 0, list[dict[str, Any]]()
    for at, value in enumerate(values, 1):
        if isinstance(value, dict) and held and _belongs(value, held):
            held.append(value)
            continue
        if held:
            yield number, _Responses(held)
        number, held = at, [value] if isinstance(value, dict) else []
        if not held:
            yield at, value
    if held:
        yield number, _Responses(held)


def _belongs(value: dict[str, Any], held: list[dict[str, Any]]) -> bool:
    one, last = next(paired([value])), next(paired(held[-1:]))
    before = one.get("previous_response_id")
    is_next = bool(before and before == last.get("id"))
    return is_next or (is_asking(last) and is_given(one)) or goes_on(held, value)


def _value(file: Path, line: Line) -> object:
    place = f"{readable(str(file))}:{line.number}"
    if line.problem:
        return Unreadable(place, line.problem)
    try:
        return _decoded(line.data)
    except Damaged as error:
        return Unreadable(place, str(error))
    except (ValueError, RecursionError) as error:
        return Unreadable(place, f"the line is no JSON: {reason(error)}")


def _decoded(content: bytes) -> object:
    """Decode JSON of a bounded number of objects. Raises Damaged, ValueError, RecursionError."""
    check_structures(content)
    return python_json.decode(content, _JSON)


def _record(file: Path, fields: Mapping[str, Any], number: int | None) -> LogRecord:
    folder = file.parent
    name, agent = readable(file.stem), name_of(folder)
    if name.lower() in _NAMELESS:
        name, agent = agent, name_of(folder.resolve().parent)
    suffix = "" if number is None else f"-{number}"
    place = readable(str(file)) + ("" if number is None else f":{number}")
    return LogRecord(place, fields, f"{name}{suffix}", agent)


_LISTS = ("messages", "conversation", "conversations", "contents", "trajectory", "values")
_PLACES = (*_LISTS, "input", "output")
_BESIDE = (
    *("task_id", "benchmark", "attempt", "agent", "model", "goal", "task", "instruction"),
    *("reward", "score", "success"),
)
# A message that says nothing: what an API gave next is the agent's next turn.
_BREAK = {"role": "user", "content": None}
_ITEMS = {"message", "reasoning", "compaction", "item_reference"}


def is_entry(value: object) -> bool:
    """Tell whether the value is a message or an item of a conversation."""
    if not isinstance(value, dict):
        return False
    kind = str(value.get("type", ""))
    is_item = kind in _ITEMS or kind.endswith(("_call", "_call_output"))
    is_message = isinstance(role := value.get("role"), str) and role in ROLES
    return is_item or is_message or is_foreign(value)


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
        entries = next((entries for one in lists if (entries := find_entries(one))), [])
        return [*entries, *_last_message(value)]
    if not isinstance(value, list):
        return []
    if any(is_entry(one) for one in value):
        return value
    return _joined([find_entries(one) for one in value if isinstance(one, dict)])


def listed_entries(value: Mapping[str, Any]) -> list[object]:
    """Return the list that stands where a conversation may stand, whatever its entries are."""
    return next((entries for name in _PLACES if (entries := _entries(value.get(name)))), [])


def _last_message(value: Mapping[str, Any]) -> list[object]:
    """Return what a response of Gemini or of Bedrock's Converse API adds to the request that stands
    in one object with it."""
    candidates, output = value.get("candidates"), value.get("output")
    first = candidates[0] if isinstance(candidates, list) and candidates else None
    message = first.get("content") if isinstance(first, dict) else None
    if message is None and isinstance(output, dict):
        message = output.get("message")
    return [message] if is_entry(message) else []


def _is_exchange(value: dict[str, Any]) -> bool:
    """Tell whether the value is a response of the Responses API, with or without its request; its
    field ``conversation`` is null or the name of one."""
    return not any(_entries(value.get(name)) for name in _LISTS) and any(
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


_AGENTS = ("assistant", "model")


class SentAndGiven(NamedTuple):
    """A request and the entries of its response, none where none was recorded; ``fields`` are those
    of both objects."""

    fields: Mapping[str, Any]
    sent: Sequence[object]
    given: Sequence[object]


def is_request(value: object) -> bool:
    """Tell whether the value is a conversation that may be the request of a response."""
    return isinstance(value, dict) and "role" not in value and bool(_messages_of(value))


def is_response(value: object) -> bool:
    """Tell whether the value is a response of either API."""
    return isinstance(value, dict) and bool(_answer_of(value))


def goes_on(before: Sequence[object], value: object) -> bool:
    """Tell whether the value is the response, or the next request, of the same run as the objects
    before it."""
    first, part = (next(_parts([one]), {}) for one in (before[0], value))
    if not is_request(first):
        return False
    is_answered = any(map(is_response, _parts(before[-1:])))
    if is_request(part):
        return (is_answered or len(before) > 1) and _opening(_messages_of(part)) == _opening(
            _messages_of(first)
        )
    return is_response(part) and not is_answered


def exchanges_of(values: Sequence[object]) -> list[SentAndGiven]:
    """Return the exchanges of a log; none if it does not hold requests that responses follow."""
    made: list[SentAndGiven] = []
    for value in _parts(values):
        if is_request(value):
            made.append(SentAndGiven(value, _messages_of(value), _answer_of(value)))
        elif made and not made[-1].given and is_response(value):
            fields, sent, _ = made[-1]
            made[-1] = SentAndGiven({**fields, **value}, sent, _answer_of(value))
        else:
            return []
    return made if any(exchange.given for exchange in made) else []


def runs_of(exchanges: Sequence[SentAndGiven]) -> Iterator[tuple[Mapping[str, Any], list[object]]]:
    """Yield the fields and the conversation of each run: another first message of the user's begins
    another one."""
    run: list[SentAndGiven] = []
    for exchange in exchanges:
        if run and _opening(exchange.sent) != _opening(run[0].sent):
            yield _joined_run(run)
            run = []
        if run and (not run[-1].given or run[-1].sent == exchange.sent):
            run.pop()  # it was sent again
        run.append(exchange)
    if run:
        yield _joined_run(run)


def _joined_run(run: Sequence[SentAndGiven]) -> tuple[Mapping[str, Any], list[object]]:
    entries = [*run[0].sent, *run[0].given]
    for exchange in run[1:]:
        entries += [*_news(exchange.sent), *exchange.given]
    return {name: value for one in run for name, value in one.fields.items()}, entries


def _news(sent: Sequence[object]) -> Sequence[object]:
    """Return what stands behind the last turn of the agent's that something follows; all of it
    where there is none."""
    turns = [place for place, entry in enumerate(sent[:-1]) if _role(entry) in _AGENTS]
    return sent[turns[-1] + 1 :] if turns else sent


def _opening(sent: Sequence[object]) -> object:
    """Return the first text of the user's, which stays when pictures beside it are removed."""
    first = next((entry for entry in sent if _role(entry) == "user"), None)
    content = first.get("content") if isinstance(first, dict) else None
    blocks = content if isinstance(content, list) else [content]
    texts = (block.get("text") if isinstance(block, dict) else block for block in blocks)
    return next((text for text in texts if text), None)


def _parts(values: Sequence[object]) -> Iterator[dict[str, Any]]:
    """Yield requests and responses by themselves, also those that stand in one object."""
    for value in values:
        if not isinstance(value, dict):
            continue
        request, response = value.get("request"), value.get("response")
        rest = {name: part for name, part in value.items() if name not in ("request", "response")}
        yield {**rest, **request} if isinstance(request, dict) else value
        if isinstance(response, dict):
            yield response


def _messages_of(value: Mapping[str, Any]) -> list[object]:
    messages = value.get("messages")
    return messages if isinstance(messages, list) and any(map(_role, messages)) else []


def _answer_of(value: Mapping[str, Any]) -> list[object]:
    """Return the agent's message of a response."""
    if value.get("type") == "message" and _role(value) == "assistant":
        return [value]
    choices = value.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    message = first.get("message") if isinstance(first, dict) else None
    return [message] if _role(message) == "assistant" else []


def _role(value: object) -> object:
    return value.get("role") if isinstance(value, dict) else None
