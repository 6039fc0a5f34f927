"""``trajudge check``: may the verdicts in a table be trusted?

One row is a judgment: what a judge said, and what is true. Nothing else is needed, neither
trajectories nor a model. Limits count tasks, as everywhere in trajudge; whether a target holds is
decided by the test that ``trajudge select`` uses (``trajudge.eval.select.rates``).
"""

from __future__ import annotations

import math
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from trajudge.annotations.model import LABELS_BY
from trajudge.eval.page import save_page
from trajudge.eval.select.rates import (
    DOMINANT,
    RateSums,
    cluster_sums,
    lower_limits,
    p_values,
    rate_sums,
    task_labels_needed,
)
from trajudge.eval.settings import CheckConfig, CheckSettings
from trajudge.stats.intervals import Bools, Ints, defined, differences_by_cluster, rates_by_cluster
from trajudge.util.commands import FAILURES, OK
from trajudge.util.errors import UserError
from trajudge.util.foreign_table import (
    TASK_NAMES,
    ForeignTable,
    choose_column,
    holds_scores,
    missing_column,
    named_column,
    parse_columns,
    parse_words,
    read_number,
    read_rows,
    read_verdict,
)
from trajudge.util.machine import collection_paused
from trajudge.util.settings import make
from trajudge.util.tables import Table, all_folded
from trajudge.util.tables import text as table_text
from trajudge.util.terminal import count_of, listed, one_line

CANNOT_TELL = 3  # the exit code where the labels decide neither way

# What columns are known by, in this order.
ROLES: Mapping[str, tuple[str, ...]] = {
    "label": (
        *("label", "human", "expert", "gold", "truth", "ground_truth", "human_label"),
        *("expert_label", "gold_label", "label_human", "label_expert", "annotation", "target"),
        *("reference", "correct", "is_correct", "success", "outcome", "ok", "passed", "result"),
    ),
    "judge": (
        *("verdict", "judge", "prediction", "judge_verdict", "llm_verdict", "predicted", "pred"),
        *("judgment", "judgement", "judge_label", "model_verdict", "llm_judge", "score"),
        "judge_score",
    ),
    "name": ("judge_name", "judge", "judge_model", "judge_id", "grader"),
    "task": TASK_NAMES,
    "run": ("run", "run_id", "trajectory", "trajectory_id", "attempt", "sample", "seed", "trial"),
    "agent": ("agent", "agent_id", "model", "policy", "system"),
    "benchmark": ("benchmark", "dataset", "suite", "website", "site", "domain"),
    "rule": ("rule", "rule_based", "official_reward", "reward", "cum_reward", "evaluator"),
    "answer": ("answer", "response", "output", "final_answer", "completion", "answer_length"),
    "annotator": ("annotator", "annotator_id", "rater", "labeler", "labeller", "reviewer"),
}
_TASK_BY_ROW = ("id", "example_id", "sample_id", "uid")  # taken for the task if nothing else is
_JUDGES = re.compile(r"(?:judge|verdict|prediction|pred|score)[\W_]+(.+)|.+[\W_](?:verdict|score)")
_LABELS = re.compile(
    r"(?:ann|annotator|human|expert|rater|reviewer|label)[\W_]*(?:\d+|[a-z]|[\W_]\w+)", re.I
)
_REWARDED = 0.5  # an official reward above it is a success
_SAME_AS_LENGTH = 0.95  # area under the curve of the answer's length for the judge's verdicts
_FEW = 20

Metric = Literal["precision", "recall", "agreement"]
Status = Literal["holds", "does not hold", "cannot be told yet"]


@dataclass(frozen=True)
class CheckedRate:
    """A share of trials: ``hits`` of ``trials``, its 95 % limits over tasks, and ``holds``, the
    highest target in whole percents that the test of ``select`` confirms (0: none)."""

    hits: int
    trials: int
    estimate: float | None
    low: float | None
    high: float | None
    holds: float

    def __str__(self) -> str:
        if self.estimate is None:
            return "–"
        if self.low is None or self.high is None:
            return f"{100 * self.estimate:.1f}"
        return f"{100 * self.estimate:.1f} [{100 * self.low:.1f}, {100 * self.high:.1f}]"


