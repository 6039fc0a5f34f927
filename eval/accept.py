"""``trajudge accept``: keep the trajectories that a judge accepts, for fine-tuning."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from trajudge.trajectories.util.exits import FAILURES, OK, Parser, user_errors
from trajudge.trajectories.util.options import read_settings

if TYPE_CHECKING:
    from trajudge.eval.acceptance.accepting import Acceptance
    from trajudge.eval.acceptance.settings import AcceptConfig

_DESCRIPTION = """\
Apply a choice of judge and threshold: write the accepted trajectories as conversations for
fine-tuning, with their provenance, and the rejected ones with the reason.

  trajudge accept --decision selections/0a1b2c3d --run runs/new --out accepted
  trajudge accept --judge webjudge-7b --threshold 1 --judgments DIR --data KIND:PATH
  trajudge accept --judge heuristic --threshold 1 --data sample

Without --run and --judgments the judge is asked now: options that are not listed here are those of
trajudge judge.
"""
_EPILOG = """\
accepted.jsonl: a line a trajectory, {"messages": [{"role", "content"}, ...], "provenance": {...}};
one system turn, then a step: a user turn (goal, url, page), an assistant turn (<think>, <action>).
rejected.jsonl: {"key", "kind", "reason", "score"}.
acceptance.json: what was applied to what, and how many ended how.
"""


def parser() -> argparse.ArgumentParser:
    """Make the command's parser."""
    made = Parser(
        prog="trajudge accept",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = made.add_argument
    add("--decision", type=Path, metavar="DIR", help="what trajudge select wrote")
    add("--judge", metavar="NAME", help="the judge, instead of a decision")
    add("--threshold", type=float, metavar="T", help="accept scores of at least T (a verdict: 1)")
    add("--run", type=Path, action="append", default=[], help="folder of a run; may be repeated")
    add("--judgments", type=Path, metavar="DIR", help="in AgentRewardBench's published layout")
    add("--data", metavar="KIND:PATH", help="the trajectories (default: those of the run)")
    add("--out", type=Path, default=Path("accepted"), metavar="DIR", help="default: accepted")
    add("--dataset", type=Path, metavar="DIR", help="the accepted ones as a datasets dataset, too")
    add("--page", choices=("pruned", "full", "none"), default="pruned", help="accessibility tree")
    add(
        "--without-observations",
        action="store_true",
        help="also export runs with steps whose page was not recorded (their user turns are bare)",
    )
    add("--system", type=Path, metavar="FILE", help="another text of the system turn")
    add(
        "--any-benchmark",
        action="store_true",
        help="also where the decision was not shown to hold",
    )
    add(
        "--agents",
        choices=("same", "any"),
        help="runs of agents that the decision was not made on: same rejects them, any takes them "
        "(default: take them, and ask for a sample to recertify)",
    )
    add(
        "--assume-same-judge",
        action="store_true",
        help="where the decision or the run does not record the judge's settings: they are the "
        "same (what both record is compared all the same)",
    )
    return made


@user_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Apply the choice and write; return the exit code (1: nothing was accepted)."""
    options, rest = parser().parse_known_args(arguments)
    from trajudge.eval.acceptance.accepting import accept  # noqa: PLC0415 - --help needs none of these
    from trajudge.eval.acceptance.settings import AcceptConfig  # noqa: PLC0415
    from trajudge.trajectories.util.errors import UserError  # noqa: PLC0415

    config = read_settings(AcceptConfig, options)
    if config.judge and config.data and not (config.run or config.judgments):
        config = _judged_now(config, rest)
    elif rest:
        raise UserError(f"no option {rest[0]!r}: see  trajudge accept --help")
    made = accept(config)
    sys.stdout.write(_text(config, made))
    return OK if made.counts.get("accepted") else FAILURES


def _judged_now(config: AcceptConfig, rest: Sequence[str]) -> AcceptConfig:
    """Ask the judge and keep its run below ``--out``. Raises UserError."""
    from trajudge.eval import judge  # noqa: PLC0415 - only a run of the judge needs these
    from trajudge.eval.acceptance.accepting import choose  # noqa: PLC0415
    from trajudge.eval.data.run_folder import read_judgments  # noqa: PLC0415
    from trajudge.trajectories.util.errors import UserError  # noqa: PLC0415

    choose(config)  # a mistake in it costs no call
    run = config.out / "run"
    split = [] if "--split" in rest else ["--split", "all"]
    wanted = ["--judge", config.judge, "--data", config.data, "--out", str(run), *split, *rest]
    code = judge.main([word for word in wanted if word is not None])
    if code not in (OK, FAILURES):
        raise UserError(f"{config.judge} could not be asked (exit code {code}): nothing written")
    asked = sorted({judgment.judge for judgment in read_judgments(run)})
    if len(asked) > 1:
        raise UserError(f"one judge is applied at a time, not {', '.join(asked)}: name one --model")
    return config.model_copy(update={"run": (run,), "judge": asked[0] if asked else config.judge})


def _text(config: AcceptConfig, made: Acceptance) -> str:
    from trajudge.eval.acceptance.acceptance import ACCEPTED, REJECTED  # noqa: PLC0415

    rejected = {kind: count for kind, count in made.counts.items() if kind != "accepted"}
    why = ", ".join(f"{count} {kind}" for kind, count in rejected.items()) or "none"
    head = (
        f"{made.choice.name} at threshold {made.choice.threshold:.4g}: "
        f"{made.counts.get('accepted', 0)} accepted ({config.out / ACCEPTED}), "
        f"{sum(rejected.values())} rejected: {why} ({config.out / REJECTED})"
    )
    return "".join(f"{line}\n" for line in (head, *made.warnings))


if __name__ == "__main__":
    sys.exit(main())
