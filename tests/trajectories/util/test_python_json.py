"""What ``json.dump`` writes is read: the standard library is the other side."""

from __future__ import annotations

import io
import json
import math
import time
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.samples import examples
from trajudge.util.jsonl import decode, repaired

ANY = msgspec.json.Decoder(Any)
_PARTS = ["NaN", "-Infinity", '"', "\\", "\\ud83d", "\ud83d", "\ude00", "\U0001f600", ", ", ": "]
texts = st.lists(st.sampled_from(_PARTS) | st.text(max_size=3), max_size=5).map("".join)
values = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers(-(2**70), 2**70) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=20,
)


def dumped(value: object, **options: Any) -> bytes:
    file = io.StringIO()
    json.dump(value, file, **options)
    return file.getvalue().encode()


def expected(value: object) -> object:
    """The value with null for no number, and one mark for half a character."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [expected(item) for item in value]
    if isinstance(value, dict):
        return {expected(name): expected(item) for name, item in value.items()}
    return value


@settings(max_examples=examples(60))
@given(values, st.booleans(), st.sampled_from([None, 2]))
def test_whatever_json_dump_writes_is_read(value: object, mark: bool, indent: int | None) -> None:
    content = b"\xef\xbb\xbf" * mark + dumped(value, indent=indent)
    assert decode(content, ANY) == expected(json.loads(dumped(value)))


@settings(max_examples=examples(40))
@given(values)
def test_what_is_json_already_is_left_as_it_is(value: object) -> None:
    content = dumped(expected(value))
    assert repaired(content) is None or ANY.decode(content) == decode(content, ANY)


@pytest.mark.parametrize(
    ("content", "value"),
    [
        (rb'"\ud83d"', "\ufffd"),
        (rb'"\ud83d\ude00"', "\U0001f600"),
        (rb'"\ude00\ud83d\ud83d\ude00"', "\ufffd\ufffd\U0001f600"),
        (rb'"\\ud83d \\\ud83d"', "\\ud83d \\\ufffd"),
        (
            b'{"a": NaN, "b": [-Infinity, Infinity], "NaN": "say \\"NaN, NaN"}',
            {"a": None, "b": [None, None], "NaN": 'say "NaN, NaN'},
        ),
        (b'\xef\xbb\xbf{"a": 1}', {"a": 1}),
    ],
)
def test_by_example(content: bytes, value: object) -> None:
    assert decode(content, ANY) == value


@pytest.mark.parametrize("content", [b"NaNa", b"[NaN", b'"\xff', b"{nan}", b"-NaN", b""])
def test_what_no_json_dump_writes_stays_a_mistake(content: bytes) -> None:
    with pytest.raises(ValueError):
        decode(content, ANY)


def test_no_number_stays_a_mistake_where_null_would_say_something_else() -> None:
    with pytest.raises(ValueError):
        decode(b"[NaN]", ANY, numbers=False)
    found: object = decode(rb'["\ud83d"]', ANY, numbers=False)
    assert found == ["\ufffd"]


@pytest.mark.parametrize(
    "content",
    [
        b'{"a": NaN, "b": "' + rb"\"" * 500_000,
        b'"NaN' * 250_001,
        rb'"\ud83d' * 200_000,
        b"NaN," * 250_000,
    ],
    ids=["a string without an end", "many strings", "many halves", "many numbers"],
)
def test_damaged_files_take_time_in_proportion_to_their_size(content: bytes) -> None:
    began = time.process_time()
    with pytest.raises(ValueError):
        decode(content, ANY)
    assert time.process_time() - began < 3