@dataclass(frozen=True)
class TargetResult:
    """Whether a rate is at least ``target``: ``status``, the p-value of the side that was shown or
    is nearer, and about how many ``more_labels`` (None: no number decides it; of runs that the
    judge accepts for precision, of right runs for recall) would decide with probability 0.8."""

    metric: Metric
    target: float
    status: Status
    p_value: float
    more_labels: int | None


@dataclass(frozen=True)
class CheckedJudge:
    """One column of verdicts against the labels. ``rows`` have both a verdict and a label;
    ``base_rate`` is the share of them that is right, and ``gain`` the precision less it, with 95 %
    limits, as fractions."""

    name: str
    rows: int
    precision: CheckedRate
    recall: CheckedRate
    agreement: CheckedRate
    base_rate: CheckedRate
    gain: tuple[float, float, float] | None
    targets: tuple[TargetResult, ...] = ()

    @property
    def accepts(self) -> float:
        """The share of rows that the judge accepts."""
        return self.precision.trials / self.rows if self.rows else math.nan


@dataclass(frozen=True)
class TableCheck:
    """What ``check`` says of a table; ``print`` shows it.

    ``columns`` names the columns by role; ``tasks`` is None where rows count as independent;
    ``base_rate`` is the share of right runs, which is the precision of accepting every run;
    ``rule`` is the rule-based column, if there is one; ``warnings`` name what was not counted and
    what the figures do not say, the gravest first.
    """

    source: str
    rows: int
    tasks: int | None
    columns: Mapping[str, tuple[str, ...]]
    judges: tuple[CheckedJudge, ...]
    base_rate: CheckedRate
    rule: CheckedJudge | None
    confidence: float
    warnings: tuple[str, ...]

    @property
    def exit_code(self) -> int:
        """0 where every target holds (or none was given), 1 where one does not, else 3."""
        stands = {target.status for judge in self.judges for target in judge.targets}
        if "does not hold" in stands:
            return FAILURES
        return CANNOT_TELL if "cannot be told yet" in stands else OK

    @property
    def sentences(self) -> list[str]:
        """The findings in words: the targets first, then each judge, then what stands beside."""
        return [*_target_sentences(self), *_finding_sentences(self)]

    def __str__(self) -> str:
        warnings = [f"warning: {warning}" for warning in self.warnings]
        lines = [*all_folded(self.sentences), "", table_text(_table(self)).strip("\n"), ""]
        return "\n".join([*lines, *all_folded([_column_sentence(self), *warnings])])


def check(table: Any, **settings: Any) -> TableCheck:
    """Check verdicts against labels, one row a judgment.

    ``table`` is the path of a CSV, JSON, JSON lines or Parquet file, a data frame, or an iterable
    of mappings. Keywords are the options of ``trajudge check``: ``columns={"judge": "verdict"}``,
    ``words``, ``threshold``, ``labels_by``, ``target={"precision": 0.8}``, ``confidence``.
    Raises UserError for a table or a column that cannot be read.
    """
    return check_table(read_rows(table), make(CheckSettings, settings))


def run(config: CheckConfig) -> int:
    """Carry out ``trajudge check``. Returns 0 where the targets hold, 1 where one does not, 3 where
    the labels cannot tell."""
    with collection_paused():  # which would walk over SciPy's modules
        checked = check_table(read_rows(config.table), config)
    sys.stdout.write(f"{checked}\n")
    if config.report is not None:
        write_page(checked, config.report)
        sys.stderr.write(f"the page is {config.report}\n")
    return checked.exit_code


