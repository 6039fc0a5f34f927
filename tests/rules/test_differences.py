"""DIFFERENCES.md is true: its examples are judged otherwise by the two modes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec
import pytest
from pydantic import JsonValue

from tests.rules.files import DIFFERENCES
from trajudge.rules.values import KINDS, Mode, equal
from trajudge.rules.verified.evaluator import VerifiedEvaluator
from trajudge.rules.verified.network import DEFAULT_PORTS, named, trace_of_list
from trajudge.rules.verified.tasks import Task

TABLE = DIFFERENCES.partition("\n## Values\n")[2].partition("\n## ")[0].strip().splitlines()[2:]


class Difference(NamedTuple):
    """One row: a specification's value, an agent's, and each mode's verdict."""

    kind: str
    expected: JsonValue
    actual: JsonValue
    release: bool
    sound: bool


def _row(line: str) -> Difference:
    kind, *cells, why = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
    assert why.endswith(".")
    expected, actual = (json.loads(cell.strip("`").replace("\\|", "|")) for cell in cells[:2])
    verdicts = [{"equal": True, "different": False}[cell] for cell in cells[2:]]
    return Difference(kind, expected, actual, *verdicts)


VALUES = [_row(line) for line in TABLE]


@pytest.mark.parametrize("example", VALUES, ids=lambda example: example.kind)
def test_the_modes_differ_as_written(example: Difference) -> None:
    kind, expected, actual, release, sound = example
    assert bool(equal(kind, expected, actual, mode=Mode.SOUND).equal) is sound
    assert bool(equal(kind, expected, actual, mode=Mode.RELEASE).equal) is release
    assert sound is not release


def test_every_kind_has_an_example() -> None:
    assert {example.kind for example in VALUES} == set(KINDS) - {"integer"}
    assert len(VALUES) == 64


@pytest.mark.parametrize("mode", list(Mode))
def test_a_pattern_fits_no_address_with_a_query(mode: Mode) -> None:
    pattern = "^http://a.test/.*$"
    assert equal("url", pattern, "http://a.test/1", mode=mode).equal
    assert equal("url", pattern, "http://a.test/1?b=2", mode=mode).equal is False


_SHOP = "http://shop.example:7770"

_HOSTS = {"__SHOPPING__": (_SHOP,)}

_STRINGS = {"type": "array", "items": {"type": "string"}}

_OK = '{"task_type": "RETRIEVE", "status": "SUCCESS", "retrieved_data": ["tea"]}'


class ReleaseDifference(NamedTuple):
    """What a task asks for, what a run did, in words and as data, and why the modes disagree."""

    part: str
    specification: str
    run: str
    why: str
    task: dict[str, Any]
    answer: object
    entries: tuple[dict[str, Any], ...]


def _task(task_type: str, data: Any, *checks: dict[str, Any]) -> dict[str, Any]:
    answer = {
        "evaluator": "AgentResponseEvaluator",
        "results_schema": _STRINGS if data else {"type": "null"},
        "expected": {"task_type": task_type, "status": "SUCCESS", "retrieved_data": data},
    }
    network = [{"evaluator": "NetworkEventEvaluator", **check} for check in checks]
    return {"task_id": 1, "sites": ["shopping"], "intent": "", "eval": [answer, *network]}


def _called(path: str, method: str = "GET", status: int = 200, **more: Any) -> dict[str, Any]:
    headers = {"accept": "text/html", **more.pop("headers", {})}
    made: dict[str, Any] = {"method": method, "url": _SHOP + path}
    made["headers"] = [{"name": name, "value": value} for name, value in headers.items()]
    if "form" in more:
        kind = "application/x-www-form-urlencoded"
        made["postData"] = {"mimeType": kind, "text": more.pop("form")}
    return {"request": made, "response": {"status": status, **more}}


_HOME = _called("/")

_FORM = {"expected": {"url": "__SHOPPING__/post", "http_method": "POST", "post_data": {"a": "x"}}}

_OTHER = {"expected": {**_FORM["expected"], "post_data": {"a": "y"}}}

_SHOWN = {"expected": {"url": "__SHOPPING__/cart"}}

_MUTATED = {"task_type": "MUTATE", "status": "SUCCESS"}

_NAVIGATED = {"task_type": "NAVIGATE", "status": "SUCCESS"}


