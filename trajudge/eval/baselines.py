"""Baselines that read no page: what a judge has to beat before it can be said to read one.

always-fail, the agent's own claim, a regression on the words of the answer, one on numbers of the
run; judges at a baseline's recall; and one benchmark left out at a time.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trajudge.annotations.agentrewardbench import benchmark_of, family_of
from trajudge.annotations.model import Labels
from trajudge.eval.process import about_process
from trajudge.eval.reporting.results import results_csv, results_json
from trajudge.eval.reporting.sentences import benchmark_name, percent, rate_cell
from trajudge.eval.scoring import compute
from trajudge.eval.scoring.intervals import Bootstrap
from trajudge.eval.scoring.observations import Observations, one_per_trajectory
from trajudge.eval.scoring.records import (
    ALL_AGENTS,
    OVERALL,
    EqualRecall,
    Label,
    Missing,
    Score,
    ScoreReport,
)
from trajudge.eval.settings import ScoreConfig
from trajudge.eval.sources import Source
from trajudge.eval.store.inputs import open_recorded
from trajudge.eval.store.labels import refuse_unequal
from trajudge.judges.methods.heuristic import declared_infeasible, gives_up
from trajudge.judges.methods.telemetry import features
from trajudge.judges.model import Judgment, Status
from trajudge.judges.telemetry_training import folds_of, predicted
from trajudge.stats.intervals import Bools, Floats, Ints, clustered_differences, one_thread
from trajudge.trajectories.loaders import open_source, parse_source
from trajudge.trajectories.model import Trajectory, TrajectoryKey
from trajudge.trajectories.needs import NO_NEEDS
from trajudge.util.errors import UserError
from trajudge.util.tables import Table, cut_columns, folded, render, screen_width
from trajudge.util.terminal import LINES, count_of

TFIDF = "tfidf-answer"

TELEMETRY = "telemetry"

# Stands for the answer of a run that gave none, so that its absence is a word like any other.
_NO_ANSWER = "noanswergiven"

_MOST_TERMS = 20_000

# So that equal probabilities stay equal wherever the last digits of a sum differ.
_DIGITS = 9


class Examples(NamedTuple):
    """n labelled runs in the order of keys: ``answers`` as text, ``rows`` (n, features), ``labels``
    and ``groups`` (n,), which are tasks."""

    keys: tuple[TrajectoryKey, ...]
    answers: tuple[str, ...]
    rows: Floats
    labels: Bools
    groups: NDArray[np.str_]

    def at(self, places: Ints | NDArray[np.intp]) -> Examples:
        """Keep those at these places."""
        return Examples(
            tuple(self.keys[place] for place in places),
            tuple(self.answers[place] for place in places),
            self.rows[places],
            self.labels[places],
            self.groups[places],
        )


class BaselinePredictions(NamedTuple):
    """P(success) of n runs, and the ``thresholds`` (n,) from which on each is accepted."""

    probabilities: Floats
    thresholds: Floats


Fit = Callable[[Examples, Examples], Floats]

"""Fit on the first, return P(success) of the second (n,)."""


def examples_of(
    runs: Iterable[Trajectory], labels: Labels, question: Label = "success"
) -> Examples:
    """Keep the runs with a label of ``question``, each trajectory once."""
    by_key = {run.key: run for run in runs}
    found = [
        (run, bool(getattr(labels[run.key], question)))
        for run in sorted(by_key.values(), key=lambda run: run.key.order)
        if getattr(labels.get(run.key), question, None) is not None
    ]
    return Examples(
        keys=tuple(run.key for run, _ in found),
        answers=tuple((run.answer or "").strip() or _NO_ANSWER for run, _ in found),
        rows=np.array([features(run) for run, _ in found], dtype=float),
        labels=np.array([success for _, success in found], dtype=bool),
        groups=np.array(
            [f"{run.key.benchmark}/{family_of(run.key)}" for run, _ in found], dtype=str
        ),
    )


def has_answers(examples: Examples) -> bool:
    """Tell whether any run gave an answer."""
    return any(answer != _NO_ANSWER for answer in examples.answers)


def fit_tfidf(train: Examples, test: Examples) -> Floats:
    """Regress on the TF-IDF of the answer's words and pairs of words."""
    from sklearn.feature_extraction.text import TfidfVectorizer  # noqa: PLC0415
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415

    terms = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, max_features=_MOST_TERMS)
    model = LogisticRegression(max_iter=1000).fit(terms.fit_transform(train.answers), train.labels)
    return np.asarray(model.predict_proba(terms.transform(test.answers))[:, 1])


