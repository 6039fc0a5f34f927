"""Baselines that read no page: what a judge has to beat before it can be said to read one.

always-fail, the agent's own claim, a regression on the words of the answer, one on numbers of the
run; judges at a baseline's recall; and one benchmark left out at a time.
"""

from __future__ import annotations

import os
import re
from array import array
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from itertools import pairwise, repeat
from typing import Any

import numpy as np
import orjson
import scipy
from numpy.typing import NDArray

from trajudge import __version__
from trajudge.annotations.agentrewardbench import benchmark_of, family_of
from trajudge.annotations.model import Labels
from trajudge.eval.process import about_process
from trajudge.eval.reporting.sentences import benchmark_name, percent, rate_cell
from trajudge.eval.scoring import compute
from trajudge.eval.scoring.metrics import METRICS, count_cells
from trajudge.eval.scoring.observations import Observations, ReferenceLabels, one_per_trajectory
from trajudge.eval.scoring.records import (
    ALL_AGENTS,
    OVERALL,
    EqualRecall,
    LabelName,
    Missing,
    Score,
    ScoreReport,
)
from trajudge.eval.store.inputs import open_recorded
from trajudge.eval.store.labels import LabelColumns, refuse_unequal
from trajudge.eval.store.table import UNKNOWN, VERDICTS, JudgmentTable, column_of
from trajudge.judges.model import Judgment, Status
from trajudge.judges.telemetry import features, folds_of, logistic_regression, predicted
from trajudge.stats.intervals import Bools, Floats, Ints, clustered_differences, one_thread
from trajudge.trajectories.actions import declares_infeasible, gives_up
from trajudge.trajectories.loaders import open_source, parse_source
from trajudge.trajectories.model import Trajectory, TrajectoryKey
from trajudge.trajectories.needs import NO_NEEDS
from trajudge.util.errors import UserError
from trajudge.util.files import FileCache
from trajudge.util.machine import kept_folder
from trajudge.util.tables import Columns, Table, cut_columns, folded, screen_width, table_of
from trajudge.util.terminal import LINES, count_of

ALWAYS_FAIL, CLAIM, TFIDF, TELEMETRY = BASELINES = (
    *("always-fail", "claim-of-success", "tfidf-answer", "telemetry"),
)

BEST = "best-judge"

# Stands for the answer of a run that gave none, so that its absence is a word like any other.
_NO_ANSWER = "noanswergiven"

_MOST_TERMS = 20_000

# So that equal probabilities stay equal wherever the last digits of a sum differ.
_DIGITS = 9

_FEWEST_TASKS = 2
_FOLDS = 5

# What is read without being asked for: a few seconds' worth.
_READ_UNASKED = 512 * 2**20

_MOST_KEPT = 64 * 2**20  # bytes of judgments of baselines in the user's cache folder

# Raise it when the same runs and labels give other judgments than before.
_KEPT = 1

Truth = Mapping[TrajectoryKey, bool]


def truth_of(labels: Labels, question: LabelName) -> Truth:
    """Return the expert's answer to ``question`` by trajectory, where it is known."""
    columns = LabelColumns.of(labels)
    answers = columns.verdicts[VERDICTS.index(question)]
    known = answers != UNKNOWN
    return dict(zip(columns.keys.at(known), (answers[known] == 1).tolist(), strict=True))


