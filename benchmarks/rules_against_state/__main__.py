"""Compare rules with the state: ``python -m benchmarks.rules_against_state --out DIR``.

Records runs of the applications, compares the rules' verdicts with the labels from the state and
writes ``DIR/report.json``. Runs of scripted agents and runs with deviations (again, corrected,
spoiled, undone) are reported separately. A killed run continues. Existing runs are labelled again
from their facts, so that a change of the rules or of the reader of messages needs no new recording.
``--recorded`` adds recordings of ``trajudge env record`` (with ``cases.jsonl`` in the folder),
alone with ``--runs 0``; with ``--package PYTHON`` the released package judges a sample, in the
environment of that interpreter.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.rules_against_state.comparing import (
    RecordedRun,
    RunComparison,
    compare,
    recorded_runs,
)
from benchmarks.rules_against_state.package import asked
from benchmarks.rules_against_state.recording import RUNS_A_CASE, Portion, record
from benchmarks.rules_against_state.report import report, tables
from trajudge.environments.apps import APPS
from trajudge.environments.model.case import read_cases
from trajudge.rules.files import write_json
from trajudge.rules.values import Mode
from trajudge.rules.verdict import Outcome
from trajudge.util.commands import user_errors
from trajudge.util.tables import Table, print_tables

TURNS = 0.2  # the share of runs that take turns


def parser() -> argparse.ArgumentParser:
    """Return the benchmark's parser."""
    made = argparse.ArgumentParser(description=__doc__)
    add = made.add_argument
    add("--out", type=Path, required=True, metavar="DIR", help="recordings and report")
    add("--runs", type=int, default=2100, metavar="N", help="runs in all (default: 2100)")
    add("--seed", type=int, default=0, metavar="N", help="seed of what is drawn (default: 0)")
    add("--runs-a-case", type=int, default=RUNS_A_CASE, metavar="N", help="default: %(default)s")
    add("--recorded", type=Path, nargs="+", default=[], metavar="DIR", help="further recordings")
    add("--package", type=Path, metavar="PYTHON", help="interpreter that has webarena-verified")
    add("--sample", type=int, default=60, metavar="N", help="runs for the package (default: 60)")
    return made


@user_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Record, compare, run the package; return 1 if the package and the release mode differ."""
    options = parser().parse_args(arguments)
    counts = {"turns": int(options.runs * TURNS) // len(APPS)}
    counts["scripted"] = options.runs // len(APPS) - counts["turns"]
    found: dict[str, Any] = {}
    sampled: list[RecordedRun] = []
    for group in ("scripted", "turns"):
        folders = [
            _recorded(options, Portion(app, counts[group], group == "turns", options.seed))
            for app in (APPS if counts[group] else ())
        ]
        runs = _runs([*folders, *(options.recorded if group == "scripted" else [])])
        compared = list(compare(runs))
        found[group] = report(compared)
        sampled += _sample(runs, options.sample // 2, options.seed)
        sys.stdout.write(f"\n--- {group} ---\n")
        print_tables(tables(found[group]))
    found["by_turn"] = [row._asdict() for row in by_turn(compared)]
    print_tables([turn_table(by_turn(compared))])
    differs = False
    if options.package:
        found["package"] = _package(options.package, sampled, options.out)
        differs = bool(found["package"]["differences"])
    write_json(options.out / "report.json", found)
    return int(differs)


class TurnErrors(NamedTuple):
    """The errors of one kind of check on the runs with one deviation."""

    turn: str
    kind: str
    failed: int
    accepted: int
    succeeded: int
    rejected: int


def by_turn(compared: Sequence[RunComparison]) -> list[TurnErrors]:
    """Count the errors of the sound mode by deviation and kind of check."""
    kept = [one for one in compared if one.mode is Mode.SOUND and one.truth is not None]
    rows = []
    for turn in sorted({one.run.key.agent for one in kept}):
        for kind in ("network", "network, last only", "state"):
            some = [one for one in kept if (one.run.key.agent, one.kind) == (turn, kind)]
            failed = [one for one in some if one.truth is False]
            succeeded = [one for one in some if one.truth]
            accepted = sum(one.outcome is Outcome.PASS for one in failed)
            rejected = sum(one.outcome is Outcome.FAIL for one in succeeded)
            rows.append(TurnErrors(turn, kind, len(failed), accepted, len(succeeded), rejected))
    return rows


def turn_table(rows: Sequence[TurnErrors]) -> Table:
    """Lay out the errors by deviation."""
    head = ("turn", "kind of check", "failed", "accepted", "succeeded", "rejected")
    cells = [(row.turn, row.kind, *map(str, row[2:])) for row in rows]
    return Table("By what was done beside the task (sound mode)", head, cells)


def _recorded(options: argparse.Namespace, portion: Portion) -> Path:
    folder: Path = options.out / ("turns" if portion.turns else "scripted") / portion.app
    for reason in record(folder, portion, options.runs_a_case):
        sys.stderr.write(f"not played: {reason}\n")
    return folder


def _runs(folders: Sequence[Path]) -> list[RecordedRun]:
    runs = [
        run
        for folder in folders
        for run in recorded_runs(folder, read_cases(folder / "cases.jsonl"))
    ]
    changed = sum(run.changed for run in runs)
    sys.stdout.write(f"{len(runs)} runs labelled again, {changed} of them otherwise\n")
    return runs


def _sample(runs: Sequence[RecordedRun], count: int, seed: int) -> list[RecordedRun]:
    """Draw as many successful runs as others."""
    rng = np.random.default_rng(seed)
    kept: list[RecordedRun] = []
    for success in (True, False):
        some = [run for run in runs if run.success is success]
        size = min(count // 2, len(some))
        kept += [some[at] for at in rng.choice(len(some), size, replace=False)]
    return kept


def _package(python: Path, runs: Sequence[RecordedRun], out: Path) -> dict[str, Any]:
    replies = asked(python, runs, out)
    statuses = Counter(reply.status for reply in replies)
    apart = [reply for reply in replies if reply.score != reply.ours]
    passed = sum(reply.score == 1 for reply in replies)
    right = sum(bool(reply.score) is reply.run.success for reply in replies)
    sys.stdout.write(
        f"\nthe package on {len(replies)} runs: {dict(statuses)}, {passed} passed, "
        f"{right} as the state says; {len(apart)} otherwise than our release mode\n"
    )
    differences = [
        {"key": one.run.key.model_dump(), "status": one.status, "score": one.score}
        | {"ours": one.ours, "reasons": one.reasons}
        for one in apart
    ]
    counts = {"runs": len(replies), "statuses": dict(statuses), "passed": passed}
    return {**counts, "as_the_state": right, "differences": differences}


if __name__ == "__main__":
    sys.exit(main())
