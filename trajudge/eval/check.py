"""``trajudge check``: whether a judge can be trusted, from a table of verdicts and human labels.

A row is a judgment. Columns are found by name, limits and tests take tasks for the independent
units: the limits are those of ``trajudge score``, the test of a target is that of ``trajudge
select``. Nothing is read but the table.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined

from trajudge.eval.check_settings import Annotators, CheckConfig
from trajudge.eval.select.rates import (
    DOMINANT,
    RateSums,
    cluster_sums,
    design_effects,
    labels_needed,
    p_values,
    rate_sums,
)
from trajudge.stats.intervals import (
    Bools,
    Floats,
    Ints,
    defined,
    differences_by_cluster,
    rates_by_cluster,
)
from trajudge.util.commands import FAILURES, OK
from trajudge.util.errors import UserError, did_you_mean
from trajudge.util.files import save_bytes
from trajudge.util.foreign_table import (
    ForeignTable,
    choose_column,
    holds_scores,
    missing_column,
    named_column,
    parse_columns,
    parse_words,
    read_rows,
    read_verdict,
)
from trajudge.util.tables import Table, folded, screen_width
from trajudge.util.tables import text as table_text
from trajudge.util.terminal import count_of, listed, one_line

UNDECIDED = 3
"""Exit code: the labels do not tell yet whether the target holds."""
ALPHA = 0.05
"""Chance of error of each statement on a target."""

RateName = Literal["precision", "recall", "agreement"]
Answer = Literal["holds", "does not hold", "cannot be told yet"]
RATES: Mapping[RateName, str] = {
    "precision": "right of accepted",
    "recall": "accepted of right",
    "agreement": "agrees with label",
}
"""The rates that are measured, and the heads of their columns."""
_EXIT_CODES: Mapping[Answer | None, int] = {
    None: OK,
    "holds": OK,
    "does not hold": FAILURES,
    "cannot be told yet": UNDECIDED,
}
ROLES = (
    *("judge", "label", "task", "benchmark", "run", "agent", "rule", "answer", "annotator"),
    "name",
)
_NAMES: Mapping[str, tuple[str, ...]] = {
    "judge": (
        *("verdict", "judge", "judge_verdict", "judge_label", "prediction", "predicted", "pred"),
        *("y_pred", "judgment", "judgement", "decision", "judge_score", "llm_judge", "score"),
    ),
    "label": (
        *("label", "human", "human_label", "human_verdict", "expert", "expert_label", "gold"),
        *("gold_label", "ground_truth", "truth", "y_true", "annotation", "reference", "success"),
    ),
    "task": (
        *("task", "task_id", "question_id", "question", "problem_id", "problem", "example_id"),
        *("item_id", "item", "goal", "example", "prompt_id"),
    ),
    "benchmark": ("benchmark", "dataset", "suite"),
    "run": ("run", "run_id", "trajectory", "trajectory_id", "attempt", "trial", "id"),
    "agent": ("agent", "agent_id", "agent_name", "system"),
    "rule": (
        *("rule", "rule_based", "rules", "rule_verdict", "official", "official_reward", "reward"),
        "cum_reward",
    ),
    "answer": (
        *("answer_length", "response_length", "length", "answer", "final_answer", "response"),
        "output",
    ),
    "annotator": ("annotator", "annotator_id", "rater", "rater_id", "labeler", "labeller"),
    "name": ("judge", "judge_name", "judge_model", "evaluator", "grader"),
}
_HUMAN = frozenset({"human", "expert", "gold", "truth", "annotator", "annotation", "reference"})
_MACHINE = frozenset({"judge", "prediction", "predicted", "pred", "llm"})
_JUDGE_STEMS = ("verdict", "judge", "prediction", "pred", "score", "judgment", "judgement")
_ANNOTATOR_STEMS = (
    *("ann", "annotator", "rater", "human", "expert", "label", "labeler", "labeller", "coder"),
    *("grader", "reviewer", "gold"),
)
_MOST_NAMES = 50  # judges that a column of names may have
_MOST_SENTENCES = 3  # judges that have sentences of their own above the table
_TOO_WIDE = 0.6  # an interval that tells nothing
_SAME = 0.8  # kappa from which verdicts and answer lengths are called the same
_FEWEST_COMPARED = 20  # runs from which they are compared
_MOST_EXAMPLES = 4  # texts of unreadable cells that are named


@dataclass(frozen=True)
class CheckedRate:
    """A rate with its two-sided 95 % limits, from 0 to 1."""

    hits: int
    """Runs that count for the rate."""
    trials: int
    """Runs that the rate is of."""
    rate: float | None
    """``hits / trials``; None without a trial."""
    low: float | None
    """Lower limit; None where there is no trial, or all are of one task."""
    high: float | None
    """Upper limit; None as ``low``."""

    def __str__(self) -> str:
        if self.rate is None:
            return "–"
        limits = "no limits"
        if self.low is not None and self.high is not None:
            limits = f"{100 * self.low:.1f}, {100 * self.high:.1f}"
        return f"{100 * self.rate:.1f} % [{limits}]"

    @property
    def is_wide(self) -> bool:
        """Whether the limits are more than 60 points apart, or not known."""
        return self.low is None or self.high is None or self.high - self.low > _TOO_WIDE


@dataclass(frozen=True)
class CheckedTarget:
    """Whether a rate is at least a target."""

    rate: RateName
    """The rate."""
    share: float
    """The target, from 0 to 1."""
    answer: Answer
    """*holds*, *does not hold* or *cannot be told yet*."""
    level: float
    """Largest chance with which "holds" is wrong."""
    below_level: float
    """Largest chance with which "does not hold" is wrong."""
    more_labels: int | None
    """About how many more labels decide with a chance of 80 %, if the estimate is true: of accepted
    runs for precision, of any runs otherwise. None where decided, or no number decides; 0 where
    they are enough and only of too few tasks."""


@dataclass(frozen=True)
class CheckedJudge:
    """What the labels tell of one judge, on the runs whose verdict and label can be read."""

    name: str
    """The judge: its column, or its name in the column of judges' names."""
    runs: int
    """Runs counted."""
    tasks: int
    """Tasks of these runs."""
    precision: CheckedRate
    """Of the runs that it accepts, the share that is right."""
    recall: CheckedRate
    """Of the right runs, the share that it accepts."""
    agreement: CheckedRate
    """Share of the runs on which it says what the label says."""
    always_yes: CheckedRate
    """Precision of accepting every run: the share of right ones, the base rate."""
    rule: CheckedJudge | None = None
    """The rule-based column on the runs of this judge that it has a verdict on."""
    targets: tuple[CheckedTarget, ...] = ()
    """The answer for each target."""
    highest: Mapping[RateName, float] = field(default_factory=dict)
    """Highest target of each rate that holds, in steps of 0.01; lacks a rate without one."""
    warnings: tuple[str, ...] = ()
    """What makes the judge worthless or the labels too few, as sentences."""

    @property
    def answer(self) -> Answer | None:
        """The answer for all targets together; None without a target."""
        return _worst([target.answer for target in self.targets])


