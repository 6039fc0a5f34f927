"""Put the trivial baselines beside the judges of a report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from trajudge.annotations.model import Labels
from trajudge.eval.baselines.equal_recall import at_equal_recall
from trajudge.eval.baselines.trivial import ALWAYS_FAIL, BASELINES, TrivialBaselines
from trajudge.eval.scoring.compute import score
from trajudge.eval.scoring.intervals import Bootstrap
from trajudge.eval.scoring.observations import Observations
from trajudge.eval.scoring.records import EqualRecall, Score, ScoreReport
from trajudge.judges.model import Judgment
from trajudge.trajectories.model import TrajectoryKey


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
    scored = score(
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
