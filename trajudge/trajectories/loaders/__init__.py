"""One module a file format; this one knows which there are and which one a path is.

A loader module has ``KIND``, ``detect(path)`` and ``load(path, want)``, which yields trajectories
one at a time in a stable order and ``Unreadable`` for a bad one among good ones. Those of the
users come in by ``trajectories.user_loaders``.
"""

from __future__ import annotations

from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import Protocol, cast

from trajudge.trajectories import user_loaders
from trajudge.trajectories.goals import GoalsFile, read_goals, split_goals, with_goals
from trajudge.trajectories.loading import Loaded, Want, accept_all
from trajudge.trajectories.needs import EVERYTHING, Needs
from trajudge.trajectories.sample import SAMPLE
from trajudge.trajectories.user_loaders import load_with
from trajudge.util.errors import UserError

# Detection asks in this order: the formats with the surest marks first.
KINDS: dict[str, str] = {
    "toolcalls": "trajudge.trajectories.loaders.toolcalls",
    "browser-use-answers": "trajudge.trajectories.loaders.answers",
    "trajudge": "trajudge.trajectories.loaders.trajudge",
    "agentrewardbench": "trajudge.trajectories.loaders.agentrewardbench",
    "agentrewardbench-text": "trajudge.trajectories.loaders.agentrewardbench_text",
    "browsergym": "trajudge.trajectories.loaders.browsergym",
    "cuaverifierbench": "trajudge.trajectories.loaders.cuaverifierbench",
    "fara": "trajudge.trajectories.loaders.fara",
    "browser-use": "trajudge.trajectories.loaders.browser_use",
    "osworld": "trajudge.trajectories.loaders.osworld",
    "webarena-html": "trajudge.trajectories.loaders.webarena_html",
    "webvoyager": "trajudge.trajectories.loaders.webvoyager",
    "online-mind2web": "trajudge.trajectories.loaders.online_mind2web",
    "inspect": "trajudge.trajectories.loaders.inspect_logs",
    "messages": "trajudge.trajectories.loaders.messages",
}

# Their ``load`` takes the needs as well, for they hold the screenshots themselves.
_TAKE_NEEDS = frozenset({"cuaverifierbench"})
# Told by files further down: a folder that holds folders of several formats has their marks, too.
_DEEP = frozenset({"browser-use", "osworld", "webarena-html", "inspect", "messages"})
_FOLDERS_LOOKED_AT = 200


class Loader(Protocol):
    """What every module of this package offers.

    ``LEAKS`` names where the format's files hold labels and verdicts, ``FILE`` or
    ``FILE:JSON.PATH``: what is there may become the official reward, labels or published verdicts,
    and never reaches what a judge is shown.
    """

    KIND: str
    LEAKS: tuple[str, ...]

    def detect(self, path: Path) -> bool:
        """Tell whether the path looks like this format; cheap, reads no trajectory."""

    def load(self, path: Path, want: Want) -> Loaded:
        """Yield the trajectories whose key is wanted. Raises UserError if the path is no such
        data."""


def open_source(
    spec: str,
    want: Want = accept_all,
    needs: Needs | None = None,
    goals: GoalsFile | None = None,
) -> Loaded:
    """Read ``KIND:PATH``, a bare ``PATH`` (its kind is detected), ``KIND``, or ``FILE.py:PATH``.

    ``agentrewardbench`` alone is the published benchmark, fetched as it is read, with the
    screenshots that ``needs`` names (None: all). ``goals`` are those of ``--goals`` (None: those of
    the file that ``KIND:PATH::goals=FILE`` names); a trajectory without one is Unreadable. Raises
    UserError at once (not at the first trajectory) if there is no such kind or path.
    """
    file = split_goals(spec)[1]
    known_goals = read_goals(file) if goals is None and file else goals
    return with_goals(_opened(spec, want, needs), known_goals)


def _opened(spec: str, want: Want, needs: Needs | None) -> Loaded:
    kind, path = parse_source(spec)
    if path is not None and kind not in KINDS:
        return load_with(kind, path, want)
    if path is not None:
        with_needs = {} if needs is None or kind not in _TAKE_NEEDS else {"needs": needs}
        return loader(kind).load(path, want, **with_needs)
    if kind == "agentrewardbench":
        from trajudge.trajectories.hub import load_agentrewardbench  # noqa: PLC0415

        return load_agentrewardbench(want, needs=needs or EVERYTHING)
    raise UserError(f"--data {kind!r} says which format but not where: write {kind}:PATH")


def parse_source(spec: str) -> tuple[str, Path | None]:
    """Parse a ``--data`` value to ``(kind, path)``; path None for a kind alone. Raises UserError.

    The kind of ``FILE.py:PATH`` is the file. A path that exists is taken as a path even if its
    name holds a colon or is that of a kind with a separator before it (``./trajudge``). Goals that
    are named with the data are passed over.
    """
    spec = split_goals(spec)[0]
    head, colon, tail = spec.partition(":")
    if head in KINDS and (colon or "/" not in spec):
        user_loaders.DOOR.warn_of_namesake(head)
        if not colon:
            return head, None
        return head, _existing(spec, tail)
    path = Path(spec).expanduser()
    if path.exists():
        return detect_kind(path), path
    if named := user_loaders.DOOR.split(spec):
        kind, tail = named
        if kind == SAMPLE:
            user_loaders.DOOR.warn_of_name(kind)
        return kind, _existing(spec, tail)
    kinds = ", ".join(user_loaders.DOOR.names(KINDS))
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
    """Detect the kind of the data at an existing path, or of the folders directly inside where the
    loader of that kind looks further down. Raises UserError if no format knows it, and for a folder
    whose folders are of several formats."""
    try:
        kind = _kind(path)
        looks_inside = path.is_dir() and (kind is None or kind in _DEEP)
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
        raise UserError(f"--data {str(path)!r} is a folder of data: name one of {named}")
    from trajudge.trajectories.loaders.files import check_utf8  # noqa: PLC0415 - as kinds

    if path.suffix == ".py":
        raise UserError(f"--data {path}: a loader needs its data: write {path}:PATH")
    check_utf8(path)
    raise UserError(
        f"--data {str(path)!r} is of no known format: name it as KIND:PATH with a KIND of "
        f"{', '.join(user_loaders.DOOR.names(KINDS))}"
    )


def _kind(path: Path) -> str | None:
    return next((kind for kind in KINDS if loader(kind).detect(path)), None)


def _kinds_inside(path: Path) -> dict[str, Path]:
    """Return the kinds of the folders directly inside, each with the first folder of it."""
    folders = sorted(child for child in path.iterdir() if child.is_dir())
    kinds: dict[str, Path] = {}
    for folder in folders[:_FOLDERS_LOOKED_AT]:
        kind = None if folder.name.startswith((".", "_")) else _kind(folder)
        if kind is not None:
            kinds.setdefault(kind, folder)
    return kinds


def loader(kind: str) -> Loader:
    """Import the module of a kind."""
    return cast(Loader, import_module(KINDS[kind]))
