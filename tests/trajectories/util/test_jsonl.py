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
from trajudge.util.errors import UserError
from trajudge.util.jsonl import read_lines

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
