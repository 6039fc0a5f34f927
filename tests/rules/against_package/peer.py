"""The package: its own environment, and a process of it that answers lists of cases."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self, TypeVar

from trajudge.util.machine import PinnedPackage

PYTHON = "TRAJUDGE_PACKAGE_PYTHON"
"""Environment variable: the interpreter of an environment in which the package stands already."""

PACKAGE = PinnedPackage(
    "webarena-verified",
    Path(__file__).with_name("package.txt"),
    module="webarena_verified",
    variable=PYTHON,
)


Wire = dict[str, Any]
T = TypeVar("T")


class Spent(NamedTuple):
    """Seconds."""

    wall: float = 0.0
    cpu: float = 0.0

    def plus(self, other: Spent) -> Spent:
        """Return the sum."""
        return Spent(self.wall + other.wall, self.cpu + other.cpu)


class PackageProcess:
    """``worker.py`` under the package's interpreter, for as long as the ``with`` block lasts."""

    def __init__(self, python: Path) -> None:
        worker = Path(__file__).with_name("worker.py")
        self.process = subprocess.Popen(
            [python, "-P", "-W", "ignore", worker],  # -P: no module beside it hides the package's
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.spent = Spent()
        self.tasks = Path(self._line()["tasks"])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.process.kill()
        self.process.communicate()

    def judge(self, cases: Sequence[Wire], meanwhile: Callable[[], T]) -> tuple[list[Wire], T]:
        """Return the package's replies, and what ``meanwhile`` gave while it worked."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(cases) + "\n")
        self.process.stdin.flush()
        ours = meanwhile()
        reply = self._line()
        self.spent = self.spent.plus(Spent(*reply["spent"]))
        return reply["replies"], ours

    def _line(self) -> Wire:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"the package's process ended with {self.process.wait()}")
        reply: Wire = json.loads(line)
        return reply
