"""A case: a checked configuration with its goal and measured difficulty, and files of cases.

A file of cases holds nothing that tells the answer: the verifier asks the state again.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import orjson

from trajudge.environments.model.config import Config
from trajudge.trajectories.model import Record
from trajudge.util.errors import UserError
from trajudge.util.files import save_bytes
from trajudge.util.validation import read_records

Vector = tuple[int, int, int, int, int, int, int]


class Case(Record):
    """``vector`` holds the seven dimensions (depth, breadth, interaction, visual, information,
    reasoning, risk; 1 to 3 each), ``level`` the demand of the scenario (1 to 3), whatever the
    pages' length, ``shortest`` the number of browser actions of the oracle's way, its last message
    included; ``fewest`` that of the shortest way there is (``checks.shortest``), None where no
    search came to its end."""

    config: Config
    goal: str
    domain: str
    vector: Vector
    level: int
    shortest: int
    fewest: int | None = None

    @property
    def id(self) -> str:
        return self.config.id

    @property
    def load(self) -> int:
        """How much there is to look through, 1 to 3, whatever is asked: the higher grade of breadth
        (things to choose from) and information (words on the way), one more with noise."""
        _, breadth, _, _, information, _, _ = self.vector
        return min(3, max(breadth, information) + bool(self.config.noise))


def write_cases(path: Path, cases: Iterable[Case]) -> None:
    """Write one line a case, in the order given. Raises UserError if the file cannot be written."""
    lines = (orjson.dumps(case.model_dump(mode="json")) + b"\n" for case in cases)
    save_bytes(path, b"".join(lines))


def read_cases(path: Path) -> list[Case]:
    """Return the cases of a file. Raises UserError that names the file and the line, for a case
    that comes twice too, or says that it holds none."""
    write = "write the file with  trajudge env generate"
    numbered = read_records(path, Case.model_validate_json, missing=write, damaged=write)
    if not numbered:
        raise UserError(f"{path} holds no case: write cases with  trajudge env generate")
    first: dict[str, int] = {}
    for number, case in numbered:
        if (earlier := first.setdefault(case.id, number)) != number:
            raise UserError(
                f"{path}, line {number}: the case {case.id} is on line {earlier} already: keep one "
                "of the lines"
            )
    return [case for _, case in numbered]
