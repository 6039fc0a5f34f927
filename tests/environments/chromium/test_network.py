"""The trace of a run: HAR 1.2 that the network rules read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.environments.chromium.conftest import Open, bid, click
from trajudge.rules.verified.network import load_trace

pytestmark = pytest.mark.browser


def test_a_trace_is_read_by_the_network_rules(at: Open, tmp_path: Path) -> None:
    with at("/form") as session:
        assert session.act(f"fill({bid(session, 'Name')!r}, 'Ann & Bob')") is None
        assert click(session, "Order") is None
        session.observe()
        har = session.har()
    file = tmp_path / "run.har"
    file.write_text(json.dumps(har), encoding="utf-8")
    events = load_trace(file).events
    origin = events[0].url.removesuffix("/form")
    assert [(event.method, event.url.removeprefix(origin), event.status) for event in events] == [
        ("GET", "/form", 200),
        ("POST", "/order", 303),
        ("GET", "/thanks?name=Ann+%26+Bob&size=s", 200),
    ]
    assert events[1].post_data
    assert events[1].post_data.text == "name=Ann+%26+Bob&day=&size=s"
    assert events[1].post_data.mime_type == "application/x-www-form-urlencoded"
    assert [event.is_document() for event in events] == [True, False, True]
    assert [event.is_release_navigation() for event in events] == [True, False, True]


def test_a_trace_holds_no_cookies(at: Open) -> None:
    with at("/form") as session:
        assert click(session, "Order") is None
        assert "run=secret" not in json.dumps(session.har())


def test_requests_stand_in_the_order_in_which_they_were_sent(at: Open) -> None:
    with at("/") as session:
        for name in ("Slow", "Form"):
            assert click(session, name) is None
            assert session.act("go_back()") is None
        entries = session.har()["log"]["entries"]
    paths = [entry["request"]["url"].partition("localhost")[2] for entry in entries]
    assert [path for path in paths if path != "/"] == ["/slow", "/form"]
    assert entries == sorted(entries, key=lambda entry: entry["startedDateTime"])
    for entry in entries:
        assert entry["time"] == pytest.approx(sum(entry["timings"].values()), abs=0.01)


def test_what_was_refused_is_in_the_trace(at: Open) -> None:
    with at("/outside") as session:
        session.act(f"click({bid(session, 'Away')!r})")
        entries = session.har()["log"]["entries"]
    [refused] = [entry for entry in entries if entry["request"]["url"].endswith("/secret")]
    assert refused["response"]["status"] == -1 and refused["_error"] == "net::ERR_ABORTED"
