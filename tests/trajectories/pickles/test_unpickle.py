"""Pickles are data: what is read, what is refused, and that nothing ever runs."""

from __future__ import annotations

import contextlib
import datetime
import gzip
import pickle
import struct
import subprocess
import sys
from collections import OrderedDict, defaultdict
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trajudge.trajectories.pickles import (
    BadPickle,
    PickledObject,
    UnsafePickle,
    loads,
    mapping,
    number,
    read_pickle,
)

PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary(),
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(st.text() | st.integers(0, 99), inner)
        | st.tuples(inner, inner)
    ),
    max_leaves=20,
)


@given(PLAIN, st.sampled_from([3, 4, 5]))
def test_plain_data_comes_back_as_it_was(value: object, protocol: int) -> None:
    assert loads(pickle.dumps(value, protocol)) == value


@pytest.mark.parametrize("protocol", range(6))
def test_every_protocol_is_read(protocol: int) -> None:
    value: dict[str, object] = {
        "list": [1, -70000, 2**80, 1.5, True, None],
        "pair": (1, ("é\n", [])),
        "shared": [],
    }
    value["again"] = value["shared"]
    copy: Any = loads(pickle.dumps(value, protocol))
    assert copy == value
    assert copy["again"] is copy["shared"]


def test_a_loop_is_read() -> None:
    value: list[object] = []
    value.append(value)
    copy: Any = loads(pickle.dumps(value))
    assert copy[0] is copy


def test_sets_are_lists_and_frozensets_tuples() -> None:
    assert loads(pickle.dumps([{7}, frozenset({8})], 4)) == [[7], (8,)]


class Thing:
    def __init__(self) -> None:
        self.colour = "red"


class Slotted:
    __slots__ = ("size",)

    def __init__(self) -> None:
        self.size = 3


class Words(list[str]):
    pass


@pytest.mark.parametrize("protocol", range(6))
def test_an_instance_is_an_inert_record(protocol: int) -> None:
    thing = loads(pickle.dumps(Thing(), protocol))
    assert isinstance(thing, PickledObject)
    assert thing.name == f"{__name__}.Thing"
    assert mapping(thing) == {"colour": "red"}


def test_slots_subclasses_and_mappings_keep_their_content() -> None:
    assert mapping(loads(pickle.dumps(Slotted()))) == {"size": 3}
    assert mapping(loads(pickle.dumps(OrderedDict(a=1)))) == {"a": 1}
    assert mapping(loads(pickle.dumps(defaultdict(list, {"a": [1]})))) == {"a": [1]}
    words = loads(pickle.dumps(Words(["a", "b"])))
    assert isinstance(words, PickledObject)
    assert words.elements == ["a", "b"]


def test_paths_and_dates_are_records_with_their_arguments() -> None:
    path = loads(pickle.dumps(PurePosixPath("a/b")))
    assert isinstance(path, PickledObject)
    assert (path.name, "/".join(map(str, path.args))) == ("pathlib.PurePosixPath", "a/b")
    of_3_13 = b"\x80\x02cpathlib._local\nPurePosixPath\nq\x00X\x03\0\0\0a/bq\x01\x85q\x02Rq\x03."
    path = loads(of_3_13)
    assert isinstance(path, PickledObject), "Python 3.13 keeps its paths elsewhere"
    assert (path.name, path.args) == ("pathlib.PurePosixPath", ("a/b",))
    date = loads(pickle.dumps(datetime.datetime(2025, 1, 2)))
    assert isinstance(date, PickledObject)
    assert date.name == "datetime.datetime"


@pytest.mark.parametrize("protocol", [2, 4, 5])
@pytest.mark.parametrize("kind", ["int64", "int32", ">i4", "uint8", "float32", "float64", "bool"])
def test_the_first_number_of_an_array_or_scalar(kind: str, protocol: int) -> None:
    array = np.array([1, 0], dtype=kind)
    if protocol > 2:  # protocol 2 writes bytes as a call of _codecs.encode, which stays a record
        assert number(loads(pickle.dumps(array, protocol))) == 1
        assert number(loads(pickle.dumps(array[0], protocol))) == 1
    assert number(loads(pickle.dumps(np.array(["text"]), protocol))) is None