@dataclass(frozen=True, eq=False)
class Examples:
    """n labelled runs in the order of keys: ``terms`` counts those of their answers, (n, terms),
    sparse; ``rows`` (n, features), ``labels`` and ``groups`` (n,), which are tasks;
    ``has_answers``: any run gave one."""

    keys: list[TrajectoryKey]
    terms: Any
    has_answers: bool
    rows: Floats
    labels: Bools
    groups: NDArray[np.str_]

    @classmethod
    def of(cls, runs: Iterable[Trajectory], truth: Truth) -> Examples:
        """Keep the runs whose label is known, each trajectory once."""
        by_key = {run.key: run for run in runs if run.key in truth}
        found = sorted(by_key.values(), key=lambda run: run.key.order)
        answers = [(run.answer or "").strip() for run in found]
        return cls(
            keys=[run.key for run in found],
            terms=_term_counts([answer or _NO_ANSWER for answer in answers]),
            has_answers=any(answers),
            rows=np.array(list(map(features, found)), dtype=float),
            labels=np.array([truth[run.key] for run in found], dtype=bool),
            groups=np.array([f"{r.key.benchmark}/{family_of(r.key)}" for r in found], dtype=str),
        )

    def at(self, places: Ints | NDArray[np.intp]) -> Examples:
        """Keep those at these places."""
        return Examples(
            [self.keys[place] for place in places],
            self.terms[places],
            self.has_answers,
            self.rows[places],
            self.labels[places],
            self.groups[places],
        )

    @property
    def fewest_tasks(self) -> int:
        """The number of tasks that have a run of the rarer kind of label."""
        return min(len(set(self.groups[self.labels == kind])) for kind in (True, False))


Fit = Callable[[Examples, Examples], Floats]

"""Fit on the first, return P(success) of the second (n,)."""


def fit_tfidf(train: Examples, test: Examples) -> Floats:
    """Regress on the TF-IDF of the answer's words and pairs of words: of the terms that ``train``
    has, the most frequent, with 1 + log(count) times 1 + log((1 + n) / (1 + runs with it)), each
    run scaled to length 1."""
    used = np.flatnonzero(train.terms.sum(axis=0))
    if len(used) > _MOST_TERMS:
        counts = train.terms.sum(axis=0)[used]
        used = np.sort(used[np.argsort(-counts)[:_MOST_TERMS]])
    n, has_it = len(train.keys), np.bincount(train.terms.indices, minlength=train.terms.shape[1])
    rarity = np.log((1 + n) / (1 + has_it[used])) + 1
    fitted, tested = (_weighted(each.terms[:, used], rarity) for each in (train, test))
    weights, intercept = logistic_regression(fitted, train.labels)
    return np.asarray(scipy.special.expit(tested @ weights + intercept))


def _weighted(counts: Any, rarity: Floats) -> Any:
    """Weight counts of terms (n, terms), sparse, and scale each row to length 1."""
    weighted = counts.astype(float)
    weighted.data = (np.log(weighted.data) + 1) * rarity[weighted.indices]
    row = np.repeat(np.arange(counts.shape[0]), np.diff(weighted.indptr))
    lengths = np.sqrt(np.bincount(row, weights=weighted.data**2, minlength=counts.shape[0]))
    weighted.data /= lengths[row]
    return weighted


_WORD = re.compile(r"\b\w\w+\b")


def _term_counts(texts: Sequence[str]) -> Any:
    """Count the words of two letters and more, and pairs of them, (n, terms), sparse; terms in the
    order of their names."""
    numbers: dict[str, int] = {}
    rows, columns = array("q"), array("q")
    for row, text in enumerate(texts):
        words = _WORD.findall(text.lower())
        terms = [*words, *map(" ".join, pairwise(words))]
        for term in terms:
            if term not in numbers:
                numbers[term] = len(numbers)
        columns.extend(map(numbers.__getitem__, terms))
        rows.extend(repeat(row, len(terms)))
    place = np.empty(len(numbers), dtype=np.int64)
    place[[numbers[name] for name in sorted(numbers)]] = np.arange(len(numbers))
    at = column_of(rows), place[column_of(columns)]
    ones, shape = np.ones(len(rows), dtype=np.int64), (len(texts), len(numbers))
    return scipy.sparse.coo_array((ones, at), shape=shape).tocsr()


def fit_telemetry(train: Examples, test: Examples) -> Floats:
    """Regress on the telemetry judge's features."""
    return predicted(train.rows, train.labels, test.rows)


