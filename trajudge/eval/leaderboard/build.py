"""Score everything that is compared, suite by suite, with the statistics of ``trajudge score``."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from trajudge.annotations.agentrewardbench import benchmark_of
from trajudge.annotations.model import Annotation
from trajudge.eval.comparison.versions import mixed_versions
from trajudge.eval.data.index.judgments import columns_of
from trajudge.eval.leaderboard.ranks import rank_ranges, smallest_overlap
from trajudge.eval.leaderboard.records import (
    QUESTIONS,
    RANKED,
    Board,
    BoardRow,
    BoardSuite,
    BoardTable,
    Question,
    RankRange,
)
from trajudge.eval.leaderboard.sources.entries import BoardEntry, JudgeVerdicts, verdicts_by_judge
from trajudge.eval.leaderboard.sources.questions import asked
from trajudge.eval.leaderboard.sources.suites import EntrySuite, suites_of
from trajudge.eval.reporting.caveats import warnings_of
from trajudge.eval.scoring.compute import WEIGHTED, score
from trajudge.eval.scoring.records import ALL_AGENTS, OVERALL, RULE_BASED, Score, ScoreReport
from trajudge.eval.scoring.usage import judge_usage
from trajudge.judges.model import Judgment, Status
from trajudge.trajectories.model import TrajectoryKey
from trajudge.trajectories.util.errors import UserError
from trajudge.trajectories.util.terminal import count_of

Expert = dict[TrajectoryKey, Annotation]
Rewards = dict[TrajectoryKey, float | None]


def build_board(
    entries: Sequence[BoardEntry], *, split: str = "test", left_out: Iterable[str] = ()
) -> Board:
    """Score all entries. Of annotations with splits only those of ``split`` count ("all": every
    one). Raises UserError where nothing can be scored."""
    built = [
        (suite, question, _suite(suite, question, split))
        for question in QUESTIONS
        for suite in suites_of(asked(entries, question))
    ]
    suites = [scored for _, _, scored in built if scored]
    if not suites:
        raise UserError(
            f"no judgment of split {split} has an expert's label: name runs on labelled "
            "trajectories, or --split all"
        )
    notes = [
        _not_scored(suite, question)
        for suite, question, scored in built
        if not scored and any(entry.source.judgments for entry in suite.entries)
    ]
    return Board(split=split, suites=tuple(suites), left_out=tuple(left_out), notes=tuple(notes))


def _not_scored(suite: EntrySuite, question: Question) -> str:
    judgments = [judgment for entry in suite.entries for judgment in entry.source.judgments]
    judges = ", ".join(sorted({judgment.judge for judgment in judgments}))
    return (
        f"{suite.name}, {QUESTIONS[question]}: no trajectory has an expert's label, therefore "
        f"nothing of {judges} is scored (judgments: {len(judgments)})"
    )


def _suite(suite: EntrySuite, question: Question, split: str) -> BoardSuite | None:
    labels, conflicts = _labels(suite.entries)
    labels = _of_split(labels, split)
    labelled = {key for key, label in labels.items() if label.success is not None}
    rewards = _rewards(suite.entries, labels)
    rows = {
        name: row._replace(judgments=[j for j in row.judgments if j.key in labels])
        for name, row in _with_rule_based(verdicts_by_judge(suite.entries), rewards).items()
    }
    rows = {name: row for name, row in rows.items() if row.judgments}
    if not rows or not labelled:
        return None
    report = score(
        [judgment for row in rows.values() for judgment in row.judgments],
        labels,
        rewards=rewards,
        compare_by_benchmark=True,
        training={name: row.trained_on for name, row in rows.items() if row.trained_on},
    )
    versions = {name: row.versions for name, row in rows.items()}
    return BoardSuite(
        name=suite.name,
        question=question,
        tables=tuple(_tables(_Scored(report, rows, labelled))),
        remarks=(
            *_notes(suite.entries),
            *(line for line in report.remarks if line == WEIGHTED),
            *conflicts,
            *mixed_versions(versions),
            *_warnings(report, question),
        ),
    )


def _warnings(report: ScoreReport, question: Question) -> list[str]:
    """List what weakens the figures that are shown: those of success, of the judges themselves."""
    success = tuple(s for s in report.scores if s.label == "success" and not s.baseline)
    lines = warnings_of(report.model_copy(update={"scores": success}))
    # A fault found is scored in the place of a success.
    return [line.replace("(success", f"({QUESTIONS[question]}") for line in lines]


def _labels(entries: Sequence[BoardEntry]) -> tuple[Expert, list[str]]:
    """Bring the labels together, and say where they contradict each other.

    On benchmarks with trusted labels no others count: a run's folder is the submitter's. Elsewhere
    the first of two labels counts.
    """
    trusted: Expert = {}
    claimed: Expert = {}
    contradicted: set[TrajectoryKey] = set()
    for entry in sorted(entries, key=lambda entry: not entry.trusted):
        kind = trusted if entry.trusted else claimed
        for key, label in entry.source.labels.items():
            known = trusted.get(key) or kind.setdefault(key, label)
            if known.success != label.success:
                contradicted.add(key)
    covered = {benchmark_of(key) for key in trusted}
    foreign = {key for key in claimed if benchmark_of(key) in covered}
    labels = trusted | {key: label for key, label in claimed.items() if key not in foreign}
    return labels, [*_contradictions(contradicted), *_foreign(foreign)]


def _notes(entries: Iterable[BoardEntry]) -> list[str]:
    """List what the readers of the sources said, each sentence once."""
    return list(dict.fromkeys(note for entry in entries for note in entry.source.notes))


def _contradictions(keys: Collection[TrajectoryKey]) -> Iterator[str]:
    if keys:
        first = min(keys, key=lambda key: key.order)
        yield (
            f"warning: two different labels of {count_of(len(keys), 'trajectory')}, {first} for "
            "one: those of the annotations count, else the first run's; score all against the same "
            "ones"
        )


def _foreign(keys: Collection[TrajectoryKey]) -> Iterator[str]:
    if keys:
        first = min(keys, key=lambda key: key.order)
        yield (
            f"warning: {count_of(len(keys), 'trajectory')} labelled by a run alone and not by the "
            f"benchmark's annotations, {first} for one, left out"
        )


def _of_split(labels: Expert, split: str) -> Expert:
    if split == "all" or not any(label.split for label in labels.values()):
        return labels
    return {key: label for key, label in labels.items() if label.split in (None, split)}


def _rewards(entries: Sequence[BoardEntry], labels: Expert) -> Rewards:
    """Return the official reward of every labelled trajectory, None where no source tells it."""
    rewards: Rewards = dict.fromkeys(labels)
    for entry in sorted(entries, key=lambda entry: not entry.trusted):
        for key, reward in entry.source.rewards.items():
            if key in rewards and rewards[key] is None:
                rewards[key] = reward
    return rewards


def _with_rule_based(
    rows: Mapping[str, JudgeVerdicts], rewards: Rewards
) -> dict[str, JudgeVerdicts]:
    """Add the official rewards as a judge, unless a run holds it already."""
    known = {key: reward for key, reward in rewards.items() if reward is not None}
    if RULE_BASED in rows or not known:
        return dict(rows)
    judgments = [
        Judgment(key=key, judge=RULE_BASED, status=Status.OK, success=reward > 0.5)
        for key, reward in sorted(known.items(), key=lambda each: each[0].order)
    ]
    return {**rows, RULE_BASED: JudgeVerdicts(judgments, set(), {}, free=True)}


class _Scored(NamedTuple):
    """A scored suite: the report, the rows it was computed from, and the labelled trajectories."""

    report: ScoreReport
    rows: Mapping[str, JudgeVerdicts]
    labelled: set[TrajectoryKey]


def _tables(suite: _Scored) -> list[BoardTable]:
    """Make the table of the whole suite, then one per benchmark; a single benchmark has one."""
    scores: dict[str, list[Score]] = {}
    for each in suite.report.scores:
        if (each.label, each.agent, each.baseline) == ("success", ALL_AGENTS, False):
            scores.setdefault(each.benchmark, []).append(each)
    listed = sorted(scores, key=lambda benchmark: benchmark != OVERALL)
    single = {benchmark_of(key) for key in suite.labelled}
    if len(single) == 1:
        # One benchmark alone is compared once, as the whole.
        return [_table(single.pop(), OVERALL, scores[OVERALL], suite)]
    return [_table(name, name, scores[name], suite) for name in listed]


def _table(benchmark: str, compared: str, scores: Sequence[Score], suite: _Scored) -> BoardTable:
    """Make one table; its judges were compared under the name ``compared``."""
    known = [each for each in scores if each.n]
    comparison = suite.report.comparison
    ranks = {
        metric: rank_ranges(comparison, compared, metric, _defined(known, metric))
        for metric in RANKED
    }
    overlap = smallest_overlap(comparison, compared)
    due = sum(benchmark in (OVERALL, benchmark_of(key)) for key in suite.labelled)
    made = [
        BoardRow(
            judge=each.judge,
            score=each,
            labelled=due,
            cost=_cost(each.judge, benchmark, suite.rows[each.judge]),
            ranks={
                metric: by_judge[each.judge]
                for metric, by_judge in ranks.items()
                if each.judge in by_judge
            },
            common=overlap.get(each.judge),
        )
        for each in known
    ]
    return BoardTable(benchmark=benchmark, rows=tuple(sorted(made, key=_order)))


def _defined(scores: Iterable[Score], metric: str) -> list[str]:
    """List the judges whose metric is defined: without an accepted trajectory precision is not."""
    return [
        each.judge
        for each in scores
        if getattr(each, metric) is not None and (metric != "precision" or each.counts.accepted)
    ]


def _order(row: BoardRow) -> tuple[float | str, ...]:
    """Order by rank and value of each metric in turn, precision first, then by name; judges without
    a rank are last."""
    places = [
        place
        for metric in RANKED
        for place in (*_ends(row.ranks.get(metric)), -(getattr(row.score, metric) or 0.0))
    ]
    return (*places, row.judge)


def _ends(rank: RankRange | None) -> tuple[float, float]:
    return (float("inf"), float("inf")) if rank is None else (rank.best, rank.worst)


def _cost(judge: str, benchmark: str, row: JudgeVerdicts) -> float | None:
    """Return US dollars per 1,000 judgments; None where a call's price, or whether there were
    calls, is not known."""
    mine = [j for j in row.judgments if benchmark in (OVERALL, benchmark_of(j.key))]
    used = judge_usage(judge, columns_of(mine))
    if not used.calls:
        return 0.0 if row.free else None
    if used.cost is None or used.unpriced:
        return None
    return 1000 * used.cost / len(mine)