def test_what_is_no_number_is_none() -> None:
    assert [number(value) for value in (2, 2.5, [2], "2", None, PickledObject("a.B"))] == [
        *(2, 2.5, 2),
        *[None] * 3,
    ]


class Runs:
    """Pickles as a call of ``function`` on ``arguments``."""

    def __init__(self, function: Callable[..., object], *arguments: object) -> None:
        self.call = (function, arguments)

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return self.call


def _hostile(marker: Path) -> dict[str, bytes]:
    """Real pickles, each of which makes the marker file (or tries to) when really loaded."""
    import copyreg
    import functools
    import os
    import runpy

    command = f"touch {marker}"
    touch = f"open({str(marker)!r}, 'w')"
    script = marker.with_suffix(".py")
    script.write_text(touch)
    return {
        "os.system": pickle.dumps(Runs(os.system, command)),
        "os.system, protocol 0": pickle.dumps(Runs(os.system, command), 0),
        "subprocess.Popen": pickle.dumps(Runs(subprocess.Popen, ["touch", str(marker)])),
        "eval": pickle.dumps(Runs(eval, touch)),
        "exec inside a list": pickle.dumps([1, {"a": Runs(exec, touch)}]),
        "open": pickle.dumps(Runs(open, str(marker), "w")),
        "partial": pickle.dumps(functools.partial(os.system, command)),
        "runpy": pickle.dumps(Runs(runpy.run_path, str(script))),
        "getattr": pickle.dumps(Runs(getattr, Thing, "__init__")),
        "numpy.load": pickle.dumps(Runs(np.load, str(marker), None, True)),
        "python 2 builtins": b"c__builtin__\neval\n(V" + touch.encode() + b"\ntR.",
        "INST": b"(Vtouch " + str(marker).encode() + b"\nios\nsystem\n.",
        "OBJ": b"(cos\nsystem\nVtouch " + str(marker).encode() + b"\no.",
        "dotted": _stack_global("builtins", "exec.__call__") + b"(\x8c\x01atR.",
        "dotted in a known module": _stack_global("datetime", "sys.modules") + b".",
        "submodule": _stack_global("os.path", "os") + b".",
        "foreign base": pickle.dumps(Runs(copyreg._reconstructor, Thing, list, [])),  # type: ignore[attr-defined]
        "call of a record": pickle.dumps(Thing(), 2)[:-1] + b"(tR.",
        "persistent id": b"Vos.system\nQ.",
        "persistent id, text": b"Pos.system\n.",
        "extension code": b"\x82\x01.",
        "extension code, wide": b"\x84\x01\x02\x03\x04.",
        "out-of-band buffer": b"\x80\x05\x97.",
        "a name that is no text": b"]\x8c\x06system\x93.",
        "third-party function": b"ctorch._utils\n_rebuild_tensor\n(tR.",
    }


def _stack_global(module: str, name: str) -> bytes:
    parts = (part.encode() for part in (module, name))
    return b"\x80\x04" + b"".join(b"\x8c" + bytes([len(p)]) + p for p in parts) + b"\x93"