TRAINED: dict[str, Fit] = {TFIDF: fit_tfidf, TELEMETRY: fit_telemetry}


def _trained_judgments(
    name: str, question: LabelName, train: Examples, test: Examples
) -> Iterator[Judgment]:
    """Judge ``test`` by the baseline ``name`` trained on ``train``, which has both labels: a run is
    accepted whose P(success) is at least the share of successes there."""
    with one_thread():
        scores = np.round(TRAINED[name](train, test), _DIGITS).tolist()
    threshold = train.labels.mean()
    for key, score in zip(test.keys, scores, strict=True):
        yield _judgment(key, name, question, verdict=bool(score >= threshold), score=score)


def _judgment(
    key: TrajectoryKey,
    judge: str,
    question: LabelName,
    *,
    verdict: bool,
    score: float | None = None,
) -> Judgment:
    answer = {question: verdict}
    return Judgment(key=key, judge=judge, status=Status.OK, score=score, **answer)


@dataclass(frozen=True)
class BaselineJudgments:
    """Judgments of baselines, and ``notes``: why one has none, or what was chosen."""

    judgments: tuple[Judgment, ...] = ()
    notes: tuple[str, ...] = ()

    def to_json(self, question: LabelName) -> bytes:
        """Return them as JSON, with the trajectories' keys once; the verdicts answer
        ``question``."""
        distinct_keys = dict.fromkeys(judgment.key for judgment in self.judgments)
        keys = {key: place for place, key in enumerate(distinct_keys)}
        rows = [(j.judge, keys[j.key], getattr(j, question), j.score) for j in self.judgments]
        fields = {"question": question, "notes": self.notes, "rows": rows}
        return orjson.dumps(fields | {"keys": [key.order for key in keys]})

    @classmethod
    def from_json(cls, content: bytes) -> BaselineJudgments:
        """Return what ``to_json`` wrote."""
        fields = orjson.loads(content)
        keys = [TrajectoryKey.of_checked(*key) for key in fields["keys"]]
        judgments = [
            _judgment(keys[place], judge, fields["question"], verdict=verdict, score=score)
            for judge, place, verdict, score in fields["rows"]
        ]
        return cls(tuple(judgments), tuple(fields["notes"]))


def trivial_baselines(
    runs: Iterable[Trajectory],
    labels: Labels,
    *,
    names: Sequence[str] = BASELINES,
    question: LabelName = "success",
    seed: int = 0,
) -> BaselineJudgments:
    """Judge every run with an expert's label of ``question`` by the baselines ``names``, one
    judgment per baseline and run.

    ``tfidf-answer`` and ``telemetry`` are fitted across five folds in which no task is on both
    sides, so that no verdict rests on a label of its own task; their score is P(success). The same
    runs, labels and seed give the same bytes. Fewer folds where fewer tasks have a label of each
    kind.
    """
    kept = {run.key: run for run in runs}
    examples = Examples.of(kept.values(), truth_of(labels, question))
    if not examples.keys:
        return BaselineJudgments(notes=(f"baselines: no run has an expert's label of {question}",))
    tasks = examples.fewest_tasks
    parts: list[tuple[Examples, Examples]] = []
    if tasks >= _FEWEST_TASKS and TRAINED.keys() & set(names):
        rng = np.random.default_rng(seed)
        split = folds_of(examples.labels, examples.groups, rng, min(_FOLDS, tasks))
        parts = [(examples.at(train), examples.at(test)) for train, test in split]
    judgments: list[Judgment] = []
    notes: list[str] = []
    for name in names:
        if name in (CLAIM, TFIDF) and not examples.has_answers:
            notes.append(f"{name}: left out, because no run recorded an answer")
        elif name in TRAINED and not parts:
            notes.append(f"{name}: left out, because fewer than two tasks have a run of each label")
        elif name in TRAINED:
            found = [j for part in parts for j in _trained_judgments(name, question, *part)]
            judgments += sorted(found, key=lambda judgment: judgment.key.order)
        else:
            for key in examples.keys:
                verdict = name == CLAIM and claims_success(kept[key])
                judgments.append(_judgment(key, name, question, verdict=verdict))
    return BaselineJudgments(tuple(judgments), tuple(notes))


