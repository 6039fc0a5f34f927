"""Traces in every kind of file, read and written; a bad or hostile file is one sentence."""

from __future__ import annotations

import gzip
import json
import os
import zipfile
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.rules.verified.tasks import page, request
from trajudge.rules import har as unpacking
from trajudge.rules.har import (
    STATIC_SUFFIXES,
    RecordedRequest,
    RecordedResponse,
    har_document,
    har_entry,
    is_static,
    write_har,
    written_body,
)
from trajudge.rules.verified.network import document, load_trace, trace_of_list
from trajudge.rules.verified.runs import run_files
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


def test_half_an_emoji_in_a_text_is_read(tmp_path: Path) -> None:
    text = json.dumps({"log": {"entries": ENTRIES, "comment": "\ud83d"}})
    assert len(load_trace(_har(tmp_path, text)).events) == 3


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


def _har_of_bodies(*places: str, more: str = "") -> bytes:
    """Return a HAR with one request for each place of a body."""
    entries = [request(f"/{n}", "POST") for n in range(len(places))]
    for entry, place in zip(entries, places, strict=True):
        entry["request"]["postData"] = {"mimeType": "text/plain", "text": "", "_file": place}
    return json.dumps({"log": {"entries": entries or [page("/")], "comment": more}}).encode()