@dataclass(frozen=True)
class CheckResult:
    """Whether a judge can be trusted. ``print`` shows it as text."""

    source: str
    """The table."""
    columns: Mapping[str, tuple[str, ...]]
    """The columns that were read, by role."""
    judges: tuple[CheckedJudge, ...]
    """The judges, in the order of the table."""
    notes: tuple[str, ...]
    """What was left out, and what the limits rest on."""

    @property
    def answer(self) -> Answer | None:
        """*holds* where every target holds for every judge, *does not hold* where one does not,
        else *cannot be told yet*; None without a target."""
        return _worst([judge.answer for judge in self.judges if judge.answer])

    @property
    def exit_code(self) -> int:
        """That of the command: 0 holds or no target, 1 does not hold, 3 cannot be told yet."""
        return _EXIT_CODES[self.answer]

    def __str__(self) -> str:
        return _text(self)

    def __repr__(self) -> str:
        return f"<CheckResult of {self.source}: {self.answer or 'no target'}; print() shows it>"

    def _repr_html_(self) -> str:
        return (
            f"<pre>{Environment(autoescape=True).from_string('{{ text }}').render(text=self)}</pre>"
        )


def _worst(answers: Sequence[Answer]) -> Answer | None:
    order: tuple[Answer, ...] = ("does not hold", "cannot be told yet", "holds")
    return next((answer for answer in order if answer in answers), None)


def run(config: CheckConfig) -> int:
    """Check the table, print the answer, write the page; return the exit code."""
    result = check(
        config.table,
        columns=config.columns,
        target=config.target,
        words=config.words,
        threshold=config.threshold,
        annotators=config.annotators,
    )
    if config.report:
        save_bytes(config.report, page(result).encode())
    sys.stdout.write(str(result))
    return result.exit_code


def check(
    table: Any,
    *,
    columns: str | Mapping[str, str | Sequence[str]] | None = None,
    target: str | Mapping[str, float] | None = None,
    words: str | Mapping[str, bool] | None = None,
    threshold: float | None = None,
    annotators: Annotators | None = None,
) -> CheckResult:
    """Tell from verdicts and labels whether a judge can be trusted, and whether a target holds.

    ``table`` is the path of a CSV, JSON, JSON lines or Parquet file, a data frame or a list of
    mappings: a row a judgment. ``columns`` names the columns by role where their names do not tell
    (``"judge=verdict,label=human,task=question_id"``, or a mapping); several of ``judge`` are
    several judges. ``target``: ``"precision=0.8,recall=0.5"`` or a mapping; ``agreement`` is the
    third. ``words`` adds words of verdicts (``"ja=yes,nein=no"``); a score of at least
    ``threshold`` accepts a run; ``annotators`` says how several labels of a run count.

    Limits are 95 % and take tasks for the independent units (``trajudge.stats.rates_by_cluster``);
    a target holds where the test of ``trajudge select`` rejects at 5 % that the rate is below it.
    Cells that are neither yes nor no are counted in ``notes`` and left out. Raises UserError.
    """
    if threshold is not None and not math.isfinite(threshold):
        raise UserError(f"--threshold {threshold}: must be a finite number")
    if annotators is not None and annotators not in get_args(Annotators):
        raise UserError(f"--annotators {annotators}: use {', '.join(get_args(Annotators))}")
    targets = _targets(target)
    meanings = parse_words(_joined(words))
    rows = read_rows(table)
    if not len(rows):
        raise UserError(f"{rows.source}: holds no rows below its header: add the judgments")
    return _Reading(rows, _given(columns), meanings, threshold, annotators).result(targets)