def check_table(table: ForeignTable, config: CheckSettings) -> TableCheck:
    """Check the verdicts of a table. Raises UserError for a column that cannot be read."""
    if not len(table):
        raise UserError(
            f"{table.source}: has column names and no rows: add a row for each judgment"
        )
    words = parse_words(config.words)
    columns = _choose_columns(table, parse_columns(config.columns, [*ROLES]), words)
    rows = _Rows(table, columns, words, config)
    alpha = (1 - config.confidence) / len(rows.names)  # of one judge among several
    judges = [rows.judge(name, config.targets, alpha) for name in rows.names]
    named = columns.get("rule")
    truth = rows.labels == 1
    return TableCheck(
        source=table.source,
        rows=len(rows.labels),
        tasks=rows.tasks,
        columns=columns,
        judges=tuple(judges),
        base_rate=rows.rate(truth, rows.labels >= 0, alpha),
        rule=rows.rule(named[0]) if named else None,
        confidence=config.confidence,
        warnings=tuple(rows.warnings(judges)),
    )


def _choose_columns(
    table: ForeignTable, given: Mapping[str, list[str]], words: Mapping[str, bool]
) -> dict[str, tuple[str, ...]]:
    """Find the column, or columns, of every role; only labels and verdicts are needed."""
    chosen = _given_columns(table, given)

    def taken() -> list[str]:
        return [name for names in chosen.values() for name in names]

    several = {"label": _LABELS, "judge": _JUDGES}
    for role, candidates in ROLES.items():
        if role in chosen or (role == "name" and len(chosen["judge"]) > 1):
            continue
        left = taken()
        name = choose_column(table, candidates, taken=left)
        while role == "judge" and name and not _is_judged(table.column(name), words, scores=True):
            left = [*left, name]  # it names the judge, whose verdicts are in another column
            name = choose_column(table, candidates, taken=left)
        if role == "name" and name and not _names_judges(table.column(name), words):
            continue
        if name is not None:
            chosen[role] = (name,)
        elif role in several:
            alike = [
                each
                for each in table.columns
                if each not in left
                and several[role].fullmatch(each)
                and _is_judged(table.column(each), words, scores=role == "judge")
            ]
            if not alike and left != taken():  # its words are not known, which is said later
                alike = left[len(taken()) :][:1]
            if not alike:
                raise missing_column(table, role, candidates[:7], words)
            chosen[role] = tuple(alike)
    if "task" not in chosen:
        name = choose_column(table, _TASK_BY_ROW, taken=taken())
        if name is not None and len(set(table.column(name))) < len(table):
            chosen["task"] = (name,)  # one that differs in every row says nothing of tasks
    if len(chosen["judge"]) > 1 and "name" in chosen:
        raise UserError(
            f"--columns name={chosen['name'][0]}: goes with one column of verdicts, not with "
            f"{listed(chosen['judge'])}: leave it out"
        )
    return chosen


def _given_columns(
    table: ForeignTable, given: Mapping[str, list[str]]
) -> dict[str, tuple[str, ...]]:
    """Find the columns that the user names. Raises UserError for one that is named twice."""
    chosen = {
        role: tuple(named_column(table, name, f"--columns {role}={name}") for name in names)
        for role, names in given.items()
    }
    for name, times in Counter(name for names in chosen.values() for name in names).items():
        if times > 1:
            raise UserError(
                f"--columns: {name!r} is named {times} times: give each column one role"
            )
    return chosen


def _names_judges(cells: Sequence[str], words: Mapping[str, bool]) -> bool:
    """Return True for a column of several words that are no verdicts, each in several rows."""
    different = len(set(cells))
    return 2 <= different <= len(cells) / 2 and not _is_judged(cells, words, scores=True)


def _is_judged(cells: Sequence[str], words: Mapping[str, bool], *, scores: bool) -> bool:
    """Return True for a column most of whose filled cells say yes or no, or with ``scores`` are
    numbers."""
    filled = Counter(filter(None, cells))
    if scores and holds_scores(filled):
        return True
    read = sum(n for cell, n in filled.items() if read_verdict(cell, words).verdict is not None)
    return read > filled.total() / 2


