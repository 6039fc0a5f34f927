"""Traces from every kind of file; a bad one is one sentence."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.rules.verified.tasks import page, request
from trajudge.rules.verified.network import document, load_trace, trace_of_list
from trajudge.util.errors import UserError

ENTRIES = [page("/"), request("/post", "POST", 302, form="a=1"), request("/logo.png?x=1")]


def _har(folder: Path, text: str | bytes | None = None) -> Path:
    path = folder / "network.har"
    made = json.dumps({"log": {"version": "1.2", "entries": ENTRIES}}) if text is None else text
    path.write_bytes(made.encode() if isinstance(made, str) else made)
    return path


def _lines() -> str:
    context = json.dumps({"type": "context-options", "options": {}})
    events = [json.dumps({"type": "resource-snapshot", "snapshot": it}) for it in ENTRIES]
    return "\n".join([context, *events]) + "\n"


def _zip(folder: Path, **files: str) -> Path:
    path = folder / "trace.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name.replace("__", "/").replace("_dot_", "."), text)
    return path


def test_every_kind_of_file_holds_the_same_events(tmp_path: Path) -> None:
    listed = tmp_path / "network.json"
    listed.write_text(json.dumps(ENTRIES))
    bare = tmp_path / "trace.network"
    bare.write_text(_lines())
    files = [_har(tmp_path), listed, bare, _zip(tmp_path, trace_dot_network=_lines())]
    for path in (*files, tmp_path):
        events = load_trace(path).events
        assert [event.url for event in events] == [it["request"]["url"] for it in ENTRIES]
        assert [event.method for event in events] == ["GET", "POST", "GET"]
        assert document(events[1].post_data) == {"a": "1"}
    trace = trace_of_list(ENTRIES)
    assert [event in trace.relevant for event in trace.events] == [True, True, False]


def test_a_byte_order_mark_is_no_part_of_a_har(tmp_path: Path) -> None:
    text = json.dumps({"log": {"entries": ENTRIES}})
    assert len(load_trace(_har(tmp_path, b"\xef\xbb\xbf" + text.encode())).events) == 3


def test_bodies_that_playwright_keeps_apart_are_found(tmp_path: Path) -> None:
    entry = request("/post", "POST")
    entry["request"]["postData"] = {"mimeType": "application/json", "_sha1": "abc.json"}
    line = json.dumps({"type": "resource-snapshot", "snapshot": entry})
    path = _zip(tmp_path, trace_dot_network=line, resources__abc_dot_json='{"a": 1}')
    assert document(load_trace(path).events[0].post_data) == {"a": 1}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"log": {"entries": [{"request": {"method": "GET", "url": "http', "cut off after"),
        ("", "cut off"),
        ("<html>", "no HAR file"),
        ('{"log": {}}', "entries"),
        ('{"log": {"entries": [{"request": {"method": "GET"}}]}}', "url"),
        ('{"log": {"entries": [{"request": {"method": 1, "url": "x"}}]}}', "method"),
        (b'{"log": {"entries": [{"request": {"method": "\xff", "url": "x"}}]}}', "no HAR file"),
        ("[" * 100_000, "no HAR file|cut off"),
    ],
)
def test_a_bad_har_is_one_sentence(tmp_path: Path, text: str | bytes, said: str) -> None:
    path = _har(tmp_path, text)
    with pytest.raises(UserError, match=said) as caught:
        load_trace(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_damaged_zip_is_one_sentence(tmp_path: Path) -> None:
    path = _zip(tmp_path, trace_dot_network=_lines() * 50)
    data = bytearray(path.read_bytes())
    data[60:200] = b"x" * 140
    path.write_bytes(bytes(data))
    with pytest.raises(UserError, match=r"trace\.zip"):
        load_trace(path)
    with pytest.raises(UserError, match=r"holds no trace\.network"):
        load_trace(_zip(tmp_path, other="x"))


def test_a_missing_file_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="No such file"):
        load_trace(tmp_path / "network.har")


@given(st.binary(max_size=200))
def test_bodies_and_headers_of_any_kind_raise_nothing(data: bytes) -> None:
    text = data.decode("latin-1")
    entry: dict[str, Any] = request("/x", "POST", form=text)
    for kind in ("application/json", "multipart/form-data; boundary=a", "", "text/plain"):
        entry["request"]["postData"]["mimeType"] = kind
        event = trace_of_list([entry]).events[0]
        document(event.post_data)
    entry["request"]["headers"] = {"odd": text}
    assert trace_of_list([entry]).events[0].headers == {"odd": text}
