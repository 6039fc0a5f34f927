"""``python -m rules.mutate``: does a rule reject near misses, and accept what differs in form only?

    python -m rules.mutate --tasks webarena-verified.json
    python -m rules.mutate --tasks tasks.json --runs correct/ --site shopping=http://shop.test

Without ``--runs`` a correct run is built from every task's specification. The runs of ``--runs``,
in the form that ``rules.evaluate`` reads, are taken to be correct: one that the rule fails is a
false rejection.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from trajudge.rules.hosts import add_host_options, hosts_of
from trajudge.rules.mutation.testing import MutationReport, Rate, mutation_report
from trajudge.rules.output import brief, progress_line, show, write_csv, write_json
from trajudge.rules.suites import audit_options, opened
from trajudge.trajectories.util.errors import UserError
from trajudge.trajectories.util.exits import DONE, Parser, user_errors
from trajudge.trajectories.util.terminal import one_line

_COLUMNS = ("change", "must", "wrong", "decided", "unknown", "rate", "95 %")
_SHOWN = 200


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    made = Parser(
        prog="python -m rules.mutate",
        description=__doc__.split("\n\n")[0],
        epilog="exit codes: 0 done, 2 a mistake in the call or its files, 130 interrupted",
        allow_abbrev=False,
    )
    add = made.add_argument
    audit_options(made)
    add("--runs", type=Path, metavar="PATH", help="correct runs (default: built from the tasks)")
    add("--passing-only", action="store_true", help="leave out runs that the rule does not pass")
    add_host_options(made)
    add("--limit", type=int, default=10, metavar="N", help="mistakes shown (default: 10)")
    add("--out", type=Path, metavar="DIR", help="write mutation.json and mutation.csv")
    return made.parse_args(argv)


@user_errors
def main(argv: Sequence[str] | None = None) -> int:
    """Change correct runs, judge them, and show, and with ``--out`` write, where the rule erred."""
    options = _options(argv)
    path, rules, mode, tasks = opened(options)
    trials = rules.trials(tasks, options.runs, mode, hosts_of(options))
    tell = progress_line()
    report = mutation_report(
        *trials,
        passing_only=options.passing_only,
        tell=lambda done: tell("runs", done, len(tasks)),
    )
    if not report.mutators:
        raise UserError(f"{options.runs or path}: no run to change: add one that passes")
    if options.out:
        found = {"kind": rules.kind, "mode": mode, "report": report}
        write_json(options.out / "mutation.json", found)
        rows = [(m.case, m.mutator, m.expected, brief(m.answer, _SHOWN)) for m in report.mistakes]
        write_csv(options.out / "mutation.csv", ("case", "change", "must", "answer"), rows)
    _show(f"{path.name}, {mode} rules", report, options.limit)
    if options.out:
        where = one_line(str(options.out / "mutation.json"))
        sys.stdout.write(f"written: {where} and mutation.csv\n")
    return DONE


def _show(title: str, report: MutationReport, limit: int) -> None:
    rows = sorted(report.mutators, key=lambda rate: (rate.expected, -rate.wrong, rate.mutator))
    show(title, _COLUMNS, [_row(rate) for rate in rows])
    overall = (("false accepts", report.false_accepts), ("false rejects", report.false_rejects))
    for name, rate in overall:
        counts = f"{rate.wrong} of {rate.trials} decided, {rate.undecided} unknown"
        sys.stdout.write(f"{name}: {_share(rate)} ({_limits(rate)}), {counts}\n")
    for mistake in report.mistakes[: max(0, limit)]:
        verb = "accepted" if mistake.expected == "fail" else "rejected"
        said = one_line(brief(mistake.answer, _SHOWN))
        sys.stdout.write(f"task {mistake.case}: {verb} {mistake.mutator}: {said}\n")
    if len(report.mistakes) > limit:
        sys.stdout.write(f"{len(report.mistakes)} mistakes in all: --out DIR writes them\n")


def _row(rate: Rate) -> tuple[object, ...]:
    counts = (rate.wrong, rate.trials, rate.undecided)
    return (rate.mutator, rate.expected, *counts, _share(rate), _limits(rate))


def _share(rate: Rate) -> str:
    return "" if rate.share is None else f"{rate.share:.1%}"


def _limits(rate: Rate) -> str:
    return "" if rate.low is None else f"{rate.low:.1%} to {rate.high:.1%}"


if __name__ == "__main__":
    sys.exit(main())