class _Rows:
    """The table as arrays over rows: labels and verdicts 1, 0, or -1 where they cannot be read."""

    def __init__(
        self,
        table: ForeignTable,
        columns: Mapping[str, tuple[str, ...]],
        words: Mapping[str, bool],
        config: CheckSettings,
    ) -> None:
        self._columns, self._words, self._threshold = columns, words, config.threshold
        self._lost: list[str] = []  # what could not be read, in sentences
        scored = [name for name in columns["judge"] if holds_scores(set(table.column(name)))]
        if config.threshold is not None and not scored:
            raise UserError(
                f"--threshold {config.threshold:g}: {listed(columns['judge'])} holds no scores: "
                "leave it out"
            )
        self._scored = set(scored)
        opinions = [self._read(table, name, "label") for name in columns["label"]]
        table, opinions = _joined_annotators(table, columns, opinions)
        self._table = table
        self._verdicts = {name: self._read(table, name, "judge") for name in columns["judge"]}
        if "name" in columns:  # the verdicts of several judges stand in one column
            names = np.array(table.column(columns["name"][0]))
            if unnamed := np.flatnonzero(names == "").tolist():
                raise UserError(
                    f"{table.at(unnamed[0])}: {columns['name'][0]} is empty in "
                    f"{count_of(len(unnamed), 'row')}: name the judge of every row"
                )
            [verdicts] = self._verdicts.values()
            self._verdicts = {
                name: np.where(names == name, verdicts, -1)
                for name in dict.fromkeys(names.tolist())
            }
        self.labels = _one_label(table, columns["label"], opinions, config)
        open_rows = (self.labels < 0) & (np.stack(opinions) >= 0).any(axis=0)
        if open_rows.any():
            self._lost.append(
                f"{count_of(int(open_rows.sum()), 'row')} of {len(table):,} have labels that "
                f"decide nothing by --labels-by {config.labels_by} and are not counted"
            )
        self.tasks: int | None = None
        self._task: Ints = np.arange(len(table))
        self._stratum = np.zeros(len(table), dtype=np.int64)
        if "benchmark" in columns:
            self._stratum = _codes(table.column(columns["benchmark"][0]))
        if "task" in columns:
            cells = table.column(columns["task"][0])
            if missing := [row for row, cell in enumerate(cells) if not cell]:
                raise UserError(
                    f"{table.at(missing[0])}: {columns['task'][0]} is empty in "
                    f"{count_of(len(missing), 'row')}: name the task of every row, or another "
                    "column with --columns task=COLUMN"
                )
            self._task = _codes(cells)
            self.tasks = len({*zip(self._task.tolist(), self._stratum.tolist(), strict=True)})

    def _read(self, table: ForeignTable, name: str, role: str) -> Ints:
        cells = table.column(name)
        if role == "judge" and name in self._scored:
            return self._read_scores(table, name, cells)
        known = {cell: read_verdict(cell, self._words) for cell in set(cells)}
        if holds_scores(known):
            raise UserError(
                f"{table.source}: {name!r} holds other numbers than 0 and 1: name the column with "
                f"the {role} by --columns {role}=COLUMN"
            )
        readings = [known[cell] for cell in cells]
        self._lose(table, name, [reading.reason for reading in readings])
        if all(reading.verdict is None for reading in known.values()):
            odd = listed([repr(cell) for cell in dict.fromkeys(filter(None, cells))], 4)
            raise UserError(
                f"{table.source}: no cell of {name!r} says yes or no ({odd or 'all are empty'}): "
                f"say what its words mean with --words WORD=yes,WORD=no, or name another column "
                f"with --columns {role}=COLUMN"
            )
        return np.array([-1 if r.verdict is None else int(r.verdict) for r in readings])

    def _read_scores(self, table: ForeignTable, name: str, cells: Sequence[str]) -> Ints:
        if self._threshold is None:
            scores = [score for cell in cells if (score := read_number(cell)) is not None]
            raise UserError(
                f"{table.source}: {name!r} holds scores from {min(scores):g} to "
                f"{max(scores):g}: name the least score that is a yes with --threshold T"
            )
        numbers = self._numbers(table, name)
        return np.array([-1 if n is None else int(n >= self._threshold) for n in numbers])

    def _numbers(self, table: ForeignTable, name: str) -> list[float | None]:
        """Read a column of numbers; count and name the cells that hold none."""
        cells = table.column(name)
        numbers = [read_number(cell) for cell in cells]
        reasons = [
            "" if number is not None else ("unreadable" if cell else "empty")
            for number, cell in zip(numbers, cells, strict=True)
        ]
        self._lose(table, name, reasons)
        return numbers

    def _lose(self, table: ForeignTable, name: str, reasons: Sequence[str]) -> None:
        counts = Counter(reason for reason in reasons if reason)
        if not counts:
            return
        first = next(row for row, reason in enumerate(reasons) if reason)
        for row, reason in enumerate(reasons):
            if reason == "unreadable":
                first = row
                break
        kinds = ", ".join(f"{count:,} {reason}" for reason, count in counts.items())
        cell = table.column(name)[first]
        example = f"such as {cell[:40]!r}" if cell.strip() else "the first of them"
        self._lost.append(
            f"{counts.total():,} of {len(reasons):,} cells of {name!r} are neither yes nor no and "
            f"are not counted ({kinds}), {example} ({table.at(first)})"
        )

    @property
    def names(self) -> list[str]:
        """The judges."""
        return [*self._verdicts]

    def judge(self, name: str, targets: Mapping[str, float], alpha: float) -> CheckedJudge:
        """Measure a column of verdicts."""
        return self._measured(name, self._verdicts[name], targets, alpha)

    def rule(self, name: str) -> CheckedJudge:
        """Measure the rule-based column: words, or rewards above 0.5."""
        if holds_scores(set(self._table.column(name))):
            numbers = self._numbers(self._table, name)
            verdicts = np.array([-1 if n is None else int(n > _REWARDED) for n in numbers])
        else:
            verdicts = self._read(self._table, name, "rule")
        return self._measured(name, verdicts, {}, 0.05)

    def _measured(
        self, name: str, verdicts: Ints, targets: Mapping[str, float], alpha: float
    ) -> CheckedJudge:
        both = (verdicts >= 0) & (self.labels >= 0)
        if not both.any():
            raise UserError(
                f"{self._table.source}: no row has both a verdict of {name!r} and a label: name "
                "columns of the same rows"
            )
        yes, right = (verdicts == 1) & both, (self.labels == 1) & both
        trials = {"precision": yes, "recall": right, "agreement": both}
        hits = {"precision": yes & right, "recall": yes & right, "agreement": both & (yes == right)}
        gain = differences_by_cluster(
            hits["precision"],
            right,
            self._task,
            self._stratum,
            trials=np.stack([yes, both]),
        ).interval
        limits = [float(part[0]) for part in (gain.estimate, gain.low, gain.high)]
        return CheckedJudge(
            name=name,
            rows=int(both.sum()),
            precision=self.rate(hits["precision"], trials["precision"], alpha),
            recall=self.rate(hits["recall"], trials["recall"], alpha),
            agreement=self.rate(hits["agreement"], trials["agreement"], alpha),
            base_rate=self.rate(right, both, alpha),
            gain=None if np.isnan(limits).any() else (limits[0], limits[1], limits[2]),
            targets=tuple(
                self._target(metric, hits[metric], trials[metric], target, alpha)  # type: ignore[arg-type]
                for metric, target in targets.items()
            ),
        )

    def _is_dominated(self, trials: Bools) -> bool:
        """Return True if more than half of the trials are of one task: what they show is largely
        that task's."""
        tasks = self._task[trials] + self._stratum[trials] * (int(self._task.max(initial=0)) + 1)
        runs = np.unique(tasks, return_counts=True)[1]
        return len(tasks) > 1 and bool(runs.max() > DOMINANT * len(tasks))

    def _sums(self, hits: Bools, trials: Bools) -> RateSums:
        table = hits[:, None], trials[:, None]
        return rate_sums(cluster_sums(*table, self._task, self._stratum))

    def rate(self, hits: Bools, trials: Bools, alpha: float) -> CheckedRate:
        """Estimate a share, with limits over tasks, and the highest target that holds."""
        interval = rates_by_cluster(hits[:, None], trials[:, None], self._task, self._stratum)
        ends = interval.interval
        holds = 0.0
        if not self._is_dominated(trials):
            holds = float(np.nan_to_num(lower_limits(self._sums(hits, trials), alpha))[0])
        return CheckedRate(
            hits=int(hits.sum()),
            trials=int(trials.sum()),
            estimate=defined(float(ends.estimate[0])),
            low=defined(float(ends.low[0])),
            high=defined(float(ends.high[0])),
            holds=math.floor(100 * holds + 1e-9) / 100,
        )

    def _target(
        self, metric: Metric, hits: Bools, trials: Bools, target: float, alpha: float
    ) -> TargetResult:
        sums = self._sums(hits, trials)
        if self._is_dominated(trials):
            return TargetResult(metric, target, "cannot be told yet", 1.0, 0)
        above = float(p_values(sums, target)[0])
        below = float(p_values(sums.misses, 1 - target)[0])
        if above <= alpha:
            return TargetResult(metric, target, "holds", above, None)
        if below <= alpha:
            return TargetResult(metric, target, "does not hold", below, None)
        needed = task_labels_needed(sums, 0, target, alpha)
        more = None if needed is None else max(needed - int(trials.sum()), 0)
        return TargetResult(metric, target, "cannot be told yet", min(above, below), more)

    def warnings(self, judges: Sequence[CheckedJudge]) -> Iterator[str]:
        """Name what the figures do not say, the gravest first."""
        yield from (line for judge in judges if (line := self._length_warning(judge.name)))
        yield from self._lost
        if self.tasks is None:
            yield (
                "no column names the tasks, so that every row counts as one: where tasks have "
                "several runs the limits are too narrow: --columns task=COLUMN"
            )
        elif self.tasks < _FEW and self.tasks < len(self.labels):
            yield f"the rows are of {count_of(self.tasks, 'task')} only: label more tasks"

    def _length_warning(self, name: str) -> str | None:
        if "answer" not in self._columns:
            return None
        cells = self._table.column(self._columns["answer"][0])
        numeric = all(read_number(cell) is not None for cell in cells if cell)
        numbers = [read_number(cell) if numeric else float(len(cell)) for cell in cells]
        lengths = np.array([np.nan if number is None else number for number in numbers])
        verdicts = np.where(np.isnan(lengths), -1, self._verdicts[name])
        yes, no = lengths[verdicts == 1], np.sort(lengths[verdicts == 0])
        if min(len(yes), len(no)) < 5:
            return None
        less = np.searchsorted(no, yes, side="left") + np.searchsorted(no, yes, side="right")
        area = float(less.mean() / 2 / len(no))
        if max(area, 1 - area) < _SAME_AS_LENGTH:
            return None
        kind = "long" if area > 0.5 else "short"
        return (
            f"{name} says the same as the length of the answer: yes to {kind} ones "
            f"(area under the curve {max(area, 1 - area):.2f})"
        )


