"""Users' code: a Python file that they name, or the entry point of an installed package.

Such code is executed when it is named, never to list it.
"""

from __future__ import annotations

import inspect
import logging
import sys
import traceback
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib import metadata, util
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType
from typing import Any

from pydantic import ValidationError

from trajudge.util.errors import UserError
from trajudge.util.files import read_regular, utf8
from trajudge.util.validation import first_error

log = logging.getLogger(__name__)

# Exceptions of users' code; ``sys.exit`` would otherwise end trajudge silently.
MISTAKES = (Exception, SystemExit)


def format_modules(package: str, path: Iterable[str]) -> dict[str, str]:
    """Return the modules of a package by format name: ``browser_use`` is ``browser-use``,
    ``inspect_`` (a name of the standard library) is ``inspect``; ``_shared`` is excluded."""
    names = sorted(module.name for module in iter_modules(path))
    return {
        name.rstrip("_").replace("_", "-"): f"{package}.{name}"
        for name in names
        if not name.startswith("_")
    }


@dataclass(frozen=True)
class PluginPoint:
    """A kind of users' code: the ``group`` of entry points, and the ``option`` that names a file
    or an entry point. ``role``, ``signature`` and ``gives`` describe, for errors, a module whose
    ``load`` is called by ``read``."""

    group: str
    option: str
    role: str = ""
    signature: str = ""
    gives: str = ""

    def installed(self) -> list[tuple[str, str]]:
        """Return the names of entry points, each with its package's name."""
        points = _entry_points(tuple(sys.path), self.group)
        return sorted({(point.name, point.dist.name if point.dist else "") for point in points})

    def names(self, ours: Collection[str]) -> list[str]:
        """Return all valid names: ``ours``, then those of installed packages."""
        theirs = {name for name, _ in self.installed()}
        return [*ours, *sorted(theirs.difference(ours))]

    def namesake(self, name: str) -> str:
        """Name the installed packages that bring ``name``, "" for none. For a name of ours: such a
        package's plug-in cannot be told from it."""
        return " and ".join(
            point.dist.name if point.dist else "" for point in self._entry_points(name)
        )

    def refuse_namesake(self, name: str) -> None:
        """Raise UserError if an installed package has the built-in ``name``."""
        if packages := self.namesake(name):
            raise UserError(
                f"{self.option} {name}: trajudge has one of that name, and so has an installed "
                f"package ({packages}): rename its entry point in the group {self.group}, or "
                "uninstall it"
            )

    def warn_of_namesake(self, name: str, *, with_path: bool = False) -> None:
        """Warn once if an installed package has the built-in ``name``: the built-in is used, but
        ``with_path`` the package's."""
        packages = self.namesake(name)
        if packages and with_path:
            warn_once(
                f"warning: {self.option} {name}:PATH is read by an installed package ({packages}), "
                f"{self.option} {name} alone is trajudge's own: rename the package's entry point "
                f"in the group {self.group}\n"
            )
        elif packages:
            warn_once(
                f"warning: {self.option} {name}: trajudge's own is used, not that of an installed "
                f"package ({packages}): rename its entry point in the group {self.group}\n"
            )

    def knows(self, name: str) -> bool:
        """Return True for a Python file's or an entry point's name; imports neither."""
        return name.endswith(".py") or bool(self._entry_points(name))

    def split(self, spec: str) -> tuple[str, str] | None:
        """Return name and path of ``FILE.py:PATH`` or ``NAME:PATH``; None if it is neither a
        file nor an entry point. Nothing is imported."""
        head, colon, tail = spec.partition(".py:")
        if colon:
            return f"{head}.py", tail
        head, colon, tail = spec.partition(":")
        return (head, tail) if colon and head and self.knows(head) else None

    def _entry_points(self, name: str) -> metadata.EntryPoints:
        points: metadata.EntryPoints
        points = _entry_points(tuple(sys.path), self.group).select(name=name)
        return points

    def module(self, name: str) -> ModuleType | None:
        """Return the module of a ``.py`` file or of an entry point, None if ``name`` is neither.

        Raises UserError if the module cannot be loaded.
        """
        if name.endswith(".py"):
            return self._from_file(Path(name))
        points = self._entry_points(name)
        if len(packages := sorted({point.dist.name for point in points if point.dist})) > 1:
            raise UserError(
                f"{self.option} {name}: the installed packages {' and '.join(packages)} each bring "
                "one of that name: uninstall one of them"
            )
        return next((self._from_package(point) for point in points), None)

    def digest(self, name: str) -> str | None:
        """Return the SHA-256 of the ``.py`` file ``name``, None if it is not a file.

        Raises UserError if the file cannot be loaded.
        """
        module = self.module(name) if name.endswith(".py") else None
        return module.__dict__["__digest__"] if module else None

    def read(self, name: str, *arguments: object, of: tuple[type, ...]) -> Iterator[Any]:
        """Yield the results of the module's ``load`` for the arguments.

        Raises UserError at once if it has no such function, and while reading for its exceptions
        and for results that are not instances of ``of``.
        """
        named = f"{self.option} {name}"
        load = getattr(self.module(name), "load", None)
        if not callable(load):
            raise UserError(
                f"{named}: defines no {self.role}: write  {self.signature}  that yields "
                f"{self.gives}"
            )
        refuse_async(named, load, self.signature)
        return self._items(named, load, arguments, of)

    def _items(
        self,
        named: str,
        load: Callable[..., Any],
        arguments: tuple[object, ...],
        of: tuple[type, ...],
    ) -> Iterator[Any]:
        with user_code_errors(f"{named}: the {self.role} failed", load, "correct it"):
            items = load(*arguments)
            if not hasattr(items, "__iter__"):
                raise UserError(f"{named}: load gave {type(items).__name__}, not {self.gives}")
            for item in items:
                if not isinstance(item, of):
                    belongs = " or ".join(kind.__name__ for kind in of)
                    raise UserError(
                        f"{named}: load gave {type(item).__name__} where {belongs} belongs"
                    )
                yield item

    def _from_file(self, path: Path) -> ModuleType:
        """Return the module of a file, loaded once per content."""
        try:
            content = read_regular(path)
            utf8(content, path)  # Python takes other encodings, but not UTF-16
        except OSError as error:
            raise UserError(
                f"{self.option} {path}: {error.strerror}: name a Python file"
            ) from error
        digest = sha256(content).hexdigest()
        name = f"trajudge_plugin_{digest[:16]}"
        if name not in sys.modules:
            spec = util.spec_from_file_location(name, path)
            if spec is None or spec.loader is None:
                raise UserError(f"{self.option} {path}: is not a Python file")
            module = util.module_from_spec(spec)
            sys.modules[name] = module
            try:
                spec.loader.exec_module(module)
            except MISTAKES as error:
                del sys.modules[name]
                if _is_ours(error):
                    raise
                raise UserError(
                    f"{self.option} {path}: cannot be loaded ({_at_load(error, path)}): correct "
                    "the file"
                ) from error
            module.__dict__["__digest__"] = digest
        return sys.modules[name]

    def _from_package(self, point: metadata.EntryPoint) -> ModuleType:
        try:
            module = point.load()
        except MISTAKES as error:
            if _is_ours(error):
                raise
            raise UserError(
                f"{self.option} {point.name}: the package that brings it cannot be loaded "
                f"({type(error).__name__}: {error})"
            ) from error
        if not isinstance(module, ModuleType):
            raise UserError(
                f"{self.option} {point.name}: entry point {point.value} names no module: write  "
                f'{point.name} = "{point.module}"'
            )
        return module


