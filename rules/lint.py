"""``python -m rules.lint``: what is weak in the specifications of a set of tasks.

python -m rules.lint --tasks test.raw.json
python -m rules.lint --tasks mine.json --category dead_marker --out lint/ --strict
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from trajudge.rules.findings import Count, Finding, counts
from trajudge.rules.output import brief, first, show, text_of, write_csv, write_json
from trajudge.rules.suites import KINDS, Suite, detected, suite
from trajudge.trajectories.util.errors import UserError
from trajudge.trajectories.util.exits import DONE, FAILURES, Parser, user_errors
from trajudge.trajectories.util.terminal import one_line

COLUMNS = ("task_id", "category", "field", "value", "problem", "mend")


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    made = Parser(
        prog="python -m rules.lint",
        description=__doc__.split("\n\n")[0],
        epilog="exit codes: 0 done, 1 findings under --strict, 2 a mistake in the call or its "
        "files, 130 interrupted",
        allow_abbrev=False,
    )
    made.add_argument("--tasks", type=Path, required=True, metavar="PATH", help="the task file")
    made.add_argument("--kind", choices=tuple(KINDS), help="its kind (default: detected)")
    made.add_argument(
        "--category", action="append", metavar="NAME", help="only this one; may be repeated"
    )
    made.add_argument(
        "--limit", type=int, default=20, metavar="N", help="findings shown (default: 20)"
    )
    made.add_argument("--out", type=Path, metavar="DIR", help="write lint.json and lint.csv")
    made.add_argument("--strict", action="store_true", help="exit with 1 if there are findings")
    return made.parse_args(argv)


@user_errors
def main(argv: Sequence[str] | None = None) -> int:
    """Lint the tasks and show, and with ``--out`` write, the findings."""
    options = _options(argv)
    rules = suite(options.kind or detected(options.tasks))
    categories = _chosen(options.category, rules)
    tasks = rules.load(options.tasks)
    found = [finding for finding in rules.lint(tasks) if finding.category in categories]
    unions = {name: parts for name, parts in rules.unions.items() if set(parts) <= {*categories}}
    counted = counts(found, categories, unions)
    if options.out:
        _write(options.out, rules.kind, counted, found)
    _show(f"{options.tasks.name}: {len(tasks)} tasks", counted, found, options.limit)
    if options.out:
        sys.stdout.write(f"written: {one_line(str(options.out / 'lint.json'))} and lint.csv\n")
    return FAILURES if found and options.strict else DONE


def _chosen(wanted: Sequence[str] | None, rules: Suite) -> tuple[str, ...]:
    """The categories to report; the name of a union stands for its parts."""
    if not wanted:
        return tuple(rules.categories)
    chosen: set[str] = set()
    for name in wanted:
        parts = rules.unions.get(name, (name,))
        if not set(parts) <= {*rules.categories}:
            known = ", ".join((*rules.categories, *rules.unions))
            raise UserError(f"--category {name}: {rules.kind} tasks have {known}")
        chosen |= set(parts)
    return tuple(name for name in rules.categories if name in chosen)


def _show(title: str, counted: Sequence[Count], found: Sequence[Finding], limit: int) -> None:
    if found and limit > 0:
        size = {count.category: count.findings for count in counted}
        rows = [_row(finding, brief(finding.value)) for finding in found]
        rarest = sorted(rows, key=lambda row: size[str(row[1])])[:limit]
        show(f"{len(rarest)} of {len(found)} findings, the rarest first", COLUMNS, rarest)
    show(
        title,
        ("category", "tasks", "findings", "which"),
        [
            (_label(count), len(count.tasks), count.findings, first(count.tasks))
            for count in counted
        ],
    )


def _label(count: Count) -> str:
    return f"{count.category} = {' or '.join(count.union_of)}" if count.union_of else count.category


def _row(finding: Finding, value: str) -> tuple[object, ...]:
    f = finding
    return (f.task_id, f.category, f.field, value, f.problem, f.mend)


def _write(out: Path, kind: str, counted: Sequence[Count], found: Sequence[Finding]) -> None:
    write_json(out / "lint.json", {"kind": kind, "counts": counted, "findings": found})
    rows = (_row(finding, text_of(finding.value)) for finding in found)
    write_csv(out / "lint.csv", COLUMNS, rows)


if __name__ == "__main__":
    sys.exit(main())
