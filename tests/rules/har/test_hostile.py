"""Files that somebody else packed: nothing outside of them is read, and none is too large."""

from __future__ import annotations

import gzip
import json
import os
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.rules.verified.tasks import page, request
from trajudge.rules import har as unpacking
from trajudge.rules.verified.network import load_trace, trace_of_list
from trajudge.rules.verified.runs import run_files
from trajudge.util.errors import UserError


def _har(*places: str, more: str = "") -> bytes:
    """Return a HAR with one request for each place of a body."""
    entries = [request(f"/{n}", "POST") for n in range(len(places))]
    for entry, place in zip(entries, places, strict=True):
        entry["request"]["postData"] = {"mimeType": "text/plain", "text": "", "_file": place}
    return json.dumps({"log": {"entries": entries or [page("/")], "comment": more}}).encode()


def _zip(path: Path, files: dict[str, bytes]) -> Path:
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
    (folder / "network.har").write_bytes(_har(*places))
    assert _bodies(folder / "network.har") == ["own", *[None] * 6]
    events = load_trace(folder / "network.har").events
    assert [event.post_recorded for event in events] == [True, *[False] * 6]


def test_a_body_in_an_archive_is_none_of_the_disk_s(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("secret")
    places = ("own.txt", "../secret.txt", "secret.txt")
    files = {"in/har.har": _har(*places), "in/own.txt": b"own", "../secret.txt": b"x"}
    assert _bodies(_zip(tmp_path / "network.har.zip", files)) == ["own", None, None]


@pytest.mark.parametrize("suffix", ["gz", "zip"])
def test_what_unpacks_to_too_much_is_one_sentence(
    tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unpacking, "MAX_UNPACKED", 2**20)
    bomb, path = _har(more="x" * 2**22), tmp_path / f"network.har.{suffix}"
    if suffix == "gz":
        path.write_bytes(gzip.compress(bomb))
    else:
        _zip(path, {"har.har": bomb})
    assert path.stat().st_size < 10_000
    with pytest.raises(UserError, match=r"har unpacks to more than 1 MiB: trim the trace"):
        load_trace(path)


def test_one_small_file_cannot_stand_for_endless_bodies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unpacking, "MAX_BODY", 2**20)
    monkeypatch.setattr(unpacking, "MAX_BODIES", 3 * 2**20)
    files = {"har.har": _har(*["body.txt"] * 9, "huge.txt"), "body.txt": b"x" * 2**20}
    files["huge.txt"] = b"x" * (2**20 + 1)
    read = _bodies(_zip(tmp_path / "network.har.zip", files))
    assert [text is not None for text in read] == [True] * 3 + [False] * 7


def _broken(path: Path, kind: str) -> Path:
    whole = gzip.compress(_har(more=os.urandom(3000).hex()))
    if kind == "cut gz":
        path.write_bytes(whole[: len(whole) // 2])
    elif kind == "gz of text":
        path.write_bytes(gzip.compress(b"<html>"))
    elif kind == "two hars":
        _zip(path, {"a.har": _har(), "b.har": _har()})
    elif kind == "no har":
        _zip(path, {"a.txt": b"x"})
    else:
        data = bytearray(_zip(path, {"har.har": _har(more=os.urandom(999).hex())}).read_bytes())
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
