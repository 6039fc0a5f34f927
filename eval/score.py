"""``python -m eval.score RUN…``: the tables of a run again, from its folder, without a call."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from trajectories.exits import DONE, Parser, user_errors

if TYPE_CHECKING:
    from eval.scoring import Missing, Scores

_DESCRIPTION = "Print the tables of runs, or of published judgments, again without a call."


def parser() -> argparse.ArgumentParser:
    """The command's options."""
    options = Parser(prog="trajudge score", description=_DESCRIPTION)
    options.add_argument("runs", nargs="*", type=Path, metavar="RUN", help="folder of a run")
    options.add_argument(
        "--judgments",
        type=Path,
        metavar="DIR",
        help="judgments in AgentRewardBench's published layout",
    )
    options.add_argument(
        "--annotations",
        metavar="SPEC",
        help="labels, KIND:PATH (default: those of the run; for --judgments the installed "
        "package agent-reward-bench)",
    )
    options.add_argument(
        "--split", choices=("dev", "test", "all"), default="all", help="of the annotations"
    )
    options.add_argument(
        "--missing",
        choices=("negative", "exclude", "agentrewardbench"),
        help="what a failed judgment counts as (default: negative, not accepted)",
    )
    options.add_argument(
        "--protocol",
        choices=("default", "agentrewardbench"),
        help="agentrewardbench: the paper's arithmetic; implies its --missing (default: the run's)",
    )
    options.add_argument("--csv", action="store_true", help="print results.csv instead of tables")
    options.add_argument("--json", action="store_true", help="print results.json instead of tables")
    return options


@user_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Score what the command line names and print it; the exit code."""
    options = parser().parse_args(arguments)
    from trajectories.errors import UserError  # noqa: PLC0415

    if not options.runs and options.judgments is None:
        raise UserError("nothing to score: give the folder of a run, or --judgments DIR")
    scores = _score(options)
    if options.csv or options.json:
        from eval.results import results_csv, results_json  # noqa: PLC0415

        sys.stdout.write(results_csv(scores) if options.csv else results_json(scores))
    elif sys.stdout.isatty():
        from rich.console import Console  # noqa: PLC0415

        from eval.tables import renderable  # noqa: PLC0415

        Console().print(renderable(scores))
    else:
        from eval.tables import plain  # noqa: PLC0415

        sys.stdout.write(plain(scores))
    return DONE


def _score(options: argparse.Namespace) -> Scores:
    from eval.scoring import score  # noqa: PLC0415
    from eval.sources import combine, read_published_folder, read_run  # noqa: PLC0415

    sources = [read_run(run) for run in options.runs]
    if options.judgments is not None:
        sources.append(
            read_published_folder(options.judgments, with_labels=not options.annotations)
        )
    combined = combine(sources)
    if options.annotations:
        from annotations import open_annotations, primary_labels  # noqa: PLC0415

        combined.labels = primary_labels(open_annotations(options.annotations))
    if options.split != "all":
        combined.restrict(options.split)
    return score(
        combined.judgments,
        combined.labels,
        rewards=combined.rewards,
        missing=_policy(options, combined.protocols),
    )


def _policy(options: argparse.Namespace, protocols: set[str]) -> Missing:
    """What the command line says, else what all the runs were made with."""
    from trajectories.errors import UserError  # noqa: PLC0415

    if options.missing is not None:
        return options.missing  # type: ignore[no-any-return]
    if options.protocol is None and len(protocols) > 1:
        raise UserError(
            f"the runs were scored under several protocols ({', '.join(sorted(protocols))}): "
            "choose one with --protocol"
        )
    protocol = options.protocol or next(iter(protocols), "default")
    return "agentrewardbench" if protocol == "agentrewardbench" else "negative"


if __name__ == "__main__":
    sys.exit(main())