def claims_success(run: Trajectory) -> bool:
    """Tell whether the agent's own last word is that it succeeded: it gave an answer that neither
    declares the task infeasible nor says that something could not be done."""
    answer = (run.answer or "").strip()
    actions = [step.action for step in run.steps]
    return bool(answer) and not gives_up(answer) and not declares_infeasible(actions)


def at_equal_recall(
    judge: str, observed: Observations, baseline: str, scores: Floats
) -> EqualRecall | None:
    """Compare on the trajectories that have a score of the baseline's: ``scores`` (T,) are those of
    the reference, nan where there is none. None where the judge accepts no success, for a recall
    of 0 is reached by accepting nothing."""
    both = observed.at(~np.isnan(scores[observed.index]))
    accepted = both.predictions == 1
    weights = np.ones(len(both)) if both.weights is None else both.weights
    successes = weights * both.labels
    hits = float(successes @ accepted)
    if not hits:
        return None
    shares = accepted_shares(scores[both.index], successes, hits)
    columns = np.column_stack([accepted & both.labels, accepted, shares * both.labels, shares])
    counts, squares, sizes = both.sum_by_task(columns, 2)
    interval = clustered_differences(
        counts[..., 0],
        counts[..., 1],
        sizes,
        squares=None if squares is None else squares[..., 1],
    ).interval
    low, high = float(interval.low), float(interval.high)
    return EqualRecall(
        judge=judge,
        baseline=baseline,
        n=len(both),
        recall=hits / float(successes.sum()),
        precision=hits / float(weights @ accepted),
        baseline_precision=float(successes @ shares / (weights @ shares)),
        difference=float(interval.estimate),
        low=None if np.isnan(low) else low,
        high=None if np.isnan(high) else high,
    )


def accepted_shares(scores: Floats, labels: Floats | Bools, hits: float) -> Floats:
    """Accept from the highest of ``scores`` (n,) down until ``hits`` successes (``labels`` (n,), or
    their weights) are accepted: 1, 0, or, of the equal scores at the threshold, the share that is
    needed, (n,)."""
    values, place = np.unique(-scores, return_inverse=True)
    successes = np.cumsum(np.bincount(place, weights=labels, minlength=len(values)))
    last = int(np.searchsorted(successes, hits - 1e-9))
    before = successes[last - 1] if last else 0.0
    share = (hits - before) / (successes[last] - before)
    return np.where(place < last, 1.0, np.where(place == last, share, 0.0))


def with_baselines(
    report: ScoreReport,
    judgments: Sequence[Judgment],
    observed: Mapping[str, Observations],
    labels: Labels,
) -> ScoreReport:
    """Add the scores of baselines' ``judgments``, on all the runs that they judged, and every
    judge's difference from each at equal recall on the trajectories of both; ``observed`` is
    success by judge."""
    if not judgments:
        return report
    table = JudgmentTable.of(judgments)
    by_agent = any(s.agent != ALL_AGENTS for s in report.scores)
    scored = compute.metric_scores(
        table, labels, rewards={}, missing=report.missing, by_agent=by_agent
    )
    names = [name for name in BASELINES if name in table.judges]
    recalls: list[EqualRecall] = []
    for judge, observations in observed.items():
        for name, scores in _ranks(table, observations.reference).items():
            recall = at_equal_recall(judge, observations, name, scores)
            recalls += [] if recall is None else [recall]
    return report.model_copy(
        update={"baselines": tuple(_own_scores(scored, names)), "equal_recall": tuple(recalls)}
    )