def fit_telemetry(train: Examples, test: Examples) -> Floats:
    """Regress on the telemetry judge's features."""
    return predicted(train.rows, train.labels, test.rows)


TRAINED: dict[str, Fit] = {TFIDF: fit_tfidf, TELEMETRY: fit_telemetry}


def trained_on_others(name: str, train: Examples, test: Examples) -> BaselinePredictions:
    """Predict ``test`` by the baseline ``name`` trained on ``train``, which has both labels."""
    with one_thread():
        found = np.round(TRAINED[name](train, test), _DIGITS)
    return BaselinePredictions(found, np.full(len(found), train.labels.mean()))


def cross_fitted_predictions(
    name: str, examples: Examples, rng: np.random.Generator, folds: int
) -> BaselinePredictions:
    """Predict every run by a model that saw nothing of its task.

    Fewer folds where fewer tasks have a label of each kind. Raises ValueError below two.
    """
    found = BaselinePredictions(np.zeros(len(examples.labels)), np.zeros(len(examples.labels)))
    count = min(folds, fewest_tasks(examples))
    for train, test in folds_of(examples.labels, examples.groups, rng, count):
        part = trained_on_others(name, examples.at(train), examples.at(test))
        found.probabilities[test], found.thresholds[test] = part
    return found


def fewest_tasks(examples: Examples) -> int:
    """Count the tasks that have a run of the rarer kind of label."""
    kinds = (examples.groups[examples.labels], examples.groups[~examples.labels])
    return min(len(set(tasks.tolist())) for tasks in kinds)


ALWAYS_FAIL = "always-fail"

CLAIM = "claim-of-success"

BASELINES = (ALWAYS_FAIL, CLAIM, TFIDF, TELEMETRY)

_FEWEST_TASKS = 2


class TrivialBaselines(NamedTuple):
    """One judgment per baseline and labelled run, by baseline and key, and why a baseline has
    none."""

    judgments: tuple[Judgment, ...] = ()
    notes: tuple[str, ...] = ()


def trivial_baselines(
    runs: Iterable[Trajectory],
    labels: Labels,
    *,
    names: Sequence[str] = BASELINES,
    question: Label = "success",
    folds: int = 5,
    seed: int = 0,
) -> TrivialBaselines:
    """Judge every run with an expert's label of ``question`` by the baselines ``names``.

    ``tfidf-answer`` and ``telemetry`` are fitted across ``folds`` folds in which no task is on both
    sides, so that no verdict rests on a label of its own task; their score is P(success). The same
    runs, labels and seed give the same bytes.
    """
    kept = {run.key: run for run in runs}
    examples = examples_of(kept.values(), labels, question)
    if not examples.keys:
        return TrivialBaselines(notes=(f"baselines: no run has an expert's label of {question}",))
    judgments: list[Judgment] = []
    notes: list[str] = []
    for name in names:
        if problem := _problem(name, examples):
            notes.append(f"{name}: {problem}")
        elif name == ALWAYS_FAIL:
            judgments += (_judgment(key, name, question, verdict=False) for key in examples.keys)
        elif name == CLAIM:
            judgments += (
                _judgment(key, name, question, verdict=claims_success(kept[key]))
                for key in examples.keys
            )
        else:
            rng = np.random.default_rng(seed)
            judgments += _cross_fitted(name, question, examples, rng, folds)
    return TrivialBaselines(tuple(judgments), tuple(notes))


def claims_success(run: Trajectory) -> bool:
    """Tell whether the agent's own last word is that it succeeded: it gave an answer that neither
    declares the task infeasible nor says that something could not be done."""
    answer = (run.answer or "").strip()
    return bool(answer) and not gives_up(answer) and not declared_infeasible(run)


def _problem(name: str, examples: Examples) -> str:
    """Say why a baseline cannot judge these runs, "" if it can."""
    if name in (CLAIM, TFIDF) and not has_answers(examples):
        return "left out, because no run recorded an answer"
    if name in (TFIDF, TELEMETRY) and fewest_tasks(examples) < _FEWEST_TASKS:
        return "left out, because fewer than two tasks have a run of each label"
    return ""


def _cross_fitted(
    name: str, question: Label, examples: Examples, rng: np.random.Generator, folds: int
) -> Iterator[Judgment]:
    found = cross_fitted_predictions(name, examples, rng, folds)
    for key, score, threshold in zip(
        examples.keys, found.probabilities.tolist(), found.thresholds.tolist(), strict=True
    ):
        yield _judgment(key, name, question, verdict=score >= threshold, score=score)