def _given(columns: str | Mapping[str, str | Sequence[str]] | None) -> dict[str, list[str]]:
    if columns is None or isinstance(columns, str):
        given = parse_columns(columns, ROLES)
    else:
        given = {
            role: [names] if isinstance(names, str) else list(names)
            for role, names in columns.items()
        }
        for role in given:
            parse_columns(f"{role}=column", ROLES)
    for role, names in given.items():
        if len(names) > 1 and role not in ("judge", "label"):
            raise UserError(f"--columns {role}: takes one column, not {len(names)}: leave one")
    return given


def _joined(words: str | Mapping[str, bool] | None) -> str | None:
    if words is None or isinstance(words, str):
        return words
    return ",".join(f"{word}={'yes' if means else 'no'}" for word, means in words.items())


def _targets(target: str | Mapping[str, float] | None) -> dict[RateName, float]:
    """Read ``precision=0.8,recall=0.5``. Raises UserError."""
    if target is None:
        return {}
    if isinstance(target, str):
        pairs = [part.partition("=")[::2] for part in target.split(",")]
    else:
        pairs = [(name, str(share)) for name, share in target.items()]
    targets: dict[RateName, float] = {}
    for name, share in ((name.strip(), share.strip()) for name, share in pairs):
        known = next((rate for rate in RATES if rate == name), None)
        if known is None:
            close = did_you_mean(name, RATES)
            raise UserError(f"--target {name}: no such rate{close or ':'} use {', '.join(RATES)}")
        try:
            value = float(share)
        except ValueError:
            value = math.nan
        if not 0 < value < 1:
            raise UserError(
                f"--target {name}={share}: must be a share between 0 and 1: write {name}=0.8"
            )
        if known in targets:
            raise UserError(f"--target {name} is given twice: leave one out")
        targets[known] = value
    return targets


