"""Pickles read as data: nothing that a pickle names is ever imported, created or called.

A pickle is a program for a small stack machine. This module interprets that program itself, with
plain containers and scalars as the only things it can build. Every class or function that the
pickle names stays a name (``inert.Global``); an instance of a class becomes an ``inert.Record``
with the class's name and the arguments and attributes as data. Safety rests on that alone;
``trajectories.pickles.objects`` says which pickles are refused besides, as ones that mean to run
something. Persistent ids, extension codes and out-of-band buffers need code of the reader's:
refused too.

Sets are read as lists and frozensets as tuples, so that nothing foreign is ever hashed but
dictionary keys, and these must be plain.

Bounds: bytes after decompression, and opcodes; every opcode builds one small object at most, and
nothing recurses, so memory and time are linear in the two.
"""

from __future__ import annotations

import gzip
import pickletools
import zlib
from collections.abc import Callable
from pathlib import Path

from trajudge.trajectories.pickles.objects import (
    BadPickle,
    PickledObject,
    UnsafePickle,
    new_object,
    reduce_call,
    resolve_global,
)
from trajudge.trajectories.util.safe_files import DataFolder, UnsafeFile, open_regular

MAX_BYTES = 128 * 2**20
MAX_OPCODES = 5_000_000


def read_pickle(
    path: Path, *, max_bytes: int = MAX_BYTES, folder: DataFolder | None = None
) -> object:
    """Read the content of a pickle file, gzipped if its name ends in ``.gz``, as data.

    Raises BadPickle (damaged, outside of ``folder``, larger than ``max_bytes`` as it stands or
    decompressed), UnsafePickle, OSError.
    """
    try:
        with folder.open(path, max_bytes) if folder else open_regular(path, max_bytes) as raw:
            file = gzip.GzipFile(fileobj=raw) if path.suffix == ".gz" else raw
            content = file.read(max_bytes + 1)
    except UnsafeFile as error:
        raise BadPickle(str(error)) from None
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise BadPickle(f"it is not whole gzip data ({error})") from None
    if len(content) > max_bytes:
        raise BadPickle(f"it holds more than {max_bytes:,} bytes when decompressed")
    return loads(content)


def loads(content: bytes, *, max_opcodes: int = MAX_OPCODES) -> object:
    """Decode the object that a pickle describes, as dict, list, tuple, scalars, Global and
    PickledObject.

    Raises BadPickle, UnsafePickle.
    """
    machine = _Machine()
    try:
        for count, (opcode, argument, _) in enumerate(pickletools.genops(content)):
            if count >= max_opcodes:
                raise BadPickle(f"it has more than {max_opcodes:,} opcodes")
            machine.step(opcode.name, argument)
        return machine.stack.pop()
    except (IndexError, KeyError, TypeError, AttributeError) as error:
        raise BadPickle(f"it is damaged ({type(error).__name__})") from None
    except BadPickle:
        raise
    except (ValueError, OverflowError) as error:  # genops, on what is no pickle
        raise BadPickle(f"it is damaged ({str(error)[:200]})") from None


class _Machine:
    """The stack machine of the pickle protocols 0 to 5."""

    def __init__(self) -> None:
        self.stack: list[object] = []
        self.outer: list[list[object]] = []
        self.memo: dict[int, object] = {}

    def step(self, name: str, argument: object) -> None:
        if name in _LITERALS:
            self.stack.append(argument)
        elif name in _PUTS:
            self.memo[_index(argument)] = self.stack[-1]
        elif name in _GETS:
            self.stack.append(self.memo[_index(argument)])
        elif name in _CONSTANTS:
            self.stack.append(_CONSTANTS[name])
        elif name in _FRESH:
            self.stack.append(_FRESH[name]())
        elif name in _HANDLERS:
            _HANDLERS[name](self, argument)
        elif name not in {"PROTO", "FRAME", "STOP"}:
            raise UnsafePickle(f"it wants code of the reader's to run (opcode {name})")

    def since_mark(self) -> list[object]:
        """Take the objects since the last mark off the stack."""
        top = self.stack
        self.stack = self.outer.pop()
        return top

    def take(self, count: int) -> list[object]:
        """Take the last ``count`` objects off the stack."""
        if len(self.stack) < count:
            raise BadPickle("it is damaged (stack underflow)")
        top = self.stack[len(self.stack) - count :]
        del self.stack[len(self.stack) - count :]
        return top

    def mark(self, _: object) -> None:
        self.outer.append(self.stack)
        self.stack = []

    def pop(self, _: object) -> None:
        if self.stack:
            self.stack.pop()
        else:
            self.since_mark()

    def pop_mark(self, _: object) -> None:
        self.since_mark()

    def list_(self, _: object) -> None:
        elements = self.since_mark()
        self.stack.append(elements)

    def tuple_(self, _: object) -> None:
        elements = tuple(self.since_mark())
        self.stack.append(elements)

    def dict_(self, _: object) -> None:
        entries = _pairs(self.since_mark())
        self.stack.append(entries)

    def memoize(self, _: object) -> None:
        self.memo[len(self.memo)] = self.stack[-1]

    def extend(self, elements: list[object]) -> None:
        target = self.stack[-1]
        if isinstance(target, PickledObject):
            if target.elements is None:
                target.elements = []
            target = target.elements
        if not isinstance(target, list):
            raise BadPickle("it is damaged (elements for what is no list)")
        target.extend(elements)

    def update(self, flat: list[object]) -> None:
        target = self.stack[-1]
        if isinstance(target, PickledObject):
            if target.items is None:
                target.items = {}
            target = target.items
        if not isinstance(target, dict):
            raise BadPickle("it is damaged (entries for what is no dictionary)")
        target.update(_pairs(flat))

    def build(self, _: object) -> None:
        (state,) = self.take(1)
        target = self.stack[-1]
        if not isinstance(target, PickledObject):
            raise BadPickle("it is damaged (attributes for what is no instance)")
        target.state = state

    def stack_global(self, _: object) -> None:
        module, name = self.take(2)
        self.stack.append(resolve_global(module, name))

    def global_(self, argument: object) -> None:
        module, _, name = str(argument).partition(" ")
        self.stack.append(resolve_global(module, name))

    def inst(self, argument: object) -> None:
        module, _, name = str(argument).partition(" ")
        arguments = tuple(self.since_mark())
        self.stack.append(reduce_call(resolve_global(module, name), arguments))

    def obj(self, _: object) -> None:
        target, *arguments = self.since_mark()
        self.stack.append(reduce_call(target, tuple(arguments)))

    def reduce(self, _: object) -> None:
        target, arguments = self.take(2)
        self.stack.append(reduce_call(target, arguments))

    def new(self, _: object) -> None:
        self.stack.append(new_object(*self.take(2)))

    def new_ex(self, _: object) -> None:
        target, arguments, _keywords = self.take(3)
        self.stack.append(new_object(target, arguments))


