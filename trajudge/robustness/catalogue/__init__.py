"""The catalogue: one module a family, in a stable order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, reduce

from trajudge.robustness.apply import compose
from trajudge.robustness.catalogue import (
    askings,
    claims,
    fabrications,
    honest_flips,
    injections,
    invariances,
    invariant_pictures,
    natives,
)
from trajudge.robustness.model import Perturbation
from trajudge.util.errors import UserError, did_you_mean

FAMILIES = (
    *(invariances, invariant_pictures, honest_flips, claims, injections, fabrications),
    *(natives, askings),
)


@cache
def catalogue() -> Mapping[str, Perturbation]:
    """Return every perturbation by its name."""
    return {one.name: one for family in FAMILIES for one in family.PERTURBATIONS}


def chosen(names: Sequence[str]) -> list[Perturbation]:
    """Return perturbations by name; ``A+B`` composes two. Raises UserError for an unknown one."""
    return [reduce(compose, map(_named, name.split("+"))) for name in names]


def _named(name: str) -> Perturbation:
    if (known := catalogue().get(name)) is None:
        raise UserError(
            f"--perturbation {name}: is unknown{did_you_mean(name, catalogue()) or ':'} "
            f"trajudge data perturb --list  shows all {len(catalogue())}"
        )
    return known
