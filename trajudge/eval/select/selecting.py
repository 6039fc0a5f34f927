"""Choose a judge: freeze the plan, then read the labels, then decide."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

from trajudge.eval.reporting.sentences import unfinished
from trajudge.eval.select.binding import JudgeConfiguration
from trajudge.eval.select.decide import decide
from trajudge.eval.select.decision import Decision
from trajudge.eval.select.inputs import check_planned, read_all_labels, read_inputs
from trajudge.eval.select.measures.scores import judgments_hash
from trajudge.eval.select.measures.selection_data import gather
from trajudge.eval.select.measures.under_attack import UnderAttack, read_threat
from trajudge.eval.select.output import write_decision
from trajudge.eval.select.plan import FILE, SelectionPlan, freeze
from trajudge.eval.select.planning import make_plan, open_plan
from trajudge.eval.select.settings import SelectConfig
from trajudge.eval.store.task_goals import (
    read_goals,
    shared_goals,
    shared_sentence,
    task_units,
)
from trajudge.judges.model import Judgment
from trajudge.util.errors import UserError
from trajudge.util.files import check_folder
from trajudge.util.terminal import one_line


class FrozenPlan(NamedTuple):
    """A plan as it was written to ``folder``, and the judgments that it is tested on.

    ``is_stale``: the plan was made from other judgments than these.
    """

    plan: SelectionPlan
    folder: Path
    judgments: list[Judgment]
    configurations: dict[str, JudgeConfiguration]
    is_stale: bool


class Selection(NamedTuple):
    """A decision, the folder that it was written to, and whether its plan was stale."""

    decision: Decision
    folder: Path
    is_stale: bool


def freeze_plan(config: SelectConfig) -> FrozenPlan:
    """Make or open the plan and write it. Reads no label; raises UserError."""
    if config.out:
        check_folder(config.out, "--out")
    inputs = read_inputs(config.runs, config.judgments)
    plan = open_plan(config) if config.candidates else make_plan(config.plan, inputs.judgments)
    check_planned(inputs, plan)
    judgments, configurations, cut = inputs
    if cut:
        sys.stderr.write(f"note: {one_line(unfinished(cut))}: the decision is on these\n")
    folder = config.out or Path("selections") / plan.hash[:8]
    freeze(folder / FILE, plan)
    is_stale = plan.judgments not in ("", judgments_hash(judgments))
    return FrozenPlan(plan, folder, judgments, configurations, is_stale)


def select(config: SelectConfig) -> Selection:
    """Choose the judge and threshold that meet the plan's target, and write the decision.

    Raises UserError for judgments, labels or a plan that cannot be used.
    """
    frozen = freeze_plan(config)
    attacked = _under_attack(config, frozen)
    # Nothing above this line has seen a label.
    labels = read_all_labels(config.runs, config.judgments, config.annotations)
    goals = {task: goal for run in config.runs for task, goal in read_goals(run).items()}
    if config.task_id == "recorded" and (sentence := shared_sentence(shared_goals(goals))):
        sys.stderr.write(f"warning: {sentence}: count goals with --task-id goal\n")
    with task_units(goals, config.task_id):
        evidence = gather(frozen.plan, frozen.judgments, labels)
        decision = decide(frozen.plan, evidence, frozen.configurations, attacked)
    write_decision(frozen.folder, decision)
    return Selection(decision, frozen.folder, frozen.is_stale)


def _under_attack(config: SelectConfig, frozen: FrozenPlan) -> dict[str, UnderAttack]:
    """Read what the plan's judges survive, where it asks for that. Raises UserError."""
    plan = frozen.plan
    if plan.threat is None:
        if config.robustness:
            raise UserError("--robustness: name who attacks with --threat agent, page or both")
        return {}
    judges = [family.rule.judges[0] for family in plan.families]
    return read_threat(config.robustness, plan.threat, judges, frozen.configurations)
