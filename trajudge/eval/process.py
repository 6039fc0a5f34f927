"""The soundness of a run on its way: faults that judges find, and the steps they place them at."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from trajudge.annotations.agentrewardbench import benchmark_of, family_of
from trajudge.annotations.model import Label, Labels
from trajudge.eval.scoring.observations import one_per_trajectory
from trajudge.eval.scoring.records import FAULT_RATES, FaultRate, FaultScore, LabelName, ScoreReport
from trajudge.eval.store.labels import refuse_unequal
from trajudge.eval.store.table import UNKNOWN, JudgmentTable
from trajudge.judges.model import Judgment, Status
from trajudge.stats.intervals import rates_by_cluster

Case = tuple[Label, Judgment]


def fault_scores(judgments: Sequence[Judgment], labels: Labels) -> list[FaultScore]:
    """Score every judge that answered the process question, judges by name. Raises UserError for
    labels that were drawn with unequal probabilities."""
    refuse_unequal(labels, "--question process")
    by_judge: dict[str, list[Judgment]] = {}
    for judgment in judgments:
        by_judge.setdefault(judgment.judge, []).append(judgment)
    found = []
    for judge in sorted(by_judge):
        cases = [
            (label, judgment)
            for judgment in one_per_trajectory(by_judge[judge])
            if (label := labels.get(judgment.key)) is not None and label.process is not None
        ]
        if any(judgment.process is not None for _, judgment in cases):
            found.append(_score(judge, cases))
    return found


def calls_faulty(judgment: Judgment) -> bool:
    """Tell whether the judge found a fault."""
    return judgment.status is Status.OK and judgment.process is False


def _score(judge: str, cases: Sequence[Case]) -> FaultScore:
    counted = {name: _trials(name, cases) for name in FAULT_RATES}
    values: dict[str, float | None] = {}
    intervals: dict[FaultRate, tuple[float, float]] = {}
    table = np.array(
        [[counted[name][place] for name in FAULT_RATES] for place in range(len(cases))]
    )
    limits = rates_by_cluster(
        table[..., 0],
        table[..., 1],
        [family_of(label.key) for label, _ in cases],
        [benchmark_of(label.key) for label, _ in cases],
    ).interval
    for place, name in enumerate(FAULT_RATES):
        ends = [float(e[place]) for e in (limits.estimate, limits.low, limits.high)]
        estimate, low, high = map(_f1, ends) if name == "f1" else ends
        values[name] = None if np.isnan(estimate) else estimate
        if not np.isnan(low):
            intervals[name] = (low, high)
    faults = [label for label, _ in cases if label.process is False]
    return FaultScore(
        judge=judge,
        n=len(cases),
        faulty=len(faults),
        silent=sum(label.success is True for label in faults),
        loud=sum(label.success is False for label in faults),
        named=sum(trials for _, trials in counted["step_exact"]),
        type_f1=_type_f1(cases),
        intervals=intervals,
        **values,
    )


def _f1(jaccard: float) -> float:
    return 2 * jaccard / (1 + jaccard)


def _trials(name: FaultRate, cases: Sequence[Case]) -> list[tuple[int, int]]:
    """Count hit and trial of a rate in every case; of F1 those of TP / (TP + FP + FN)."""
    return [_trial(name, label, judgment) for label, judgment in cases]


def _trial(name: FaultRate, label: Label, judgment: Judgment) -> tuple[int, int]:
    faulty, called = label.process is False, calls_faulty(judgment)
    step, truth = judgment.failure_step, label.failure_step
    apart = None if step is None or truth is None else abs(step - truth)
    placed = faulty and called and apart is not None
    trials: Mapping[FaultRate, tuple[bool, bool]] = {
        "precision": (faulty, called),
        "recall": (called, faulty),
        "f1": (faulty and called, faulty or called),
        "false_alarms": (called, not faulty),
        "silent_recall": (called, faulty and label.success is True),
        "loud_recall": (called, faulty and label.success is False),
        "step_exact": (apart == 0, placed),
        "step_within_one": (apart is not None and apart <= 1, placed),
        "step_found": (called and apart == 0, faulty and truth is not None),
    }
    hit, trial = trials[name]
    return int(hit and trial), int(trial)


def _type_f1(cases: Sequence[Case]) -> float | None:
    """Average F1 over the kinds of faults; None where labels or judge name none."""
    pairs = [
        (label.failure_type, judgment.failure_type if calls_faulty(judgment) else None)
        for label, judgment in cases
        if label.process is False and label.failure_type is not None
    ]
    if not any(named for _, named in pairs):
        return None
    scores = list(_f1_by_type(pairs))
    return sum(scores) / len(scores)


def _f1_by_type(pairs: Sequence[tuple[str | None, str | None]]) -> Iterator[float]:
    for kind in sorted({truth for truth, _ in pairs if truth}):
        hits = sum(truth == named == kind for truth, named in pairs)
        both = sum((truth == kind) + (named == kind) for truth, named in pairs)
        yield 2 * hits / both


def question_of(judgments: Iterable[Judgment]) -> LabelName:
    """Choose the process where judges answered it and none said anything of success."""
    columns = JudgmentTable.of(judgments)
    success, process = ((columns.verdict(name) != UNKNOWN).any() for name in ("success", "process"))
    return "process" if process and not success else "success"


def about_process(report: ScoreReport) -> ScoreReport:
    """Keep what a report says of the process."""
    comparison = report.comparison
    return report.model_copy(
        update={
            "scores": tuple(s for s in report.scores if s.label == "process"),
            "success_rates": (),
            "estimated_rates": (),
            "against_baseline": (),
            "comparison": comparison.model_copy(
                update={
                    name: tuple(one for one in getattr(comparison, name) if one.label == "process")
                    for name in type(comparison).model_fields
                }
            ),
        }
    )