def _ranks(baselines: JudgmentTable, reference: ReferenceLabels) -> dict[str, Floats]:
    """Return what each baseline but always-fail ranks the trajectories of the reference by, (T,):
    its score, or its verdict; nan where it judged none."""
    place = reference.places(baselines.keys)
    verdict = (baselines.verdict("success") == 1) | (baselines.verdict("process") == 1)
    scores = np.where(np.isnan(baselines.score), verdict, baselines.score)
    ranks = {}
    for name in baselines.judges:
        if name != ALWAYS_FAIL:
            here = baselines.of_judge(name) & (place >= 0)
            ranks[name] = np.full(len(reference), np.nan)
            ranks[name][place[here]] = scores[here]
    return ranks


def _own_scores(scores: Sequence[Score], names: Sequence[str]) -> Iterator[Score]:
    """Yield the baselines' scores in the order of ``names``, of the process where that is the
    question; the rule-based ones stand with the judges already."""
    for name in names:
        mine = [s for s in scores if s.judge == name and not s.baseline]
        process = any(s.label == "process" for s in mine)
        yield from (s for s in mine if s.label == "process" or not process)


def read_runs_of(specs: Sequence[str], keys: Container[TrajectoryKey]) -> list[Trajectory]:
    """Read the trajectories of ``keys``, without their pages, out of the data that ``specs`` name.
    Raises UserError where none is named or one cannot be opened."""
    if not specs:
        raise UserError("the trajectories are not named: add --data KIND:PATH")
    return [
        run
        for spec in specs
        for run in open_source(open_recorded(spec), keys.__contains__, NO_NEEDS)
        if isinstance(run, Trajectory)
    ]


def baselines_of(
    specs: Sequence[str],
    labels: Labels,
    keys: Collection[TrajectoryKey],
    *,
    question: LabelName,
    seed: int,
    is_asked_for: bool,
) -> BaselineJudgments:
    """Judge the trajectories of ``keys``, out of the data that ``specs`` name, by the trivial
    baselines, or return what was kept of them for the same labels and unchanged files.

    Raises UserError as ``read_runs_of``; unless it ``is_asked_for``, also where the data is not on
    this machine or takes more than a few seconds to read.
    """
    files = list(map(_files_of, specs))
    if not is_asked_for:
        for spec, states in zip(specs, files, strict=True):
            _check_size(spec, states)
    kept, name = _kept(), ""
    if kept and None not in files:
        truth = sorted((k.order, v) for k, v in truth_of(labels, question).items() if k in keys)
        made_with = [_KEPT, __version__, question, seed, truth, [*specs], files]
        name = sha256(repr(made_with).encode()).hexdigest()
        if content := kept.get(name):
            return BaselineJudgments.from_json(content)
    runs = read_runs_of(specs, keys)
    found = trivial_baselines(runs, labels, question=question, seed=seed)
    if kept and name:
        kept.put(name, found.to_json(question))
    return found


def _kept() -> FileCache | None:
    folder = kept_folder("baselines")
    return None if folder is None else FileCache(folder, _MOST_KEPT)


_FileState = tuple[str, int, int, int, int]


def _files_of(spec: str) -> list[_FileState] | None:
    """Return path, size, times of change and number of every file of the data, None where that
    would be fetched. Raises UserError where it cannot be opened."""
    path = parse_source(open_recorded(spec))[1]
    if path is None:
        return None
    paths = [str(path)]
    if path.is_dir():
        walked = os.walk(path, followlinks=True)
        paths = [f"{folder}/{name}" for folder, _, names in walked for name in names]
    states = []
    for file in paths:
        with suppress(OSError):  # a link to nothing
            at = os.stat(file)  # noqa: PTH116 - of thousands, without an object for each
            states.append((file, at.st_size, at.st_mtime_ns, at.st_ctime_ns, at.st_ino))
    return sorted(states)


