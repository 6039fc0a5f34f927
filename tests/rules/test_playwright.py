"""What the real Playwright records is read whole: every request, and every body that it kept."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.rules.recordings import NOTE, PRICES, Requests, record
from tests.rules.verified.tasks import mutation
from trajudge.rules.verdict import Outcome
from trajudge.rules.verified.evaluator import VerifiedEvaluator
from trajudge.rules.verified.network import Event, Trace, document, load_trace

pytestmark = [pytest.mark.browser, pytest.mark.slow]

OPTIONS: dict[str, dict[str, Any]] = {
    "attached.har.zip": {"record_har_content": "attach", "record_har_mode": "full"},
    "apart/network.har": {"record_har_content": "attach", "record_har_mode": "minimal"},
    "embedded.har": {"record_har_content": "embed", "record_har_mode": "full"},
    "omitted.har": {"record_har_content": "omit", "record_har_mode": "minimal"},
}
WHOLE = ("attached.har.zip", "apart/network.har", "embedded.har")


@pytest.fixture(scope="module")
def recorded(
    chromium: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, tuple[Path, str, Requests]]:
    """The files by name, each with the server's address and what it heard."""
    folder = tmp_path_factory.mktemp("recorded")
    (folder / "apart").mkdir()
    files = {folder / name: options for name, options in OPTIONS.items()}
    made = record(chromium, files, folder / "trace.zip")
    found = {str(path.relative_to(folder)): (path, *facts) for path, facts in made.items()}
    path, address, heard = found["embedded.har"]
    packed = folder / "embedded.har.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    return {**found, packed.name: (packed, address, heard)}


NAMES = (*OPTIONS, "embedded.har.gz", "trace.zip")


def _event(trace: Trace, path: str) -> Event:
    (event,) = (event for event in trace.events if urlsplit(event.url).path == path)
    return event


@pytest.mark.parametrize("name", NAMES)
def test_every_request_that_the_server_heard_is_an_event(
    recorded: dict[str, tuple[Path, str, Requests]], name: str
) -> None:
    file, address, heard = recorded[name]
    trace = load_trace(file)
    seen = Counter((event.method, event.url.removeprefix(address)) for event in trace.events)
    asked = Counter((method, path) for method, path, _ in heard if path != "/favicon.ico")
    assert seen == asked
    assert [event.url for event in trace.documents] == [f"{address}/tea", f"{address}/done"]
    assert _event(trace, "/cart").status == 302


@pytest.mark.parametrize("name", [*WHOLE, "embedded.har.gz", "trace.zip"])
def test_a_body_is_found_wherever_playwright_keeps_it(
    recorded: dict[str, tuple[Path, str, Requests]], name: str
) -> None:
    file, _, heard = recorded[name]
    trace = load_trace(file)
    assert ("POST", "/note", NOTE) in heard
    assert document(_event(trace, "/note").post_data) == json.loads(NOTE)
    assert document(_event(trace, "/cart").post_data) == {"qty": "2"}
    data = next(event for event in trace.events if urlsplit(event.url).path == "/data")
    assert document(data.content) == json.loads(PRICES)


@pytest.mark.parametrize(
    ("name", "path", "fields", "outcome"),
    [
        ("embedded.har", "/note", {"note": "green"}, Outcome.PASS),
        ("attached.har.zip", "/note", {"note": "green"}, Outcome.PASS),
        ("attached.har.zip", "/note", {"note": "black"}, Outcome.FAIL),
        ("trace.zip", "/note", {"note": "black"}, Outcome.FAIL),
        ("omitted.har", "/cart", {"qty": "2"}, Outcome.PASS),
        ("omitted.har", "/note", {"note": "green"}, Outcome.UNKNOWN),
        # Chromium gives nobody the body of a form with files.
        ("embedded.har", "/file", {"x": "1"}, Outcome.UNKNOWN),
    ],
)
def test_a_body_that_was_not_recorded_leaves_the_check_open(
    recorded: dict[str, tuple[Path, str, Requests]],
    name: str,
    path: str,
    fields: dict[str, str],
    outcome: Outcome,
) -> None:
    file, address, _ = recorded[name]
    status = 302 if path == "/cart" else 200
    expected = {"url": f"__SHOPPING__{path}", "http_method": "POST", "response_status": status}
    task = mutation({"expected": {**expected, "post_data": fields}})
    evaluator = VerifiedEvaluator(hosts={"__SHOPPING__": (address,)})
    said = {"task_type": "mutate", "status": "SUCCESS", "retrieved_data": None}
    verdict = evaluator.evaluate(task, said, load_trace(file))
    assert verdict.outcome is outcome, verdict.reasons