def _index(argument: object) -> int:
    if not isinstance(argument, int):
        raise BadPickle("it is damaged (memo index)")
    return argument


def _pairs(flat: list[object]) -> dict[object, object]:
    if len(flat) % 2:
        raise BadPickle("it is damaged (a key without a value)")
    keys = flat[::2]
    for key in keys:
        parts = key if type(key) is tuple and len(key) <= 16 else (key,)
        if not all(_plain_key(part) for part in parts):
            raise BadPickle("it has a dictionary key that is no plain value")
    return dict(zip(keys, flat[1::2], strict=True))


def _plain_key(value: object) -> bool:
    # Larger integers share hash values at will, which makes a dictionary quadratic.
    if isinstance(value, int):
        return abs(value) < 2**60
    return value is None or isinstance(value, str | bytes | float | PickledObject)


_LITERALS = frozenset(
    [
        "INT",
        "BININT",
        "BININT1",
        "BININT2",
        "LONG",
        "LONG1",
        "LONG4",
        "FLOAT",
        "BINFLOAT",
        "STRING",
        "BINSTRING",
        "SHORT_BINSTRING",
        "BINBYTES",
        "SHORT_BINBYTES",
        "BINBYTES8",
        "BYTEARRAY8",
        "UNICODE",
        "BINUNICODE",
        "SHORT_BINUNICODE",
        "BINUNICODE8",
    ]
)
_PUTS = frozenset({"PUT", "BINPUT", "LONG_BINPUT"})
_GETS = frozenset({"GET", "BINGET", "LONG_BINGET"})
_CONSTANTS: dict[str, object] = {
    "NONE": None,
    "NEWTRUE": True,
    "NEWFALSE": False,
    "EMPTY_TUPLE": (),
}
_FRESH: dict[str, Callable[[], object]] = {
    "EMPTY_LIST": list,
    "EMPTY_DICT": dict,
    "EMPTY_SET": list,
}
_HANDLERS: dict[str, Callable[[_Machine, object], None]] = {
    "MARK": _Machine.mark,
    "POP": _Machine.pop,
    "POP_MARK": _Machine.pop_mark,
    "DUP": lambda m, _: m.stack.append(m.stack[-1]),
    "MEMOIZE": _Machine.memoize,
    "LIST": _Machine.list_,
    "TUPLE": _Machine.tuple_,
    "FROZENSET": _Machine.tuple_,
    "TUPLE1": lambda m, _: m.stack.append(tuple(m.take(1))),
    "TUPLE2": lambda m, _: m.stack.append(tuple(m.take(2))),
    "TUPLE3": lambda m, _: m.stack.append(tuple(m.take(3))),
    "DICT": _Machine.dict_,
    "APPEND": lambda m, _: m.extend(m.take(1)),
    "APPENDS": lambda m, _: m.extend(m.since_mark()),
    "ADDITEMS": lambda m, _: m.extend(m.since_mark()),
    "SETITEM": lambda m, _: m.update(m.take(2)),
    "SETITEMS": lambda m, _: m.update(m.since_mark()),
    "BUILD": _Machine.build,
    "STACK_GLOBAL": _Machine.stack_global,
    "GLOBAL": _Machine.global_,
    "INST": _Machine.inst,
    "OBJ": _Machine.obj,
    "REDUCE": _Machine.reduce,
    "NEWOBJ": _Machine.new,
    "NEWOBJ_EX": _Machine.new_ex,
}