def _joined_annotators(
    table: ForeignTable, columns: Mapping[str, tuple[str, ...]], opinions: list[Ints]
) -> tuple[ForeignTable, list[Ints]]:
    """Join the rows of one run that several annotators labelled into one row with several labels.

    Raises UserError where no column tells the runs apart, or their verdicts differ.
    """
    if "annotator" not in columns or len(opinions) > 1:
        return table, opinions
    people = table.column(columns["annotator"][0])
    keys = [columns[role][0] for role in ("benchmark", "task", "agent", "run") if role in columns]
    if len(set(people)) < 2 or not keys:
        return table, opinions
    groups: dict[tuple[str, ...], list[int]] = {}
    for row, key in enumerate(zip(*(table.column(name) for name in keys), strict=True)):
        groups.setdefault(key, []).append(row)
    if len(groups) == len(people):
        return table, opinions
    kept = [place for place, name in enumerate(table.columns) if name in columns["judge"]]
    for rows in groups.values():
        labelled = Counter(people[row] for row in rows)
        if (
            labelled.most_common(1)[0][1] > 1
            or len({tuple(table.rows[row][place] for place in kept) for row in rows}) > 1
        ):
            raise UserError(
                f"{table.at(rows[-1])}: several runs have the same {listed(keys)}: name the column "
                "that tells them apart with --columns run=COLUMN"
            )
    several = max(map(len, groups.values()))
    joined = [np.full(len(groups), -1) for _ in range(several)]
    for place, rows in enumerate(groups.values()):
        for nth, row in enumerate(rows):
            joined[nth][place] = opinions[0][row]
    first = [rows[0] for rows in groups.values()]
    lines = [table.lines[row] for row in first] if table.lines else ()
    return ForeignTable(table.columns, [table.rows[r] for r in first], table.source, lines), joined