class _Reading:
    """The table with its columns chosen and its cells read."""

    def __init__(
        self,
        table: ForeignTable,
        given: Mapping[str, list[str]],
        words: Mapping[str, bool],
        threshold: float | None,
        annotators: Annotators | None,
    ) -> None:
        self.table, self.given, self.words = table, given, words
        self.threshold, self.annotators = threshold, annotators
        self.notes: list[str] = []
        self.columns: dict[str, tuple[str, ...]] = {}
        self.judges = self._judge_columns()
        self.labels = self._label_columns()
        if twice := [n for n, k in Counter((*self.judges, *self.labels)).items() if k > 1]:
            raise UserError(f"--columns: {twice[0]!r} is named twice: name a column for each role")
        self.columns |= {"judge": self.judges, "label": self.labels}
        for role in ("task", "benchmark", "run", "agent", "annotator", "rule", "answer", "name"):
            if chosen := self._one(role):
                self.columns[role] = (chosen,)
        if "task" not in self.columns and "run" in self.columns:
            name = self.columns["run"][0]
            if name.rpartition(".")[2].casefold() == "id" and "run" not in self.given:
                # Ids that repeat are of tasks; others make every run its own task.
                self.columns["task"] = self.columns.pop("run")

    def result(self, targets: Mapping[RateName, float]) -> CheckResult:
        """Measure each judge. Raises UserError where nothing can be read."""
        keep, label = self._label()
        task, benchmark = self._tasks(keep)
        named = self._cells("name", keep)
        judged: list[tuple[str, Bools, Ints]] = []
        for column in self.judges:
            verdict = self._verdicts(column, "verdict", self.threshold)[keep]
            for name in dict.fromkeys(named) if named else [column]:
                mask = np.array([each == name for each in named] or [True] * len(keep))
                judged.append((name if len(self.judges) == 1 else column, mask, verdict))
        rule = None
        if "rule" in self.columns:
            rule = self._verdicts(self.columns["rule"][0], "rule verdict", self.threshold)[keep]
        lengths = self._lengths(keep)
        found = []
        for name, mask, verdict in judged:
            some = mask & (verdict >= 0) & (label >= 0)
            data = _Verdicts(verdict[some] == 1, label[some] == 1, task[some], benchmark[some])
            beside = None
            if rule is not None and (both := some & (rule >= 0)).any():
                there = _Verdicts(rule[both] == 1, label[both] == 1, task[both], benchmark[both])
                beside = there.judge(self.columns["rule"][0])
            known = None if lengths is None else lengths[some]
            if not some.any():
                raise UserError(
                    f"{self.table.source}: no row has both a label and a verdict of {name} that "
                    "can be read: give more labels, or name the words with --words"
                )
            found.append(data.checked(name, beside, targets, len(judged), known))
        self._note_limits(found)
        return CheckResult(self.table.source, self.columns, tuple(found), tuple(self.notes))

    def _one(self, role: str) -> str | None:
        """Choose the column of a role that may be missing."""
        if role in self.given:
            return named_column(self.table, self.given[role][0], f"--columns {role}")
        taken = {name for names in self.columns.values() for name in names}
        chosen = choose_column(self.table, _NAMES[role], taken=taken)
        if chosen is None:
            return None
        cells = self.table.column(chosen)
        if role == "rule" and (holds_scores(cells) or not self._is_readable(cells)):
            return None
        if role == "name":
            # Only the column's own name tells: judge.reason is no name of a judge.
            named = "_".join(_parts(chosen.rpartition(".")[2])) in _NAMES["name"]
            if not named or self._is_readable(cells) or len(set(cells)) > _MOST_NAMES:
                return None
        return chosen

    def _judge_columns(self) -> tuple[str, ...]:
        if names := self.given.get("judge"):
            return tuple(named_column(self.table, n, f"--columns judge={n}") for n in names)
        others = self._others("label", "task", "rule", "answer", "name", "annotator")
        others |= {name for name in self.table.columns if _is_of(name, _HUMAN, _MACHINE)}
        if chosen := self._readable("judge", others):
            return (chosen,)
        if several := self._family(_JUDGE_STEMS, others):
            return several
        error = missing_column(self.table, "judge", _NAMES["judge"], self.words)
        raise UserError(f"{error}. All at once: --columns judge=COLUMN,label=COLUMN,task=COLUMN")

    def _label_columns(self) -> tuple[str, ...]:
        if names := self.given.get("label"):
            return tuple(named_column(self.table, n, f"--columns label={n}") for n in names)
        others = {*self.judges, *self._others("task", "rule", "answer", "name", "annotator")}
        others |= {name for name in self.table.columns if _is_of(name, _MACHINE, _HUMAN)}
        if chosen := self._readable("label", others):
            return (chosen,)
        if several := self._family(_ANNOTATOR_STEMS, others):
            return several
        raise missing_column(self.table, "label", _NAMES["label"], self.words)

    def _others(self, *roles: str) -> set[str]:
        return {
            named_column(self.table, name, f"--columns {role}={name}")
            for role in roles
            for name in self.given.get(role, ())
        }

    def _readable(self, role: str, taken: set[str]) -> str | None:
        """Choose the first column by its name whose cells are mostly verdicts or scores; without
        one the first by its name that is no column of judges' names."""
        first, tried = None, set(taken)
        while (chosen := choose_column(self.table, _NAMES[role], taken=tried)) is not None:
            cells = self.table.column(chosen)
            if self._is_readable(cells) or holds_scores(cells):
                return chosen
            first = first or chosen
            tried.add(chosen)
        if first and role == "judge" and self._family(_JUDGE_STEMS, taken):
            return None
        return first

    def _family(self, stems: Sequence[str], taken: set[str]) -> tuple[str, ...]:
        """Find columns that differ in what follows or precedes one of the stems: score_a, ann2."""
        found = []
        for name in self.table.columns:
            parts = _parts(name)
            ends = {parts[0].rstrip("0123456789"), parts[-1]} if parts else set()
            if name not in taken and ends & set(stems):
                cells = self.table.column(name)
                if self._is_readable(cells) or holds_scores(cells):
                    found.append(name)
        return tuple(found)

    def _is_readable(self, cells: Sequence[str]) -> bool:
        counted = Counter(cell for cell in cells if cell)
        read = sum(
            n for cell, n in counted.items() if read_verdict(cell, self.words).verdict is not None
        )
        return bool(counted) and 2 * read >= counted.total()

    def _verdicts(self, column: str, noun: str, threshold: float | None) -> Ints:
        """Read a column (N,): 1 yes, 0 no, -1 neither, which is noted. Raises UserError."""
        cells = self.table.column(column)
        counted = Counter(cells)
        scores = holds_scores(counted)
        where = f"{self.table.source}: column {column!r}"
        if scores and threshold is None:
            numbers = [float(cell) for cell in counted if _is_number(cell)]
            span = f"from {min(numbers):g} to {max(numbers):g}"
            if noun == "label":
                raise UserError(
                    f"{where} holds numbers {span}, which are no labels: name a column of yes and "
                    "no with --columns label=COLUMN"
                )
            raise UserError(
                f"{where} holds scores {span}: say from which on a run is accepted with "
                "--threshold T"
            )
        meaning: dict[str, int] = {}
        unread: Counter[str] = Counter()
        for cell, n in counted.items():
            verdict: bool | None
            if threshold is not None and _is_number(cell):
                verdict = float(cell) >= threshold
            else:
                verdict = None if scores and _is_number(cell) else self._word(cell)
            meaning[cell] = -1 if verdict is None else int(verdict)
            if verdict is None:
                unread[cell] = n
        values = np.array([meaning[cell] for cell in cells], dtype=np.int64)
        if not (values >= 0).any():
            texts = [repr(cell[:30]) for cell, _ in unread.most_common(2) if cell]
            words = [cell for cell, _ in unread.most_common(2) if cell] or ["ja", "nein"]
            example = ",".join(f"{w[:20]}={m}" for w, m in zip(words, ("yes", "no"), strict=False))
            raise UserError(
                f"{where} holds no {noun} that can be read"
                f"{f' (such as {listed(texts)})' if texts else ''}: say what its words mean with "
                f"--words {example}"
            )
        if noun == "label" and len(self.labels) > 1:
            del unread[""]  # not everybody labels every run
        if unread:
            self._note_unread(column, noun, cells, unread)
        return values

    def _word(self, cell: str) -> bool | None:
        return read_verdict(cell, self.words).verdict

    def _note_unread(
        self, column: str, noun: str, cells: Sequence[str], unread: Counter[str]
    ) -> None:
        examples = [
            f"{n:,} {f'× {cell[:40]!r}' if cell else 'empty'} ({self._line(cells.index(cell))})"
            for cell, n in unread.most_common(_MOST_EXAMPLES)
        ]
        more = len(unread) - _MOST_EXAMPLES
        examples += [f"{count_of(more, 'other text')}"] if more > 0 else []
        total = unread.total()
        are = "is" if total == 1 else "are"
        self.notes.append(
            f"{count_of(total, noun)} in {column!r} {are} neither yes nor no and left out: "
            f"{listed(examples)}"
        )

    def _line(self, row: int) -> str:
        return self.table.at(row).rpartition(", ")[2]

    def _label(self) -> tuple[Ints, Ints]:
        """Return the rows to count (N,) and their labels (N,): 1, 0, -1 unknown."""
        columns = [self._verdicts(name, "label", None) for name in self.labels]
        every = np.arange(len(self.table))
        if len(columns) > 1:
            if self.annotators is None:
                names = listed([repr(name) for name in self.labels], 6)
                raise UserError(
                    f"{self.table.source}: {len(columns)} columns of labels ({names}): say how "
                    "they count with --annotators majority, all or any, or name one with --columns "
                    f"label={self.labels[0]}"
                )
            return every, self._combined(np.stack(columns, axis=1))
        return self._by_run(every, columns[0])

    def _by_run(self, every: Ints, label: Ints) -> tuple[Ints, Ints]:
        """Combine rows that several annotators wrote on one run."""
        if "annotator" not in self.columns:
            return every, label
        roles = [
            *("task", "benchmark", "run", "agent", "name"),
            *(("answer",) if "answer" in self.columns else ()),
        ]
        keys = [self.table.column(self.columns[r][0]) for r in roles if r in self.columns]
        groups: dict[tuple[str, ...], list[int]] = {}
        for row, key in enumerate(zip(*keys, strict=True) if keys else ()):
            groups.setdefault(key, []).append(row)
        who = self.table.column(self.columns["annotator"][0])
        several = {key: rows for key, rows in groups.items() if len({who[r] for r in rows}) > 1}
        if not several:
            return every, label
        if self.annotators is None:
            raise UserError(
                f"{self.table.source}: {count_of(len(several), 'run')} have rows of several "
                f"annotators (column {self.columns['annotator'][0]!r}): say how they count with "
                "--annotators majority, all or any"
            )
        for rows in several.values():
            if len({who[r] for r in rows}) < len(rows):
                raise UserError(
                    f"{self.table.at(rows[-1])}: an annotator labelled this run twice, or the rows "
                    "are of several runs: name the column that tells runs apart with --columns "
                    "run=COLUMN"
                )
            for column in self.judges:
                cells = self.table.column(column)
                if len({cells[r] for r in rows}) > 1:
                    raise UserError(
                        f"{self.table.at(rows[-1])}: column {column!r} differs between the rows of "
                        "one run: name the column that tells runs apart with --columns run=COLUMN"
                    )
        most = max(map(len, groups.values()))
        opinions = np.full((len(groups), most), -1, dtype=np.int64)
        for place, rows in enumerate(groups.values()):
            opinions[place, : len(rows)] = label[rows]
        return np.array([rows[0] for rows in groups.values()]), self._combined(opinions)

    def _combined(self, opinions: Ints) -> Ints:
        """Make one label (N,) of those of several annotators (N, A); -1 where none gave one."""
        yes, no = (opinions == 1).sum(axis=1), (opinions == 0).sum(axis=1)
        if self.annotators == "all":
            label = np.where(no == 0, 1, 0)
        elif self.annotators == "any":
            label = np.where(yes > 0, 1, 0)
        else:
            label = np.where(yes > no, 1, np.where(no > yes, 0, -1))
            if ties := int(((yes == no) & (yes > 0)).sum()):
                self.notes.append(
                    f"{count_of(ties, 'run')} left out: as many annotators say yes as no"
                )
        label = np.where(yes + no > 0, label, -1)
        differ = int(((yes > 0) & (no > 0)).sum())
        self.notes.append(
            f"labels: {self.annotators} of the annotators; they differ on "
            f"{differ:,} of {int((yes + no > 0).sum()):,} runs"
        )
        return label

    def _cells(self, role: str, keep: Ints) -> list[str]:
        if role not in self.columns:
            return []
        cells = self.table.column(self.columns[role][0])
        return [cells[row] for row in keep]

    def _tasks(self, keep: Ints) -> tuple[Ints, Ints]:
        """Give the tasks and benchmarks of the rows that count (N,) numbers from 0."""
        names = self._cells("task", keep) or [""] * len(keep)
        empty = sum(not name for name in names)
        if empty and "task" in self.columns:
            column = self.columns["task"][0]
            self.notes.append(
                f"{count_of(empty, 'row')} without a task in {column!r}: each is taken as a task"
            )
        strata: dict[str, int] = {}
        where = self._cells("benchmark", keep) or [""] * len(keep)
        benchmark = [strata.setdefault(name, len(strata)) for name in where]
        numbers: dict[Any, int] = {}
        keys = (
            (part, name or row) for row, (part, name) in enumerate(zip(where, names, strict=True))
        )
        task = [numbers.setdefault(key, len(numbers)) for key in keys]
        return np.array(task), np.array(benchmark)

    def _lengths(self, keep: Ints) -> Floats | None:
        """Return the lengths of the answers (N,): numbers as they are, texts in characters."""
        cells = self._cells("answer", keep)
        if not any(cells):
            return None
        if all(_is_number(cell) for cell in cells if cell):
            return np.array([float(cell) if cell else np.nan for cell in cells])
        return np.array([float(len(cell)) for cell in cells])

    def _note_limits(self, judges: Sequence[CheckedJudge]) -> None:
        first = judges[0]
        if "task" not in self.columns:
            self.notes.append(
                "no column of tasks was found: runs are taken as independent; if several are of "
                "one task, name it with --columns task=COLUMN, or the limits are too narrow"
            )
        elif first.tasks < first.runs:
            self.notes.append(
                f"limits are 95 % over tasks: {count_of(first.tasks, 'task')} with "
                f"{first.runs / first.tasks:.1f} runs each on average, which are not independent"
            )
        else:
            self.notes.append("limits are 95 %; every run is of another task")


