"""``trajudge run agreement``: how far annotators agree on the trajectories that several saw."""

from __future__ import annotations

import argparse
import sys

from trajudge.eval.score import add_format
from trajudge.util.commands import OK, OptionAdder, TextParser, command

_DESCRIPTION = """\
Measure how far annotators agree: the share of equal labels, Cohen's kappa and Krippendorff's
alpha, each with 95 % limits over tasks, by label and benchmark.

  trajudge run agreement --annotations agentrewardbench:DIR --split test
"""


def parser() -> argparse.ArgumentParser:
    """Build the command's options."""
    options = TextParser(prog="trajudge run agreement", description=_DESCRIPTION)
    add = OptionAdder(options)
    add.value(
        "--annotations",
        "KIND:PATH",
        "expert labels (default: those of the installed package agent-reward-bench)",
        default="agentrewardbench",
    )
    add.choice("--split", ("dev", "test", "all"), "of the annotations", default="all")
    add.task_id()
    add_format(options, "table")
    add.switch("--json", "print JSON instead of the table")
    return options


@command(parser)
def main(options: argparse.Namespace) -> int:
    """Measure what the command line names and return the exit code."""
    from trajudge.annotations import open_annotations  # noqa: PLC0415 - --help needs none of these
    from trajudge.eval.analysis.agreement import (  # noqa: PLC0415
        agreement_tables,
        goals_beside,
        measure_agreement,
    )
    from trajudge.util.errors import UserError  # noqa: PLC0415
    from trajudge.util.tables import render  # noqa: PLC0415
    from trajudge.util.terminal import one_line  # noqa: PLC0415

    annotations = open_annotations(options.annotations)
    if options.split != "all":
        annotations = [a for a in annotations if a.split == options.split]
    goals = goals_beside(options.annotations)
    found, note = measure_agreement(annotations, goals, options.task_id)
    if not found:
        raise UserError(
            f"--annotations {options.annotations} (split {options.split}): no trajectory has two "
            "annotations: agreement needs a second opinion"
        )
    if note:
        sys.stderr.write(one_line(note) + "\n")
    if options.json:
        import msgspec  # noqa: PLC0415

        listed = [agreement.model_dump(mode="json") for agreement in found]
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(listed)).decode() + "\n")
        return OK
    sys.stdout.write(render(agreement_tables(found), options.format))
    return OK


if __name__ == "__main__":
    sys.exit(main())