def _said(run: str, why: str, answer: object) -> ReleaseDifference:
    return ReleaseDifference(
        "response", "`tea`", run, why, _task("retrieve", ["tea"]), answer, (_HOME,)
    )


def _sent(specification: str, run: str, why: str, *parts: Any) -> ReleaseDifference:
    """``parts``: the checks, then the entries after the home page."""
    checks, entries = parts
    task = _task("mutate", None, *checks)
    return ReleaseDifference("request", specification, run, why, task, _MUTATED, (_HOME, *entries))


def _went(run: str, why: str, *entries: dict[str, Any]) -> ReleaseDifference:
    task = _task("navigate", None, _SHOWN)
    return ReleaseDifference("last page", "`/cart`", run, why, task, _NAVIGATED, (_HOME, *entries))


def _response(**fields: Any) -> dict[str, Any]:
    return {**msgspec.json.decode(_OK), **fields}


def _at(second: int) -> dict[str, str]:
    return {"startedDateTime": f"2026-01-01T00:00:0{second}Z"}


_DIFFERENCES = {"sec-fetch-dest": "document", "sec-fetch-user": "?1", "sec-fetch-mode": "navigate"}

_POST = _called("/post", "POST", form="a=x")

_OBJECT_HEADERS = {**_POST, "request": {**_POST["request"], "headers": {"accept": "*/*"}}}

_NO_ADDRESS = {"request": {"method": "POST"}, "response": {"status": 200}}

_POST_Y = _called("/post", "POST", form="a=y")

_HEADER = {"expected": {"url": "__SHOPPING__/r", "headers": {"Cookie": "^(?!.*fast=1).*$"}}}

_NEVER = {"should_not_exist": True, **_FORM}

_LINK = {
    "expected": {**_FORM["expected"], "post_data": {"a": "[tea](__SHOPPING__/tea)"}},
    "post_data_schema": {"properties": {"a": {"type": "string", "format": "markdown"}}},
}

_TEXT = {"mimeType": "application/json", "text": '{"n": "Tea"}'}

_REPLY = {"expected": {"url": "__SHOPPING__/n", "response_content": {"n": "tea"}}}

_HOLE = {"expected": {**_FORM["expected"], "post_data": {"f": "{{id}}"}}}

_ROUTE = {"expected": {"url": "^.*/route/v1/.*/1,2;3,4$"}}

_BY_SCRIPT = {"accept": "*/*", "sec-fetch-dest": "empty"}

