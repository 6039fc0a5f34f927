"""Audit of WebArena Verified's specifications: build runs from them, mutate the runs, read the
texts."""

from __future__ import annotations

import copy
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit, urlunsplit

import msgspec
from msgspec import UNSET, Struct

from trajudge.rules.audit.lint import Finding, Severities, Severity, readable
from trajudge.rules.audit.mutate import (
    EQUIVALENT,
    NEAR_MISSES,
    PAGE_HEADERS,
    TRACE_EQUIVALENT,
    TRACE_NEAR_MISSES,
    MutationCase,
    MutationSuite,
    Mutator,
    Variant,
)
from trajudge.rules.har import in_time_order
from trajudge.rules.limits import InvalidValue, fullmatch, is_pattern
from trajudge.rules.values import Mode
from trajudge.rules.verdict import Outcome, Verdict
from trajudge.rules.verified.answers import Response, read_response
from trajudge.rules.verified.evaluator import VerifiedEvaluator
from trajudge.rules.verified.network import (
    DEFAULT_PORTS,
    EVERY,
    FOLDERS,
    HOLE,
    Decisive,
    Event,
    Hosts,
    PathFilter,
    RequestKind,
    Trace,
    decisive_events,
    declared,
    expected_query,
    find,
    ignored,
    is_final_page,
    json_path,
    trace_of_list,
    usual_kind,
)
from trajudge.rules.verified.runs import read_answer, read_trace, run_files, run_ids
from trajudge.rules.verified.state import State, run_states
from trajudge.rules.verified.tasks import (
    AnswerCheck,
    BackendCheck,
    Check,
    NetworkCheck,
    Task,
    placeholder,
    placeholders,
)

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from re import _parser as parser  # type: ignore[attr-defined]

_MOST_REPEATS = 64

_CATEGORIES = {
    "CATEGORY_DIGIT": "1",
    "CATEGORY_WORD": "a",
    "CATEGORY_SPACE": " ",
    "CATEGORY_NOT_DIGIT": "a",
    "CATEGORY_NOT_SPACE": "a",
    "CATEGORY_NOT_WORD": "-",
}


def example(pattern: str, filler: str = "") -> str | None:
    """Return a text that the whole pattern matches; None after a few unsuccessful attempts.

    ``filler`` is used where the pattern allows any text. Look-aheads are satisfied by writing the
    text that they require.
    """
    try:
        parsed = parser.parse(pattern)
    except (re.error, RecursionError, OverflowError):
        return None
    for between in dict.fromkeys((filler, "", "x", " ")):
        text = "".join(_walk(parsed, between))
        try:
            if fullmatch(pattern, text):
                return text
        except InvalidValue:
            return None
    return None


def refused(pattern: str) -> str | None:
    """Return a text that matches one of the pattern's negative look-aheads and not the whole
    pattern; None without one."""
    try:
        parsed = parser.parse(pattern)
        banned = ["".join(_walk(value[1], "")) for value in _assertions(parsed)]
        return next((text for text in banned if not fullmatch(pattern, text)), None)
    except (re.error, RecursionError, OverflowError, InvalidValue):
        return None


def _assertions(parsed: Any) -> Iterator[Any]:
    """Yield the negative look-aheads of a pattern, at any depth of its groups."""
    for code, value in parsed:
        if str(code) == "ASSERT_NOT":
            yield value
        elif str(code) == "SUBPATTERN":
            yield from _assertions(value[3])


def _walk(parsed: Any, filler: str) -> Iterator[str]:
    for code, value in parsed:
        yield _part(str(code), value, filler)


def _part(code: str, value: Any, filler: str) -> str:
    """Return a text for one part of a pattern."""
    if code in _ONE_CHARACTER:
        return str(_ONE_CHARACTER[code](value))
    if code == "BRANCH":
        return "".join(_walk(value[1][0], filler))
    if code == "SUBPATTERN":
        return "".join(_walk(value[3], filler))
    if code == "ASSERT":
        return "".join(_walk(value[1], filler)) if value[0] > 0 else ""
    return _repeated(value, filler) if "REPEAT" in code else ""


def _repeated(value: Any, filler: str) -> str:
    least, _, inner = value
    least = int(least)
    one = "".join(_walk(inner, filler))
    if str(inner[0][0]) == "ANY" and (filler or not least):
        return filler
    return one * min(least, _MOST_REPEATS)