def _check_size(spec: str, files: list[_FileState] | None) -> None:
    if files is None:
        raise UserError(f"the data is {spec}, which would be fetched: name a copy with --data")
    if sum(size for _, size, *_ in files) > _READ_UNASKED:
        raise UserError(
            f"the data, {spec}, is larger than {_READ_UNASKED // 2**20} MiB: --baselines on reads "
            "it"
        )


def transferred(
    runs: Iterable[Trajectory],
    judgments: Sequence[Judgment],
    labels: Labels,
    question: LabelName = "success",
) -> BaselineJudgments:
    """Judge every benchmark by what the others teach: no judgment saw a label of its benchmark.

    ``telemetry`` and ``tfidf-answer`` are trained on the runs of the others; ``best-judge`` is the
    judge with the highest F1 on them, and ``JUDGE at its threshold`` a judge whose threshold on its
    score has the highest F1 there. Raises UserError for fewer than two benchmarks.
    """
    refuse_unequal(labels, "--transfer")
    known = truth_of(labels, question)
    examples = Examples.of(runs, known)
    by_judge: dict[str, list[Judgment]] = {}
    for one in judgments:
        if one.key in known:
            by_judge.setdefault(one.judge, []).append(one)
    by_judge = {judge: one_per_trajectory(by_judge[judge]) for judge in sorted(by_judge)}
    names = {benchmark_of(key) for key in examples.keys}
    names |= {benchmark_of(one.key) for mine in by_judge.values() for one in mine}
    if len(names) < 2:
        raise UserError(
            f"--transfer leaves one benchmark out, and there are labels of {len(names)}: name runs "
            "on several"
        )
    found: list[Judgment] = []
    notes: list[str] = []
    for benchmark in sorted(names):
        found += _trained(benchmark, examples, question, notes)
        parted = {judge: _parted(benchmark, mine) for judge, mine in by_judge.items()}
        found += _best(benchmark, parted, known, question, notes)
        # Only success has a score.
        found += _at_threshold(parted, known) if question == "success" else ()
    return BaselineJudgments(tuple(found), tuple(notes))


def _trained(
    benchmark: str, examples: Examples, question: LabelName, notes: list[str]
) -> Iterator[Judgment]:
    here = np.array([benchmark_of(key) == benchmark for key in examples.keys], dtype=bool)
    train, test = examples.at(np.flatnonzero(~here)), examples.at(np.flatnonzero(here))
    if not test.keys:
        return
    if train.fewest_tasks < _FEWEST_TASKS:
        notes.append(f"{benchmark}: the other benchmarks have too few tasks of each label")
        return
    for name in TRAINED:
        if name == TFIDF and not (train.has_answers and test.has_answers):
            notes.append(f"{benchmark}: {name} left out, because no run recorded an answer")
        else:
            yield from _trained_judgments(name, question, train, test)


Parted = Mapping[str, tuple[Sequence[Judgment], Sequence[Judgment]]]

"""By judge, its judgments on a benchmark and those on the others."""


def _parted(benchmark: str, judgments: Sequence[Judgment]) -> tuple[list[Judgment], list[Judgment]]:
    here = [one for one in judgments if benchmark_of(one.key) == benchmark]
    return here, [one for one in judgments if benchmark_of(one.key) != benchmark]


def _best(
    benchmark: str, parted: Parted, known: Truth, question: LabelName, notes: list[str]
) -> Iterator[Judgment]:
    """Yield the verdicts here of the judge that is best elsewhere, among those that judged both."""
    elsewhere = {
        judge: _f1(
            np.array([known[one.key] for one in others]),
            np.array([bool(getattr(one, question)) for one in others]),
        )
        for judge, (here, others) in parted.items()
        if here and others
    }
    if not elsewhere:
        return
    best = max(elsewhere, key=lambda judge: elsewhere[judge])
    f1 = f"{100 * elsewhere[best]:.1f}"
    notes.append(f"{benchmark}: {best} is the best of {len(elsewhere)} on the others (F1 {f1})")
    for one in parted[best][0]:
        yield one.model_copy(update={"judge": BEST})