EXAMPLES = (
    _said("JSON behind a byte-order mark", "The release does not remove the mark.", "\ufeff" + _OK),
    _said("JSON after a sentence", "The release reads all of the text as JSON.", f"It is: {_OK}"),
    _said(
        "two fences, the last right",
        "The release reads the first fence.",
        f"```\n{{}}\n```\nor\n```json\n{_OK}\n```",
    ),
    _said(
        "the paper's field names",
        "The release knows its own names alone.",
        {"action": "retrieve", "status": "SUCCESS", "results": ["tea"]},
    ),
    _said(
        "status `^.*$`", "An agent's status is a pattern in the release.", _response(status="^.*$")
    ),
    _said(
        "status `SUCCESS.`",
        "Punctuation at the edge of a status does not count in the release.",
        _response(status="SUCCESS."),
    ),
    ReleaseDifference(
        "response",
        "`ab` or `a`, and `a`",
        "`a`, `ab`",
        "The release takes the first item that fits and leaves the other without a partner.",
        _task("retrieve", [["ab", "a"], "a"]),
        _response(retrieved_data=["a", "ab"]),
        (_HOME,),
    ),
    _went("the page, then a frame", "A frame counts as the last page in the release.",
          _called("/cart"), _called("/ad", headers={"sec-fetch-dest": "iframe"})),
    _went("the page, by a script's navigation",
          "The release asks for a user's click once a browser says who asked.",
          _called("/cart", headers={"sec-fetch-dest": "document", "sec-fetch-user": "?0"})),
    _went("the page, kept by the browser (304)", "Only status 200 is the page in the release.",
          _called("/cart", status=304, headers=_DIFFERENCES)),
    _went("the page, sent last and first in the file",
          "The release reads the order of the file, HAR that of the times.",
          {**_called("/cart"), **_at(2)}, {**_called("/"), **_at(1)}),
    ReleaseDifference(
        "last page", "`/cart` and `/tea`", "each in a tab of its own, after the home page",
        "The release knows no tabs: the last page of the file counts.",
        _task("navigate", None, _SHOWN, {"expected": {"url": "__SHOPPING__/tea"}}), _NAVIGATED,
        tuple({**_called(path), "pageref": tab}
              for path, tab in (("/", "1"), ("/cart", "1"), ("/", "2"), ("/tea", "2"))),
    ),
    ReleaseDifference(
        "last page", "`/route/v1/…/1,2;3,4`", "the map, then the route that its script asks for",
        "Only the load of a page counts in the release.", _task("navigate", None, _ROUTE),
        _NAVIGATED, (_HOME, _called("/route/v1/driving/1,2;3,4", headers=_BY_SCRIPT)),
    ),
    _sent("`a=x`, `a=y` to one address", "both, one after the other",
          "Both checks are about the last request alone in the release.",
          (_FORM, _OTHER), (_POST, _POST_Y)),
    _sent("`a=x`", "the headers as an object, not a list",
          "The release ends with an error.",
          (_FORM,), (_OBJECT_HEADERS,)),
    _sent("`a=x`", "an entry without an address, no other",
          "One of the trace's entries may be the request: nobody can tell.",
          (_FORM,), (_NO_ADDRESS,)),
    _sent("`a=x`", "a body of 3 bytes that the trace did not record",
          "What was sent is not known; the release takes it for nothing.",
          (_FORM,), (_called("/post", "POST", headers={"content-length": "3"}),)),
    _sent("`a=x`", "`a=^.*$`", "A form's field is a pattern in the release.",
          (_FORM,), (_called("/post", "POST", form="a=%5E.*%24"),)),
    _sent("`a=x`", "`a=0&a=x`, as a checkbox sends it",
          "The release reads the first value, servers the last.",
          (_FORM,), (_called("/post", "POST", form="a=0&a=x"),)),
    _sent("no request with `a=x`", "`a=y`", "The release forbids the address whatever the body.",
          (_NEVER,), (_POST_Y,)),
    _sent("a cookie without `fast=1`", "no cookie", "A missing header never matches there.",
          (_HEADER,), (_called("/r"),)),
    _sent("a link to the site, in markdown", "the link with the site's address",
          "The release compares the placeholder with the address.",
          (_LINK,), (_called("/post", "POST", form=f"a=[tea]({_SHOP}/tea)"),)),
    _sent("a reply with `tea`", "`Tea`", "Replies are compared byte by byte in the release.",
          (_REPLY,), (_called("/n", content=_TEXT),)),
    _sent("`/f/{{id}}`, left unfilled", "`/f/12`", "The release takes it for the text itself.",
          ({"expected": {"url": "__SHOPPING__/f/{{id}}"}},), (_called("/f/12"),)),
    _sent("`f={{id}}`, left unfilled", "`f=12`", "The release takes it for the text itself.",
          (_HOLE,), (_called("/post", "POST", form="f=12"),)),
)  # fmt: skip


def verdicts(example: ReleaseDifference) -> tuple[str, str]:
    """Return what the release and the sound mode say of an example."""
    task = msgspec.convert(example.task, Task)
    trace = trace_of_list(example.entries)
    release, sound = (
        VerifiedEvaluator(mode=mode, hosts=_HOSTS).evaluate(task, example.answer, trace).outcome
        for mode in (Mode.RELEASE, Mode.SOUND)
    )
    return release.value, sound.value


def table() -> Iterator[str]:
    """Yield the table's lines, verdicts computed."""
    yield "| part | specification | run | release-1.2.3 | sound | why |"
    yield "|---|---|---|---|---|---|"
    for example in EXAMPLES:
        cells = (*example[:3], *verdicts(example), example.why)
        yield f"| {' | '.join(cells)} |"


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.run)
def test_the_modes_disagree(example: ReleaseDifference) -> None:
    release, sound = verdicts(example)
    assert release != sound


def test_the_table_of_the_file_is_theirs() -> None:
    runs = DIFFERENCES.partition("\n## Runs\n")[2].partition("\n## ")[0].strip()
    assert runs.splitlines() == list(table())


def test_the_file_names_the_ports() -> None:
    ports = ", ".join(f"{named(site)} {port}" for site, port in DEFAULT_PORTS.items())
    assert f"({ports})" in DIFFERENCES