def test_a_pickle_that_tries_to_run_anything_is_refused_and_nothing_ran(tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    for name, data in _hostile(marker).items():
        with pytest.raises(UnsafePickle):
            assert loads(data) is UnsafePickle, name
    assert not marker.exists()


def test_the_hostile_pickles_are_really_hostile(tmp_path: Path) -> None:
    """Python's own unpickler runs them: what the test above proves is not an accident."""
    for name in ("os.system", "eval", "INST", "OBJ", "runpy", "open"):
        marker = tmp_path / f"{len(name)}{name}"
        pickle.loads(_hostile(marker)[name])
        assert marker.exists(), name


def test_an_unknown_class_is_neither_imported_nor_made(tmp_path: Path) -> None:
    (tmp_path / "hostile_module.py").write_text(
        f"open({str(tmp_path / 'imported')!r}, 'w')\nclass Made:\n"
        f"    def __init__(self, *a): open({str(tmp_path / 'made')!r}, 'w')\n"
        f"    def __setstate__(self, s): open({str(tmp_path / 'set')!r}, 'w')\n"
    )
    sys.path.insert(0, str(tmp_path))
    try:
        record = loads(b"chostile_module\nMade\n(I1\ntR}V__class__\nI2\nsb.")
    finally:
        sys.path.remove(str(tmp_path))
    assert isinstance(record, PickledObject)
    assert record.args == (1,)
    assert mapping(record) == {"__class__": 2}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["hostile_module.py"]
    assert "hostile_module" not in sys.modules


@pytest.mark.parametrize(
    "data",
    {
        "nothing": b"",
        "no pickle": b"hello",
        "truncated": pickle.dumps({"a": [1, 2]})[:-4],
        "stack underflow": b"\x86.",
        "no stop": b"]",
        "empty": b".",
        "mark never closed": b"t.",
        "memo never set": b"g9\n.",
        "list into a dictionary": b"}](I1\ne(I1\nu.",
        "key without value": b"(I1\nd.",
        "unhashable key": b"}]I1\ns.",
        "attributes of a list": b"]}b.",
        "claims 16 exabytes": b"\x8e" + struct.pack("<Q", 2**63) + b"a.",
    }.items(),
    ids=lambda item: item[0],
)
def test_a_damaged_pickle_is_a_bad_pickle(data: tuple[str, bytes]) -> None:
    with pytest.raises(BadPickle):
        loads(data[1])


def test_bombs_are_bounded(tmp_path: Path) -> None:
    gzipped = tmp_path / "bomb.pkl.gz"
    with gzip.open(gzipped, "wb") as file:
        for _ in range(64):
            file.write(bytes(2**20))
    with pytest.raises(BadPickle, match="more than 1,048,576 bytes"):
        read_pickle(gzipped, max_bytes=2**20)
    with pytest.raises(BadPickle, match="opcodes"):
        loads(b"]" + b"]0" * 1000 + b".", max_opcodes=1000)
    # A memo index in the billions costs one entry, nesting no recursion, sharing no copy.
    assert loads(b"]r\xff\xff\xff\xff.") == []
    assert loads(b"(" * 100_000 + b"t" * 100_000 + b".") is not None
    assert loads(b"K\x01" + b"2\x86" * 200 + b".") is not None
    with pytest.raises(BadPickle, match="no plain value"):
        loads(b"}K\x01" + b"2\x86" * 200 + b"K\x01s.")  # hashing it would take 2^200 steps


def test_a_file_that_is_not_gzip_is_a_bad_pickle(tmp_path: Path) -> None:
    path = tmp_path / "step_0.pkl.gz"
    path.write_bytes(b"not gzip")
    with pytest.raises(BadPickle, match="gzip"):
        read_pickle(path)
    path.write_bytes(gzip.compress(pickle.dumps([1] * 1000))[:-20])
    with pytest.raises(BadPickle):
        read_pickle(path)


@given(st.binary(max_size=60))
def test_garbage_is_read_as_data_or_is_bad(data: bytes) -> None:
    with contextlib.suppress(BadPickle):
        loads(data)


@given(st.data())
def test_a_mutated_pickle_is_read_as_data_or_is_bad(data: st.DataObject) -> None:
    good = pickle.dumps({"a": [Thing(), OrderedDict(b=1), np.arange(3), (1.5, None)]})
    position = data.draw(st.integers(0, len(good) - 1))
    mutated = good[:position] + bytes([data.draw(st.integers(0, 255))]) + good[position + 1 :]
    with contextlib.suppress(BadPickle):
        loads(mutated)
