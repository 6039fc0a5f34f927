"""Show and write the report of a mutation test."""

from __future__ import annotations

import sys
from pathlib import Path

from trajudge.rules.mutation.testing import MutationReport, Rate
from trajudge.rules.output import brief, show, write_csv, write_json
from trajudge.trajectories.util.tables import folded, screen_width
from trajudge.trajectories.util.terminal import one_line

_COLUMNS = ("change", "must", "wrong", "decided", "unknown", "rate", "95 %")
_SHOWN = 200


def write_report(out: Path, kind: str, mode: str, report: MutationReport) -> None:
    """Write ``mutation.json`` and ``mutation.csv``. Raises UserError."""
    write_json(out / "mutation.json", {"kind": kind, "mode": mode, "report": report})
    rows = [(m.case, m.mutator, m.expected, brief(m.answer, _SHOWN)) for m in report.mistakes]
    write_csv(out / "mutation.csv", ("case", "change", "must", "answer"), rows)


def show_report(title: str, report: MutationReport, limit: int) -> None:
    """Print the rates by mutator and at most ``limit`` misjudgments."""
    rows = sorted(report.mutators, key=lambda rate: (rate.expected, -rate.wrong, rate.mutator))
    show(title, _COLUMNS, [_row(rate) for rate in rows])
    overall = (("false accepts", report.false_accepts), ("false rejects", report.false_rejects))
    for name, rate in overall:
        counts = f"{rate.wrong} of {rate.trials} decided, {rate.undecided} unknown"
        sys.stdout.write(f"{name}: {_share(rate)} ({_limits(rate)}), {counts}\n")
    for mistake in report.mistakes[: max(0, limit)]:
        verb = "accepted" if mistake.expected == "fail" else "rejected"
        said = one_line(brief(mistake.answer, _SHOWN))
        line = f"task {mistake.case}: {verb} {mistake.mutator}: {said}"
        sys.stdout.write("\n".join(folded(line, screen_width(), most=2)) + "\n")
    if len(report.mistakes) > limit:
        sys.stdout.write(f"{len(report.mistakes)} mistakes in all: --out DIR writes them\n")


def _row(rate: Rate) -> tuple[object, ...]:
    counts = (rate.wrong, rate.trials, rate.undecided)
    return (rate.mutator, rate.expected, *counts, _share(rate), _limits(rate))


def _share(rate: Rate) -> str:
    return "" if rate.share is None else f"{rate.share:.1%}"


def _limits(rate: Rate) -> str:
    return "" if rate.low is None else f"{rate.low:.1%} to {rate.high:.1%}"