def _parts(name: str) -> list[str]:
    """Divide a column's name into words: "Judge.score_a" is judge, score, a."""
    return "".join(c if c.isalnum() else " " for c in name.casefold()).split()


def _is_of(name: str, these: frozenset[str], not_those: frozenset[str]) -> bool:
    parts = set(_parts(name))
    return bool(parts & these) and not parts & not_those


def _is_number(cell: str) -> bool:
    try:
        return math.isfinite(float(cell))
    except ValueError:
        return False


@dataclass(frozen=True, eq=False)
class _Verdicts:
    """Of N runs whether they are accepted and right (N,), their tasks and benchmarks by number."""

    accepted: Bools
    right: Bools
    task: Ints
    benchmark: Ints

    def columns(self) -> tuple[Bools, Bools]:
        """Return hits and trials (N, 3) of precision, recall and agreement."""
        every = np.ones_like(self.right)
        both = self.accepted & self.right
        hits = np.stack([both, both, self.accepted == self.right], axis=1)
        return hits, np.stack([self.accepted, self.right, every], axis=1)

    def judge(self, name: str) -> CheckedJudge:
        """Measure the rates with their limits."""
        hits, trials = self.columns()
        hits = np.column_stack([hits, self.right])
        trials = np.column_stack([trials, np.ones_like(self.right)])
        interval = rates_by_cluster(hits, trials, self.task, self.benchmark).interval
        precision, recall, agreement, base = (
            CheckedRate(
                int(hits[:, i].sum()),
                int(trials[:, i].sum()),
                defined(interval.estimate[i]),
                defined(interval.low[i]),
                defined(interval.high[i]),
            )
            for i in range(4)
        )
        return CheckedJudge(
            name=name,
            runs=len(self.right),
            tasks=len(np.unique(self.task)),
            precision=precision,
            recall=recall,
            agreement=agreement,
            always_yes=base,
        )

    def checked(
        self,
        name: str,
        rule: CheckedJudge | None,
        targets: Mapping[RateName, float],
        judges: int,
        lengths: Floats | None,
    ) -> CheckedJudge:
        """Measure one of ``judges`` and test the targets; ``lengths`` (N,) are of the answers."""
        plain = self.judge(name)
        hits, trials = self.columns()
        sums = rate_sums(cluster_sums(hits, trials, self.task, self.benchmark))
        # One task that holds most of the trials shows little of others.
        by_task = np.stack([np.bincount(self.task, each) for each in trials.T])
        shown = by_task.max(axis=1) <= DOMINANT * trials.sum(axis=0)
        level = ALPHA / judges
        answers = [
            self._target(sums, shown, rate, share, level, below_level=level / len(targets))
            for rate, share in targets.items()
        ]
        return replace(
            plain,
            rule=rule,
            targets=tuple(answers),
            highest=_highest(sums, shown, level),
            warnings=tuple(self._warnings(plain, lengths)),
        )

    def _target(
        self,
        sums: RateSums,
        shown: Bools,
        rate: RateName,
        share: float,
        level: float,
        *,
        below_level: float,
    ) -> CheckedTarget:
        at = list(RATES).index(rate)
        answer: Answer = "cannot be told yet"
        if shown[at] and p_values(sums, share)[at] <= level:
            answer = "holds"
        elif shown[at] and p_values(sums.misses, 1 - share)[at] <= below_level:
            answer = "does not hold"
        more = _more_labels(sums, at, share, level) if answer == "cannot be told yet" else None
        if more and rate == "recall":  # which runs are right is known once they are labelled
            more = math.ceil(more / self.right.mean())
        return CheckedTarget(rate, share, answer, level, below_level, more)

    def _warnings(self, plain: CheckedJudge, lengths: Floats | None) -> Iterator[str]:
        accepted, right = int(self.accepted.sum()), int(self.right.sum())
        if accepted == len(self.accepted):
            yield "it never says no: it tells nothing that the base rate does not"
        elif not accepted:
            yield "it never says yes: it accepts no run"
        if right in (0, len(self.right)):
            yield f"every label says {'yes' if right else 'no'}: label runs of both kinds"
        if 0 < accepted < len(self.accepted):
            gain = differences_by_cluster(
                self.accepted & self.right,
                self.right,
                self.task,
                self.benchmark,
                trials=np.stack([self.accepted, np.ones_like(self.right)]),
            ).interval
            if not gain.low[0] > 0:
                yield (
                    "what it accepts is not shown to be right more often than all runs are "
                    f"(difference {_points(gain.estimate[0], gain.low[0], gain.high[0])})"
                )
        if lengths is not None and (same := _same_as_length(self.accepted, lengths)):
            yield same


