"""A run that a task's specification must accept, built from the specification alone.

The answer repeats what is expected (the first of alternatives, a text that matches a pattern), and
every network check gets one request that has all that it asks for. Then the evaluator judges the
run: if it fails, no run can be built that way, and the failing assertion says why.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

import msgspec
from msgspec import UNSET, Struct

from trajudge.rules.audit.verified.expectations import (
    Unsatisfiable,
    encoded,
    expected_data,
    expected_document,
    matching_text,
    posted,
    rendered,
)
from trajudge.rules.values import Mode
from trajudge.rules.verdict import Outcome, Verdict
from trajudge.rules.verified.dataset import (
    AnswerCheck,
    BackendCheck,
    Check,
    NetworkCheck,
    Task,
    placeholder,
    placeholders,
)
from trajudge.rules.verified.evaluator import VerifiedEvaluator
from trajudge.rules.verified.network.addresses import expected_query
from trajudge.rules.verified.network.events import Trace
from trajudge.rules.verified.network.kinds import RequestKind, usual_kind
from trajudge.rules.verified.network.patterns import HOLE, fullmatch, is_pattern
from trajudge.rules.verified.network.read import trace_of_list
from trajudge.rules.verified.network.sites import DEFAULT_PORTS, FOLDERS

Entry = dict[str, Any]
_BODILESS = frozenset({"GET", "HEAD"})
_PAGE = {
    "accept": "text/html,application/xhtml+xml",
    "sec-fetch-dest": "document",
    "sec-fetch-mode": "navigate",
    "sec-fetch-user": "?1",
}
_SCRIPT = {
    "accept": "application/json, text/javascript, */*; q=0.01",
    "sec-fetch-dest": "empty",
    "sec-fetch-mode": "cors",
    "x-requested-with": "XMLHttpRequest",
}


class SyntheticRun(Struct, frozen=True, kw_only=True):
    """An answer, HAR entries, and where the sites were."""

    answer: dict[str, Any]
    entries: tuple[Entry, ...]
    hosts: Mapping[str, tuple[str, ...]]

    @property
    def trace(self) -> Trace:
        """The entries as a trace."""
        return trace_of_list(self.entries, "synthetic")


class Synthesis(Struct, frozen=True, kw_only=True):
    """The run, if one could be built, and what the evaluator says of it, or why there is none."""

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
    """Return a run that passes in a mode, or the reason why none does. Backend checks are left
    out."""
    hosts = hosts_for(task)
    try:
        run = SyntheticRun(answer=_answer(task, hosts), entries=_entries(task, hosts), hosts=hosts)
    except Unsatisfiable as error:
        return Synthesis(run=None, verdict=None, reason=str(error))
    offline = _without_state(task)
    verdict = VerifiedEvaluator(mode=mode, hosts=hosts).evaluate(offline, run.answer, run.trace)
    return Synthesis(run=run, verdict=verdict, reason="; ".join(verdict.reasons))


def _without_state(task: Task) -> Task:
    """Return the task without what only a site's own state can decide: checks of it, and an answer
    of which only the shape is known."""
    kept = tuple(map(_known, (one for one in task.eval if not isinstance(one, BackendCheck))))
    return msgspec.structs.replace(task, eval=kept) if kept else task


def _known(check: Check) -> Check:
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
    """Return a visit to every site of the task, then what the checks ask for, the last page
    last."""
    made = [
        _entry(hosts[placeholder(site)][0] + "/", "GET", 200, dict(_PAGE)) for site in task.sites
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
    """Return one request that has everything that a check asks for. Raises Unsatisfiable."""
    expected = check.expected
    if expected.http_method.upper() in _BODILESS and expected.post_data:
        raise Unsatisfiable(
            f"a {expected.http_method} is asked to send {', '.join(expected.post_data)}, and "
            "browsers send none with a body"
        )
    kind = usual_kind(expected.http_method, expected.urls[0])
    headers = dict(_SCRIPT if kind is RequestKind.SCRIPT else _PAGE)
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
        # Where a page's address may go on, the shortest is one that there is.
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
    """Return a text that matches a pattern without a host, moved to the task's first site."""
    name = next(iter(hosts))
    moved = f"{name}/{base.lstrip('/')}"
    if not fullmatch(pattern, moved):
        raise Unsatisfiable(f"no address of {name} matches the pattern {pattern[:200]!r}")
    return moved
