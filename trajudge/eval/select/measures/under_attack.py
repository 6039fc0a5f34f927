"""Precision of judges under attack, as ``trajudge robust`` wrote it: what ``--threat`` needs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from trajudge.eval.select.binding import JudgeConfiguration, differences
from trajudge.trajectories.model import Record
from trajudge.util.errors import UserError
from trajudge.util.validation import read_record

Threat = Literal["agent", "page", "both"]
THREATS: Mapping[Threat, str] = {"agent": "agent", "page": "page", "both": "agent and page"}
"""Who attacks, and the name of that threat model in ``robustness.json``."""
CONFIDENCE = 0.95
"""Of the limits in ``robustness.json``: they hold for all attacks on one judge at once."""


class UnderAttack(Record):
    """Precision of a judge's verdicts if every failure came with the attack that hurts most.

    ``low`` is the least of the lower limits of ``attacks`` attacks, None where there is none;
    ``catalogue`` tells which perturbations were tried, in which version.
    """

    attack: str
    precision: float
    low: float | None
    attacks: int
    catalogue: str


class _Read(BaseModel):
    """What is read of a larger record."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class _Attack(_Read):
    name: str
    precision: float | None = None  # of an attack that no failure allows


class _WorstCase(_Read):
    attacks: tuple[_Attack, ...] = ()
    low: float | None = None


class _Judge(_Read):
    judge: str
    worst: dict[str, _WorstCase] = Field(default_factory=dict)
    configuration: JudgeConfiguration | None = None


class _Robustness(_Read):
    catalogue: str = ""
    judges: tuple[_Judge, ...]


def read_threat(
    files: Sequence[Path],
    threat: Threat,
    judges: Sequence[str],
    configurations: Mapping[str, JudgeConfiguration],
) -> dict[str, UnderAttack]:
    """Read the worst case of each of the judges, by their names, from ``robustness.json`` files.

    Raises UserError for a file that cannot be read, for a judge of which none tells the worst case
    under this threat, and for one that was measured as another judge of that name.
    """
    worst: dict[str, UnderAttack] = {}
    for file in files:
        for one, known in _worst_cases(_file(file), threat):
            judge = one.judge
            if judge not in judges:
                continue
            configuration = configurations.get(judge)
            if one.configuration is not None and configuration is not None:
                _check_same(file, one.configuration, configuration)
            if judge in worst and worst[judge] != known:
                raise UserError(f"{file}: tells of {judge} otherwise than a file before it")
            worst[judge] = known
    for judge in judges:
        if judge not in worst:
            named = ", ".join(map(str, files)) or "no --robustness FILE"
            raise UserError(
                f"{judge}: {named} does not tell its precision under attacks by the "
                f"{THREATS[threat]}: measure it with  trajudge robust --judge …  and name its "
                "robustness.json with --robustness, or leave the judge out with --judge"
            )
    return worst


def _file(path: Path) -> Path:
    return path / "robustness.json" if path.is_dir() else path


def _worst_cases(file: Path, threat: Threat) -> Iterator[tuple[_Judge, UnderAttack]]:
    measured = read_record(file, _Robustness, "name the file that  trajudge robust  wrote")
    for one in measured.judges:
        worst = one.worst.get(THREATS[threat], _WorstCase())
        tried = [
            (each.precision, each.name) for each in worst.attacks if each.precision is not None
        ]
        if tried:
            precision, attack = min(tried)
            yield (
                one,
                UnderAttack(
                    attack=attack,
                    precision=precision,
                    low=worst.low,
                    attacks=len(tried),
                    catalogue=measured.catalogue,
                ),
            )


def _check_same(file: Path, measured: JudgeConfiguration, used: JudgeConfiguration) -> None:
    if different := list(differences(measured, used)):
        raise UserError(
            f"{file}: its {used.judge} was configured otherwise than that of the run "
            f"({'; '.join(different)}): measure the judge that is to be chosen"
        )