def _at_threshold(parted: Parted, known: Truth) -> Iterator[Judgment]:
    """Yield judges' scores here, accepted from the threshold on that has the highest F1 elsewhere;
    of equals the highest threshold."""
    for judge, parts in parted.items():
        here, others = ([one for one in part if one.score is not None] for part in parts)
        truth = np.array([known[one.key] for one in others], dtype=bool)
        if not here or not truth.any():
            continue
        scores = np.array([one.score for one in others], dtype=float)
        levels = np.unique(scores)[::-1].tolist()
        threshold = max(levels, key=lambda level: _f1(truth, scores >= level))
        for one in here:
            accepted = {"judge": f"{judge} at its threshold", "success": one.score >= threshold}
            yield one.model_copy(update=accepted)


def _f1(truth: Bools, accepted: Bools) -> float:
    """Compute F1 (n,); 0 without any success."""
    value = float(METRICS["f1"].value(count_cells(truth, accepted)))
    return 0.0 if np.isnan(value) else value


_TRANSFER: Columns[Score] = {
    "left out": lambda s: benchmark_name(s.benchmark),
    "method": lambda s: s.judge,
    "precision [95 %]": lambda s: rate_cell(s, "precision"),
    "recall": lambda s: percent(s.recall),
    "F1": lambda s: rate_cell(s, "f1"),
    "bal. acc.": lambda s: rate_cell(s, "balanced_accuracy"),
    "n": lambda s: str(s.n),
    "positives": lambda s: str(s.positives),
}


def transfer_scores(
    judgments: Sequence[Judgment],
    labels: Labels,
    specs: Sequence[str],
    question: LabelName,
    missing: Missing,
) -> ScoreReport:
    """Score what ``transferred`` judges, with its notes as remarks; ``specs`` name the
    trajectories. Raises UserError where they cannot be read."""
    keys = truth_of(labels, question).keys() & {one.key for one in judgments}
    runs = read_runs_of(specs, keys) if keys else []
    found = transferred(runs, judgments, labels, question)
    report = compute.score(found.judgments, labels, rewards={}, missing=missing, compared=None)
    mine = tuple(s for s in report.scores if not s.baseline)
    report = report.model_copy(update={"scores": mine, "remarks": found.notes})
    return about_process(report) if question == "process" else report


def transfer_table(report: ScoreReport, question: LabelName) -> Table:
    """Make the table, benchmarks in their order and overall last, methods by name."""
    rows = [
        s for s in report.scores if s.label == question and s.agent == ALL_AGENTS and not s.baseline
    ]
    order = {name: place for place, name in enumerate(dict.fromkeys(s.benchmark for s in rows))}
    rows.sort(key=lambda s: (s.benchmark == OVERALL, order[s.benchmark], s.judge))
    return table_of("Leave one benchmark out [95 %]", _TRANSFER, rows)


def transfer_screen(report: ScoreReport, question: LabelName) -> str:
    """Lay out the table on one screen: intervals of precision alone, then what was chosen."""
    width = screen_width()
    rows = [
        (*row[:4], row[4].split(" ")[0], row[5].split(" ")[0], *row[6:])
        for row in transfer_table(report, question).rows
    ]
    named = [
        ("" if at and row[0] == rows[at - 1][0] else row[0], *row[1:])
        for at, row in enumerate(rows)
    ]
    rest = "Every method saw no label of the benchmark it is scored on; all intervals: --full"
    below = [line for text in [*report.remarks, rest] for line in folded(text, width)]
    lines = cut_columns(
        *(tuple(_TRANSFER), named, width, LINES - 1 - min(len(below), 8)),
        names=2,
        more=lambda left: f"and {count_of(left, 'more row')}: --full",
    )
    return "\n".join([*lines, "", *below]) + "\n"