def _one_label(
    table: ForeignTable, names: Sequence[str], opinions: Sequence[Ints], config: CheckSettings
) -> Ints:
    """Return the label of every row, by ``labels_by`` of several. Raises UserError where they
    differ and nothing says which counts."""
    if len(opinions) == 1:
        return opinions[0]
    stacked = np.stack(opinions)
    yes, no = (stacked == 1).sum(axis=0), (stacked == 0).sum(axis=0)
    differ = (yes > 0) & (no > 0)
    if config.labels_by is None:
        if differ.any():
            named = f"the labels {listed(names)}" if len(names) > 1 else "the annotators"
            raise UserError(
                f"{table.source}: {named} differ in {int(differ.sum())} of {len(table)} rows: say "
                f"which counts with --labels-by {'|'.join(LABELS_BY)}, or name one with --columns "
                "label=COLUMN"
            )
        return np.where(yes > 0, 1, np.where(no > 0, 0, -1))
    if config.labels_by == "primary":
        first = (stacked >= 0).argmax(axis=0)
        return np.asarray(stacked[first, np.arange(stacked.shape[1])])
    if config.labels_by == "any":
        return np.where(yes > 0, 1, np.where(no > 0, 0, -1))
    if config.labels_by == "unanimous":
        alike = (stacked == stacked[0]).all(axis=0)
        return np.where(alike, stacked[0], -1)
    return np.where(yes > no, 1, np.where(no > yes, 0, -1))


