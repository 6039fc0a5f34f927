"""Judgments against expert labels: what a judge is worth, per benchmark, agent and label.

``score`` is the whole of it; the records that it gives are those of ``eval.scoring.records``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from trajudge.annotations.model import Labels
from trajudge.eval.comparison.against_baseline import against_baseline
from trajudge.eval.comparison.judges import compare
from trajudge.eval.scoring.coverage import coverage_of, unsure
from trajudge.eval.scoring.estimated_rates import estimated_rates
from trajudge.eval.scoring.groups import groups
from trajudge.eval.scoring.intervals import Bootstrap, Scored, with_intervals
from trajudge.eval.scoring.metrics import accuracy, f1, kappa, mcc, npv, precision, recall, tnr
from trajudge.eval.scoring.observations import Observations, Verdicts, one_per_trajectory
from trajudge.eval.scoring.protocol import ProtocolCounts, protocol_counts, protocol_rates
from trajudge.eval.scoring.records import (
    ALL_AGENTS,
    OVERALL,
    RULE_BASED,
    Coverage,
    EstimatedRate,
    Label,
    Missing,
    Score,
    Scores,
)
from trajudge.eval.scoring.reference import Reference
from trajudge.eval.scoring.stability import remarks
from trajudge.eval.scoring.success_rates import RateCells, success_rates
from trajudge.eval.scoring.training import on_training_set, without_training
from trajudge.eval.scoring.usage import spending
from trajudge.eval.stats.interval import Bools
from trajudge.judges.model import Judgment
from trajudge.trajectories.model import TrajectoryKey
from trajudge.trajectories.util.gc_pause import collection_paused

__all__ = ["OVERALL", "Label", "Missing", "Score", "Scores", "one_per_trajectory", "score"]


def score(
    judgments: Iterable[Judgment],
    labels: Labels,
    *,
    rewards: Mapping[TrajectoryKey, float | None],
    missing: Missing = "negative",
    by_agent: bool = False,
    bootstrap: Bootstrap | None = None,
    compare_by_benchmark: bool = False,
    training: Mapping[str, Collection[TrajectoryKey]] | None = None,
) -> Scores:
    """Score every judge on every benchmark and overall; ``by_agent`` also agent by agent. Judges
    are compared over all benchmarks, and where ``compare_by_benchmark`` also in each.

    ``rewards`` holds the official reward of every trajectory of the run (None: unknown). Several
    samples of one judge on one trajectory are one observation: their majority.

    ``training`` are trajectories that a judge was trained on: they are left out of its metrics and
    counted in its coverage.

    What a failed judgment counts as: ``negative``, as not accepted (a reward model would not have
    taken it); ``exclude``, not at all; ``agentrewardbench``, as the paper has it: a reply without
    the tag is 0, no valid reply is -1, and its arithmetic (``eval.scoring.protocol``) gives the
    rates.
    """
    bootstrap = bootstrap or Bootstrap()
    with collection_paused():
        by_judge = _by_judge(judgments)
        reference = _reference(by_judge, labels, rewards)
        left_out = training or {}
        said = {
            judge: Verdicts.of(without_training(mine, left_out), reference)
            for judge, mine in by_judge.items()
        }
        rows = _Rows([], [], [], [])
        for judge, verdicts in said.items():
            trained = left_out.get(judge, ())
            rows.add(judge, verdicts, _due(rewards, verdicts, trained), missing, by_agent)
        return Scores(
            missing=missing,
            resamples=bootstrap.resamples,
            seed=bootstrap.seed,
            scores=tuple(with_intervals(rows.scored)),
            success_rates=tuple(success_rates(rows.rates, missing)),
            estimated_rates=tuple(rows.estimated),
            against_baseline=tuple(
                against_baseline(rows.rates, exclude_missing=missing == "exclude")
            ),
            comparison=compare(said, missing, bootstrap, by_benchmark=compare_by_benchmark),
            coverage=tuple(rows.coverage),
            spending=tuple(spending(judge, mine) for judge, mine in by_judge.items()),
            remarks=tuple(
                line
                for judge, mine in by_judge.items()
                for line in (
                    *remarks(without_training(mine, left_out), len(said[judge])),
                    *on_training_set(judge, len(left_out.get(judge, ()))),
                )
            ),
        )


def _reference(
    by_judge: Mapping[str, list[Judgment]],
    labels: Labels,
    rewards: Mapping[TrajectoryKey, float | None],
) -> Reference:
    # Judges share key objects where they can, and objects are told apart quicker than keys.
    keys = {id(j.key): j.key for mine in by_judge.values() for j in mine}
    return Reference.of({*rewards, *keys.values()}, labels, rewards)


def _by_judge(judgments: Iterable[Judgment]) -> dict[str, list[Judgment]]:
    """Judges by name."""
    found: dict[str, list[Judgment]] = defaultdict(list)
    for judgment in judgments:
        found[judgment.judge].append(judgment)
    return {judge: found[judge] for judge in sorted(found)}


def _due(
    rewards: Iterable[TrajectoryKey], verdicts: Verdicts, training: Collection[TrajectoryKey]
) -> tuple[Bools, Bools]:
    """Which trajectories (T,) the judge had to judge, the run's and what it judged; and those that
    it was trained on (T,)."""
    place = verdicts.reference.place
    due = np.zeros(len(verdicts.reference.reward), dtype=bool)
    due[[verdicts.reference.place[key] for key in rewards]] = True
    due[verdicts.place] = True
    trained = np.zeros_like(due)
    trained[[place[key] for key in training if key in place]] = True
    return due | trained, trained


@dataclass
class _Rows:
    """What the tables have rows of, in their order."""

    scored: list[Scored]
    rates: list[RateCells]
    coverage: list[Coverage]
    estimated: list[EstimatedRate]

    def add(
        self,
        judge: str,
        said: Verdicts,
        due: tuple[Bools, Bools],
        missing: Missing,
        by_agent: bool,
    ) -> None:
        """Every group of one judge."""
        observed = {label: said.observe(label, missing) for label in said.asked()}
        listed = groups(said.reference, due[0])
        self.estimated += estimated_rates(judge, said, listed, missing)
        for group in listed:
            detailed = by_agent or group.agent == ALL_AGENTS
            members = group.members(said.reference)
            if detailed:
                self.coverage.append(
                    coverage_of(judge, group, said, due[0], members, training=due[1])
                )
            if not members[said.place].any():
                continue
            cut = {label: seen.where(members[seen.place]) for label, seen in observed.items()}
            self.rates.append(RateCells(judge, group, cut["success"]))
            for label in observed if detailed else ():
                place = {"judge": judge, **group._asdict(), "label": label}
                place["unsure"] = unsure(said, label, members)
                self.scored += _score_label(place, cut[label], missing)


def _score_label(place: Mapping[str, object], seen: Observations, missing: Missing) -> list[Scored]:
    """The judge's score and, for success, the baseline's on the trajectories it was scored on."""
    failed = int((~seen.answered).sum())
    if missing == "exclude":
        seen = seen.where(seen.answered)
    found = protocol_counts(seen.truth, seen.verdict)
    score = Score.model_validate({**place, "missing": failed, **_rates(found, missing)})
    scored = [Scored(score, seen)]
    if place["label"] == "success" and place["judge"] != RULE_BASED:
        rewarded = ~np.isnan(seen.reward)
        rule = seen.where(rewarded).ruled()
        counts = protocol_counts(rule.truth, rule.verdict)
        more = {"baseline": True, "without_reward": int((~rewarded).sum())}
        score = Score.model_validate({**place, **more, **_rates(counts, missing)})
        scored.append(Scored(score, rule))
    return scored


def _rates(found: ProtocolCounts, missing: Missing) -> dict[str, object]:
    """The numbers of a Score."""
    counts = found.counts
    rates: dict[str, object] = {
        "n": found.n,
        "positives": counts.positives + found.missing_positive,
        "counts": counts,
        "kappa": kappa(counts),
        "mcc": mcc(counts),
    }
    if missing == "agentrewardbench":
        return rates | protocol_rates(found).model_dump()
    plain = (precision, recall, f1, accuracy, npv, tnr)
    return rates | {rate.__name__: rate(counts) for rate in plain}
