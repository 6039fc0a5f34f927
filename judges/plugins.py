"""Judges of the users': from a package (entry point group ``trajudge.judges``) or a single file.

Either gives a module with ``judge``, an ``async def judge(trajectory, ask) -> Verdict``; or with
``Options`` (a ``trajectories.model.Record``) and ``judge`` a factory from these options. Beside it
may stand ``needs_model`` (default True), ``summary``, ``representations`` and ``needs`` (a
``trajectories.needs.Needs``; by default everything that was recorded; a property of ``Options``
where it depends on them). Such code is the user's own, and is run when it is named, never to list
it.
"""

from __future__ import annotations

import sys
from hashlib import sha256
from importlib import metadata, util
from pathlib import Path
from types import ModuleType

from trajudge.judges.entry import Entry
from trajudge.judges.old_names import understood
from trajudge.trajectories.needs import Needs
from trajudge.trajectories.util.errors import UserError

GROUP = "trajudge.judges"
# What a mistake in a file raises while the file is loaded.
_BROKEN = (
    *(SyntaxError, ImportError, NameError, AttributeError, TypeError, ValueError),
    *(ArithmeticError, LookupError, OSError, RuntimeError),
)


def installed() -> list[tuple[str, str]]:
    """The judges that installed packages bring: their names, and the packages'."""
    points = metadata.entry_points(group=GROUP)
    return sorted({(point.name, point.dist.name if point.dist else "") for point in points})


def module_of(name: str) -> ModuleType | None:
    """The module of a user's judge: ``name`` is a path to a ``.py`` file or an entry point; None
    if it is neither. Raises UserError if it cannot be loaded."""
    if name.endswith(".py"):
        return _from_file(Path(name))
    for point in metadata.entry_points(group=GROUP):
        if point.name == name:
            return _from_package(point)
    return None


def describe(name: str, module: ModuleType) -> Entry:
    """The entry of a user's judge. Raises UserError if the module holds none."""
    if not callable(getattr(module, "judge", None)):
        raise UserError(
            f"--judge {name}: defines no judge: write  async def judge(trajectory, ask)  that "
            "returns a Verdict"
        )
    return Entry(
        module=module.__name__,
        judge="judge",
        options="Options" if hasattr(module, "Options") else "",
        needs_model=bool(getattr(module, "needs_model", True)),
        summary=str(getattr(module, "summary", module.__doc__ or "")).strip().split("\n")[0],
        representations=tuple(getattr(module, "representations", ())),
        label=Path(name).stem if name.endswith(".py") else name,
        digest=getattr(module, "__digest__", ""),
        needs=check_needs(name, module.needs) if hasattr(module, "needs") else None,
    )


def check_needs(name: str, declared: object) -> Needs:
    """What a judge says that it needs. Raises UserError for what says nothing of the kind."""
    if not isinstance(declared, Needs):
        raise UserError(
            f"--judge {name}: needs = {declared!r}: make it a trajectories.needs.Needs, for "
            "instance  Needs(screenshots=last(3))"
        )
    return declared


def _from_file(path: Path) -> ModuleType:
    """The module in a file, once for its content."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UserError(f"--judge {path}: {error.strerror}: name a Python file") from error
    digest = sha256(content).hexdigest()
    name = f"trajudge_judge_{digest[:16]}"
    if name not in sys.modules:
        spec = util.spec_from_file_location(name, path)
        if spec is None or spec.loader is None:
            raise UserError(f"--judge {path}: is no Python file")
        module = util.module_from_spec(spec)
        sys.modules[name] = module
        try:
            with understood(path):
                spec.loader.exec_module(module)
        except _BROKEN as error:
            del sys.modules[name]
            raise UserError(f"--judge {path}: cannot be loaded ({error}): mend the file") from error
        module.__dict__["__digest__"] = digest
    return sys.modules[name]


def _from_package(point: metadata.EntryPoint) -> ModuleType:
    try:
        module = point.load()
    except (ImportError, AttributeError, SyntaxError) as error:
        raise UserError(
            f"--judge {point.name}: the package that brings it cannot be loaded ({error})"
        ) from error
    if not isinstance(module, ModuleType):
        raise UserError(f"--judge {point.name}: entry point {point.value} names no module")
    return module