def _zip_of(path: Path, files: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return path


def _bodies(path: Path) -> list[str | None]:
    bodies = [event.post_data for event in load_trace(path).events]
    return [body.text if body else None for body in bodies]


def test_a_body_is_read_only_beside_its_har(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("secret")
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "own.txt").write_text("own")
    (folder / "link.txt").symlink_to(tmp_path / "secret.txt")
    os.mkfifo(folder / "pipe.txt")
    absolute = str(tmp_path / "secret.txt")
    places = ("own.txt", "../secret.txt", absolute, "link.txt", "pipe.txt", "..", "none.txt")
    (folder / "network.har").write_bytes(_har_of_bodies(*places))
    assert _bodies(folder / "network.har") == ["own", *[None] * 6]
    events = load_trace(folder / "network.har").events
    assert [event.post_recorded for event in events] == [True, *[False] * 6]


def test_a_body_in_an_archive_is_none_of_the_disk_s(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("secret")
    places = ("own.txt", "../secret.txt", "secret.txt")
    files = {"in/har.har": _har_of_bodies(*places), "in/own.txt": b"own", "../secret.txt": b"x"}
    assert _bodies(_zip_of(tmp_path / "network.har.zip", files)) == ["own", None, None]


@pytest.mark.parametrize("suffix", ["gz", "zip"])
def test_what_unpacks_to_too_much_is_one_sentence(
    tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unpacking, "MAX_UNPACKED", 2**20)
    bomb, path = _har_of_bodies(more="x" * 2**22), tmp_path / f"network.har.{suffix}"
    if suffix == "gz":
        path.write_bytes(gzip.compress(bomb))
    else:
        _zip_of(path, {"har.har": bomb})
    assert path.stat().st_size < 10_000
    with pytest.raises(UserError, match=r"har unpacks to more than 1 MiB: trim the trace"):
        load_trace(path)


def test_one_small_file_cannot_stand_for_endless_bodies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unpacking, "MAX_BODY", 2**20)
    monkeypatch.setattr(unpacking, "MAX_BODIES", 3 * 2**20)
    files = {"har.har": _har_of_bodies(*["body.txt"] * 9, "huge.txt"), "body.txt": b"x" * 2**20}
    files["huge.txt"] = b"x" * (2**20 + 1)
    read = _bodies(_zip_of(tmp_path / "network.har.zip", files))
    assert [text is not None for text in read] == [True] * 3 + [False] * 7
    written = [msgspec.Raw(b'{"text": "a"}'.ljust(2**20 + more)) for more in (0, 1)]
    assert [written_body(raw) is not None for raw in written] == [True, False]


def _broken(path: Path, kind: str) -> Path:
    whole = gzip.compress(_har_of_bodies(more=os.urandom(3000).hex()))
    if kind == "cut gz":
        path.write_bytes(whole[: len(whole) // 2])
    elif kind == "gz of text":
        path.write_bytes(gzip.compress(b"<html>"))
    elif kind == "two hars":
        _zip_of(path, {"a.har": _har_of_bodies(), "b.har": _har_of_bodies()})
    elif kind == "no har":
        _zip_of(path, {"a.txt": b"x"})
    else:
        data = bytearray(
            _zip_of(path, {"har.har": _har_of_bodies(more=os.urandom(999).hex())}).read_bytes()
        )
        if kind == "encrypted":
            for start in (b"PK\x03\x04", b"PK\x01\x02"):
                at = data.index(start)
                data[at + (6 if start[2] == 3 else 8)] |= 1
        elif kind == "cut zip":
            data = data[: len(data) // 2]
        else:
            data[80:200] = b"x" * 120
        path.write_bytes(bytes(data))
    return path


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        ("cut gz", "a damaged .gz file"),
        ("gz of text", "no HAR file"),
        ("two hars", "holds several .har files"),
        ("no har", r"holds no trace\.network and no \.har file"),
        ("encrypted", "a damaged .zip file: .*encrypted"),
        ("cut zip", "a damaged .zip file"),
        ("spoilt zip", "a damaged .zip file"),
    ],
)
def test_a_broken_file_is_one_sentence(tmp_path: Path, kind: str, sentence: str) -> None:
    path = _broken(tmp_path / "network.har.zip", kind)
    with pytest.raises(UserError, match=sentence) as caught:
        load_trace(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


@given(st.binary(max_size=300), st.sampled_from(["", "PK\x03\x04", "PK\x05\x06", "\x1f\x8b\x08"]))
def test_nothing_but_a_user_error_comes_out_of_any_file(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, start: str
) -> None:
    path = tmp_path_factory.mktemp("any") / "network.har"
    path.write_bytes(start.encode("latin-1") + data)
    with pytest.raises(UserError):
        load_trace(path)


@pytest.mark.parametrize(
    "name",
    ["network.har", "network.har.zip", "network.har.gz", "network.zip", "trace.zip"],
)
def test_a_run_folder_may_hold_its_trace_in_any_of_these(tmp_path: Path, name: str) -> None:
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / name).write_bytes(b"")
    assert run_files(tmp_path, 7).trace == tmp_path / "7" / name


def test_lengths_of_any_kind_upset_nothing() -> None:
    lengths: list[Any] = ["5", "-1", "٣", "²", "9" * 5000, "", None, -1, 3, 2.5, [1]]
    sent = []
    for length in lengths:
        entry = request("/x", "POST")
        entry["request"]["bodySize"] = length
        entry["request"]["headers"] = [{"name": "Content-Length", "value": str(length)}]
        sent.append(not trace_of_list([entry]).events[0].post_recorded)
    assert sent == [True, False, True, False, True, False, False, False, True, False, False]


@pytest.mark.parametrize(
    ("params", "size", "text"),
    [([], 0, ""), ([], 3, None), ([{"name": "a", "value": "1"}], 0, None)],
)
def test_a_blank_body_was_not_recorded_if_anything_was_sent(
    params: list[dict[str, str]], size: int, text: str | None
) -> None:
    entry = request("/x", "POST", form="")
    entry["request"]["bodySize"] = size
    entry["request"]["postData"]["params"] = params
    body = trace_of_list([entry]).events[0].post_data
    assert body is not None
    assert body.text == text


_PIECES = st.sampled_from(
    [*STATIC_SUFFIXES, "http://", "https:", "//", "/", "a.b", ":80", "[::1]", "?", "#", ";", "%2e",
     " ", "\n", "\t", "é", "／", "@", "q=a.css", "HTTP://A", "\x00"]
)  # fmt: skip


@given(st.lists(_PIECES, max_size=7).map("".join))
@example("http://a.b/x.css?y#z")
@example("http://a.js")
@example("http://a.b/x.css\n")
def test_an_address_is_static_by_its_path(url: str) -> None:
    try:
        said = urlsplit(url).path.endswith(STATIC_SUFFIXES)
    except ValueError:
        said = False
    assert is_static(url) is said


@pytest.mark.parametrize("url", ["http://a.b/x.PNG", "http://a.b/x.png/", "http://a.b/?x=y.png"])
def test_what_only_looks_so_is_not(url: str) -> None:
    assert not is_static(url)


REQUEST = RecordedRequest(
    method="POST",
    url="http://shop.test/cart?x=1",
    headers={"Content-Type": "application/json", "Cookie": "secret", "Authorization": "secret"},
    body='{"a": "€"}',
    response=RecordedResponse(status=302, headers={"Location": "/", "Set-Cookie": "secret"}),
    started="2026-01-01T00:00:00+00:00",
    total=120.4567,
    wait=20.1,
    resource_type="Fetch",
)


def test_an_entry_has_its_times_in_milliseconds_and_no_secrets() -> None:
    entry = har_entry(REQUEST)
    assert entry.pop("request")["bodySize"] == 12  # the sign of the euro has three bytes
    assert entry == {
        "startedDateTime": "2026-01-01T00:00:00+00:00",
        "time": 120.457,
        "response": {
            "status": 302,
            "statusText": "",
            "httpVersion": "HTTP/1.1",
            "cookies": [],
            "headers": [{"name": "Location", "value": "/"}],
            "content": {"size": 0, "mimeType": ""},
            "redirectURL": "/",
            "headersSize": -1,
            "bodySize": -1,
        },
        "cache": {},
        "timings": {"send": 0, "wait": 20.1, "receive": 100.357},
        "_resourceType": "fetch",
    }


@pytest.mark.parametrize(
    ("name", "start"),
    [("network.har", b"{"), ("network.har.gz", b"\x1f\x8b"), ("network.har.zip", b"PK")],
)
def test_what_is_written_is_read_and_the_same_every_time(
    tmp_path: Path, name: str, start: bytes
) -> None:
    har = har_document([har_entry(REQUEST)], "1")
    assert "secret" not in str(har)
    for folder in ("one", "two"):
        write_har(tmp_path / folder / name, har)
    assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    assert (tmp_path / "one" / name).read_bytes().startswith(start)
    (event,) = load_trace(tmp_path / "one" / name).events
    assert (event.method, event.url, event.status) == ("POST", REQUEST.url, 302)
    assert document(event.post_data) == {"a": "€"}
    assert event.entry.resource_type == "fetch"


def test_a_place_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="name another place"):
        write_har(tmp_path / "file" / "network.har", {})
