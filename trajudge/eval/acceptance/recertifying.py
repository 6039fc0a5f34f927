"""Certify a decision again: draw the runs to label, then test their labels."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from trajudge.annotations import open_labels
from trajudge.eval.acceptance.acceptance import ACCEPTED
from trajudge.eval.acceptance.recertification import (
    Recertification,
    RecertificationResult,
    accepted_keys,
    check,
    new_decision,
    other_agents,
    plan_sample,
    read_sample,
    write_sample,
)
from trajudge.eval.acceptance.settings import SampleConfig
from trajudge.eval.select.decision import decision_json, read_decision
from trajudge.util.errors import UserError
from trajudge.util.files import save_bytes
from trajudge.util.tables import first_screen
from trajudge.util.terminal import count_of


class LabelledSample(NamedTuple):
    """A sample and what its labels show so far."""

    sample: Recertification
    outcome: RecertificationResult


def draw_sample(config: SampleConfig) -> Recertification:
    """Draw accepted runs to label and write them.

    Raises UserError if every accepted run is of an agent that the decision knows, and for files
    that cannot be read or written.
    """
    decision = read_decision(config.decision)
    keys = accepted_keys(config.accepted / ACCEPTED, decision.plan_hash)
    agents = config.agent or tuple(other_agents(decision, keys))
    if not agents:
        raise UserError(
            f"{config.accepted}: every accepted run is of an agent that the decision was made on: "
            "name one with --agent NAME to certify it again"
        )
    made = plan_sample(decision, config.accepted, keys, agents, size=config.size, seed=config.seed)
    write_sample(config.out, made)
    return made


def recertify(sample: Path, annotations: str) -> LabelledSample:
    """Test the labels of a sample; once they decide, write the decision for its agents.

    Raises UserError for a sample or labels that cannot be read.
    """
    made = read_sample(sample)
    outcome = check(made, open_labels(annotations))
    if outcome.verdict != "undecided":
        content = decision_json(new_decision(made, outcome))
        save_bytes(sample / "decision.json", content.encode())
    return LabelledSample(made, outcome)


def sample_text(made: Recertification, folder: Path, file: Path) -> str:
    """Say which runs are to be labelled, and what comes next."""
    planned = "no reasonable number of" if made.planned is None else str(made.planned)
    above = [
        f"label the {count_of(made.size, 'run')} in {file}, in that order: one of each of "
        f"{count_of(made.size, 'task')} out of {len(made.runs)}, from "
        f"{count_of(made.accepted_runs, 'accepted run')} of "
        f"{', '.join(made.agents)}",
        f"{planned} labels decide with probability 0.8 if the precision is that of the decision",
    ]
    rest = f"then  trajudge run recertify --sample {folder} --annotations KIND:PATH"
    return first_screen(above, [], rest=rest)


def outcome_text(made: Recertification, outcome: RecertificationResult, folder: Path) -> str:
    """Say what the labels show, what to do where they do not decide, and where it stands."""
    plan = made.decision.plan
    needed = 1 / (1 - plan.confidence)
    lines = [
        f"{_headline(made, outcome)} ({outcome.hits} true successes in "
        f"{count_of(outcome.used - outcome.unsure, 'label')}; precision at least "
        f"{100 * outcome.low:.1f} %)",
        f"e-value {outcome.evidence:.3g} for the target, {outcome.against:.3g} against it; "
        f"{needed:.3g} decides",
    ]
    if outcome.unsure:
        lines.append(f"nothing was bet on {count_of(outcome.unsure, 'unsure label')}")
    if outcome.verdict == "undecided":
        rest = len(made.runs) - outcome.used
        lines.append(
            f"label the next runs in the order of the sample ({count_of(rest, 'task')} left), and "
            "test again"
            if rest
            else "every task has its label: accept more runs, or count on the limit above"
        )
    written = f"the decision for these agents is in {folder}"
    where = f"the sample is in {folder}" if outcome.verdict == "undecided" else written
    return first_screen(lines, [], rest=where)


def _headline(made: Recertification, outcome: RecertificationResult) -> str:
    plan = made.decision.plan
    target, agents = f"{100 * plan.target.rate:.4g} %", ", ".join(made.agents)
    if outcome.verdict == "certified":
        return (
            f"certified: of what the judge accepts of {agents} at least {target} are true "
            f"successes, with {100 * plan.confidence:.4g} % confidence"
        )
    if outcome.verdict == "below the target":
        return f"below the target: less than {target} of what it accepts of {agents} succeeded"
    return f"undecided: whether {target} of what it accepts of {agents} succeeded"