def _one_of(members: Any) -> str:
    """Return a character of a set."""
    code, value = members[0]
    if str(code) == "NEGATE":
        banned = {chr(member) for kind, member in members[1:] if str(kind) == "LITERAL"}
        return next(char for char in "ax1-_" if char not in banned)
    if str(code) == "LITERAL":
        return chr(int(value))
    if str(code) == "RANGE":
        return chr(int(value[0]))
    return _CATEGORIES.get(str(value), "a")


# A full stop in a pattern is mostly meant literally.
_ONE_CHARACTER: dict[str, Callable[[Any], str]] = {
    "LITERAL": chr,
    "NOT_LITERAL": lambda value: "a" if value != ord("a") else "b",
    "IN": _one_of,
    "ANY": lambda _: ".",
}


class Unsatisfiable(Exception):
    """No text can be built for a part of the specification, which the message names."""


def rendered(text: str, hosts: Mapping[str, tuple[str, ...]]) -> str:
    """Replace the placeholders in a text by the sites' addresses."""
    for name, bases in hosts.items():
        text = text.replace(name, bases[0])
    return text


def matching_text(value: str, filler: str = "") -> str:
    """Return the text itself, or for a pattern a text that matches it. Raises Unsatisfiable."""
    if not is_pattern(value):
        return value
    found = example(value, filler)
    if found is None:
        raise Unsatisfiable(f"no text was found that the pattern {value[:200]!r} matches")
    return found


def expected_data(
    schema: Mapping[str, Any], value: Any, hosts: Mapping[str, tuple[str, ...]]
) -> Any:
    """Return expected data with the first of alternatives, and a matching text for every
    pattern."""
    if isinstance(value, str):
        return rendered(HOLE.sub("1", matching_text(value)), hosts)
    if schema.get("type") == "array" and isinstance(value, list):
        return [expected_data(schema.get("items") or {}, item, hosts) for item in value]
    if isinstance(value, list) and schema.get("format") == "coordinates":
        return value[0] if value and isinstance(value[0], list | dict) else value
    if isinstance(value, list) and value:
        return expected_data(schema, value[0], hosts)
    if isinstance(value, dict):
        known = schema.get("properties") or {}
        return {
            key: expected_data(known.get(key) or {}, item, hosts) for key, item in value.items()
        }
    return value


def encoded(value: Any) -> str:
    """Return a value as JSON."""
    return msgspec.json.encode(value).decode()


def posted(check: NetworkCheck, hosts: Mapping[str, tuple[str, ...]]) -> dict[str, Any]:
    """Return a form if all fields are texts at the top level, else a JSON document."""
    fields = check.expected.post_data or {}
    nested = any(key.startswith("$") and not key.startswith("$.^") for key in fields)
    typed = any(not isinstance(value, str | None) for value in fields.values())
    document = expected_document(fields, check, hosts)
    if nested or typed:
        return {"mimeType": "application/json", "text": encoded(document)}
    return {
        "mimeType": "application/x-www-form-urlencoded",
        "text": urlencode(document) or "form_key=1",
    }


def expected_document(
    fields: Mapping[str, Any], check: NetworkCheck, hosts: Mapping[str, tuple[str, ...]]
) -> dict[str, Any]:
    """Return an object with every field at its path, without fields that must be absent."""
    schema = ((check.post_data_schema or {}).get("properties")) or {}
    made: dict[str, Any] = {}
    for key, expected in fields.items():
        if expected is None:
            continue
        value = expected_data(schema.get(key) or {}, expected, hosts)
        pattern = key[2:] if key.startswith("$.^") else key
        if is_pattern(pattern):
            made[matching_text(pattern)] = value
        elif key.startswith("$"):
            # A path that matches several values gets one item of the list at each.
            several = json_path(key).several and isinstance(value, list)
            for item in value if several else [value]:
                _put(made, list(json_path(key).steps), item)
        else:
            made[HOLE.sub("1", key)] = value
    return made