def _judgment(
    key: TrajectoryKey, judge: str, question: Label, *, verdict: bool, score: float | None = None
) -> Judgment:
    answer = {question: verdict}
    return Judgment(key=key, judge=judge, status=Status.OK, score=score, **answer)


def at_equal_recall(
    judge: str, observed: Observations, baseline: str, scores: Mapping[TrajectoryKey, float]
) -> EqualRecall | None:
    """Compare on the trajectories that have a score of the baseline's; None where the judge
    accepts no success, for a recall of 0 is reached by accepting nothing."""
    keys = list(observed.reference.index)
    known = [keys[place] in scores for place in observed.index.tolist()]
    both = observed.where(np.array(known, dtype=bool))
    accepted = both.predictions == 1
    weights = np.ones(len(both)) if both.weights is None else both.weights
    successes = weights * both.labels
    hits = float(successes @ accepted)
    if not hits:
        return None
    ranked = np.array([scores[keys[place]] for place in both.index.tolist()])
    shares = accepted_shares(ranked, successes, hits)
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
    baselines: TrivialBaselines,
    observed: Mapping[str, Observations],
    labels: Labels,
) -> ScoreReport:
    """Add the baselines' scores, on all the runs that they judged, and every judge's difference
    from each at equal recall on the trajectories of both; ``observed`` is success by judge."""
    if not baselines.judgments:
        return report
    by_name = _by_name(baselines.judgments)
    scored = compute.score(
        baselines.judgments,
        labels,
        rewards={},
        missing=report.missing,
        by_agent=any(s.agent != "all" for s in report.scores),
        bootstrap=Bootstrap(resamples=0),
    ).scores
    return report.model_copy(
        update={
            "baselines": tuple(_in_order(scored, list(by_name))),
            "equal_recall": tuple(_equal_recall(observed, by_name)),
        }
    )


def _by_name(judgments: Sequence[Judgment]) -> dict[str, dict[TrajectoryKey, float]]:
    """Return what each baseline ranks the runs by: its score, or its verdict."""
    found: dict[str, dict[TrajectoryKey, float]] = {name: {} for name in BASELINES}
    for each in judgments:
        ranked = float(bool(each.success or each.process)) if each.score is None else each.score
        found.setdefault(each.judge, {})[each.key] = ranked
    return {name: scores for name, scores in found.items() if scores}


def _in_order(scores: Sequence[Score], names: Sequence[str]) -> Iterator[Score]:
    """Yield the baselines' own rows, in the order of ``names``; the rule-based ones stand beside
    the judges already."""
    for name in names:
        mine = [s for s in scores if s.judge == name and not s.baseline]
        process = any(s.label == "process" for s in mine)
        yield from (s for s in mine if s.label == "process" or not process)


def _equal_recall(
    observed: Mapping[str, Observations], by_name: Mapping[str, Mapping[TrajectoryKey, float]]
) -> Iterator[EqualRecall]:
    for judge, observations in observed.items():
        for name, scores in by_name.items():
            if name == ALWAYS_FAIL:
                continue
            if found := at_equal_recall(judge, observations, name, scores):
                yield found


# What is read without being asked for: a few seconds' worth.
READ_UNASKED = 512 * 2**20


def read_baselines(
    specs: Sequence[str],
    labels: Labels,
    judged: Iterable[TrajectoryKey],
    *,
    question: Label = "success",
    seed: int,
    most_bytes: int | None = READ_UNASKED,
) -> TrivialBaselines:
    """Judge the ``judged`` trajectories that have a label by the trivial baselines, out of the data
    that ``specs`` name.

    Raises UserError where the data cannot be opened, is not on this machine, or is larger than
    ``most_bytes`` (None: any size).
    """
    runs = read_labelled_runs(specs, labels, judged, question=question, most_bytes=most_bytes)
    return trivial_baselines(runs, labels, question=question, seed=seed)


def read_labelled_runs(
    specs: Sequence[str],
    labels: Labels,
    judged: Iterable[TrajectoryKey],
    *,
    question: Label,
    most_bytes: int | None = None,
) -> list[Trajectory]:
    """Read the ``judged`` trajectories that have a label of ``question``. Raises UserError as
    ``read_baselines``."""
    wanted = {
        key for key in judged if (label := labels.get(key)) and getattr(label, question) is not None
    }
    if not wanted:
        return []
    if not specs:
        raise UserError("the trajectories are not named: add --data KIND:PATH")
    runs = []
    for spec in specs:
        place = open_recorded(spec)
        _check_size(spec, place, most_bytes)
        found = open_source(place, wanted.__contains__, NO_NEEDS)
        runs += [run for run in found if isinstance(run, Trajectory)]
    return runs


