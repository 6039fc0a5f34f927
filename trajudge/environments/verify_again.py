"""Verify recorded runs again: ``trajudge env verify RECORDED...``.

The state that a run left is made from ``facts.jsonl``, without a browser, and the labels that it
gives are compared with ``labels.jsonl``. Folders of ``trajudge data perturb`` are verified alike:
goal and last message as they stand after the change, on the state that the run left. With
``--other-goals`` the checkers of other instances of each task are asked as well; what they say of
each run is written to a file, which stands beside the recording as ``goals.jsonl`` for
perturbations that exchange goals.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from trajudge.util.commands import FAILURES, OK, OptionAdder, Parser, command, goal_count

GOALS = "goals.jsonl"
_SHOWN = 20


def parser() -> argparse.ArgumentParser:
    """Make the command's parser."""
    made = Parser(prog="trajudge env verify", description=__doc__)
    add = OptionAdder(made)
    add.folders("folders", "RECORDED", "folder with facts.jsonl", nargs="+")
    add.number(
        "--other-goals",
        "ask the checkers of N other instances of each task, and write what they say",
        goal_count,
    )
    add.output_file("--save", f"with --other-goals: file to write (default: {GOALS})")
    return made


@command(parser)
def main(options: argparse.Namespace) -> int:
    """Verify the folders; return 1 if a label is not what the state gives."""
    import orjson  # noqa: PLC0415 - --help needs none of it

    from trajudge.environments.recheck.rechecking import other_goals, rechecked  # noqa: PLC0415
    from trajudge.util.errors import UserError  # noqa: PLC0415
    from trajudge.util.files import check_file, save_bytes  # noqa: PLC0415
    from trajudge.util.terminal import count_of, one_line  # noqa: PLC0415

    if options.save and not options.other_goals:
        raise UserError(
            f"--save {options.save}: only --other-goals N writes a file: give both, or neither"
        )
    save = (options.save or Path(GOALS)) if options.other_goals else None
    if save:
        check_file(save, "--save")
    wrong, goals = 0, list[bytes]()
    for folder in options.folders:
        runs = list(rechecked(folder))
        differing = [run for run in runs if run.differences]
        wrong += len(differing)
        for run in differing[:_SHOWN]:
            difference = one_line(f"{run.trajectory.key}: {'; '.join(run.differences)}")
            sys.stderr.write(f"{difference}\n")
        if len(differing) > _SHOWN:
            sys.stderr.write(f"and {len(differing) - _SHOWN:,} more of {folder}\n")
        agreeing = len(runs) - len(differing)
        sys.stdout.write(f"{folder}: the labels of {agreeing:,} of {len(runs):,} runs are what ")
        sys.stdout.write("the state gives\n")
        if save:
            lines = other_goals(folder, options.other_goals)
            goals += [orjson.dumps(line) + b"\n" for line in lines]
    if save:
        save_bytes(save, b"".join(goals))
        sys.stdout.write(f"{save}: other goals of {count_of(len(goals), 'run')}\n")
    return FAILURES if wrong else OK


if __name__ == "__main__":
    sys.exit(main())
