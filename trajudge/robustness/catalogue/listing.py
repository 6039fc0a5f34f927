"""The catalogue as tables, one per family."""

from __future__ import annotations

from trajudge.robustness.catalogue import catalogue
from trajudge.robustness.model import Attacker
from trajudge.util.tables import Table

_FAMILIES = {
    "A": "changes without meaning",
    "B": "changes of the truth",
    "C": "claims of the agent about a failed run",
    "D": "instructions to the judge",
    "E": "fabricated evidence",
    "F": "the same runs, the judge asked otherwise (trajudge robust)",
}


def families() -> list[Table]:
    """Tabulate each family: the perturbations, who could attack with them, what is changed."""
    head = ("perturbation", "attack by", "what is changed")
    rows: dict[str, list[tuple[str, str, str]]] = {family: [] for family in _FAMILIES}
    for one in catalogue().values():
        by = "" if one.attacker is Attacker.NONE else one.attacker.value
        rows[one.family].append((one.name, by, one.summary))
    return [Table(f"{key}: {_FAMILIES[key]}", head, rows[key], names=3) for key in rows]
