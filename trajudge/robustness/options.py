"""The options of ``trajudge robust``. Nothing slow is imported here."""

from __future__ import annotations

import argparse
from pathlib import Path

from trajudge.eval.runs.options import ensemble_options, judge_options, prompt_options
from trajudge.judges.calls.options import call_options
from trajudge.util.commands import OptionAdder, TextParser, count, samples

_DESCRIPTION = """\
Compare a judge's verdicts on runs that were changed in known ways with those on the runs as they
were: how often claims, instructions on the page and forged evidence make it accept a failure, and
what is left of its precision. The same command continues an interrupted one.

  trajudge robust --judge heuristic --judge simplified --model gpt-4o
  trajudge robust --judge simplified --model gpt-4o --defence each --dry-run
  trajudge robust runs/attacked --attacked attacked   # judged before: compared
"""
_FILES = """\
In --out: robustness.json and robustness.csv (per judge every perturbation with its rates, and
precision under each attack), matrix.csv and matrix.svg (success of injections by carrier and
technique), cards/ (a card of each judge, to be published), cases/ (ten runs that show what moves
it), defences.csv and curve.svg (with --defence: what each gives and costs), attacked/ (the changed
runs) and runs/ (a run of each judge). A judge that failed is no "no": it lost coverage.
"""


def parser() -> argparse.ArgumentParser:
    """Make the command's parser."""
    made = TextParser(prog="trajudge robust", description=_DESCRIPTION, epilog=_FILES)
    made.add_argument(
        "runs", nargs="*", type=Path, metavar="RUN", help="run of a judge on the changed runs"
    )
    judge = made.add_argument_group("the judge")
    judge_options(judge)
    ensemble_options(judge)
    prompt_options(judge)
    judge.add_argument(
        "--defence",
        action="append",
        metavar="NAME[=VALUE]",
        help="also every judge with this option against what it reads (hide, two-pass, datamark, "
        "sandwich, nonce, canary, cross-modal; A+B for both; each for all, one by one); may be "
        "repeated",
    )
    _change_options(made.add_argument_group("the changed runs"))
    call_options(made.add_argument_group("the calls"))
    measurement = made.add_argument_group("the measurement")
    add = measurement.add_argument
    add("--samples", type=samples, default=1, metavar="N", help="judgments per run (default: 1)")
    add("--retry-failed", action="store_true", help="ask again where an earlier try failed")
    add(
        "--adaptive",
        nargs="?",
        type=count,
        const=25,
        metavar="N",
        help="also an attacker that learns, with N queries of each failure (default: 25)",
    )
    add(
        "--drift",
        type=Path,
        metavar="FILE",
        help="write the verdicts here; where FILE is there, ask again and say if they moved",
    )
    add("--full", action="store_true", help="all perturbations")
    about = "default: robustness"
    OptionAdder(measurement).output_folder("--out", about, default=Path("robustness"))
    first = "judge model data suite perturbation limit max-cost dry-run attacked out"
    return made.show_first(*first.split())


def _change_options(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--data", metavar="KIND:PATH", help="the trajectories (default: as trajudge judge)")
    OptionAdder(group).labels("expert labels (default: those of the data)")
    add(
        "--suite",
        choices=("core", "all"),
        default="core",
        help="core (default): some of every family; all: all of them",
    )
    add(
        "--perturbation",
        action="append",
        metavar="NAME",
        help="one of the catalogue, or two as A+B; may be repeated (default: --suite)",
    )
    add("--limit", type=count, metavar="N", help="runs that are changed at most (default: 150)")
    add("--attacked", type=Path, metavar="DIR", help="what trajudge data perturb wrote")
