"""A passing run with one thing changed: what an evaluator that reads everything must notice."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit, urlunsplit

import msgspec

from trajudge.rules.audit.verified.synthesis import Entry, SyntheticRun
from trajudge.rules.verified.dataset import NetworkCheck, Task
from trajudge.rules.verified.network.addresses import expected_query, ignored
from trajudge.rules.verified.network.jsonpath import find
from trajudge.rules.verified.network.patterns import HOLE, is_pattern
from trajudge.rules.verified.network.sites import Hosts

_OTHER_HOST = "http://elsewhere.example"
_WRONG = "zzwrongzz"


class Mutant(NamedTuple):
    """What was changed, and the run with it."""

    change: str
    run: SyntheticRun


def mutants(task: Task, run: SyntheticRun) -> Iterator[Mutant]:
    """Yield every run that differs from a correct one in one field that the task's checks name."""
    yield from _answers(task, run)
    offset = len(task.sites)
    wanted = [check for check in task.network_checks if not check.should_not_exist]
    wanted.sort(key=lambda check: check.expected.http_method == "GET")
    for index, check in enumerate(wanted):
        yield from _events(check, run, offset + index)
    for check in task.network_checks:
        if (entry := forbidden_entry(check, run.hosts)) is not None:
            entries = (run.entries[0], entry, *run.entries[1:])
            yield Mutant("a forbidden request", msgspec.structs.replace(run, entries=entries))


def forbidden_entry(check: NetworkCheck, hosts: Hosts) -> Entry | None:
    """Return the request that must not be there; None for a check that forbids nothing, or a
    pattern."""
    url = check.expected.urls[0]
    if not check.should_not_exist or is_pattern(url):
        return None
    for name, bases in hosts.items():
        url = url.replace(name, bases[0])
    return {
        "request": {"method": check.expected.http_method, "url": url},
        "response": {"status": check.expected.response_status},
    }


def _answers(task: Task, run: SyntheticRun) -> Iterator[Mutant]:
    check = task.answer_check
    if check is None:
        return
    for field, value in (("task_type", check.expected.task_type), ("status", None)):
        others = ("MUTATE", "RETRIEVE") if field == "task_type" else ("SUCCESS", "UNKNOWN_ERROR")
        taken = (value or check.expected.status).upper()
        other = next(word for word in others if word != taken)
        yield Mutant(f"answer.{field}", _answered(run, {field: other}))
    if check.expected.task_type != "retrieve":
        return
    data = run.answer["retrieved_data"]
    items = check.results_schema.get("items") or {}
    for change, changed in _changed_data(data, keys=items.get("type") == "object"):
        yield Mutant(f"answer.retrieved_data {change}", _answered(run, {"retrieved_data": changed}))


def _answered(run: SyntheticRun, fields: dict[str, Any]) -> SyntheticRun:
    return msgspec.structs.replace(run, answer={**run.answer, **fields})


def _changed_data(data: Any, *, keys: bool) -> Iterator[tuple[str, Any]]:
    """Yield an item too many, one too few, and every value changed in its turn."""
    if not isinstance(data, list):
        yield "given", [_WRONG]
        return
    yield "with an item too many", [*data, _WRONG]
    if data:
        yield "with an item too few", data[1:]
    for index, item in enumerate(data):
        for place, changed in _changed_item(item, keys=keys):
            yield f"[{index}]{place}", [*data[:index], changed, *data[index + 1 :]]


def _changed_item(item: Any, *, keys: bool) -> Iterator[tuple[str, Any]]:
    if isinstance(item, dict):
        for key, value in item.items():
            for place, changed in _changed_item(value, keys=keys):
                yield f".{key}{place}", {**item, key: changed}
        if keys:
            yield " with a key too many", {**item, _WRONG: 1}
    elif isinstance(item, list):
        yield from ((f"[{at}]", _with(item, at, _other(value))) for at, value in enumerate(item))
    else:
        yield "", _other(item)


def _with(items: list[Any], at: int, value: Any) -> list[Any]:
    return [*items[:at], value, *items[at + 1 :]]