def _put(made: Any, steps: list[Any], value: Any) -> None:
    """Set a value at a path, creating objects and lists as needed."""
    step, rest = steps[0], steps[1:]
    if isinstance(step, PathFilter) or step == EVERY:
        tests = (step, *step.also) if isinstance(step, PathFilter) else ()
        row: dict[str, Any] = {}
        for test in tests:
            _put(row, list(json_path(f"${test.path}").steps), test.value)
        made.append(row)
        step = len(made) - 1
    if isinstance(step, int):
        made.extend({} for _ in range(step + 1 - len(made)))
    if not rest:
        made[step] = value
        return
    lists = isinstance(rest[0], int | PathFilter) or rest[0] == EVERY
    there = made[step] if isinstance(step, int) else made.setdefault(step, [] if lists else {})
    _put(there, rest, value)


Entry = dict[str, Any]
_BODILESS = frozenset({"GET", "HEAD"})

_SCRIPT = {
    "accept": "application/json, text/javascript, */*; q=0.01",
    "sec-fetch-dest": "empty",
    "sec-fetch-mode": "cors",
    "x-requested-with": "XMLHttpRequest",
}


class SyntheticRun(Struct, frozen=True, kw_only=True):
    """An answer, HAR entries, and the sites' addresses."""

    answer: dict[str, Any]
    entries: tuple[Entry, ...]
    hosts: Mapping[str, tuple[str, ...]]

    @property
    def trace(self) -> Trace:
        """The trace of the entries."""
        return trace_of_list(self.entries, "synthetic")


class Synthesis(Struct, frozen=True, kw_only=True):
    """The run and the evaluator's verdict on it, or the reason why none can be built."""

    run: SyntheticRun | None
    verdict: Verdict | None
    reason: str = ""

    @property
    def satisfiable(self) -> bool:
        """Whether the evaluator accepts the run."""
        return self.verdict is not None and self.verdict.outcome is Outcome.PASS


def hosts_for(task: Task) -> dict[str, tuple[str, ...]]:
    """Return an address for every site that the task names."""
    names = {placeholder(site) for site in task.sites}
    for check in task.network_checks:
        names |= placeholders(msgspec.json.encode(check).decode())
    return {
        name: (
            f"http://{name.strip('_').lower().replace('_', '-')}.example:"
            f"{DEFAULT_PORTS.get(name, 8080)}{FOLDERS.get(name, '')}",
        )
        for name in sorted(names & DEFAULT_PORTS.keys() | {placeholder(s) for s in task.sites})
    }


def synthesise(task: Task, mode: Mode = Mode.SOUND) -> Synthesis:
    """Return a run that passes in a mode, or the reason why none does. Backend checks are
    ignored."""
    hosts = hosts_for(task)
    try:
        run = SyntheticRun(answer=_answer(task, hosts), entries=_entries(task, hosts), hosts=hosts)
    except Unsatisfiable as error:
        return Synthesis(run=None, verdict=None, reason=str(error))
    offline = _without_state(task)
    verdict = VerifiedEvaluator(mode=mode, hosts=hosts).evaluate(offline, run.answer, run.trace)
    return Synthesis(run=run, verdict=verdict, reason="; ".join(verdict.reasons))


def _without_state(task: Task) -> Task:
    """Return the task without checks that only the state of a site can decide, including an
    answer of which only the form is specified."""
    kept = tuple(
        map(_exact_answer, (one for one in task.eval if not isinstance(one, BackendCheck)))
    )
    return msgspec.structs.replace(task, eval=kept) if kept else task


def _exact_answer(check: Check) -> Check:
    if isinstance(check, AnswerCheck):
        return msgspec.structs.replace(check, shape_only=False)
    return check


def _answer(task: Task, hosts: Mapping[str, tuple[str, ...]]) -> dict[str, Any]:
    check = task.answer_check
    if check is None:
        return {}
    expected = check.expected
    data = None if expected.retrieved_data is UNSET else expected.retrieved_data
    return {
        "task_type": expected.task_type.upper(),
        "status": expected.status.upper(),
        "retrieved_data": expected_data(check.results_schema, data, hosts),
        "error_details": None,
    }


def _entries(task: Task, hosts: Mapping[str, tuple[str, ...]]) -> tuple[Entry, ...]:
    """Return a visit to every site of the task, then the required requests, with the last page
    last."""
    made = [
        _entry(hosts[placeholder(site)][0] + "/", "GET", 200, PAGE_HEADERS) for site in task.sites
    ]
    wanted = [check for check in task.network_checks if not check.should_not_exist]
    wanted.sort(key=lambda check: check.expected.http_method == "GET")
    return (*made, *(_event(check, hosts) for check in wanted))