def _codes(cells: Sequence[str]) -> Ints:
    numbers: dict[str, int] = {}
    return np.array([numbers.setdefault(cell, len(numbers)) for cell in cells], dtype=np.int64)


def _finding_sentences(checked: TableCheck) -> Iterator[str]:
    for judge in checked.judges:
        precision, recall, base = judge.precision, judge.recall, judge.base_rate
        few = min(precision.trials, recall.trials)
        if 0 < few < _FEW:
            kind = "accepted run" if precision.trials == few else "right run"
            yield f"{judge.name} has only {count_of(few, kind)}: too few to say much."
        if not precision.trials:
            yield (
                f"{judge.name} never says yes in {count_of(judge.rows, 'row')}, of which "
                f"{base.hits:,} are right: it has no precision."
            )
            continue
        if precision.trials == judge.rows:
            yield (
                f"{judge.name} never says no: of the {count_of(judge.rows, 'run')}, all accepted, "
                f"{precision.hits:,} are right: {_percents(precision)}."
            )
            continue
        right = "No run is right, so that it has no recall."
        if recall.trials:
            right = f"Of the {count_of(recall.trials, 'right run')} it accepts {recall.hits:,}: "
            right += f"{_percents(recall)}."
        yield (
            f"Of the {count_of(precision.trials, 'run')} that {judge.name} accepts "
            f"{precision.hits:,} are right: {_percents(precision)}. {right}"
        )
        if judge.gain is not None:
            points, low, high = (100 * part for part in judge.gain)
            limits = f"{points:+.1f} points [{low:+.1f}, {high:+.1f}]"
            always = f"accepting every run is right in {_percents(base)}"
            if low > 0:
                yield f"That is better than accepting all: {always}; {limits}."
            else:
                yield f"It is not shown to be better than accepting all: {always}; {limits}."
        if not judge.targets:
            error = 100 * (1 - checked.confidence) / len(checked.judges)
            held = ", ".join(
                f"{metric} {_held(rate)}"
                for metric, rate in (
                    ("precision", precision),
                    ("recall", recall),
                    ("agreement", judge.agreement),
                )
            )
            yield (
                f"The highest targets that hold for {judge.name}, each with a chance of error of "
                f"{error:.3g} %: {held}."
            )
    if (rule := checked.rule) is not None and rule.precision.trials:
        yield (
            f"The rule-based column {rule.name} is right in {_percents(rule.precision)} of what it "
            f"accepts, and accepts {_percents(rule.recall)} of the right runs."
        )


