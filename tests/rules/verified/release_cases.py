"""Runs on which the release mode and the package once disagreed, with the package's verdicts.

``tests/rules/verified/test_against_package.py`` holds the verdicts to the package itself.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from tests.rules.verified.tasks import SHOP, answer, page, request

Record = dict[str, Any]


class ReleaseCase(NamedTuple):
    """A run of a task on the shop, and what the package says of it."""

    name: str
    verdict: str
    task: Record
    answer: Any
    entries: list[Record]


def _task(task_type: str, data: Any, items: Record, *checks: Record) -> Record:
    schema: Record = {"type": "array", "items": items} if data else {"type": "null"}
    response = {
        "evaluator": "AgentResponseEvaluator",
        "results_schema": schema,
        "expected": {"task_type": task_type, "status": "SUCCESS", "retrieved_data": data},
    }
    network = [{"evaluator": "NetworkEventEvaluator", **check} for check in checks]
    return {
        "task_id": 1,
        "intent_template_id": 1,
        "sites": ["shopping"],
        "start_urls": ["__SHOPPING__"],
        "intent": "Do it.",
        "intent_template": "Do it.",
        "instantiation_dict": {},
        "revision": 1,
        "eval": [response, *network],
    }


_HOME = page("/")
_STRING = {"type": "string"}
_PLACE = {"type": "string", "format": "location-name"}
_FORM = {"url": "__SHOPPING__/post", "http_method": "POST", "post_data": {"a": "x"}}


def _said(name: str, verdict: str, items: Record, expected: Any, data: Any) -> ReleaseCase:
    task = _task("retrieve", [expected], items)
    return ReleaseCase(name, verdict, task, answer(data), [_HOME])


def _text(name: str, verdict: str, text: str) -> ReleaseCase:
    return ReleaseCase(name, verdict, _task("retrieve", ["tea"], _STRING), text, [_HOME])


def _went(name: str, verdict: str, url: str, *entries: Record, **check: Any) -> ReleaseCase:
    task = _task("navigate", None, {}, {"expected": {"url": url}, **check})
    return ReleaseCase(name, verdict, task, answer(None, "NAVIGATE"), [_HOME, *entries])


def _sent(name: str, verdict: str, expected: Record, *entries: Record, **check: Any) -> ReleaseCase:
    task = _task("mutate", None, {}, {"expected": expected, **check})
    return ReleaseCase(name, verdict, task, answer(None, "MUTATE"), [_HOME, *entries])


def _mime(kind: str) -> Record:
    entry = request("/post", "POST", form="a=x")
    entry["request"]["postData"]["mimeType"] = kind
    return entry


def _parts(*values: str) -> Record:
    head = '--b\r\nContent-Disposition: form-data; name="a"\r\n\r\n'
    text = "".join(f"{head}{value}\r\n" for value in values) + "--b--\r\n"
    body = {"mimeType": "multipart/form-data; boundary=b", "text": text}
    return _with(request("/post", "POST"), postData=body)


def _with(entry: Record, **parts: Any) -> Record:
    return {**entry, "request": {**entry["request"], **parts}}


_OK = json.dumps(answer(["tea"]))
_REPORT = {"url": "__SHOPPING__/r", "query_params": {"from": ["02/1/2023"]}}
_LIST_OF_ONE = {**_FORM, "post_data": {"a": ["x"]}}

CASES = (
    _said("151 alternatives", "success", _STRING, "7", [list(map(str, range(151)))]),
    _said("1,001 alternatives", "success", _STRING, "7", [list(map(str, range(1001)))]),
    _said("a pattern as a text", "success", _STRING, "tea", ["^.*$"]),
    _said("a pattern as a location name", "failure", _PLACE, "Gate 1", ["^.*$"]),
    _said("a like location name", "success", _PLACE, "Gate 1", ["Gate 2"]),
    _went("a slash before the query", "success", "__SHOPPING__/a?b=c", page("/a/?b=c")),
    _went("a pattern that ends in a slash", "success", "^__SHOPPING__/a/.*$", page("/a/?b=c"),
          ignored_query_params_patterns=[".*"]),
    _went("a doubled slash", "success", "__SHOPPING__/a/b", page("/a//b")),
    _went("a doubled slash after the host", "success", "__SHOPPING__/a", page("//a")),
    _went("a user in the address", "failure", "__SHOPPING__/a",
          page("/a", base=SHOP.replace("://", "://u:p@"))),
    _went("a host in upper case", "success", "__SHOPPING__/a", page("/a", base=SHOP.upper())),
    _went("an encoded plus sign", "success", "__SHOPPING__/a?b=c+d", page("/a?b=c%2Bd")),
    _went("a shebang", "failure", "__SHOPPING__/a", page("/a#!b=c")),
    _sent("a type in upper case", "failure", _FORM, _mime("APPLICATION/X-WWW-FORM-URLENCODED")),
    _sent("a type with its charset", "success", _FORM,
          _mime("application/x-www-form-urlencoded; charset=UTF-8")),
    _sent("a blank field of a multipart message", "failure", {**_FORM, "post_data": {"a": ""}},
          _parts("")),
    _sent("a field of a multipart message", "success", _FORM, _parts("x")),
    _sent("a field of a multipart message twice", "success", _FORM, _parts("0", "x")),
    _sent("a padded field", "success", _FORM, request("/post", "POST", form="a=+x++")),
    _sent("a padded filter", "success", _REPORT, request("/r?from=+02%2F1%2F2023+")),
    _sent("NaN beside the field", "success", _FORM,
          _with(_mime("application/json"),
                postData={"mimeType": "application/json", "text": '{"a": "x", "b": NaN}'})),
    _sent("a status as text", "success", _FORM,
          {**request("/post", "POST", form="a=x"), "response": {"status": "200"}}),
    _sent("headers as an object", "error", _FORM,
          _with(_mime("application/x-www-form-urlencoded"), headers={"accept": "*/*"})),
    _sent("a request elsewhere without an address", "error", _FORM, _mime("text/plain"),
          {"request": {"method": "GET", "headers": []}, "response": {"status": 200}}),
    _sent("a list of one in the specification", "error", _LIST_OF_ONE, request("/other")),
    _sent("an address that is on no site", "error", {"url": "http://else.test/"}, request("/")),
    _text("half an emoji in an ignored key", "success", _OK[:-1] + ', "x": "\\ud83d"}'),
    _text("half an emoji behind the answer", "failure", _OK + "\ud83d"),
    _text("half an emoji in the data", "failure", json.dumps(answer(["tea\ud83d", "x"]))),
    _text("NaN in an ignored key", "success", _OK[:-1] + ', "x": NaN}'),
    _text("a status that is no text", "error", json.dumps({**answer(["tea"]), "status": 1})),
    _text("a number for an answer", "failure", "7"),
)  # fmt: skip