def _entry(
    url: str, method: str, status: int, headers: Mapping[str, str], **response: Any
) -> Entry:
    return {
        "request": {
            "method": method,
            "url": url,
            "headers": [{"name": name, "value": value} for name, value in headers.items()],
        },
        "response": {"status": status, "headers": [], "cookies": [], "content": {}, **response},
    }


def _event(check: NetworkCheck, hosts: Mapping[str, tuple[str, ...]]) -> Entry:
    """Return one request that satisfies a check. Raises Unsatisfiable."""
    expected = check.expected
    if expected.http_method.upper() in _BODILESS and expected.post_data:
        raise Unsatisfiable(
            f"a {expected.http_method} is asked to send {', '.join(expected.post_data)}, and "
            "browsers send none with a body"
        )
    kind = usual_kind(expected.http_method, expected.urls[0])
    headers = dict(_SCRIPT if kind is RequestKind.SCRIPT else PAGE_HEADERS)
    for name, value in (expected.headers or {}).items():
        first = value if isinstance(value, str) else value[0]
        headers[name.lower()] = rendered(matching_text(first, "session=1"), hosts)
    entry = _entry(
        _url(check, hosts),
        expected.http_method,
        expected.response_status,
        headers,
        cookies=[
            {
                "name": name,
                "value": quote(matching_text(value if isinstance(value, str) else value[0])),
            }
            for name, value in (expected.response_cookies or {}).items()
        ],
    )
    if expected.response_content:
        text = encoded(expected_document(expected.response_content, check, hosts))
        entry["response"]["content"] = {"mimeType": "application/json", "text": text}
    if expected.post_data:
        entry["request"]["postData"] = posted(check, hosts)
    return entry


def _url(check: NetworkCheck, hosts: Mapping[str, tuple[str, ...]]) -> str:
    """Return the first of the addresses, with its query."""
    url = check.expected.urls[0]
    query = expected_query(url, check)
    if is_pattern(url):
        # If a page's address may be longer, the shortest one exists.
        open_ended = url.startswith("^__") and url.endswith(".*$")
        base = matching_text(url[: -len(".*$")] + "$" if open_ended else url, "x")
        if "://" not in base and not placeholders(base):
            base = _on_a_site(url, base, hosts)
    else:
        base = url.partition("#")[0].partition("?")[0]
    base = HOLE.sub("1", base)
    pairs = [
        (name, matching_text(str(value))) for name, values in query.items() for value in values
    ]
    return rendered(base, hosts) + (f"?{urlencode(pairs)}" if pairs else "")


def _on_a_site(pattern: str, base: str, hosts: Mapping[str, tuple[str, ...]]) -> str:
    """Return a text that matches a pattern without a host, at the task's first site."""
    name = next(iter(hosts))
    moved = f"{name}/{base.lstrip('/')}"
    if not fullmatch(pattern, moved):
        raise Unsatisfiable(f"no address of {name} matches the pattern {pattern[:200]!r}")
    return moved


_OTHER_HOST = "http://elsewhere.example"
_WRONG = "zzwrongzz"


class Mutant(NamedTuple):
    """A changed run, and what was changed."""

    change: str
    run: SyntheticRun


