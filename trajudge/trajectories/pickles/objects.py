"""What the names in a pickle become: names and records, never classes, functions or instances.

Nothing here imports or calls what a pickle names. On top of that a pickle that *means* to run
something is refused with ``UnsafePickle``, so that a hostile file is reported and not half read:

- names of the standard library outside ``KNOWN`` (``os.system``, ``builtins.eval``,
  ``builtins.getattr``, ``functools.partial``, ...), and dotted names (attribute chains);
- calls of a function, which a third party's name in lower case is taken for (``numpy.load``,
  ``torch._utils._rebuild_tensor``); a name in CapWords is a class, its call a
  ``PickledObject``;
- calls of what is no name at all, ``copyreg._reconstructor`` for anything but a plain object or a
  subclass of str, int or float.
"""

from __future__ import annotations

import builtins
import struct
import sys
from collections.abc import Mapping, Sequence
from typing import NamedTuple

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
# Where other Pythons have what these modules hold: Python 2, and Python 3.13 its paths.
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
    """A pickle that tries to run something. Nothing of it was run."""


class Global(NamedTuple):
    """A class or function that a pickle names."""

    module: str
    name: str

    def __str__(self) -> str:
        return f"{self.module}.{self.name}"


class PickledObject:
    """What a pickle says of an instance: class name, constructor arguments, attributes, and the
    entries of a subclass of dict (``items``) or list (``elements``)."""

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
    """Build the object that REDUCE, OBJ or INST would make by calling ``target``; nothing is
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

    State is as ``object.__reduce_ex__`` writes it: a dictionary, or (dictionary, slots).
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
    """Return what a pickled object says as a plain value: a NumPy scalar or array, an instance of a
    subclass of str, int, float, list or dict, a member of an Enum. Anything else is returned as it
    is; what lies deeper than 50 levels, too.

    Raises BadPickle for a value of more than 200,000 parts, which a small file can describe by
    naming one list many times.
    """
    if value is None or type(value) in (str, int, float, bool, bytes):
        return value
    return _Plain().of(value, _LEVELS)


class _Plain:
    """Makes one value plain and counts its parts."""

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
    """Return a NumPy scalar, or an array as a flat list; None for a type that is not read."""
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
    """Return bytes also where protocols 0 to 2 write them, as an encoded text."""
    match value:
        case PickledObject(name="_codecs.encode", args=(str() as text, "latin1")):
            return text.encode("latin-1", "replace")
    return value
