"""Lines out of plain and compressed files, with memory bounded by the longest line allowed."""

from __future__ import annotations

import gzip
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from tests.samples import examples
from trajudge.trajectories.model import Record
from trajudge.util.errors import UserError
from trajudge.util.jsonl import encode, read_lines, read_records

_PACK: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".zst": zstandard.compress,
}


@settings(max_examples=examples(60))
@given(st.lists(st.binary(max_size=30)), st.sampled_from(["", ".gz", ".zst"]))
@example([BOM_UTF8], "")
@example([BOM_UTF8 + b"a", BOM_UTF8], ".gz")
def test_lines_are_those_of_the_file(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], suffix: str
) -> None:
    data = b"\n".join(lines)
    assume(not data.startswith((BOM_UTF16_LE, BOM_UTF16_BE)))
    packed = data if not suffix else _PACK[suffix](data)
    path = tmp_path_factory.mktemp("lines") / f"a.jsonl{suffix}"
    path.write_bytes(packed)
    text = data.removeprefix(BOM_UTF8)
    expected = [(n, line) for n, line in enumerate(text.split(b"\n"), 1) if line.strip()]
    assert [(line.number, line.data) for line in read_lines(path)] == expected


def test_a_line_that_is_too_long_is_named_and_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"a\n" + b"b" * 3_000_000 + b"\nc\n" + b"d" * 100)
    found = list(read_lines(path, max_line_bytes=50))
    assert [(line.number, line.data) for line in found] == [
        (1, b"a"),
        (2, b""),
        (3, b"c"),
        (4, b""),
    ]
    assert "longer than 50 bytes" in found[1].problem
    assert "longer" in found[3].problem


def test_a_file_that_is_not_there_is_the_users_mistake(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be read"):
        list(read_lines(tmp_path / "no.jsonl"))


class Words(Record):
    words: str


FIXES = {"missing": "name another", "damaged": "write it anew"}


@settings(max_examples=examples(60))
@given(st.lists(st.text(st.characters(codec="utf-8"))))
@example(["a\u2028b", "a\u2029b", "a\x85b", "a\x0bb\x0cc\x1cd\re"])
def test_records_are_read_as_they_were_written(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str]
) -> None:
    path = tmp_path_factory.mktemp("records") / "a.jsonl"
    path.write_bytes(b"".join(encode({"words": text}) + b"\n" for text in texts))
    read = read_records(path, Words.model_validate_json, **FIXES)
    assert read == [(n, Words(words=text)) for n, text in enumerate(texts, start=1)]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b'\n{"words": "a"}\n\n{"words": 7}\n', ", line 4: words is 7 (Input should be a valid"),
        (b'{"words": "a"}\n{"words": "b"', ", line 2: the line is not JSON (EOF while parsing"),
        (b'{"words": "\xff"}', ", line 1: the line is not JSON ("),
        (None, ": cannot be read (No such file or directory): name another"),
    ],
)
def test_a_damaged_record_is_named_with_its_line(
    content: bytes | None, sentence: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.jsonl"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UserError) as error:
        read_records(path, Words.model_validate_json, **FIXES)
    assert str(error.value).startswith(f"{path}{sentence}")
    assert str(error.value).endswith("name another" if content is None else "write it anew")