def _check_size(spec: str, place: str, most: int | None) -> None:
    if most is None:
        return
    path = parse_source(place)[1]
    if path is None:
        raise UserError(f"the data is {spec}, which would be fetched: name a copy with --data")
    if _larger(path, most):
        raise UserError(
            f"the data, {spec}, is larger than {most // 2**20} MiB: --baselines on reads it"
        )


def _larger(path: Path, most: int) -> bool:
    """Tell whether the file, or all files below the folder, take more bytes."""
    if path.is_file():
        return path.stat().st_size > most
    total = 0
    for folder, _, files in os.walk(path):
        for name in files:
            file = Path(folder, name)
            total += file.stat().st_size if file.is_file() else 0
            if total > most:
                return True
    return False


BEST = "best-judge"

Truth = Mapping[TrajectoryKey, bool]


class Transferred(NamedTuple):
    """Judgments of methods that saw no label of the benchmark they judge, and what was chosen."""

    judgments: tuple[Judgment, ...]
    remarks: tuple[str, ...]


def transferred(
    runs: Iterable[Trajectory],
    judgments: Sequence[Judgment],
    labels: Labels,
    question: Label = "success",
) -> Transferred:
    """Judge every benchmark by what the others teach.

    ``telemetry`` and ``tfidf-answer`` are trained on the runs of the others; ``best-judge`` is the
    judge with the highest F1 on them, and ``JUDGE at its threshold`` a judge whose threshold on its
    score has the highest F1 there. Raises UserError for fewer than two benchmarks.
    """
    refuse_unequal(labels, "--transfer")
    known: Truth = {
        key: value for key in labels if (value := getattr(labels[key], question)) is not None
    }
    examples = examples_of(runs, labels, question)
    by_judge = _by_judge(judgments, known)
    names = {benchmark_of(key) for key in examples.keys}
    names |= {benchmark_of(one.key) for mine in by_judge.values() for one in mine}
    if len(names) < 2:
        raise UserError(
            f"--transfer leaves one benchmark out, and there are labels of {len(names)}: name runs "
            "on several"
        )
    found: list[Judgment] = []
    remarks: list[str] = []
    for benchmark in sorted(names):
        found += _trained(benchmark, examples, question, remarks)
        found += _best(benchmark, by_judge, known, question, remarks)
        found += _at_threshold(benchmark, by_judge, known, question)
    return Transferred(tuple(found), tuple(remarks))


def _by_judge(judgments: Sequence[Judgment], known: Truth) -> dict[str, list[Judgment]]:
    """Return one judgment per labelled trajectory of every judge, judges by name."""
    found: dict[str, list[Judgment]] = {}
    for one in judgments:
        if one.key in known:
            found.setdefault(one.judge, []).append(one)
    return {judge: one_per_trajectory(found[judge]) for judge in sorted(found)}


def _trained(
    benchmark: str, examples: Examples, question: Label, remarks: list[str]
) -> Iterator[Judgment]:
    here = np.array([benchmark_of(key) == benchmark for key in examples.keys], dtype=bool)
    train, test = examples.at(np.flatnonzero(~here)), examples.at(np.flatnonzero(here))
    if not test.keys:
        return
    if fewest_tasks(train) < _FEWEST_TASKS:
        remarks.append(f"{benchmark}: the other benchmarks have too few tasks of each label")
        return
    for name in TRAINED:
        if name == TFIDF and not (has_answers(train) and has_answers(test)):
            remarks.append(f"{benchmark}: {name} left out, because no run recorded an answer")
            continue
        scores, thresholds = trained_on_others(name, train, test)
        for key, score, threshold in zip(
            test.keys, scores.tolist(), thresholds.tolist(), strict=True
        ):
            answer = {question: score >= threshold}
            yield Judgment(key=key, judge=name, status=Status.OK, score=score, **answer)


def _best(
    benchmark: str,
    by_judge: Mapping[str, Sequence[Judgment]],
    known: Truth,
    question: Label,
    remarks: list[str],
) -> Iterator[Judgment]:
    """Yield the verdicts here of the judge that is best elsewhere, among those that judged both."""
    elsewhere = {}
    for judge, mine in by_judge.items():
        here, others = _parted(benchmark, mine)
        if here and others:
            accepted = np.array([bool(getattr(one, question)) for one in others])
            truth = np.array([known[one.key] for one in others])
            elsewhere[judge] = float(_f1(accepted[:, None], truth)[0])
    if not elsewhere:
        return
    best = max(elsewhere, key=lambda judge: elsewhere[judge])
    f1 = f"{100 * elsewhere[best]:.1f}"
    remarks.append(f"{benchmark}: {best} is the best of {len(elsewhere)} on the others (F1 {f1})")
    for one in _parted(benchmark, by_judge[best])[0]:
        yield one.model_copy(update={"judge": BEST})


