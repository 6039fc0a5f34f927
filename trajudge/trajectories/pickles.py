"""Read pickles as data: names become plain records; nothing that a pickle names is imported,
created or called."""

from __future__ import annotations

import builtins
import gzip
import pickletools
import struct
import sys
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from trajudge.util.files import DataFolder, UnsafeFile, open_regular

# Standard-library names that mere data refers to. They stay names: none is imported.
KNOWN = frozenset(
    {
        *(f"builtins.{name}" for name in ("bool", "bytearray", "bytes", "complex", "dict")),
        *(f"builtins.{name}" for name in ("float", "frozenset", "int", "list", "object", "range")),
        *(f"builtins.{name}" for name in ("set", "slice", "str", "tuple", "Ellipsis")),
        *(f"collections.{name}" for name in ("Counter", "OrderedDict", "defaultdict", "deque")),
        *(f"datetime.{name}" for name in ("date", "datetime", "time", "timedelta", "timezone")),
        *(f"pathlib.{name}" for name in ("Path", "PosixPath", "PurePath", "PurePosixPath")),
        *(f"pathlib.{name}" for name in ("PureWindowsPath", "WindowsPath")),
        "_codecs.encode",
        "copyreg._reconstructor",
        "decimal.Decimal",
        "fractions.Fraction",
        "types.SimpleNamespace",
        "uuid.UUID",
    }
)

# How numpy writes arrays, scalars and dtypes (numpy 1, numpy 2, protocol 5).
NUMPY = frozenset(
    {
        "numpy.dtype",
        *(
            f"numpy.{core}.{name}"
            for core in ("core", "_core")
            for name in ("multiarray._reconstruct", "multiarray.scalar", "numeric._frombuffer")
        ),
    }
)

# Modules with other names in Python 2, and those of paths in Python 3.13.
_ELSEWHERE = {
    "__builtin__": "builtins",
    "copy_reg": "copyreg",
    "exceptions": "builtins",
    "pathlib._local": "pathlib",
}

_PYTHON_2 = {"unicode": "str", "long": "int"}

_STANDARD_LIBRARY = sys.stdlib_module_names | {"commands", "popen2", "urllib2", "cPickle"}


class BadPickle(ValueError):
    """A pickle that cannot be read: damaged, too large, or not a pickle at all."""


class UnsafePickle(BadPickle):
    """A pickle that would execute something; nothing was executed."""


class Global(NamedTuple):
    """A class or function that a pickle names."""

    module: str
    name: str

    def __str__(self) -> str:
        return f"{self.module}.{self.name}"


class PickledObject:
    """An instance in a pickle: class name, constructor arguments, attributes, and the entries of
    a subclass of dict (``items``) or list (``elements``)."""

    __slots__ = ("args", "elements", "items", "name", "state")

    def __init__(self, name: str, args: Sequence[object] = ()) -> None:
        self.name = name
        self.args = args
        self.state: object = None
        self.items: dict[object, object] | None = None
        self.elements: list[object] | None = None

    def __repr__(self) -> str:
        return f"PickledObject({self.name!r})"


def resolve_global(module: object, name: object) -> Global:
    if not isinstance(module, str) or not isinstance(name, str):
        raise UnsafePickle("it looks up a name that is not text")
    name = _PYTHON_2.get(name, name) if module == "__builtin__" else name
    module = _ELSEWHERE.get(module, module)
    if "." in name or not name.isidentifier():
        raise UnsafePickle(f"it looks up the attribute chain {f'{module}.{name}'[:200]!r}")
    target = Global(module, name)
    if module.split(".")[0] in _STANDARD_LIBRARY and str(target) not in KNOWN:
        error = getattr(builtins, name, None) if module == "builtins" else None
        if not (isinstance(error, type) and issubclass(error, BaseException)):
            raise UnsafePickle(f"it names {str(target)[:200]}, which no data needs")
    return target


def reduce_call(target: object, arguments: object) -> PickledObject:
    """Build the object that REDUCE, OBJ or INST would create by calling ``target``; nothing is
    called."""
    if not isinstance(target, Global):
        raise UnsafePickle("it calls an object")
    name = str(target)
    if name == "copyreg._reconstructor":
        match arguments:
            case (Global() as cls, Global("builtins", "object"), None):
                return PickledObject(str(cls))
            case (Global() as cls, Global("builtins", "str" | "int" | "float"), value):
                return PickledObject(str(cls), (value,))
        raise UnsafePickle("it rebuilds an object through a foreign base class")
    if not (name in KNOWN or name in NUMPY or target.name.lstrip("_")[:1].isupper()):
        raise UnsafePickle(f"it calls the function {name[:200]}")
    return new_object(target, arguments)