def _points(value: float, low: float, high: float) -> str:
    if math.isnan(low):
        return f"{100 * value:+.1f} points, no limits"
    return f"{100 * value:+.1f} points [{100 * low:+.1f}, {100 * high:+.1f}]"


def _highest(sums: RateSums, shown: Bools, level: float) -> dict[RateName, float]:
    """Find the highest target in hundredths that holds, of each rate that has one."""
    grid = np.arange(1, 100)[:, None] / 100
    holds = (p_values(sums, grid) <= level) & shown
    return {
        rate: int(np.flatnonzero(column)[-1] + 1) / 100
        for rate, column in zip(RATES, holds.T, strict=True)
        if column.any()
    }


def _more_labels(sums: RateSums, at: int, share: float, level: float) -> int | None:
    """Count the labels beyond those at hand, were the estimate true, as ``trajudge select``."""
    estimate = float(sums.estimate[at])
    if math.isnan(estimate):
        return None
    needed = labels_needed(share, estimate, alpha=level)
    if needed is None:
        return None
    effect = float(design_effects(sums)[at]) if sums.size[at] > 1 else 1.0
    needed = math.ceil(needed * effect)
    return max(needed - int(sums.trials[at]), 0)


def _same_as_length(accepted: Bools, lengths: Floats) -> str:
    """Say that a threshold on the answers' length (N,) gives the verdicts; "" where none does:
    Cohen's kappa of the best is below 0.8."""
    known = np.isfinite(lengths)
    verdicts, sizes = accepted[known], lengths[known]
    n, yes = len(verdicts), int(verdicts.sum())
    if n < _FEWEST_COMPARED or yes in (0, n):
        return ""
    order = np.argsort(sizes, kind="stable")
    starts = np.flatnonzero(np.diff(sizes[order])) + 1  # the threshold is the size that follows
    if not len(starts):
        return ""
    below = np.concatenate([[0], np.cumsum(verdicts[order])])[starts]
    # Accepting what is at least so long, and what is shorter.
    agreeing = np.stack([(yes - below) + (starts - below), below + (n - starts - yes + below)])
    share = np.stack([n - starts, starts]) / n
    chance = share * yes / n + (1 - share) * (1 - yes / n)
    kappa = (agreeing / n - chance) / (1 - chance)
    which, best = np.unravel_index(int(kappa.argmax()), kappa.shape)
    if kappa[which, best] < _SAME:
        return ""
    size = sizes[order][starts[best]]
    rule = f"{'at least' if which == 0 else 'less than'} {size:g} long"
    return (
        f"it says the same as the answer's length: accepting answers that are {rule} agrees with "
        f"it on {100 * agreeing[which, best] / n:.1f} % of the runs"
    )