def _at_threshold(
    benchmark: str,
    by_judge: Mapping[str, Sequence[Judgment]],
    known: Truth,
    question: Label,
) -> Iterator[Judgment]:
    """Yield a judge's scores here, accepted from the threshold that is best elsewhere; only success
    has a score."""
    for judge, mine in by_judge.items() if question == "success" else ():
        here, others = _parted(benchmark, [one for one in mine if one.score is not None])
        truth = np.array([known[one.key] for one in others], dtype=bool)
        if not here or not truth.any():
            continue
        threshold = _best_threshold(np.array([one.score for one in others], dtype=float), truth)
        for one in here:
            told = {"judge": f"{judge} at its threshold", "success": (one.score or 0) >= threshold}
            yield one.model_copy(update=told)


def _best_threshold(scores: Floats, truth: Bools) -> float:
    """Find the score from which on acceptance has the highest F1; of equals the highest."""
    levels = np.unique(scores)[::-1]
    return float(levels[int(np.argmax(_f1(scores[:, None] >= levels, truth)))])


def _f1(accepted: Bools, truth: Bools) -> Floats:
    """Compute F1 of the columns of ``accepted`` (n, k) beside ``truth`` (n,); 0 without any
    success."""
    hits = (accepted & truth[:, None]).sum(axis=0)
    return np.asarray(2 * hits / np.maximum(accepted.sum(axis=0) + truth.sum(), 1))


def _parted(benchmark: str, judgments: Sequence[Judgment]) -> tuple[list[Judgment], list[Judgment]]:
    """Part the judgments on the benchmark from those on the others."""
    here = [one for one in judgments if benchmark_of(one.key) == benchmark]
    return here, [one for one in judgments if benchmark_of(one.key) != benchmark]


_HEAD = ("left out", "method", "precision [95 %]", "recall", "F1", "bal. acc.", "n", "positives")


def print_transfer(
    source: Source, config: ScoreConfig, specs: Sequence[str], question: Label, missing: Missing
) -> None:
    """Judge every benchmark by what the others teach, and print the scores.

    ``specs`` name the trajectories. Raises UserError where they cannot be read, and for labels of
    fewer than two benchmarks.
    """
    keys = [j.key for j in source.judgments]
    runs = read_labelled_runs(specs, source.labels, keys, question=question)
    found = transferred(runs, source.judgments, source.labels, question)
    report = compute.score(
        found.judgments,
        source.labels,
        rewards={},
        missing=missing,
        bootstrap=Bootstrap(resamples=0),
    )
    mine = tuple(s for s in report.scores if not s.baseline)
    report = report.model_copy(update={"scores": mine, "remarks": found.remarks})
    report = about_process(report) if question == "process" else report
    if config.csv or config.json_output:
        sys.stdout.write(results_csv(report) if config.csv else results_json(report))
    elif config.format != "table" or config.full:
        sys.stdout.write(render([transfer_table(report, question)], config.format))
    else:
        sys.stdout.write(transfer_screen(report, question))


def transfer_table(report: ScoreReport, question: Label) -> Table:
    """Make the table, benchmarks in their order and overall last, methods by name."""
    rows = [
        (
            benchmark_name(s.benchmark),
            s.judge,
            rate_cell(s, "precision"),
            percent(s.recall),
            rate_cell(s, "f1"),
            rate_cell(s, "balanced_accuracy"),
            str(s.n),
            str(s.positives),
        )
        for s in report.scores
        if s.label == question and s.agent == ALL_AGENTS and not s.baseline
    ]
    order = {name: place for place, name in enumerate(dict.fromkeys(row[0] for row in rows))}
    overall = benchmark_name(OVERALL)
    rows.sort(key=lambda row: (row[0] == overall, order[row[0]], row[1]))
    return Table("Leave one benchmark out [95 %]", _HEAD, rows)


def transfer_screen(report: ScoreReport, question: Label) -> str:
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
        *(_HEAD, named, width, LINES - 1 - min(len(below), 8)),
        names=2,
        more=lambda left: f"and {count_of(left, 'more row')}: --full",
    )
    return "\n".join([*lines, "", *below]) + "\n"