def new_object(target: object, arguments: object) -> PickledObject:
    if not isinstance(target, Global):
        raise UnsafePickle("it makes an instance of an object")
    if not isinstance(arguments, tuple):
        raise BadPickle("it is damaged (constructor arguments)")
    return PickledObject(str(target), arguments)


def mapping(value: object) -> Mapping[object, object]:
    """Return the attributes of a record, or the entries of a dictionary; empty for anything else.

    State has the form of ``object.__reduce_ex__``: a dictionary, or (dictionary, slots).
    """
    if isinstance(value, dict):
        return value
    if not isinstance(value, PickledObject):
        return {}
    parts = value.state if isinstance(value.state, tuple) else (value.state, value.items)
    merged: dict[object, object] = {}
    for part in parts:
        merged |= part if isinstance(part, dict) else {}
    # Pydantic keeps the fields of a model in its ``__dict__``.
    inner = merged.get("__dict__")
    return inner if isinstance(inner, dict) and "__pydantic_fields_set__" in merged else merged


_FORMATS = {"b1": "?", "i1": "b", "i2": "h", "i4": "i", "i8": "q", "u1": "B", "u2": "H"}

_FORMATS |= {"u4": "I", "u8": "Q", "f2": "e", "f4": "f", "f8": "d"}

_SCALARS = str | int | float

_LEVELS = 50

_MAX_NODES = 200_000


def plain(value: object) -> object:
    """Convert a pickled object to a plain value: a NumPy scalar or array, an instance of a subclass
    of str, int, float, list or dict, a member of an Enum. Other values are unchanged, as are those
    deeper than 50 levels.

    Raises BadPickle for a value of more than 200,000 parts, which a small file can contain by
    referring to one list many times.
    """
    if value is None or type(value) in (str, int, float, bool, bytes):
        return value
    return _Plain().of(value, _LEVELS)


class _Plain:
    """Converts one value and counts its parts."""

    def __init__(self) -> None:
        self._left = _MAX_NODES

    def of(self, value: object, levels: int) -> object:
        self._left -= 1
        if self._left < 0:
            raise BadPickle(f"it holds a value of more than {_MAX_NODES:,} parts")
        if not levels:
            return value
        if isinstance(value, list | tuple):
            return [self.of(one, levels - 1) for one in value]
        if isinstance(value, dict):
            return {_key(name): self.of(one, levels - 1) for name, one in value.items()}
        return self._object(value, levels - 1) if isinstance(value, PickledObject) else value

    def _object(self, value: PickledObject, levels: int) -> object:
        if value.name == "_codecs.encode":
            return _content(value)
        if value.name in NUMPY:
            read = _of_numpy(value)
            return value if read is None else self.of(read, levels)
        if value.elements is not None:
            return self.of(value.elements, levels)
        if value.items is not None and not isinstance(value.state, dict):
            return self.of(value.items, levels)
        # ``cls(value)``: how a subclass of a scalar type and a member of an Enum are pickled.
        if len(value.args) == 1:
            read = self.of(value.args[0], levels)
            return read if isinstance(read, _SCALARS) else value
        return value


def _key(name: object) -> object:
    read = plain(name)
    return read if isinstance(read, _SCALARS) or read is None else str(name)


def number(value: object) -> float | None:
    """Return a number, or the first one of a NumPy array or scalar; None for anything else."""
    read = plain(value)
    while isinstance(read, list) and read:
        read = read[0]
    return read if isinstance(read, int | float) else None


def _of_numpy(value: PickledObject) -> object:
    """Return a NumPy scalar, or an array as a flat list; None for an unsupported type."""
    match value.name.rpartition(".")[2], value.args, value.state:
        case ("scalar", (PickledObject() as dtype, data), _):
            entries = _entries(dtype, data)
            return entries[0] if entries else None
        case ("_reconstruct", _, (_, shape, PickledObject() as dtype, _, data)):
            pass
        case ("_frombuffer", (data, PickledObject() as dtype, shape, *_), _):
            pass
        case _:
            return None
    entries = data if isinstance(data, list) else _entries(dtype, data)
    return entries[0] if entries and shape == () else entries


def _entries(dtype: PickledObject, content: object) -> list[object] | None:
    """Decode the bytes of an array of numbers, truth values or texts; None for another type."""
    match dtype.args, dtype.state:
        case ((str() as code, *_), (_, str() as order, *_)):
            pass
        case _:
            return None
    content = _content(content)
    if not isinstance(content, bytes | bytearray):
        return None
    big = order == ">"
    if code in _FORMATS:
        form = struct.Struct((">" if big else "<") + _FORMATS[code])
        whole = len(content) - len(content) % form.size
        return [entry for (entry,) in form.iter_unpack(content[:whole])]
    if code[:1] not in ("U", "S") or not code[1:].isdigit():
        return None
    size = int(code[1:]) * (4 if code[0] == "U" else 1)
    encoding = ("utf-32-be" if big else "utf-32-le") if code[0] == "U" else "utf-8"
    parts = (content[at : at + size] for at in range(0, len(content), size or 1))
    texts = [bytes(part).decode(encoding, "replace").rstrip("\0") for part in parts]
    return list(texts) or [""]