def _sentences(result: CheckResult) -> Iterator[str]:
    """Yield the finding: what each judge accepts, the base rate, and the answer for the target."""
    if len(result.judges) <= _MOST_SENTENCES:
        base: CheckedRate | None = None
        for judge in result.judges:
            yield from _finding(judge)
            if judge.always_yes != base:
                base = judge.always_yes
                yield f"Accepting every run would be right in {base}."
    for judge in result.judges:
        who = f"{judge.name}: " if len(result.judges) > 1 else ""
        yield from (who + line for line in _answers(judge, len(result.judges)))


def _finding(judge: CheckedJudge) -> Iterator[str]:
    precision, recall = judge.precision, judge.recall
    if precision.is_wide or recall.is_wide:
        yield (
            f"{count_of(judge.runs, 'labelled run')} of {count_of(judge.tasks, 'task')} cannot "
            f"tell whether {judge.name} can be trusted: the limits leave nearly everything open."
        )
    accepts = f"Of the {count_of(precision.trials, 'run')} that {judge.name} accepts"
    if precision.trials:
        yield f"{accepts}, {precision.hits:,} are right: {precision}."
    else:
        yield f"{judge.name} accepts none of {count_of(judge.runs, 'labelled run')}."
    if recall.trials:
        right = count_of(recall.trials, "right run")
        yield f"Of the {right}, it accepts {recall.hits:,}: {recall}."
    else:
        yield f"None of {count_of(judge.runs, 'labelled run')} is right."
    if (rule := judge.rule) is not None:
        yield (
            f"Of the {count_of(rule.precision.trials, 'run')} that the rule {rule.name} passes, "
            f"{rule.precision.hits:,} are right: {rule.precision}; it passes "
            f"{rule.recall.hits:,} of {count_of(rule.recall.trials, 'right run')}: {rule.recall}."
        )
    for warning in judge.warnings:
        yield f"{warning[0].upper()}{warning[1:]}."


