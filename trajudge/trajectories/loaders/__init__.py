"""Loaders of file formats: one module each, named after the format.

To add a format, add a module here. It has ``KIND``, ``LEAKS``, ``detect(path)`` and ``load(path,
want)``, which yields trajectories one at a time in a stable order and ``Unreadable`` for an invalid
one among others (see ``Loader``). Modules whose names begin with ``_`` are shared. Users' own
loaders are Python files or entry points of the group ``trajudge.loaders``.
"""

from __future__ import annotations

from difflib import get_close_matches
from functools import cache
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Protocol, cast

from trajudge.trajectories.goals import GoalsFile, read_goals, split_goals, with_goals
from trajudge.trajectories.loaders._files import check_utf8
from trajudge.trajectories.model import Loaded, Trajectory, Unreadable, Want, accept_all
from trajudge.trajectories.needs import EVERYTHING, Needs
from trajudge.trajectories.plugins import PluginPoint, format_modules
from trajudge.trajectories.sample import SAMPLE
from trajudge.util.errors import UserError

KINDS = format_modules(__name__, __path__)
"""The formats by name, each with its module."""

PLUGINS = PluginPoint(
    group="trajudge.loaders",
    option="--data",
    role="loader",
    signature="def load(path, want)",
    gives="trajectories",
)

_FOLDERS_LOOKED_AT = 200


class Loader(Protocol):
    """The interface of the modules of this package.

    ``LEAKS`` names where the format's files have labels and verdicts, ``FILE`` or
    ``FILE:JSON.PATH``: these may become the official reward, labels or published verdicts, and
    never reach a judge.

    Optional: ``DETECTION_RANK`` (0 by default) orders detection, the most specific first; a format
    with a rank above 0 is recognised by files in subfolders, which a folder with folders of several
    formats also has. ``load`` of a format with screenshots takes ``needs``: screenshots that are
    not needed are not looked up, and ``NOT_READ`` replaces each recorded one.
    ``load_published(want, needs)`` reads the format without a path.
    """

    KIND: str
    LEAKS: tuple[str, ...]

    def detect(self, path: Path) -> bool:
        """Return True if the path looks like this format; cheap, reads no trajectory."""

    def load(self, path: Path, want: Want) -> Loaded:
        """Yield the trajectories whose key is wanted. Raises UserError if the path is not of
        this format."""


def loader(kind: str) -> Loader:
    """Import the module of a format."""
    return cast(Loader, import_module(KINDS[kind]))


def open_source(
    spec: str,
    want: Want = accept_all,
    needs: Needs | None = None,
    goals: GoalsFile | None = None,
) -> Loaded:
    """Read ``KIND:PATH``, a bare ``PATH`` (its kind is detected), ``KIND``, or ``FILE.py:PATH``.

    ``agentrewardbench`` alone is the published benchmark, downloaded while it is read, with the
    screenshots of ``needs`` (None: all). ``goals`` are those of ``--goals`` (None: those of
    ``KIND:PATH::goals=FILE``); a trajectory without one is Unreadable. Raises UserError at once
    (not at the first trajectory) if there is no such kind or path.
    """
    file = split_goals(spec)[1]
    known_goals = read_goals(file) if goals is None and file else goals
    return with_goals(_load(spec, want, needs or EVERYTHING), known_goals)


def _load(spec: str, want: Want, needs: Needs) -> Loaded:
    kind, path = parse_source(spec)
    if kind not in KINDS:
        items = PLUGINS.read(kind, path, want, of=(Trajectory, Unreadable))
        return (item for item in items if isinstance(item, Unreadable) or want(item.key))
    module = loader(kind)
    if path is not None:
        takes_needs = "needs" in signature(module.load).parameters
        return module.load(path, want, **({"needs": needs} if takes_needs else {}))
    load_published = getattr(module, "load_published", None)
    if load_published is None:
        raise UserError(f"--data {kind!r} says which format but not where: write {kind}:PATH")
    return cast(Loaded, load_published(want, needs))


