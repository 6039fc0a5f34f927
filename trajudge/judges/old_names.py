"""Import names of the first version (``judges.model``) for judges that users wrote then.

Loading such a file gives it this package's own modules under the old names, for one version.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module, util
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType

ROOMS = frozenset(
    {"annotations", "environments", "eval", "judges", "prompts", "rules", "trajectories"}
)


@contextmanager
def understood(file: Path) -> Iterator[None]:
    """Give our modules under their old names to what is imported inside, and say so once."""
    finder = _OldNames()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        for name in finder.given:
            sys.modules.pop(name, None)
    if finder.given:
        name = max(finder.given, key=len)
        sys.stderr.write(
            f"note: {file}: imports {name}: write trajudge.{name}, the next version reads no other "
            "name\n"
        )


class _OldNames(MetaPathFinder, Loader):
    """Finds ``judges.model`` where no stranger's package of that name is meant."""

    def __init__(self) -> None:
        self.given: list[str] = []
        self._own: dict[str, ModuleSpec | None] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        room = fullname.partition(".")[0]
        if (
            room not in ROOMS
            or not _is_ours(room)
            or util.find_spec(f"trajudge.{fullname}") is None
        ):
            return None
        self.given.append(fullname)
        return ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = import_module(f"trajudge.{spec.name}")
        self._own[module.__name__] = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Our module is there already; the import system has given it the old name's spec."""
        module.__spec__ = self._own[module.__name__]


def _is_ours(room: str) -> bool:
    """Tell whether nothing, or our own folder in a checkout, has the name."""
    found = PathFinder.find_spec(room)
    if found is None or found.origin is None:
        return True
    own = util.find_spec(f"trajudge.{room}")
    origin = own.origin if own else None
    return origin is not None and Path(found.origin).resolve() == Path(origin).resolve()
