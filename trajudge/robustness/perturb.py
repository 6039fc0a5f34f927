"""``trajudge data perturb``: write perturbed trajectories with the labels that they then have."""

from __future__ import annotations

import sys

from trajudge.robustness.attacked import write
from trajudge.robustness.catalogue import catalogue, chosen
from trajudge.robustness.catalogue.listing import families
from trajudge.robustness.settings import PerturbConfig
from trajudge.robustness.sources import subjects
from trajudge.robustness.suite import recorded_again
from trajudge.util.commands import FAILURES, OK
from trajudge.util.errors import UserError
from trajudge.util.tables import print_tables
from trajudge.util.terminal import one_line


def perturb(config: PerturbConfig) -> int:
    """Write the folder and say how many trajectories each perturbation gave."""
    if config.list:
        print_tables(families())
        return OK
    named = chosen(config.perturbation)
    if asked := [one.name for one in named if one.asking]:
        raise UserError(
            f"--perturbation {asked[0]}: changes how a judge is asked and no run: give it to  "
            "trajudge robust"
        )
    data = config.source
    source = subjects(data.data, data.annotations, data.labels_by)
    edits = [one for one in catalogue().values() if not one.asking and one.grade == "edited"]
    perturbations = named or [*edits, *recorded_again(source)]
    written = write(config.out, source, perturbations, config.seed, config.limit)
    applied = sum(number > 0 for number in written.counts.values())
    sys.stdout.write(
        f"{written.file}: {sum(written.counts.values()):,} trajectories by {applied} of "
        f"{len(perturbations)} perturbations\n"
    )
    sys.stderr.writelines(f"invalid, left out: {one_line(text)}\n" for text in written.invalid)
    return FAILURES if written.invalid else OK