def _answers(judge: CheckedJudge, judges: int) -> Iterator[str]:
    together = f", {100 * ALPHA:g} % over all {judges} judges" if judges > 1 else ""
    for target in judge.targets:
        wanted = f"{target.rate} of at least {target.share:g}"
        if target.answer == "holds":
            yield f"{wanted}: holds (chance of error at most {100 * target.level:.2g} %{together})."
        elif target.answer == "does not hold":
            error = f"{100 * target.below_level:.2g} %{together}"
            yield f"{wanted}: does not hold (chance of error at most {error})."
        else:
            yield f"{wanted}: cannot be told yet{_more(target)}."
    if not judge.targets:
        if judge.highest:
            highest = [f"{rate} {share:.2f}" for rate, share in judge.highest.items()]
            each = " each" if len(highest) > 1 else ""
            yield (
                f"The highest target that holds: {listed(highest)} (chance of error{each} at most "
                f"{100 * ALPHA / judges:.2g} %{together})."
            )
        else:
            yield "No target holds yet: label more tasks."


def _more(target: CheckedTarget) -> str:
    if target.more_labels is None:
        return ": no number of labels within reason decides a rate so near the target"
    if not target.more_labels:
        return ": the labels are of too few tasks; label runs of more tasks"
    of = " of runs that it accepts" if target.rate == "precision" else ""
    return f": about {count_of(target.more_labels, 'more label')}{of} (80 % chance of an answer)"


def _rows(result: CheckResult) -> list[tuple[str, CheckedJudge]]:
    """List the judges, then what they are compared with, equal rows once."""
    rows = [(judge.name, judge) for judge in result.judges]
    rules: dict[tuple[CheckedRate, CheckedRate], tuple[str, CheckedJudge]] = {}
    for judge in result.judges:
        if judge.rule is not None:
            rules.setdefault((judge.rule.precision, judge.rule.recall), (judge.name, judge.rule))
    for name, rule in rules.values():
        rows.append((rule.name if len(rules) == 1 else f"{rule.name}, runs of {name}", rule))
    bases: dict[CheckedRate, CheckedJudge] = {}
    for judge in result.judges:
        bases.setdefault(judge.always_yes, judge)
    for base, judge in bases.items():
        everything = CheckedRate(
            base.hits, base.hits, *([1.0, None, None] if base.hits else [None] * 3)
        )
        always = CheckedJudge(
            name="always yes",
            runs=judge.runs,
            tasks=judge.tasks,
            precision=base,
            recall=everything,
            agreement=base,
            always_yes=base,
        )
        rows.append(
            ("always yes" if len(bases) == 1 else f"always yes, runs of {judge.name}", always)
        )
    return rows


def _cell(rate: CheckedRate) -> str:
    if rate.rate is None:
        return "–"
    limits = ""
    if rate.low is not None and rate.high is not None:
        limits = f" [{100 * rate.low:.1f}, {100 * rate.high:.1f}]"
    return f"{100 * rate.rate:.1f}{limits}"


def _text(result: CheckResult) -> str:
    width = screen_width()
    lines = [line for each in _sentences(result) for line in folded(each, width)]
    rows = [
        (one_line(name), *(_cell(getattr(judge, rate)) for rate in RATES), f"{judge.runs:,}")
        for name, judge in _rows(result)
    ]
    head = ("% [95 %]", *RATES.values(), "runs")
    lines += ["", *table_text(Table("", head, rows, names=1), width).strip("\n").split("\n"), ""]
    for note in (*result.notes, _read_columns(result)):
        lines += folded(note, width)
    return "\n".join(lines) + "\n"


def _read_columns(result: CheckResult) -> str:
    read = [f"{role} {', '.join(map(repr, names))}" for role, names in result.columns.items()]
    return f"columns read: {'; '.join(read)}"


def page(result: CheckResult) -> str:
    """Write the answer as one HTML page, which needs no network; every text is escaped."""
    environment = Environment(
        loader=PackageLoader("trajudge.eval", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("check.html").render(
        result=result,
        source=one_line(result.source),
        sentences=[one_line(line) for line in _sentences(result)],
        rates=RATES,
        rows=[
            (one_line(name), [(key, getattr(judge, key)) for key in RATES], judge.runs)
            for name, judge in _rows(result)
        ],
        cell=_cell,
        notes=[one_line(note) for note in (*result.notes, _read_columns(result))],
    )
