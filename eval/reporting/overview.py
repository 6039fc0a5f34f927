"""Several judges on one page, as AgentRewardBench's Table 1 has them: a row a judge, precision
first, and the precision on every benchmark beside it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from trajudge.eval.reporting.formatting import (
    UNDEFINED,
    baseline_rows,
    benchmark_name,
    percent,
    precision_cell,
    rate_cell,
)
from trajudge.eval.scoring.records import ALL_AGENTS, OVERALL, Score, ScoreReport

_HEAD = ("judge", "precision [95 %]", "recall", "F1 [95 %]", "n")


def overview(scores: ScoreReport) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Head and rows for success, judges in the order of the scores.

    The rule-based baseline, which is the same beside all judges of the same trajectories, comes
    once after them, and the trivial baselines at the end.
    """
    judges = _by_place(scores.scores)
    benchmarks = list(dict.fromkeys(name for _, _, name in judges if name != OVERALL))
    if len(benchmarks) == 1:
        benchmarks = []
    columns = (f"{benchmark_name(benchmark)} [95 %]" for benchmark in benchmarks)
    rows = [*_rows(judges, benchmarks), *_rows(_by_place(scores.baselines), benchmarks)]
    return (*_HEAD, *columns), rows


def _by_place(scores: Iterable[Score]) -> dict[tuple[str, bool, str], Score]:
    """Judge, whether it is the rule beside it, and benchmark -> its score of success, or of the
    process where that alone is scored."""
    whole = [s for s in scores if s.agent == ALL_AGENTS]
    label = "success" if any(s.label == "success" for s in whole) else "process"
    return {(s.judge, s.baseline, s.benchmark): s for s in whole if s.label == label}


def _rows(
    scores: Mapping[tuple[str, bool, str], Score], benchmarks: Sequence[str]
) -> list[tuple[str, ...]]:
    cells: dict[bool, dict[str, tuple[str, ...]]] = {False: {}, True: {}}
    for judge, baseline in dict.fromkeys((j, b) for j, b, _ in scores):
        places = [scores.get((judge, baseline, benchmark)) for benchmark in benchmarks]
        whole = _whole(scores[judge, baseline, OVERALL])
        cells[baseline][judge] = (*whole, *map(_place, places))
    judges = [(judge, *row) for judge, row in cells[False].items()]
    return judges + baseline_rows(cells[True], "rule-based baseline")


def _whole(score: Score) -> tuple[str, ...]:
    return precision_cell(score), percent(score.recall), rate_cell(score, "f1"), str(score.n)


def _place(score: Score | None) -> str:
    return UNDEFINED if score is None else precision_cell(score)
