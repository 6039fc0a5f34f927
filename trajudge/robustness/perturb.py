"""``trajudge data perturb``: write perturbed trajectories with the labels that they then have."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from trajudge.util.commands import FAILURES, OK, OptionAdder, TextParser, command, count, whole

_DESCRIPTION = """\
Change labelled trajectories in ways whose effect on the truth is known, and write them as data that
any judge can be run on: trajectories.jsonl.gz with images/, labels.jsonl (what is true after the
change) and variants.jsonl (what was changed, field by field). The same seed gives the same bytes.

  trajudge data perturb --data sample --out attacked
  trajudge judge --data attacked --judge heuristic
  trajudge data perturb --list
"""


def parser() -> argparse.ArgumentParser:
    """Build the command's options."""
    made = TextParser(prog="trajudge data perturb", description=_DESCRIPTION)
    add = OptionAdder(made)
    add.value("--data", "KIND:PATH", "the trajectories (default: as trajudge judge)")
    add.labels("expert labels (default: those of the data)")
    about = "one of the catalogue, or two as A+B; may be repeated (default: all)"
    add.repeated("--perturbation", "NAME", about)
    add.value("--limit", "N", "N of each, spread over tasks", type=count)
    add.value("--seed", "N", "seed of what is drawn (default: 0)", type=whole, default=0)
    add.output_folder("--out", "folder to write", default=Path("attacked"))
    add.switch("--list", "show the catalogue: what each perturbation changes, and write nothing")
    return made


@command(parser)
def main(options: argparse.Namespace) -> int:
    """Write the folder and say how many trajectories each perturbation gave."""
    from trajudge.robustness.attacked import write  # noqa: PLC0415 - --help needs none of it
    from trajudge.robustness.catalogue import catalogue, chosen  # noqa: PLC0415
    from trajudge.robustness.catalogue.listing import families  # noqa: PLC0415
    from trajudge.robustness.sources import subjects  # noqa: PLC0415
    from trajudge.robustness.suite import recorded_again  # noqa: PLC0415
    from trajudge.util.errors import UserError  # noqa: PLC0415
    from trajudge.util.tables import print_tables  # noqa: PLC0415
    from trajudge.util.terminal import one_line  # noqa: PLC0415

    if options.list:
        print_tables(families())
        return OK
    named = chosen(options.perturbation or ())
    if asked := [one.name for one in named if one.asking]:
        raise UserError(
            f"--perturbation {asked[0]}: changes how a judge is asked and no run: give it to  "
            "trajudge robust"
        )
    source = subjects(options.data, options.annotations, options.labels_by)
    edits = [one for one in catalogue().values() if not one.asking and one.grade == "edited"]
    perturbations = named or [*edits, *recorded_again(source)]
    written = write(options.out, source, perturbations, options.seed, options.limit)
    applied = sum(number > 0 for number in written.counts.values())
    sys.stdout.write(
        f"{written.file}: {sum(written.counts.values()):,} trajectories by {applied} of "
        f"{len(perturbations)} perturbations\n"
    )
    sys.stderr.writelines(f"invalid, left out: {one_line(text)}\n" for text in written.invalid)
    return FAILURES if written.invalid else OK


if __name__ == "__main__":
    sys.exit(main())
