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
from trajudge.eval.scoring.records import (
    ALL_AGENTS,
    OVERALL,
    Label,
    Score,
    ScoreReport,
)
from trajudge.trajectories.util.tables import columns

_HEAD = ("judge", "precision [95 %]", "recall", "F1 [95 %]", "n")
_AGENTS_HEAD = ("agent", "judge", "precision [95 %]", "recall", "F1", "n")
_AGENT_ROWS = 8


def overview(scores: ScoreReport) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Head and rows for success, judges in the order of the scores.

    The rule-based baseline, which is the same beside all judges of the same trajectories, comes
    once after them, and the trivial baselines at the end.
    """
    judges = _by_place(scores.scores)
    benchmarks = list(dict.fromkeys(name for _, _, name in judges if name != OVERALL))
    if len(benchmarks) == 1:
        benchmarks = []
    places = (f"{benchmark_name(benchmark)} [95 %]" for benchmark in benchmarks)
    rows = [*_rows(judges, benchmarks), *_rows(_by_place(scores.baselines), benchmarks)]
    return (*_HEAD, *places), rows


def agents(scores: ScoreReport, width: int) -> list[str]:
    """Lay out the judges agent by agent, over all benchmarks, in a few lines: the agents with the
    most trajectories. Nothing where they were not scored so."""
    label = _first_label(scores.scores)
    rows = [
        s
        for s in scores.scores
        if (s.label, s.benchmark, s.baseline) == (label, OVERALL, False)
        and s.agent != ALL_AGENTS
        and s.n
    ]
    if not rows:
        return []
    rows.sort(key=lambda s: -s.n)
    cells = [
        (s.agent, s.judge, precision_cell(s), percent(s.recall), percent(s.f1), str(s.n))
        for s in rows[:_AGENT_ROWS]
    ]
    left_out = len(rows) - _AGENT_ROWS
    more = [f"and {left_out:,} more: --full"] if left_out > 0 else []
    return [*columns(_AGENTS_HEAD, cells, width, names=2), *more]


def _first_label(scores: Iterable[Score]) -> Label:
    """Success, or the process where that alone is scored."""
    return "success" if any(s.label == "success" for s in scores) else "process"


def _by_place(scores: Iterable[Score]) -> dict[tuple[str, bool, str], Score]:
    """Judge, whether it is the rule beside it, and benchmark -> its score of success, or of the
    process where that alone is scored."""
    whole = [s for s in scores if s.agent == ALL_AGENTS]
    label = _first_label(whole)
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
