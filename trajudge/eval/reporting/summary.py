"""Show scores on one screen: the finding, one table, coverage, cost, warnings, and where all else
stands."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from trajudge.eval.reporting.sentences import (
    LABELS_OPTION,
    UNDEFINED,
    baseline_rows,
    benchmark_name,
    cost_sentence,
    evaluator_name,
    finding,
    is_labelled,
    ordered_judges,
    percent,
    precision_cell,
    rate_cell,
    score_rows,
    shown_benchmarks,
    warnings_of,
)
from trajudge.eval.reporting.tables import fault_tables
from trajudge.eval.scoring.records import (
    ALL_AGENTS,
    LABEL_TITLES,
    LABELS,
    OVERALL,
    LabelName,
    Score,
    ScoreReport,
)
from trajudge.util.tables import (
    WARNINGS,
    Table,
    columns,
    first_warnings,
    fitted,
    folded,
    screen_width,
)
from trajudge.util.terminal import LINES, count_of

_HEAD = ("evaluator", "precision [95 %]", "recall", "F1", "n")
_FAULT_ROWS = 6
_REST = "All tables: --full"


class BenchmarkRows(NamedTuple):
    """The rows of one benchmark: its ``judges`` and the ``rules``, the rule-based baseline, then
    those without precision (``empty``); and the trivial baselines, which stay where judges are left
    out."""

    benchmark: str
    judges: list[tuple[str, ...]]
    rules: list[tuple[str, ...]]
    empty: list[tuple[str, ...]]
    trivial: list[tuple[str, ...]]

    @property
    def rows(self) -> list[tuple[str, ...]]:
        """All but the trivial baselines."""
        return [*self.judges, *self.rules, *self.empty]

    def first(self, most: int) -> list[tuple[str, ...]]:
        """Return the first rows, the baseline among them where it has room beside a judge."""
        judges = self.judges[: max(most - bool(self.rules), 1)]
        return [*judges, *self.rules, *self.empty][:most]

    def named(self) -> list[tuple[str, ...]]:
        """Return all rows, with the benchmark's name in the first alone."""
        return _named(self.benchmark, [*self.rows, *self.trivial])

    def without_idle(self) -> BenchmarkRows:
        """Leave out the trivial baseline that accepts nothing."""
        return self._replace(trivial=[row for row in self.trivial if UNDEFINED not in row])


class SummaryParts(NamedTuple):
    """The first screen before it is laid out: ``table`` is None where no label was given."""

    above: list[str]
    table: Table | None
    below: list[str]


def summary_parts(scores: ScoreReport, *, option: str = LABELS_OPTION) -> SummaryParts:
    """Return the finding, the table of all benchmarks, and coverage, cost and warnings; ``option``
    names labels."""
    label = _label(scores)
    groups = _groups(scores, label) if label else []
    rows = [row for group in groups for row in group.named()]
    table = Table(LABEL_TITLES[label], ("benchmark", *_HEAD), rows) if label and rows else None
    warnings = dict.fromkeys(warnings_of(scores) if label else [])
    below = [_coverage(scores), cost_sentence(scores), *warnings]
    return SummaryParts(finding(scores, label, option=option), table, below)


def summary(
    scores: ScoreReport,
    *,
    seconds: float | None = None,
    rest: str = _REST,
    most: int = WARNINGS,
    also: int = 0,
    width: int | None = None,
    full: str = "--full",
    option: str = LABELS_OPTION,
) -> str:
    """Lay out the first screen, at most 40 lines of ``width`` columns, with a newline at the end.

    ``seconds`` are the session's and ``rest`` says where everything else stands. At most ``most``
    warnings are shown; ``also`` lines are left free for what the caller adds; ``full`` is where
    what is cut stands, and ``option`` names labels.
    """
    width = width or screen_width()
    label = _label(scores)
    sentences = fitted(lambda names: finding(scores, label, option=option, most=names), width)
    above = [line for text in sentences for line in folded(text, width, most=3)]
    below = _other_labels(scores, label, width)
    below += folded(_coverage(scores), width, most=2)
    below += folded(cost_sentence(scores, seconds), width, most=4)
    warnings = fitted(lambda names: warnings_of(scores, names), width) if label else []
    below += first_warnings(warnings, width, rest=full, most=most)
    below += folded(rest, width)
    faults = _faults(scores, width, full)
    room = LINES - also - len(above) - len(faults) - len(below) - 2
    table = _table(scores, label, width, room, full)
    return "\n".join([*above, "", *table, *([""] if table else []), *faults, *below]) + "\n"


def _faults(scores: ScoreReport, width: int, full: str) -> list[str]:
    """Show how the first judges find and place faults, where the question is the process."""
    lines: list[str] = []
    for table in fault_tables(scores.faults[:_FAULT_ROWS], short=True):
        head = (table.title, *table.head[1:])
        lines += [*columns(head, table.rows, width, names=1), ""]
    if len(scores.faults) > _FAULT_ROWS:
        lines[-1:] = [f"and {count_of(len(scores.faults) - _FAULT_ROWS, 'more judge')}: {full}", ""]
    return lines


def _label(scores: ScoreReport) -> LabelName | None:
    """Success, or the first label that experts gave, None without labels."""
    labelled = {s.label for s in scores.scores if is_labelled(s)}
    return next((label for label in LABELS if label in labelled), None)