def _content(value: object) -> object:
    """Return bytes, also if protocols 0 to 2 write them as an encoded text."""
    match value:
        case PickledObject(name="_codecs.encode", args=(str() as text, "latin1")):
            return text.encode("latin-1", "replace")
    return value


MAX_BYTES = 128 * 2**20

MAX_OPCODES = 5_000_000


def read_pickle(
    path: Path, *, max_bytes: int = MAX_BYTES, folder: DataFolder | None = None
) -> object:
    """Read the content of a pickle file, gzipped if its name ends in ``.gz``, as data.

    Raises BadPickle (damaged, outside ``folder``, compressed or decompressed larger than
    ``max_bytes``), UnsafePickle, OSError.
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

    def push(self, value: object) -> None:
        self.stack.append(value)

    def step(self, name: str, argument: object) -> None:  # noqa: PLR0912, PLR0915 - a case each
        """Execute a data opcode. Raises UnsafePickle for any other."""
        if name in _LITERALS:
            self.push(argument)
            return
        match name:
            case "MEMOIZE":
                self.memo[len(self.memo)] = self.stack[-1]
            case "GET" | "BINGET" | "LONG_BINGET":
                self.push(self.memo[_index(argument)])
            case "PUT" | "BINPUT" | "LONG_BINPUT":
                self.memo[_index(argument)] = self.stack[-1]
            case "MARK":
                self.outer.append(self.stack)
                self.stack = []
            case "NONE":
                self.push(None)
            case "NEWTRUE" | "NEWFALSE":
                self.push(name == "NEWTRUE")
            case "EMPTY_TUPLE":
                self.push(())
            case "EMPTY_LIST" | "EMPTY_SET":
                self.push([])
            case "EMPTY_DICT":
                self.push({})
            case "TUPLE1" | "TUPLE2" | "TUPLE3":
                self.push(tuple(self.take(int(name[-1]))))
            case "TUPLE" | "FROZENSET":
                self.push(tuple(self.since_mark()))
            case "LIST":
                self.push(self.since_mark())
            case "DICT":
                self.push(_pairs(self.since_mark()))
            case "APPEND":
                self.extend(self.take(1))
            case "APPENDS" | "ADDITEMS":
                self.extend(self.since_mark())
            case "SETITEM":
                self.update(self.take(2))
            case "SETITEMS":
                self.update(self.since_mark())
            case "BUILD":
                (state,) = self.take(1)
                if not isinstance(instance := self.stack[-1], PickledObject):
                    raise BadPickle("it is damaged (attributes for what is no instance)")
                instance.state = state
            case "GLOBAL" | "INST":
                module, _, called = str(argument).partition(" ")
                if name == "GLOBAL":
                    self.push(resolve_global(module, called))
                else:
                    arguments = tuple(self.since_mark())
                    self.push(reduce_call(resolve_global(module, called), arguments))
            case "STACK_GLOBAL":
                self.push(resolve_global(*self.take(2)))
            case "REDUCE":
                self.push(reduce_call(*self.take(2)))
            case "OBJ":
                target, *rest = self.since_mark()
                self.push(reduce_call(target, tuple(rest)))
            case "NEWOBJ":
                self.push(new_object(*self.take(2)))
            case "NEWOBJ_EX":
                target, values, _keywords = self.take(3)
                self.push(new_object(target, values))
            case "POP" if self.stack:
                self.stack.pop()
            case "POP" | "POP_MARK":
                self.since_mark()
            case "DUP":
                self.push(self.stack[-1])
            case "PROTO" | "FRAME" | "STOP":
                pass
            case _:
                raise UnsafePickle(f"it wants code of the reader's to run (opcode {name})")

    def since_mark(self) -> list[object]:
        """Pop the objects since the last mark."""
        top = self.stack
        self.stack = self.outer.pop()
        return top

    def take(self, count: int) -> list[object]:
        """Pop the last ``count`` objects."""
        if len(self.stack) < count:
            raise BadPickle("it is damaged (stack underflow)")
        top = self.stack[len(self.stack) - count :]
        del self.stack[len(self.stack) - count :]
        return top

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
    {
        *("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT"),
        *("STRING", "BINSTRING", "SHORT_BINSTRING", "BINBYTES", "SHORT_BINBYTES", "BINBYTES8"),
        *("BYTEARRAY8", "UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"),
    }
)
