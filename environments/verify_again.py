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

from trajudge.environments.options import add_save
from trajudge.trajectories.util.exits import FAILURES, OK, Parser, command
from trajudge.trajectories.util.options import OptionAdder


def parser() -> argparse.ArgumentParser:
    """Make the command's parser."""
    made = Parser(prog="trajudge env verify", description=__doc__)
    add = OptionAdder(made)
    add.folders("folders", "RECORDED", "folder with facts.jsonl", nargs="+")
    add.number(
        "--other-goals",
        "ask the checkers of N other instances of each task, and write what they say",
    )
    add_save(made, "goals.jsonl")
    return made


@command(parser)
def main(options: argparse.Namespace) -> int:
    """Verify the folders; return 1 if a label is not what the state gives."""
    import orjson  # noqa: PLC0415 - --help needs none of it

    from trajudge.environments.recheck.rechecking import other_goals, rechecked  # noqa: PLC0415
    from trajudge.trajectories.util.atomic import save_bytes  # noqa: PLC0415
    from trajudge.trajectories.util.terminal import one_line  # noqa: PLC0415

    wrong, goals = 0, list[bytes]()
    for folder in options.folders:
        runs = list(rechecked(folder))
        differing = [run for run in runs if run.differences]
        wrong += len(differing)
        for run in differing[:20]:
            difference = one_line(f"{run.trajectory.key}: {'; '.join(run.differences)}")
            sys.stderr.write(f"{difference}\n")
        agreeing = len(runs) - len(differing)
        sys.stdout.write(f"{folder}: the labels of {agreeing:,} of {len(runs):,} runs are what ")
        sys.stdout.write("the state gives\n")
        if options.other_goals:
            lines = other_goals(folder, options.other_goals)
            goals += [orjson.dumps(line) + b"\n" for line in lines]
    if options.other_goals:
        save_bytes(options.save, b"".join(goals))
        sys.stdout.write(f"{options.save}: other goals of {len(goals):,} runs\n")
    return FAILURES if wrong else OK


if __name__ == "__main__":
    sys.exit(main())