def _groups(scores: ScoreReport, label: LabelName) -> list[BenchmarkRows]:
    """Overall first, then each benchmark; an equal baseline of several judges stands once. Who
    accepted nothing, or failed, is listed after those of whom there is something to say."""
    order = {judge: at for at, judge in enumerate(ordered_judges(scores))}
    shown = shown_benchmarks(scores)
    names = dict.fromkeys(s.benchmark for s in scores.scores if s.benchmark in shown)
    groups: list[BenchmarkRows] = []
    for benchmark in sorted(names, key=lambda name: name != OVERALL):
        rows = sorted(
            filter(is_labelled, score_rows(scores, label, benchmark)),
            key=lambda s: (s.baseline, order.get(s.judge, 0)),
        )
        if rows:
            judges, rules, empty = _parts(rows)
            trivial = [] if groups else _trivial(scores, label, benchmark)
            groups.append(BenchmarkRows(benchmark, judges, rules, empty, trivial))
    return groups


def _parts(scores: Sequence[Score]) -> tuple[list[tuple[str, ...]], ...]:
    """Make the rows of judges, of the rule-based baseline, and of either without a precision."""
    judges = [(evaluator_name(s), *_figures(s)) for s in scores if not s.baseline]
    rules = baseline_rows({s.judge: _figures(s) for s in scores if s.baseline})
    has_precision = [[row for row in rows if row[1] != UNDEFINED] for rows in (judges, rules)]
    empty = [row for row in judges + rules if row[1] == UNDEFINED]
    return (*has_precision, empty)


def _trivial(scores: ScoreReport, label: LabelName, benchmark: str) -> list[tuple[str, ...]]:
    """Make the rows of the trivial baselines, which stand in the first group alone."""
    place = (label, benchmark, ALL_AGENTS)
    baselines = (s for s in scores.baselines if (s.label, s.benchmark, s.agent) == place)
    return [(evaluator_name(s), *_figures(s)) for s in baselines]


def _figures(score: Score) -> tuple[str, ...]:
    return (precision_cell(score), percent(score.recall), percent(score.f1), str(score.n))


def _table(
    scores: ScoreReport, label: LabelName | None, width: int, room: int, full: str
) -> list[str]:
    """Lay out the table in ``room`` lines: the overall rows, then the benchmarks that fit."""
    groups = _groups(scores, label) if label else []
    rows: list[tuple[str, ...]] = []
    room -= 1  # the head
    if sum(len(group.named()) for group in groups) > room:
        groups = [group.without_idle() for group in groups]
    left = len(groups)
    for number, group in enumerate(groups):
        room_here = room - len(rows) - (number + 1 < len(groups)) - len(group.trivial)
        if len(group.rows) > room_here:
            if number:
                break
            cut = max(room_here - 1, 1)
            more = f"and {len(group.rows) - cut} more: {full}"
            kept = [*group.first(cut), (more, *[""] * (len(_HEAD) - 1)), *group.trivial]
            rows += _named(group.benchmark, kept)
        else:
            rows += group.named()
        left -= 1
    if not rows or label is None:
        return []
    lines = columns((LABEL_TITLES[label], *_HEAD), rows, width, names=2)
    if left:
        lines.append(f"and {count_of(left, 'more benchmark')}: {full}")
    return lines


def _named(benchmark: str, rows: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Name the benchmark in its first row alone."""
    return [("" if at else benchmark_name(benchmark), *row) for at, row in enumerate(rows)]


def _other_labels(scores: ScoreReport, label: LabelName | None, width: int) -> list[str]:
    """One judge's overall rates on what else experts labelled."""
    if len(ordered_judges(scores)) > 1:
        return []
    lines: list[str] = []
    for other in LABELS:
        others = [
            s for s in score_rows(scores, other, OVERALL) if not s.baseline and is_labelled(s)
        ]
        if other != label and others:
            text = f"{LABEL_TITLES[other]}: precision {precision_cell(others[0])}"
            text += f", recall {percent(others[0].recall)}, F1 {rate_cell(others[0], 'f1')}"
            lines += folded(f"{text}, n {others[0].n}", width)
    return lines


def _coverage(scores: ScoreReport) -> str:
    """Say in one sentence how the judgments ended."""
    whole = [c for c in scores.coverage if c.benchmark == OVERALL and c.agent == ALL_AGENTS]
    judged, due = sum(c.judged for c in whole), sum(c.judged + c.unjudged for c in whole)
    statuses: Counter[str] = Counter()
    for coverage in whole:
        statuses.update({str(status): n for status, n in coverage.statuses.items()})
    ended = ", ".join(f"{status} {n:,}" for status, n in statuses.items())
    parts = [f"Coverage: {judged:,} of {due:,} judged" + (f" ({ended})" if ended else "")]
    if len({(c.judged, c.unjudged) for c in whole}) > 1:
        least = min(whole, key=lambda c: c.judged - c.unjudged)
        parts.append(f"fewest by {least.judge}: {least.judged:,}")
    shortened: Counter[str] = Counter()
    for coverage in whole:
        shortened.update(coverage.shortened)
    if shortened:
        parts.append("shortened: " + ", ".join(f"{rung} {n:,}" for rung, n in shortened.items()))
    if trained := sum(c.training for c in whole):
        parts.append(f"training set {trained:,} (left out)")
    if unlabelled := sum(c.unlabelled for c in whole):
        parts.append(f"{unlabelled:,} unlabelled")
    unsure = {
        LABEL_TITLES[label].lower(): max(s.unsure for s in rows)
        for label in LABELS
        if (rows := [*filter(is_labelled, score_rows(scores, label, OVERALL))])
    }
    parts += [count_of(n, f"unsure {name} label") for name, n in unsure.items() if n]
    return "; ".join(parts)
