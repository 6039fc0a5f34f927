"""Score judgments against expert labels, per benchmark, agent and label: metrics with intervals,
success rates, comparisons, coverage and cost.

The data go one way: the table of judgments and the labels become the predictions of each judge,
these the observations of groups, and these scores (``observations``, ``rates``, ``comparison``).
"""

from __future__ import annotations

from collections.abc import Iterable

from trajudge.annotations.model import Labels
from trajudge.eval.scoring.comparison import against_baseline, compare
from trajudge.eval.scoring.notes import judge_notes, reward_notes
from trajudge.eval.scoring.observations import (
    Compared,
    ReferenceLabels,
    Training,
    compared_judges,
    coverage,
    group_observations,
    predictions_by_judge,
)
from trajudge.eval.scoring.rates import scores_by_group, success_rates
from trajudge.eval.scoring.records import ALL_AGENTS, OVERALL, WEIGHTED, Missing, Score, ScoreReport
from trajudge.eval.scoring.usage import judge_usage
from trajudge.eval.store.labels import Rewards
from trajudge.eval.store.table import JudgmentTable
from trajudge.judges.model import Judgment
from trajudge.util.machine import collection_paused


def score(
    judgments: Iterable[Judgment],
    labels: Labels,
    *,
    rewards: Rewards,
    missing: Missing = "negative",
    by_agent: bool = False,
    compared: Compared | None = "overall",
    training: Training | None = None,
) -> ScoreReport:
    """Score every judge on every benchmark and overall; ``by_agent`` also agent by agent. Judges
    are ``compared`` over all benchmarks, in each as well, or not at all (None).

    ``rewards`` holds the official reward of every trajectory of the run (None: unknown). Several
    samples of one judge on one trajectory are one observation: their majority.

    ``training`` are trajectories that a judge was trained on: they are left out of its metrics and
    counted in its coverage.

    What a failed judgment counts as: ``negative``, as not accepted (a reward model would not have
    taken it); ``exclude``, not at all; ``agentrewardbench``, as the paper has it: a reply without
    the tag is 0, no valid reply is -1, and its arithmetic (``metrics.agentrewardbench_rates``)
    gives the rates. Where no judgment gave an answer no rate is known, whatever failures count as.

    Raises UserError for that protocol and labels that were drawn with unequal probabilities, and
    for labels of which some alone tell how they were drawn.
    """
    with collection_paused():
        judgments = JudgmentTable.of(judgments)
        reference = ReferenceLabels.of(judgments.keys, labels, rewards)
        training = training or {}
        judges = predictions_by_judge(judgments, reference, training)
        cells = group_observations(judges, missing, by_agent)
        contests = compared_judges(judges, missing, compared)
        shown = [cell for cell in cells if by_agent or cell.group.agent == ALL_AGENTS]
        successes = [cell for cell in cells if cell.label == "success"]
        return ScoreReport(
            missing=missing,
            compared=compared is not None,
            coverage=tuple(row for judge in judges for row in coverage(judge, by_agent)),
            scores=tuple(scores_by_group(shown, missing)),
            success_rates=tuple(success_rates(successes, missing)),
            against_baseline=tuple(against_baseline(successes)),
            comparison=compare(contests),
            spending=tuple(judge_usage(judge.judge, judgments) for judge in judges),
            remarks=(
                *(line for judge in judges for line in judge_notes(judge, judgments, training)),
                *reward_notes(reference.reward),
                *([WEIGHTED] if reference.is_weighted else []),
            ),
        )


def metric_scores(
    judgments: Iterable[Judgment],
    labels: Labels,
    *,
    rewards: Rewards,
    missing: Missing = "negative",
    by_agent: bool = False,
    training: Training | None = None,
    overall_only: bool = False,
) -> tuple[Score, ...]:
    """Compute the ``scores`` of ``score`` alone, or of them those over all benchmarks; arguments as
    there."""
    with collection_paused():
        judgments = JudgmentTable.of(judgments)
        reference = ReferenceLabels.of(judgments.keys, labels, rewards)
        judges = predictions_by_judge(judgments, reference, training or {})
        cells = group_observations(judges, missing, by_agent)
        shown = [
            cell
            for cell in cells
            if (by_agent or cell.group.agent == ALL_AGENTS)
            and (cell.group.benchmark == OVERALL or not overall_only)
        ]
        return tuple(scores_by_group(shown, missing))
