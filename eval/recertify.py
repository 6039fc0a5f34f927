"""``python -m eval.recertify``: certify a choice again for other agents, with few labels."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from trajudge.trajectories.util.exits import DONE, FAILURES, user_errors

if TYPE_CHECKING:
    from trajudge.eval.acceptance.recertification import Outcome, Recertification

_DESCRIPTION = """\
A decision of eval.select holds for the agents whose runs were labelled for it. For others draw a
sample of the runs that eval.accept took, label them in order, and test after every label:

  python -m eval.recertify --decision selections/0a1b2c3d --accepted accepted --out again
  python -m eval.recertify --sample again --annotations trajudge:labels.jsonl

The first call writes sample.jsonl: tasks in random order, one accepted run of each, with its
inclusion probability and weight. The second reads labels in that order, up to the first run
without one, and once the target is shown, or shown to be missed, writes decision.json for these
agents alone. It may be repeated as labels come: the error is at most 1 - confidence however often
one looks. Assumed is that the tasks are independent draws from those the judge will be used on;
runs of one task may depend on each other in any way, for only one of each is labelled.
"""
_EPILOG = (
    "exit codes: 0 the sample was drawn, or the target is shown; 1 it is not (yet); 2 a mistake"
)


def parser() -> argparse.ArgumentParser:
    """The command's options."""
    made = argparse.ArgumentParser(
        prog="python -m eval.recertify",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = made.add_argument
    add("--decision", type=Path, metavar="DIR", help="what python -m eval.select wrote")
    add("--accepted", type=Path, metavar="DIR", help="what python -m eval.accept wrote")
    add(
        "--agent",
        action="append",
        metavar="NAME",
        help="certify for this agent; may be repeated (default: those the decision does not know)",
    )
    add("--size", type=int, metavar="N", help="runs to label (default: planned, power 0.8)")
    add("--seed", type=int, default=0, metavar="N", help="of the sample (default: 0)")
    add("--out", type=Path, metavar="DIR", help="a new folder for the sample")
    add("--sample", type=Path, metavar="DIR", help="test this sample with --annotations")
    add("--annotations", metavar="KIND:PATH", help="labels of the sampled runs")
    return made


@user_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Draw the sample, or test it; the exit code."""
    options = parser().parse_args(arguments)
    from trajudge.trajectories.util.errors import UserError  # noqa: PLC0415 - --help needs none of these

    drawing = (options.decision, options.accepted, options.out)
    if options.sample is not None:
        if any(drawing) or options.annotations is None:
            raise UserError("--sample DIR takes --annotations KIND:PATH, and nothing else")
        return _check(options)
    if not all(drawing) or options.annotations is not None:
        raise UserError(
            "draw a sample with --decision DIR --accepted DIR --out DIR, or test one with "
            "--sample DIR --annotations KIND:PATH"
        )
    if options.seed < 0 or (options.size is not None and options.size < 1):
        raise UserError("--size is at least 1, --seed at least 0")
    return _draw(options)


def _draw(options: argparse.Namespace) -> int:
    from trajudge.eval.acceptance.acceptance import ACCEPTED  # noqa: PLC0415
    from trajudge.eval.acceptance.recertification import (  # noqa: PLC0415
        SAMPLE,
        accepted_keys,
        other_agents,
        plan_sample,
        write_sample,
    )
    from trajudge.eval.select.output import read_decision  # noqa: PLC0415
    from trajudge.trajectories.util.errors import UserError  # noqa: PLC0415

    decision = read_decision(options.decision)
    keys = accepted_keys(options.accepted / ACCEPTED, decision.plan_hash)
    agents = options.agent or other_agents(decision, keys)
    if not agents:
        raise UserError(
            f"{options.accepted}: every accepted run is of an agent that the decision was made on: "
            "name one with --agent NAME to certify it again"
        )
    made = plan_sample(
        decision, options.accepted, keys, agents, size=options.size, seed=options.seed
    )
    write_sample(options.out, made)
    planned = "no reasonable number" if made.planned is None else str(made.planned)
    sys.stdout.write(
        f"label the {made.size} runs in {options.out / SAMPLE}, in that order: one of each of "
        f"{made.size} tasks out of {len(made.runs)}, from {made.accepted_runs} accepted runs of "
        f"{', '.join(agents)}\n{planned} labels decide with probability 0.8, were the precision "
        f"that of the decision; then  python -m eval.recertify --sample {options.out} "
        "--annotations KIND:PATH\n"
    )
    return DONE


def _check(options: argparse.Namespace) -> int:
    from trajudge.annotations import open_annotations, primary_labels  # noqa: PLC0415
    from trajudge.eval.acceptance.recertification import check, new_decision, read_sample  # noqa: PLC0415
    from trajudge.eval.select.files import write_whole  # noqa: PLC0415
    from trajudge.eval.select.output import decision_json  # noqa: PLC0415

    made = read_sample(options.sample)
    found = check(made, primary_labels(open_annotations(options.annotations)))
    sys.stdout.write(_text(made, found))
    if found.verdict != "undecided":
        content = decision_json(new_decision(made, found))
        write_whole(options.sample / "decision.json", content.encode())
        sys.stdout.write(f"the decision for these agents is in {options.sample}\n")
    return DONE if found.verdict == "certified" else FAILURES


def _text(made: Recertification, found: Outcome) -> str:
    plan = made.decision.plan
    needed = 1 / (1 - plan.confidence)
    target, agents = f"{100 * plan.target.rate:.4g} %", ", ".join(made.agents)
    counted = f"{found.hits} true successes in {found.used - found.unsure} labels"
    if found.verdict == "certified":
        said = (
            f"certified: of what the judge accepts of {agents} at least {target} are true "
            f"successes, with {100 * plan.confidence:.4g} % confidence"
        )
    elif found.verdict == "below the target":
        said = f"below the target: less than {target} of what it accepts of {agents} succeeded"
    else:
        said = f"undecided: whether {target} of what it accepts of {agents} succeeded"
    lines = [
        f"{said} ({counted}; precision at least {100 * found.low:.1f} %)",
        f"e-value {found.evidence:.3g} for the target, {found.against:.3g} against it; "
        f"{needed:.3g} decides",
    ]
    if found.unsure:
        lines.append(f"{found.unsure} labels are unsure: nothing was bet on them")
    if found.verdict == "undecided":
        rest = len(made.runs) - found.used
        lines.append(
            f"label the next runs in the order of the sample ({rest} tasks are left), and test "
            "again"
            if rest
            else "every task has its label: accept more runs, or count on the limit above"
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