def refuse_async(named: str, function: Callable[..., object], write: str) -> None:
    """Raise UserError, with what to ``write``, for a coroutine function, whose result would
    never be awaited."""
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        name = getattr(function, "__name__", "it")
        raise UserError(f"{named}: {name} is async: write  {write}")


@cache
def _entry_points(path: tuple[str, ...], group: str) -> Any:
    """Select the entry points of a group once; ``path`` is where they are looked for."""
    return _all_entry_points(path).select(group=group)


@cache
def _all_entry_points(path: tuple[str, ...]) -> Any:
    return metadata.entry_points()


@cache
def warn_once(sentence: str) -> None:
    """Write a sentence to standard error, once per process."""
    sys.stderr.write(sentence)


@contextmanager
def user_code_errors(
    failed: str, code: object, mend: str, logged: set[str] | None = None
) -> Iterator[None]:
    """Convert exceptions of ``code``, a function of the user's, inside the block to one sentence:
    what ``failed``, why, on which line, and how to ``mend`` it.

    Raises UserError. The traceback is logged (a run keeps it in ``run.log``), once per line for
    calls of the same code that share ``logged``. Exceptions of trajudge's code pass.
    """
    try:
        yield
    except MISTAKES as error:
        if _is_ours(error):
            raise
        location = _location(error, code)
        if location not in (logged or ()):
            # Python itself prints a warning that nobody listens to, before the sentence.
            log.info(failed, exc_info=error)
        if logged is not None:
            logged.add(location)
        raise UserError(f"{failed}: {reason(error)} ({location}): {mend}") from error


def _is_ours(error: BaseException) -> bool:
    return type(error).__module__.partition(".")[0] == "trajudge"


def reason(error: BaseException) -> str:
    """Return the type of an exception, and its message."""
    why = first_error(error, "the record") if isinstance(error, ValidationError) else str(error)
    return f"{type(error).__name__}: {why}" if why else type(error).__name__


def _at_load(error: BaseException, path: Path) -> str:
    """Return the exception of a file while it was loaded, and its line."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == str(path.absolute())]
    return f"{reason(error)}, line {lines[-1]}" if lines else str(error)


def _location(error: BaseException, code: object) -> str:
    """Return file and line of an exception: in the user's own code, or, if it did not occur in
    it (a call that does not match the signature), those of the definition."""
    frames = traceback.extract_tb(error.__traceback__)
    defined = _definition(code)
    if defined is None:
        return f"{frames[-1].filename}:{frames[-1].lineno}"
    file, line = defined
    own = (frame.lineno for frame in reversed(frames) if frame.filename == file)
    return f"{file}:{next(own, line)}"


def _definition(code: object) -> tuple[str, int] | None:
    """Return file and line of a function, a class or an object's class."""
    if known := getattr(code, "__code__", None):
        return known.co_filename, known.co_firstlineno
    kind = code if isinstance(code, type) else type(code)
    try:
        return inspect.getfile(kind), inspect.getsourcelines(kind)[1]
    except (OSError, TypeError):
        return None
