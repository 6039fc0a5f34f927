"""``trajudge label export``: the labels of a queue as files."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from trajudge.eval.labelling.options import add_stage, queue_parser
from trajudge.util.commands import OK, OptionAdder, command

_DESCRIPTION = """\
Write the labels of a queue (labels.jsonl, in trajudge's own format, which --annotations reads, with
the inclusion probability and the stratum of each), its log (events.jsonl), its items (items.jsonl)
and which tasks share a goal (goals.jsonl).

  trajudge label export QUEUE --out labels
  trajudge label export QUEUE --out labels --layout agentrewardbench
"""


def parser() -> argparse.ArgumentParser:
    """Build the command's options."""
    options = queue_parser("export", _DESCRIPTION)
    add = OptionAdder(options)
    add.output_folder("--out", "folder that is written (default: labels)", default=Path("labels"))
    add_stage(options)
    add.choice(
        "--layout",
        ("trajudge", "agentrewardbench"),
        "also write annotations.csv with the columns of AgentRewardBench; without adjudicated "
        "labels, for which it has no place",
        default="trajudge",
    )
    return options


@command(parser)
def main(options: argparse.Namespace) -> int:
    """Write what the command line names and return the exit code."""
    from trajudge.annotations import agentrewardbench  # noqa: PLC0415 - --help needs none of these
    from trajudge.annotations.labelling.database import LabelStore  # noqa: PLC0415
    from trajudge.annotations.labelling.records import QUESTIONS  # noqa: PLC0415
    from trajudge.annotations.labelling.transfer import export_queue, queue_annotations  # noqa: PLC0415
    from trajudge.annotations.model import Role  # noqa: PLC0415
    from trajudge.eval.store.task_goals import FILE as GOALS  # noqa: PLC0415
    from trajudge.eval.store.task_goals import read_goals, save_goals  # noqa: PLC0415
    from trajudge.util.errors import UserError  # noqa: PLC0415

    store = LabelStore(options.queue)
    columns = options.layout == "agentrewardbench"
    if columns and set(store.settings.questions) != set(QUESTIONS):
        raise UserError(
            f"{options.queue}: asks only {', '.join(store.settings.questions)}, and the columns of "
            "AgentRewardBench need all four questions: export with --layout trajudge"
        )
    files = export_queue(store, options.out, options.stage)
    if columns:
        files.append(options.out / "annotations.csv")
        labels = queue_annotations(store, options.stage)
        opinions = [label for label in labels if label.role is not Role.ADJUDICATED]
        agentrewardbench.write_annotations(files[-1], opinions)
    if goals := read_goals(options.queue):
        save_goals(options.out, goals)
        files.append(options.out / GOALS)
    store.close()
    sys.stdout.write("".join(f"wrote {file}\n" for file in files))
    return OK


if __name__ == "__main__":
    sys.exit(main())