def _held(rate: CheckedRate) -> str:
    return f"{100 * rate.holds:.0f} %" if rate.holds else "none"


def _target_sentences(checked: TableCheck) -> Iterator[str]:
    error = 100 * (1 - checked.confidence)
    among = f" for all {len(checked.judges)} judges together" if len(checked.judges) > 1 else ""
    for judge in checked.judges:
        for one in judge.targets:
            rate = getattr(judge, one.metric)
            seen = f"{_percents(rate)} seen" if rate.estimate is not None else "nothing seen"
            yield (
                f"{judge.name}: {one.metric} of at least {100 * one.target:g} % {one.status} "
                f"({seen}; chance of error {error:g} %{among}){_more(judge, one)}."
            )


def _more(judge: CheckedJudge, one: TargetResult) -> str:
    """Say what would decide an open target, and which one holds."""
    if one.status != "cannot be told yet":
        return ""
    of = {"precision": " of runs that it accepts", "recall": " of right runs", "agreement": ""}
    rate: CheckedRate = getattr(judge, one.metric)
    if rate.estimate is None:
        return f": label{of[one.metric].removeprefix(' of')}"
    holds = f"; {_held(rate)} holds" if rate.holds else "; no lower target holds"
    if one.more_labels is None:
        return f": {100 * rate.estimate:.1f} % is too near for any number of labels to tell{holds}"
    if not one.more_labels:
        return f": the labels are many enough, but of too few tasks: label other tasks{holds}"
    share = rate.trials / judge.rows
    rows = "" if share == 1 else f" (of about {one.more_labels / share:,.0f} runs)"
    return f": about {one.more_labels:,} more labels{of[one.metric]}{rows}{holds}"


def _percents(rate: CheckedRate) -> str:
    estimate, bracket, limits = str(rate).partition(" [")
    return f"{estimate} %{bracket}{limits}"


def _column_sentence(checked: TableCheck) -> str:
    named = "; ".join(f"{role}: {listed(names)}" for role, names in checked.columns.items())
    tasks = "" if checked.tasks is None else f" of {count_of(checked.tasks, 'task')}"
    return (
        f"{checked.source}: {count_of(checked.rows, 'row')}{tasks}. Columns: {named} "
        "(others: --columns ROLE=COLUMN)"
    )


def _table(checked: TableCheck) -> Table:
    base = checked.base_rate
    head = ("", "precision [95 %]", "recall [95 %]", "agreement [95 %]", "accepts", "rows")
    judges = [*checked.judges, *([checked.rule] if checked.rule else [])]
    rows = [
        (
            one_line(judge.name),
            *map(str, (judge.precision, judge.recall, judge.agreement)),
            f"{100 * judge.accepts:.1f}",
            f"{judge.rows:,}",
        )
        for judge in judges
    ]
    always = ("always yes", str(base), "100.0", str(base), "100.0", f"{base.trials:,}")
    return Table("", head, [*rows, always], 1)


def _page_judges(checked: TableCheck) -> list[dict[str, Any]]:
    judges = [*checked.judges, *([checked.rule] if checked.rule else [])]
    return [
        {
            **vars(judge),
            "name": one_line(judge.name),
            "wanted": {one.metric: one.target for one in judge.targets},
        }
        for judge in judges
    ]


def write_page(checked: TableCheck, file: Path) -> None:
    """Write one HTML page, which needs no network; every text is escaped. Raises UserError where it
    cannot be written."""
    save_page(
        file,
        "check.html",
        checked=checked,
        judges=_page_judges(checked),
        columns=_column_sentence(checked),
    )
