"""Runs of one family of tasks are dependent wherever an interval or a fold is made, not in the
scores alone: CUAVerifierBench numbers the tasks of a site, which elsewhere are runs of one task."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from trajudge.annotations import Label, Role
from trajudge.annotations.agentrewardbench import family_of
from trajudge.eval.accept.accept import transfer_obstacles
from trajudge.eval.accept.settings import TrainingConfig
from trajudge.eval.accept.training import JudgedRun, choose_runs
from trajudge.eval.audit import Labelled, rank_agents
from trajudge.eval.baselines import Examples
from trajudge.eval.labelling.agreement import label_agreements
from trajudge.eval.process import fault_scores
from trajudge.eval.select.decide import decide
from trajudge.eval.select.decision import Equivalence, Homogeneity, Transport
from trajudge.eval.select.evidence import gather
from trajudge.eval.select.plan import CandidateFamily, SelectionPlan, Target
from trajudge.eval.select.scores import Rule
from trajudge.judges.model import Judgment, Status
from trajudge.robustness.adaptive import adaptive_success
from trajudge.robustness.model import LabelQuestion, Relation
from trajudge.robustness.pairs import RunVerdict, perturbed_pairs
from trajudge.robustness.perturb import VariantLine
from trajudge.trajectories.model import Step, Trajectory, TrajectoryKey

_SITES, _EACH, _AGENTS = 12, 5, ("one", "two")


def numbered() -> list[TrajectoryKey]:
    """The tasks of sites, as CUAVerifierBench names them."""
    return [
        TrajectoryKey(benchmark="cuaverifierbench", agent=agent, task_id=f"set/Site {site}--{n}")
        for site in range(_SITES)
        for n in range(_EACH)
        for agent in _AGENTS
    ]


def attempts() -> list[TrajectoryKey]:
    """The same runs as attempts at one task of each site."""
    return [
        TrajectoryKey(benchmark="other", agent=agent, task_id=f"set/Site {site}", attempt=n)
        for site in range(_SITES)
        for n in range(_EACH)
        for agent in _AGENTS
    ]


Made = tuple[list[Label], list[Judgment]]


def made(keys: list[TrajectoryKey]) -> Made:
    """Label and judge the runs so that those of a site mostly end alike."""
    rng = np.random.default_rng(5)
    by_site = np.repeat(rng.random(_SITES) < 0.6, _EACH * len(_AGENTS))
    success = np.where(rng.random(len(keys)) < 0.8, by_site, rng.random(len(keys)) < 0.5).tolist()
    says = np.where(rng.random(len(keys)) < 0.8, success, by_site).tolist()
    labels = [
        Label(key=key, raw_task_id=key.task_id, annotator="A", success=yes, process=yes)
        for key, yes in zip(keys, success, strict=True)
    ]
    judgments = [
        Judgment(key=key, judge="judge", status=Status.OK, success=yes, process=yes)
        for key, yes in zip(keys, says, strict=True)
    ]
    return labels, judgments


def of_faults(labels: list[Label], judgments: list[Judgment]) -> object:
    [found] = fault_scores(judgments, {each.key: each for each in labels})
    return found.intervals


def of_audit(labels: list[Label], judgments: list[Judgment]) -> object:
    expert = {each.key: bool(each.success) for each in labels}
    rule = {each.key: bool(each.success) for each in judgments}
    labelled = Labelled.of(expert, expert)
    verdicts = np.array([rule[key] for key in expert])
    found = rank_agents("overall", "judge", labelled, verdicts)
    return labelled.rate(verdicts, np.ones(len(verdicts), dtype=bool)), found.low, found.high


def of_selection(labels: list[Label], judgments: list[Judgment]) -> object:
    family = CandidateFamily(name="judge", rule=Rule(judges=("judge",)), thresholds=(1.0,))
    plan = SelectionPlan(target=Target(rate=0.5), families=(family,))
    evidence = gather(plan, judgments, {each.key: each for each in labels})
    [found] = decide(plan, evidence).findings
    return found.p_value, found.precision, found.recall


def of_transfer(_: list[Label], judgments: list[Judgment]) -> object:
    same = Homogeneity(rates={}, chi_square=0.0, df=1, p_value=1.0)
    transport = Transport(
        allowed=True,
        reason="",
        false_positive_rate=same,
        true_positive_rate=same,
        least_success_rate=0.9,
        accepted_to_label=None,
        equivalence=Equivalence(margin=0.1, false_positive=0.0, true_positive=0.0),
        false_positive_limit=0.0,
    )
    rule = Rule(judges=("judge",))
    return [*transfer_obstacles(transport, rule, 1.0, judgments, 0.95).values()]


def of_agreement(labels: list[Label], judgments: list[Judgment]) -> object:
    seconds = [
        first.model_copy(update={"role": Role.SECONDARY, "success": second.success})
        for first, second in zip(labels, judgments, strict=True)
    ]
    found = next(each for each in label_agreements([*labels, *seconds]) if each.label == "success")
    return found.tasks, found.intervals


def of_folds(labels: list[Label], _: list[Judgment]) -> object:
    step = Step(index=0, action="click('1')")
    runs = [
        Trajectory(key=each.key, raw_task_id=each.key.task_id, goal="Find it.", steps=(step,))
        for each in labels
    ]
    return len(np.unique(Examples.of(runs, {each.key: True for each in labels}).groups))


def of_changes(labels: list[Label], judgments: list[Judgment]) -> object:
    changes = [
        VariantLine(
            key=each.key.model_copy(update={"agent": f"{each.key.agent}-changed"}),
            of=each.key,
            perturbation="drawn-warm",
            version=1,
            relations={LabelQuestion.SUCCESS: Relation.KEEP},
            truth={LabelQuestion.SUCCESS: each.success},
            edits=(),
            source_truth=each.success,
        )
        for each in labels
    ]
    clean = {each.key: RunVerdict(each.success) for each in labels}
    after = {
        change.key: RunVerdict(each.success)
        for change, each in zip(changes, judgments, strict=True)
    }
    [pairs] = perturbed_pairs(changes, clean | after)
    return len(set(pairs.cluster.tolist()))


def of_attempts_to_deceive(labels: list[Label], _: list[Judgment]) -> object:
    return adaptive_success([each.key for each in labels], []).within


@pytest.mark.parametrize(
    "measured",
    [
        of_faults,
        of_audit,
        of_selection,
        of_transfer,
        of_agreement,
        of_folds,
        of_changes,
        of_attempts_to_deceive,
    ],
)
def test_numbered_tasks_of_a_site_count_as_runs_of_one_task(
    measured: Callable[[list[Label], list[Judgment]], object],
) -> None:
    assert measured(*made(numbered())) == measured(*made(attempts()))


def test_no_site_stands_in_the_training_file_and_in_the_test_file() -> None:
    runs = [JudgedRun(key, 1.0, True, str(key).encode()) for key in numbered()]
    config = TrainingConfig(format="trl-messages", test_share=0.3)
    sites: dict[str, set[str]] = {}
    for _, (run, file) in choose_runs(runs, config).runs.items():
        sites.setdefault(file, set()).add(family_of(run.key))
    assert {file: len(names) for file, names in sites.items()} == {"train": 8, "test": 4}