def mutants(task: Task, run: SyntheticRun) -> Iterator[Mutant]:
    """Yield runs that differ from a correct one in one field that the task's checks name."""
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
    """Return a request that a check forbids; None for a check that forbids none, or a pattern."""
    url = check.expected.urls[0]
    if not check.should_not_exist or is_pattern(url):
        return None
    return {
        "request": {"method": check.expected.http_method, "url": rendered(url, hosts)},
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
    """Yield the data with an additional item, with an item removed, and with each value changed."""
    if not isinstance(data, list):
        yield "given", [_WRONG]
        return
    yield "with an item too many", [*data, _WRONG]
    if data:
        yield "with an item too few", data[1:]
    for index, item in enumerate(data):
        for path, changed in _changed_item(item, keys=keys):
            yield f"[{index}]{path}", [*data[:index], changed, *data[index + 1 :]]


def _changed_item(item: Any, *, keys: bool) -> Iterator[tuple[str, Any]]:
    if isinstance(item, dict):
        for key, value in item.items():
            for path, changed in _changed_item(value, keys=keys):
                yield f".{key}{path}", {**item, key: changed}
        if keys:
            yield " with a key too many", {**item, _WRONG: 1}
    elif isinstance(item, list):
        yield from ((f"[{at}]", _with(item, at, _other(value))) for at, value in enumerate(item))
    else:
        yield "", _other(item)


def _with(items: list[Any], at: int, value: Any) -> list[Any]:
    return [*items[:at], value, *items[at + 1 :]]


def _other(value: Any) -> Any:
    """Return a different value of the same kind."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value * 2 + 7
    return _WRONG if value != _WRONG else ""


def _events(check: NetworkCheck, run: SyntheticRun, at: int) -> Iterator[Mutant]:
    """Yield the run without the request, and with each of its parts changed."""
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
    """Yield the request with one part changed that the check names, and the name of that part."""
    for part, change in _changes(check):
        changed = copy.deepcopy(entry)
        if change(changed):
            yield part, changed


def _changes(check: NetworkCheck) -> Iterator[tuple[str, Callable[[Entry], bool]]]:
    """List functions that change an entry in place; each returns whether it changed anything."""
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
    """Return a different value for a field; a field that must be absent gets a value."""
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
    for holder in find(parent, fields) if parent else []:
        if isinstance(holder, dict) and (last in holder or expected is None):
            holder[last] = _WRONG if expected is None else _other_of(holder[last])
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


SOUND_WITH_ACTIVITY = "sound-activity"
_MOST_EVENTS = 20_000

# The changes of trace_mutators, which every kind of trace knows.
_GENERAL = frozenset({"method", "status", "host"})


class VerifiedCase(MutationCase, frozen=True, kw_only=True):
    """A correct run, with the requests that satisfy its checks."""

    checks: tuple[Decisive, ...] = ()
    hosts: Hosts = msgspec.field(default_factory=dict)


def evaluator_of(mode: str, hosts: Hosts) -> VerifiedEvaluator:
    """Return the evaluator of a mode; ``sound-activity`` also requires a visit to the site."""
    if mode == SOUND_WITH_ACTIVITY:
        return VerifiedEvaluator(hosts=hosts, activity=True)
    return VerifiedEvaluator(mode=Mode(mode), hosts=hosts)


def mutation_suite(
    tasks: Sequence[Task], runs: Path | None, mode: str, hosts: Hosts
) -> MutationSuite:
    """Return the runs of a folder, which are assumed to be correct, or for None one built for
    every task. Raises UserError for a folder or a run that cannot be read."""
    states: dict[str, Mapping[str, State]] = {}
    if runs is None:
        where = dict(chain.from_iterable(hosts_for(task).items() for task in tasks))
        cases = _built(tasks)
    else:
        where = dict(hosts)
        sent = mode != Mode.RELEASE.value
        cases = _recorded(
            {str(task.task_id): task for task in tasks}, runs, hosts, states, sent=sent
        )
    return MutationSuite(
        cases=cases,
        evaluator=_OnEntries(evaluator_of(mode, where), states),
        near_misses={**NEAR_MISSES, **TRACE_NEAR_MISSES, **_SPECIFIED},
        equivalent={**EQUIVALENT, **TRACE_EQUIVALENT},
    )


class _OnEntries:
    """The evaluator on lists of HAR entries: variants share most entries with their run, and
    each is decoded once."""

    def __init__(
        self, evaluator: VerifiedEvaluator, states: Mapping[str, Mapping[str, State]]
    ) -> None:
        self._evaluator, self._states = evaluator, states
        # By identity; the entry is kept, so that no other object gets its id.
        self._events: dict[int, tuple[Entry, Event]] = {}

    def evaluate(self, task: Task, answer: object, trace: list[Entry] | None) -> Verdict:
        if len(self._events) > _MOST_EVENTS:
            self._events.clear()
        events = None if trace is None else Trace(tuple(map(self._event, trace)), "the run")
        return self._evaluator.evaluate(task, answer, events, self._states.get(str(task.task_id)))

    def _event(self, entry: Entry) -> Event:
        if id(entry) not in self._events:
            self._events[id(entry)] = (entry, trace_of_list([entry]).events[0])
        return self._events[id(entry)][1]


def _built(tasks: Iterable[Task]) -> Iterator[MutationCase]:
    """Yield the built runs; the linter reports tasks for which none can be built."""
    for task in tasks:
        if not task.flaw and (run := synthesise(task).run) is not None:
            yield _case(task, run.answer, list(run.entries), run.hosts)


def _recorded(
    tasks: Mapping[str, Task],
    folder: Path,
    hosts: Hosts,
    states: dict[str, Mapping[str, State]],
    *,
    sent: bool,
) -> Iterator[MutationCase]:
    """Yield the recorded runs; with ``sent`` in the order in which the requests were sent."""
    for task_id in run_ids(folder, tasks):
        task = tasks[task_id]
        files = run_files(folder, task.task_id)
        trace = read_trace(files.trace)
        if task.backend_checks:
            states[task_id] = run_states(files.state, {})
        entries = None if trace is None else _plain_entries(trace, sent=sent)
        yield _case(task, _as_object(read_answer(files.answer)), entries, hosts)


def _as_object(answer: object) -> object:
    """Return a response as an object whose parts can be changed; any other value unchanged."""
    response = read_response(answer)
    return msgspec.to_builtins(response) if isinstance(response, Response) else answer


def _plain_entries(trace: Trace, *, sent: bool) -> list[Entry]:
    """Return the entries as JSON without their times, because mutators reorder them."""
    order = in_time_order([event.entry for event in trace.events])
    return [_plain(trace.events[at]) for at in (order if sent else range(len(order)))]


def _plain(event: Event) -> Entry:
    """Return an entry as JSON, with the body that a Playwright trace stores separately."""
    entry: Entry = msgspec.json.decode(msgspec.json.encode(event.entry))
    del entry["startedDateTime"]
    if event.resources:
        for part, body in (("request", "postData"), ("response", "content")):
            found = event.post_data if part == "request" else event.content
            entry[part][body] = msgspec.to_builtins(found)
    return entry


def _case(task: Task, answer: object, entries: list[Entry] | None, hosts: Hosts) -> VerifiedCase:
    check = task.answer_check
    ordered: bool | None = check is not None and check.ordered
    if check is not None and "coordinates" in msgspec.json.encode(check.results_schema).decode():
        ordered = None
    # If the answer is not checked, changing it is not wrong.
    answer = None if check is None else answer
    found = () if entries is None else decisive_events(task, trace_of_list(entries), hosts)
    return VerifiedCase(
        name=str(task.task_id),
        task=task,
        answer=answer,
        trace=entries,
        ordered=ordered,
        ends_there=bool(found) and all(is_final_page(task, one.check) for one in found),
        decisive=tuple(one.at for one in found),
        checks=found,
        hosts=hosts,
    )


def _specified(case: MutationCase) -> Iterator[Variant]:
    """Yield the run with each part of a decisive request changed that its check names."""
    if isinstance(case, VerifiedCase):
        for check, at in case.checks:
            for part, entry in changed_entries(check, case.trace[at]):
                if part not in _GENERAL:
                    trace = [*case.trace[:at], entry, *case.trace[at + 1 :]]
                    yield Variant(case.answer, trace, part.partition(" ")[0])


def _forbidden(case: MutationCase) -> Iterator[Variant]:
    """Yield the run with a forbidden request first."""
    if isinstance(case, VerifiedCase) and case.trace:
        for check in case.task.network_checks:
            if (entry := forbidden_entry(check, case.hosts)) is not None:
                yield Variant(case.answer, [entry, *case.trace])


_SPECIFIED: Mapping[str, Mutator] = {"request": _specified, "forbidden_request": _forbidden}
_ONE_SIDED = re.compile(r"\.\*\(\?![^()]*\)\.\*\$?\Z")
_VALUE_NAME = re.compile(r"(?<![A-Za-z0-9_])[A-Z][A-Z0-9]*(?:_[A-Z0-9]+){2,}(?![A-Za-z0-9_])")
_REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+")
_OF_REPOSITORY = re.compile(r"__GITLAB__/([\w.-]+/[\w.-]+)/(?:-/|notes|toggle_star)")


class _Problem(NamedTuple):
    """The category, problem and fix of a kind of finding."""

    category: str
    problem: str
    mend: str

    def of(self, task: Task, field: str, value: Any) -> Finding:
        return Finding(task.task_id, self.category, field, value, self.problem, self.mend)


_UNANSWERED = _Problem(
    "unanswered",
    "no server answers with this status: it stands for a request that failed",
    "describe when a run sends it, and which part counts",
)
_UNFILLED = _Problem(
    "unfilled",
    "a place of the template was left unfilled: any value counts here, and the released package "
    "takes it for the text itself",
    "write the value, or a pattern",
)
_BEHIND = _Problem(
    "one_sided",
    "the look-ahead follows .* and always matches at the end of the text",
    "put it at the start of the pattern",
)
_ANY_HOST = _Problem(
    "host_unbound",
    "the address may be on any host",
    "begin the pattern with the site's placeholder",
)
_NO_EVIDENCE = _Problem(
    "no_evidence",
    "only the answer is checked: a run that never visited the site can pass",
    "add a NetworkEventEvaluator; with --require-activity the run must at least have opened a page "
    "of the site",
)
_OPEN_ENDED = _Problem(
    "open_ended", "the address may go on with anything", "end the pattern where the address ends"
)
_IDLE = _Problem(
    "idle",
    "opening the start page is enough",
    "ask for a request that only the task itself brings about",
)
_ANYTHING = _Problem("vacuous", "the field may hold anything", "write the value that must be there")
_SURVIVING = {"host": _ANY_HOST, "path": _OPEN_ENDED, "left": _IDLE, "method": _IDLE}
"""What it shows that the evaluator does not notice a change, by the third word of the change."""


def text_findings(task: Task) -> Iterator[Finding]:
    """Yield the findings from the texts of a task's network checks, in the order of the checks."""
    yield from _other_target(task)
    for index, check in enumerate(task.network_checks):
        field = f"eval network {index + 1}"
        for text in _strings(msgspec.to_builtins(check)):
            if HOLE.search(text):
                yield _UNFILLED.of(task, field, text)
            if is_pattern(text) and _ONE_SIDED.search(text):
                yield _BEHIND.of(task, field, text)
        yield from _addresses(task, check, field)
        if check.expected.response_status < 100:
            yield _UNANSWERED.of(task, field, check.expected.response_status)


def _addresses(task: Task, check: NetworkCheck, field: str) -> Iterator[Finding]:
    for url in check.expected.urls:
        if name := _VALUE_NAME.search(url):
            problem = f"{name[0]} is the name of a value: no page of the site has this address"
            yield _Problem("unwritten", problem, "write the value").of(task, field, url)
        if check.should_not_exist or placeholders(url) or not is_pattern(url):
            continue
        # Otherwise the changed host of the synthetic run shows it.
        if "://" in url and not url.startswith("^.*"):
            yield _ANY_HOST.of(task, field, url)


def _other_target(task: Task) -> Iterator[Finding]:
    """Yield checks of repositories if none of them is about the intent's own repository."""
    values = [str(value) for value in task.instantiation_dict.values()]
    wanted = [value for value in values if _REPOSITORY.fullmatch(value)]
    text = msgspec.json.encode(task.eval).decode()
    checked = dict.fromkeys(_OF_REPOSITORY.findall(text.replace("\\\\", "")))
    if not checked or any(value.casefold() in text.casefold() for value in wanted):
        return
    mend = "write the address of what the intent names"
    for value in wanted:
        problem = f"the intent is about {value}, and the checks are about {', '.join(checked)}"
        yield _Problem("other_target", problem, mend).of(task, "instantiation_dict", value)


def _strings(value: Any) -> Iterator[str]:
    """Yield every text in a specification, keys included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _strings(key)
            yield from _strings(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _strings(item)


CATEGORIES: Severities = {
    "unreadable": Severity.ERROR,
    "unsatisfiable": Severity.ERROR,
    "unwritten": Severity.ERROR,
    "other_target": Severity.ERROR,
    "idle": Severity.ERROR,
    "unsatisfiable_in_release": Severity.WARNING,
    "vacuous": Severity.WARNING,
    "open_ended": Severity.WARNING,
    "host_unbound": Severity.WARNING,
    "unfilled": Severity.WARNING,
    "one_sided": Severity.WARNING,
    "unanswered": Severity.NOTE,
    "no_evidence": Severity.NOTE,
}

UNIONS = {"not_bound_to_the_task": ("vacuous", "open_ended", "host_unbound", "idle")}


def lint(tasks: Iterable[Task]) -> Iterator[Finding]:
    """Yield the findings on all tasks, in order."""
    return readable(tasks, findings)


def findings(task: Task) -> Iterator[Finding]:
    """Yield the findings on one task."""
    sound = synthesise(task)
    if sound.satisfiable:
        yield from _survivors(task, sound)
    else:
        yield _unsatisfiable(task, "unsatisfiable", sound)
    release = synthesise(task, Mode.RELEASE)
    if not release.satisfiable:
        yield _unsatisfiable(task, "unsatisfiable_in_release", release)
    yield from text_findings(task)
    if not task.network_checks and not task.backend_checks:
        yield _NO_EVIDENCE.of(task, "eval", None)


def _unsatisfiable(task: Task, category: str, synthesis: Synthesis) -> Finding:
    """Return the failing assertion of the best run."""
    whose = "no run" if category == "unsatisfiable" else "no honest run"
    if category != "unsatisfiable" and (reason := _unseen_by_release(task)):
        synthesis = msgspec.structs.replace(synthesis, reason=reason)
    why = "a run with everything that is required fails" if synthesis.run else "none can be built"
    problem = f"{whose} passes, for {why}: {synthesis.reason[:500]}"
    mend = "make the checks agree with what one run can do"
    return _Problem(category, problem, mend).of(task, "eval", None)


def _unseen_by_release(task: Task) -> str:
    """Return the page that the release never sees because a script requests it; "" without one."""
    for check in task.network_checks:
        known = declared(check.expected.http_method, check.expected.urls[0])
        if known is not None and known.scripted and is_final_page(task, check):
            return f"the release waits for the load of a page, and a script asks. {known.reason}"
    return ""


def _survivors(task: Task, synthesis: Synthesis) -> Iterator[Finding]:
    """Return fields whose change the evaluator does not notice, each kind once."""
    if synthesis.run is None:
        return
    evaluator = VerifiedEvaluator(hosts=synthesis.run.hosts)
    seen = set()
    for mutant in mutants(task, synthesis.run):
        verdict = evaluator.evaluate(task, mutant.run.answer, mutant.run.trace)
        if verdict.outcome is Outcome.FAIL:
            continue
        words = mutant.change.split(" ")
        shown = _SURVIVING.get(words[2] if len(words) > 2 else "", _ANYTHING)
        value = _specified_value(task, mutant.change)
        if shown is _ANYTHING and is_pattern(value) and refused(value) is not None:
            continue
        key = (shown, words[-1] if shown is _ANYTHING else "")
        if key not in seen:
            seen.add(key)
            yield shown.of(task, mutant.change, value)


def _specified_value(task: Task, change: str) -> Any:
    """Return the specification's value for a change, if it is easy to locate."""
    key = change.rsplit(" ", maxsplit=1)[-1]
    for check in task.network_checks:
        for fields in (check.expected.post_data, check.expected.headers):
            if fields and key in fields:
                return fields[key]
    patterns = [
        url for check in task.network_checks for url in check.expected.urls if is_pattern(url)
    ]
    return patterns[0] if patterns else None


# Pages that blind agents do not visit.
_BLIND_HOSTS = {
    name: (f"http://site.invalid:{port}{FOLDERS.get(name, '')}",)
    for name, port in DEFAULT_PORTS.items()
}


def blind_evaluator(mode: str) -> VerifiedEvaluator:
    """Return the evaluator of a mode for blind agents."""
    return evaluator_of(mode, _BLIND_HOSTS)


def idle_trace(task: Task) -> Trace:
    """Return the trace of a browser that opened a blank page of another host and was not used."""
    return trace_of_list([_page_load("http://idle.invalid/")], "idle")


def start_trace(task: Task) -> Trace:
    """Return the trace of a browser that loaded the task's start pages, in order."""
    pages = []
    for start in task.start_urls or (placeholder(site) for site in task.sites):
        name = start.partition("/")[0]
        address = _BLIND_HOSTS.get(name, (name,))[0]
        pages.append(_page_load(start.replace(name, address)))
    return trace_of_list(pages, "start page")


def _page_load(url: str) -> Entry:
    return _entry(url, "GET", 200, {"accept": PAGE_HEADERS["accept"]})
