"""An environment for the packages of one pin file: made once, and again when the file changes."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from trajudge.trajectories.util.local.cache import cache_folder
from trajudge.trajectories.util.safe_files import read_regular


class NoEnvironment(Exception):
    """An environment could not be made; the message says how to go on."""


class PinnedPackage(NamedTuple):
    """A package with all that it needs, pinned in ``pins``, a file of pip's requirements.

    ``module`` is what an interpreter that has it can import. ``variable`` is an environment
    variable that names such an interpreter: then none is made.
    """

    name: str
    pins: Path
    module: str
    variable: str

    @property
    def folder(self) -> Path:
        """Where the environment stands; another pin file or Python has another."""
        text = read_regular(self.pins) + sys.version.encode()
        return cache_folder() / f"{self.name}-{hashlib.sha256(text).hexdigest()[:16]}"

    @property
    def made(self) -> bool:
        """Whether an interpreter is there already: ``python`` returns at once."""
        return bool(os.environ.get(self.variable)) or (self.folder / "complete").exists()

    def python(self, interpreter: str | None = None) -> Path:
        """Return an interpreter that has the package: ``interpreter``, the variable's, or our own.

        Raises NoEnvironment.
        """
        if named := interpreter or os.environ.get(self.variable):
            if not _imports(Path(named), self.module):
                raise NoEnvironment(f"{named} cannot import {self.module}: name another one")
            return Path(named)
        folder = self.folder
        folder.parent.mkdir(parents=True, exist_ok=True)
        with folder.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (folder / "complete").exists():
                self._install(folder)
                (folder / "complete").touch()
        return folder / "bin" / "python"

    def _install(self, folder: Path) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        # Few of the modules are ever imported: Python compiles those then.
        words = ["--quiet", "--no-compile", "--no-deps", "--retries", "1", "--timeout", "15"]
        make: list[str | Path] = [sys.executable, "-m", "venv", folder]
        pip: list[str | Path] = [folder / "bin" / "python", "-m", "pip"]
        if find_spec("pip"):  # an own one takes longer to install than most of the packages
            make.append("--without-pip")
            pip = [sys.executable, "-m", "pip", "--python", folder / "bin" / "python"]
        commands = (make, [*pip, "install", *words, "-r", self.pins])
        for command in commands:
            ran = subprocess.run(  # noqa: S603 - words of ours
                command, capture_output=True, text=True, check=False
            )
            if ran.returncode:
                last = (ran.stderr.strip().splitlines() or ["no message"])[-1][:200]
                raise NoEnvironment(
                    f"{self.pins.name} could not be installed ({last}): connect to a package "
                    f"index, or name an environment that has {self.name} with "
                    f"{self.variable}=PYTHON"
                )


def _imports(python: Path, module: str) -> bool:
    try:
        tried = subprocess.run(  # noqa: S603 - an interpreter that the user names
            [python, "-c", f"import {module}"], capture_output=True, check=False
        )
    except OSError:
        return False
    return tried.returncode == 0
