"""The release mode gives the package's verdicts: on runs that once differed, and on drawn ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from tests.conftest import missing
from tests.rules.against_package.changes import ANSWER_CHANGES, REQUEST_CHANGES
from tests.rules.against_package.comparing import SHARES, Comparison
from tests.rules.against_package.peer import PACKAGE, PackageProcess
from tests.rules.verified.tasks import HOSTS, SHOP, answer, page, request
from trajudge.rules.values import Mode
from trajudge.rules.verdict import Outcome
from trajudge.rules.verified.evaluator import VerifiedEvaluator
from trajudge.rules.verified.network import Binding, trace_of_list
from trajudge.rules.verified.release import ERROR, bound_text
from trajudge.rules.verified.runs import TaskResult, result_of
from trajudge.rules.verified.tasks import Task
from trajudge.util.machine import NoEnvironment

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
_URLENCODED = "application/x-www-form-urlencoded"
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
          _with(_mime(_URLENCODED), headers={"accept": "*/*"})),
    _sent("headers as an empty object", "success", _FORM, _with(_mime(_URLENCODED), headers={})),
    _sent("headers as an empty text", "success", _FORM, _with(_mime(_URLENCODED), headers="")),
    _sent("headers as null", "error", _FORM, _with(_mime(_URLENCODED), headers=None)),
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


EVALUATOR = VerifiedEvaluator(mode=Mode.RELEASE, hosts=HOSTS)


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_the_verdict_is_the_package_s(case: ReleaseCase) -> None:
    task = msgspec.convert(case.task, Task)
    verdict = EVALUATOR.evaluate(task, case.answer, trace_of_list(case.entries))
    ended = any(assertion.name == ERROR for assertion in verdict.assertions)
    passed = verdict.outcome is Outcome.PASS
    assert ("success" if passed else "error" if ended else "failure") == case.verdict
    # What stands in a verdict, an agent's half characters included, can be written to a file.
    result = result_of(task, verdict, None, 0.0)
    stored = msgspec.msgpack.decode(msgspec.msgpack.encode(result), type=TaskResult)
    assert stored.outcome is verdict.outcome


FRESH = 5_000


@pytest.fixture(scope="module")
def python() -> Path:
    """An interpreter that has the package: a given one, or an environment made for it."""
    try:
        return PACKAGE.python()
    except NoEnvironment as error:
        missing("package", str(error))
        raise AssertionError("unreachable") from error


@pytest.mark.slow
def test_the_release_mode_gives_the_package_s_verdicts(python: Path) -> None:
    with PackageProcess(python) as process:
        tally = Comparison(process, seed=0, most_shown=5).run(FRESH)
    assert not tally.disagreements, "\n\n".join(map(str, tally.disagreements))
    assert sum(tally.cases.values()) == FRESH
    for label in SHARES:
        verdicts = {verdict for where, verdict in tally.verdicts if where == label}
        assert len(verdicts) >= 3, f"{label}: the cases are all alike"


def test_there_are_many_realistic_changes() -> None:
    assert len(REQUEST_CHANGES) >= 25
    assert len(ANSWER_CHANGES) >= 25


def test_the_verdicts_of_the_known_cases_are_the_package_s(python: Path) -> None:
    hosts = {name: list(urls) for name, urls in HOSTS.items()}
    cases = [{**case._asdict(), "hosts": hosts} for case in CASES]
    with PackageProcess(python) as process:
        replies, _ = process.judge(cases, lambda: None)
    verdicts = {case.name: reply["verdict"] for case, reply in zip(CASES, replies, strict=True)}
    assert verdicts == {case.name: case.verdict for case in CASES}


@pytest.mark.parametrize(
    ("value", "bound"),
    [
        (5, 5),
        ("tea", "tea"),
        (f"see {SHOP}/tea", "see __SHOPPING__/tea"),
        (f"^{SHOP}/tea$", f"^{SHOP}/tea$"),
        ("http://other.example/tea", "http://other.example/tea"),
    ],
)
def test_addresses_in_texts_are_bound_except_in_patterns(value: object, bound: object) -> None:
    assert bound_text(value, Binding(((SHOP, "__SHOPPING__"),))) == bound