def _other(value: Any) -> Any:
    """Another value of the same kind."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value * 2 + 7
    return _WRONG if value != _WRONG else ""


def _events(check: NetworkCheck, run: SyntheticRun, at: int) -> Iterator[Mutant]:
    """Yield the request left out, and each of its parts changed."""
    name = f"request {at}"
    entries = run.entries
    yield Mutant(
        f"{name} left out",
        msgspec.structs.replace(run, entries=(*entries[:at], *entries[at + 1 :])),
    )
    for part, entry in changed_entries(check, entries[at]):
        made = (*entries[:at], entry, *entries[at + 1 :])
        yield Mutant(f"{name} {part}", msgspec.structs.replace(run, entries=made))


def changed_entries(check: NetworkCheck, entry: Entry) -> Iterator[tuple[str, Entry]]:
    """Yield a request with one part changed that the check names, and which part that is."""
    for part, change in _changes(check):
        changed = copy.deepcopy(entry)
        if change(changed):
            yield part, changed


def _changes(check: NetworkCheck) -> Iterator[tuple[str, Callable[[Entry], bool]]]:
    """List changes of an entry in place; each says whether there was something to change."""
    yield "method", _set_method
    yield "status", _set_status
    yield "host", _set_host
    yield "path", _set_path
    for name in expected_query(check.expected.urls[0], check):
        if not ignored(name, check):
            yield f"query {name}", partial(_set_query, name=name)
    for header in check.expected.headers or {}:
        yield f"header {header}", partial(_set_header, name=header)
    for key, expected in (check.expected.post_data or {}).items():
        yield f"post_data {key}", partial(_set_field, key=key, expected=expected)
    for key in check.expected.response_content or {}:
        yield f"content {key}", partial(_set_content, key=key)
    if check.expected.response_cookies:
        yield "cookies", _set_cookies


def _set_method(entry: Entry) -> bool:
    method = entry["request"]["method"]
    entry["request"]["method"] = "PATCH" if method != "PATCH" else "POST"
    return True


def _set_status(entry: Entry) -> bool:
    entry["response"]["status"] = 500
    return True


def _set_host(entry: Entry) -> bool:
    parts = urlsplit(entry["request"]["url"])
    path = parts.path.removeprefix("/admin")
    entry["request"]["url"] = _OTHER_HOST + urlunsplit(("", "", path, parts.query, ""))
    return True


def _set_path(entry: Entry) -> bool:
    parts = urlsplit(entry["request"]["url"])
    entry["request"]["url"] = urlunsplit(parts._replace(path=f"{parts.path.rstrip('/')}/{_WRONG}"))
    return True


def _set_query(entry: Entry, name: str) -> bool:
    parts = urlsplit(entry["request"]["url"])
    pairs = parse_qsl(parts.query, keep_blank_values=True)
    changed = [(key, _WRONG if key == name else value) for key, value in pairs]
    entry["request"]["url"] = urlunsplit(parts._replace(query=urlencode(changed)))
    return changed != pairs


def _set_header(entry: Entry, name: str) -> bool:
    for header in entry["request"]["headers"]:
        if header["name"].lower() == name.lower():
            value = header["value"]
            header["value"] = f"{value}{_WRONG}" if "://" in value else _WRONG
            return True
    return False


def _set_field(entry: Entry, key: str, expected: Any) -> bool:
    body = entry["request"].get("postData")
    if body is None:
        return False
    form = "json" not in body["mimeType"]
    fields = dict(parse_qsl(body["text"], True)) if form else msgspec.json.decode(body["text"])
    if not _replace(fields, key, expected):
        return False
    body["text"] = urlencode(fields) if form else msgspec.json.encode(fields).decode()
    return True


def _replace(fields: dict[str, Any], key: str, expected: Any) -> bool:
    """Another value for a field; one that must be absent is given."""
    if key.startswith("$") and not key.startswith("$.^"):
        return _replace_at(fields, key, expected)
    name = HOLE.sub("1", key)
    if key.startswith(("$.^", "^")):
        name = next(iter(fields), "")
    if expected is not None and name not in fields:
        return False
    fields[name] = _WRONG if expected is None else _other_of(fields[name])
    return True


def _other_of(value: Any) -> Any:
    return [*value, _WRONG] if isinstance(value, list) else _other(value)


def _replace_at(fields: dict[str, Any], key: str, expected: Any) -> bool:
    parent, _, last = key.rpartition(".")
    for place in find(parent, fields) if parent else []:
        if isinstance(place, dict) and (last in place or expected is None):
            place[last] = _WRONG if expected is None else _other_of(place[last])
            return True
    return False


def _set_content(entry: Entry, key: str) -> bool:
    content = entry["response"]["content"]
    document = msgspec.json.decode(content["text"])
    if not _replace(document, key, ""):
        return False
    content["text"] = msgspec.json.encode(document).decode()
    return True


def _set_cookies(entry: Entry) -> bool:
    for cookie in entry["response"]["cookies"]:
        cookie["value"] = quote(f"not {unquote(cookie['value'])[:3]}")
    return True
