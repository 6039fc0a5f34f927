"""Show and write the report of a mutation test."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from trajudge.rules.audit.mutation import Misjudgment, MutationReport, Rate
from trajudge.rules.output import brief, show, write_csv, write_json
from trajudge.trajectories.util.tables import Table, first_screen, folded, screen_width
from trajudge.trajectories.util.terminal import one_line

_COLUMNS = ("change", "must", "wrong", "decided", "unknown", "rate", "95 %")
_SCREEN = ("change", "must", "wrong", "decided", "unknown", "rate [95 %]")
_SHOWN, _SCREEN_SHOWN = 200, 55
_FIRST = 5


def write_report(out: Path, dialect: str, mode: str, report: MutationReport) -> None:
    """Write ``mutation.json`` and ``mutation.csv``. Raises UserError."""
    write_json(out / "mutation.json", {"dialect": dialect, "mode": mode, "report": report})
    rows = [(m.case, m.mutator, m.expected, brief(m.answer, _SHOWN)) for m in report.mistakes]
    write_csv(out / "mutation.csv", ("case", "change", "must", "answer"), rows)


def print_report(
    title: str, report: MutationReport, limit: int, *, out: Path | None, full: bool
) -> None:
    """Print one screen, or with ``full`` everything and at most ``limit`` misjudgments; ``out`` is
    where the report is written then."""
    where = "--out DIR writes every misjudgment"
    if out is not None:
        where = f"all misjudgments: {one_line(str(out / 'mutation.json'))} and mutation.csv"
    if full:
        _print_all(title, report, limit)
        sys.stdout.write(f"{where}\n")
    else:
        rest = f"All changes: --full; {where}"
        sys.stdout.write(report_screen(title, report, limit, rest=rest))


def report_screen(
    title: str, report: MutationReport, limit: int, *, rest: str, width: int | None = None
) -> str:
    """Lay out the report in at most 40 lines: false accepts and rejects, the rates by mutator with
    the worst first, and at most ``limit`` and five misjudgments.

    ``rest`` says where everything else stands.
    """
    by_rate = sorted(report.mutators, key=lambda one: (-(one.share or 0), one.mutator))
    rows = [(one.mutator, one.expected, *map(str, _counts(one)), _rate(one)) for one in by_rate]
    first = report.mistakes[: max(0, min(limit, _FIRST))]
    lines = [_misjudgment(one, _SCREEN_SHOWN) for one in first]
    more = len(report.mistakes) - len(lines)
    if more > 0:
        lines.append(f"and {more:,} more misjudgments")
    accepts, rejects = _finding(report)
    return first_screen(
        [f"{title}: {accepts}", rejects], [Table("", _SCREEN, rows)], lines, rest=rest, width=width
    )


def _print_all(title: str, report: MutationReport, limit: int) -> None:
    sys.stdout.writelines(f"{line}\n" for line in _finding(report))
    rows = sorted(report.mutators, key=lambda rate: (rate.expected, -rate.wrong, rate.mutator))
    show(title, _COLUMNS, [_row(rate) for rate in rows])
    for one in report.mistakes[: max(0, limit)]:
        line = _misjudgment(one, _SHOWN)
        sys.stdout.write("\n".join(folded(line, screen_width(), most=2)) + "\n")
    if len(report.mistakes) > limit:
        sys.stdout.write(f"{len(report.mistakes):,} misjudgments in all\n")


def _finding(report: MutationReport) -> Sequence[str]:
    """Say how often near misses are accepted, and correct runs rejected."""
    overall = (("false accepts", report.false_accepts), ("false rejects", report.false_rejects))
    return [
        f"{name}: {_rate(rate)} %, {rate.wrong:,} of {rate.trials:,}; {rate.undecided:,} unknown"
        for name, rate in overall
    ]


def _misjudgment(one: Misjudgment, most: int) -> str:
    verb = "accepted" if one.expected == "fail" else "rejected"
    return f"task {one.case}: {verb} {one.mutator}: {one_line(brief(one.answer, most))}"


def _row(rate: Rate) -> tuple[object, ...]:
    return (rate.mutator, rate.expected, *_counts(rate), _share(rate), _limits(rate))


def _counts(rate: Rate) -> tuple[int, int, int]:
    return (rate.wrong, rate.trials, rate.undecided)


def _rate(rate: Rate) -> str:
    """Return a rate in percent with its limits, as ``1.2 [0.5, 2.4]``."""
    if rate.share is None:
        return "–"
    limits = "" if rate.low is None else f" [{100 * rate.low:.1f}, {100 * (rate.high or 0):.1f}]"
    return f"{100 * rate.share:.1f}{limits}"


def _share(rate: Rate) -> str:
    return "" if rate.share is None else f"{rate.share:.1%}"


def _limits(rate: Rate) -> str:
    return "" if rate.low is None else f"{rate.low:.1%} to {rate.high:.1%}"