def parse_source(spec: str) -> tuple[str, Path | None]:
    """Parse a ``--data`` value to ``(kind, path)``; path None for a kind alone. Raises UserError.

    The kind of ``FILE.py:PATH`` is the file. An existing path is taken as a path even if its name
    has a colon or is that of a kind with a separator before it (``./trajudge``). Goals in the value
    are ignored.
    """
    spec = split_goals(spec)[0]
    head, colon, tail = spec.partition(":")
    if head in KINDS and (colon or "/" not in spec):
        PLUGINS.warn_of_namesake(head)
        return head, _existing(spec, tail) if colon else None
    path = Path(spec).expanduser()
    if path.exists():
        return detect_kind(path), path
    if named := PLUGINS.split(spec):
        kind, tail = named
        if kind == SAMPLE:
            PLUGINS.warn_of_namesake(kind, with_path=True)
        return kind, _existing(spec, tail)
    if path.suffix or "/" in spec:
        raise UserError(f"--data {spec!r}: no such file or folder: give the path of the runs")
    kinds = ", ".join(PLUGINS.names(KINDS))
    close = get_close_matches(head, KINDS, n=1, cutoff=0.6)
    if close and "/" not in head:
        raise UserError(f"--data {spec!r}: no kind {head!r}, did you mean {close[0]!r}? ({kinds})")
    raise UserError(
        f"--data {spec!r}: no such file or folder, and no kind of that name; give a path, "
        f"KIND:PATH, or a KIND of {kinds}"
    )


def _existing(spec: str, tail: str) -> Path:
    path = Path(tail).expanduser()
    if not tail or not path.exists():
        raise UserError(
            f"--data {spec!r}: there is no file or folder {tail!r}: write the path of the data "
            "after the first colon"
        )
    return path


def detect_kind(path: Path) -> str:
    """Detect the kind of the data at an existing path, or of the folders directly inside if that
    kind's loader reads subfolders. Raises UserError if no format is recognised, and for a folder
    whose subfolders are of several formats."""
    try:
        kind = _kind(path)
        looks_inside = path.is_dir() and (kind is None or _rank(kind) > 0)
        inside = _kinds_inside(path) if looks_inside else {}
    except OSError as error:
        raise UserError(
            f"--data {str(path)!r}: {error.filename} cannot be read ({error.strerror})"
        ) from None
    if kind is not None and set(inside) <= {kind}:
        return kind
    if set(inside) == {"browsergym"}:
        return "browsergym"
    if inside:
        named = ", ".join(f"{kind}:{folder}" for kind, folder in inside.items())
        raise UserError(
            f"--data {str(path)!r} is a folder of data: name one in it, such as {named}"
        )
    if path.suffix == ".py":
        raise UserError(f"--data {path}: a loader needs its data: write {path}:PATH")
    check_utf8(path)
    raise UserError(
        f"--data {str(path)!r} is of no known format: name it as KIND:PATH with a KIND of "
        f"{', '.join(PLUGINS.names(KINDS))}, or as ./LOADER.py:PATH with a loader of your own"
    )


@cache
def _ranked() -> tuple[str, ...]:
    return tuple(sorted(KINDS, key=_rank))


def _rank(kind: str) -> int:
    return int(getattr(loader(kind), "DETECTION_RANK", 0))


def _kind(path: Path) -> str | None:
    return next((kind for kind in _ranked() if loader(kind).detect(path)), None)


def _kinds_inside(path: Path) -> dict[str, Path]:
    """Return the kinds of the folders directly inside, each with the first such folder."""
    folders = sorted(child for child in path.iterdir() if child.is_dir())
    kinds: dict[str, Path] = {}
    for folder in folders[:_FOLDERS_LOOKED_AT]:
        kind = None if folder.name.startswith((".", "_")) else _kind(folder)
        if kind is not None:
            kinds.setdefault(kind, folder)
    return kinds
