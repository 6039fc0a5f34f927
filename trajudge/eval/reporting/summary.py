"""Show scores on one screen: the finding, one table, coverage, cost, warnings, and where all else
stands."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Literal, NamedTuple

from trajudge.eval.reporting.sentences import (
    LABELS_OPTION,
    UNDEFINED,
    baseline_rows,
    benchmark_name,
    cost_sentence,
    failed_judges,
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
from trajudge.judges.model import REPAIR
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
ROWS = 10
WIDEST = 0.6  # of an interval that is shown
_REST = "All tables: --full"


class Row(NamedTuple):
    """One line of the table below its head; ``is_vague``: precision's interval is wider than
    ``WIDEST``, or there is none."""

    kind: Literal["judge", "rule", "trivial"]
    cells: tuple[str, ...]
    is_vague: bool = False


class BenchmarkRows(NamedTuple):
    """The rows of one benchmark, the judges first, and the most positives that one was scored
    on."""

    benchmark: str
    rows: list[Row]
    positives: int

    def named(self) -> list[tuple[str, ...]]:
        """Return the cells of all rows, with the benchmark's name in the first alone."""
        name = benchmark_name(self.benchmark)
        return [("" if at else name, *row.cells) for at, row in enumerate(self.rows)]


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
    """Success, or the first label that experts gave; None without labels, and where every judgment
    failed: then nothing is known of a judge."""
    if {*failed_judges(scores)} == {*ordered_judges(scores)}:
        return None
    labelled = {s.label for s in scores.scores if is_labelled(s)}
    return next((label for label in LABELS if label in labelled), None)


def _groups(scores: ScoreReport, label: LabelName) -> list[BenchmarkRows]:
    """Overall first, then each benchmark. Who accepted nothing, or failed, stands below those of
    whom there is something to say; trivial baselines that accept something stand in the first group
    alone."""
    order = {judge: at for at, judge in enumerate(ordered_judges(scores))}
    shown = shown_benchmarks(scores)
    names = dict.fromkeys(s.benchmark for s in scores.scores if s.benchmark in shown)
    groups: list[BenchmarkRows] = []
    for benchmark in sorted(names, key=lambda name: name != OVERALL):
        mine = [*filter(is_labelled, score_rows(scores, label, benchmark))]
        mine.sort(key=lambda s: order.get(s.judge, 0))
        if not mine:
            continue
        vague = {_figures(s): _is_vague(s) for s in mine}
        rows = [Row("judge", (s.judge, *_figures(s)), _is_vague(s)) for s in mine if not s.baseline]
        rules = baseline_rows({s.judge: _figures(s) for s in mine if s.baseline})
        rows += [Row("rule", row, vague[row[1:]]) for row in rules]
        rows.sort(key=lambda row: row.cells[1] == UNDEFINED)
        if not groups:
            place = (label, benchmark, ALL_AGENTS)
            trivial = [s for s in scores.baselines if (s.label, s.benchmark, s.agent) == place]
            rows += [Row("trivial", (s.judge, *_figures(s))) for s in trivial if s.counts.accepted]
        groups.append(BenchmarkRows(benchmark, rows, max(s.positives for s in mine)))
    return groups


def _is_vague(score: Score) -> bool:
    limits = score.intervals.get("precision")
    return limits is None or limits[1] - limits[0] > WIDEST


def _figures(score: Score) -> tuple[str, ...]:
    return (precision_cell(score), percent(score.recall), percent(score.f1), str(score.n))


def _table(
    scores: ScoreReport, label: LabelName | None, width: int, room: int, full: str
) -> list[str]:
    """Lay out the first group, then the benchmarks of which a judge has an interval that tells
    something, in at most ``ROWS`` rows; say what was left out."""
    if label is None or not (groups := _groups(scores, label)):
        return []
    first, *others = groups
    room = max(min(ROWS, room - 3), 2)  # the head, and two lines of what is left out
    rows = _first_rows(first, room, full).named()
    telling = [group for group in map(_without_vague, others) if group.rows]
    shown = 0
    for group in telling:
        if len(rows) + len(group.rows) > room:
            break
        rows += group.named()
        shown += 1
    lines = columns((LABEL_TITLES[label], *_HEAD), rows, width, names=2)
    if left := len(telling) - shown:
        lines += folded(f"and {count_of(left, 'more benchmark')}: {full}", width)
    kept = {group.benchmark for group in telling}
    vague = [group for group in others if group.benchmark not in kept]
    few = "successes" if label == "success" else "positives"
    return lines + _too_few(vague, few, width, full)


def _first_rows(group: BenchmarkRows, room: int, full: str) -> BenchmarkRows:
    """Keep ``room`` rows: the first judges, the first rule, the trivial baselines, and how many are
    left out."""
    if len(group.rows) <= room:
        return group
    trivial = [row for row in group.rows if row.kind == "trivial"]
    rest = [row for row in group.rows if row.kind != "trivial"]
    kept = [row for row in rest if row.kind == "rule" and row.cells[1] != UNDEFINED][:1]
    judges = [row for row in rest if row.kind == "judge"]
    kept += judges[: max(room - len(trivial) - len(kept), 1)]
    left = len(rest) - len(kept)
    more = Row("judge", (f"and {left} more: {full}", *[""] * (len(_HEAD) - 1)))
    return group._replace(rows=[*(row for row in rest if row in kept), more, *trivial])


def _without_vague(group: BenchmarkRows) -> BenchmarkRows:
    """Keep the rows whose interval tells something; none where no judge has one."""
    rows = [row for row in group.rows if not row.is_vague]
    return group._replace(rows=rows if any(row.kind == "judge" for row in rows) else [])


def _too_few(groups: Sequence[BenchmarkRows], few: str, width: int, full: str) -> list[str]:
    """Say of how many benchmarks no judge has an interval that tells something, and why."""
    if not groups:
        return []
    why = f"with intervals wider than {100 * WIDEST:.0f} points"
    if all(group.positives < 10 for group in groups):
        why = f"with fewer than ten {few}"
    named = count_of(len(groups), "benchmark")
    return folded(f"and {named} {why}: too few to say ({full})", width)


def _other_labels(scores: ScoreReport, label: LabelName | None, width: int) -> list[str]:
    """One judge's overall rates on what else experts labelled, where they tell something."""
    if len(ordered_judges(scores)) > 1:
        return []
    lines: list[str] = []
    for other in LABELS:
        mine = [s for s in score_rows(scores, other, OVERALL) if not s.baseline and is_labelled(s)]
        if other != label and mine and not _is_vague(mine[0]):
            text = f"{LABEL_TITLES[other]}: precision {precision_cell(mine[0])}"
            text += f", recall {percent(mine[0].recall)}, F1 {rate_cell(mine[0], 'f1')}"
            lines += folded(f"{text}, n {mine[0].n}", width)
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
    stages = (stage for usage in scores.spending for stage in usage.stages)
    if turns := sum(stage.calls for stage in stages if stage.stage == REPAIR):
        parts.append(count_of(turns, "corrective turn"))
    parts += [count_of(n, f"unsure {name} label") for name, n in unsure.items() if n]
    return "; ".join(parts)
