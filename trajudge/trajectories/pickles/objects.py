"""What the names in a pickle become: names and records, never classes, functions or instances.

Nothing here imports or calls what a pickle names. On top of that a pickle that *means* to run
something is refused with ``UnsafePickle``, so that a hostile file is reported and not half read:

- names of the standard library outside ``KNOWN`` (``os.system``, ``builtins.eval``,
  ``builtins.getattr``, ``functools.partial``, ...), and dotted names (attribute chains);
- calls of a function, which a third party's name in lower case is taken for (``numpy.load``,
  ``torch._utils._rebuild_tensor``); a name in CapWords is a class, its call a
  ``PickledObject``;
- calls of what is no name at all, ``copyreg._reconstructor`` for anything but a plain object.
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
    return merged


_FORMATS = {"b1": "?", "i1": "b", "i2": "h", "i4": "i", "i8": "q", "u1": "B", "u2": "H"}
_FORMATS |= {"u4": "I", "u8": "Q", "f4": "f", "f8": "d"}


def number(value: object) -> float | None:
    """Return a number, or the first one of a numpy array or scalar; None for anything else."""
    if isinstance(value, int | float):
        return value
    if not isinstance(value, PickledObject):
        return None
    match value.name.rpartition(".")[2], value.args, value.state:
        case ("_reconstruct", _, (_, _, PickledObject() as dtype, _, bytes() as data)):
            return _first(dtype, data)
        case ("scalar", (PickledObject() as dtype, bytes() as data), _):
            return _first(dtype, data)
        case ("_frombuffer", ((bytes() | bytearray()) as data, PickledObject() as dtype, *_), _):
            return _first(dtype, data)
    return None


def _first(dtype: PickledObject, content: bytes | bytearray) -> float | None:
    match dtype.args, dtype.state:
        case ((str() as code, *_), (_, str() as order, *_)) if code in _FORMATS:
            form = struct.Struct((">" if order == ">" else "<") + _FORMATS[code])
            if len(content) >= form.size:
                first: float = form.unpack_from(content)[0]
                return first
    return None
