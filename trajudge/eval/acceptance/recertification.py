"""Certify a decision again for agents that it was not made on, from a sample of accepted runs.

The sample takes tasks in random order and one accepted run of each at random, so that no two
labels belong to one task: however strongly runs of a task depend on each other, the labels do not.
A run stands for the accepted runs of its task and is weighted by their number. What is assumed is
that the tasks are independent draws from the tasks that the judge will be used on, as
``trajudge select`` assumes within each benchmark; agents and benchmarks in the sample are one mix.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import orjson
from pydantic import Field

from trajudge.annotations.agentrewardbench import benchmark_of, family_of
from trajudge.annotations.model import Labels
from trajudge.eval.acceptance.betting import labels_to_plan, largest_wealth, lower_limit
from trajudge.eval.select.binding import DecisionScope
from trajudge.eval.select.decision import Decision, Recertified
from trajudge.trajectories.model import Record, TrajectoryKey
from trajudge.util.errors import UserError
from trajudge.util.files import open_regular, save_bytes
from trajudge.util.validation import read_record

SAMPLE, RECORD = "sample.jsonl", "recertification.json"


class SampledRun(Record):
    """One run to label: its place in the order, with what probability it came into the first
    ``size`` runs, and the accepted runs of its task over those of the largest task."""

    order: int
    key: TrajectoryKey
    inclusion_probability: float
    weight: float = Field(gt=0, le=1)


class Recertification(Record):
    """What was sampled for which decision. ``size`` is how many labels are planned for; ``runs``
    lists one run of every task in random order, so that the sample can go on."""

    decision: Decision
    accepted: str
    agents: tuple[str, ...]
    seed: int
    accepted_runs: int
    size: int
    planned: int | None
    runs: tuple[SampledRun, ...]


class RecertificationResult(NamedTuple):
    """``used`` labels in order, ``unsure`` of them without a bet, ``hits`` of the others true
    successes; ``evidence`` for and ``against`` the target are e-values."""

    verdict: Literal["certified", "below the target", "undecided"]
    used: int
    unsure: int
    hits: int
    evidence: float
    against: float
    low: float


def accepted_keys(path: Path, decision: str) -> list[TrajectoryKey]:
    """Read the runs in ``accepted.jsonl``. Raises UserError if it cannot be read, is something
    else, or comes from another decision (``decision`` is the hash of its plan)."""
    names = ("benchmark", "agent", "task_id", "attempt")
    hint = "name the folder of  trajudge accept --decision"
    try:
        with open_regular(path, sparse=False) as file:
            places = [orjson.loads(line)["provenance"] for line in file]
        keys = [TrajectoryKey(**{name: place[name] for name in names}) for place in places]
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror}): {hint}") from error
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(f"{path}: is no accepted.jsonl ({error}): {hint}") from error
    if any(place.get("decision") != decision for place in places):
        raise UserError(f"{path}: was not accepted by this decision: {hint}")
    return keys


def plan_sample(
    decision: Decision,
    accepted: Path,
    keys: Iterable[TrajectoryKey],
    agents: Sequence[str],
    *,
    size: int | None,
    seed: int,
) -> Recertification:
    """Plan which runs of ``agents`` to label, in which order, and how many. Raises UserError if
    there is none, or if the decision's target is not a precision."""
    if decision.chosen is None or decision.plan.target.kind != "precision":
        raise UserError(
            "only a decision that chose a judge for a target precision is certified again on "
            "accepted runs: select anew with labels of failures"
        )
    tasks: dict[tuple[str, str], list[TrajectoryKey]] = defaultdict(list)
    for key in sorted(set(keys), key=lambda key: key.order):
        if key.agent in agents:
            tasks[key.benchmark, family_of(key)].append(key)
    if not tasks:
        raise UserError(f"no accepted run of {', '.join(agents)}: name others with --agent NAME")
    rng, target = np.random.default_rng(seed), decision.plan.target.rate
    believed = decision.findings[decision.chosen].precision.estimate or target
    planned = labels_to_plan(target, believed, 1 - decision.plan.confidence, rng)
    size = min(size or planned or len(tasks), len(tasks))
    order = np.random.default_rng(seed).permutation(len(tasks))
    largest, groups = max(map(len, tasks.values())), list(tasks.values())
    pick = np.random.default_rng([seed, 1])
    runs = [
        SampledRun(
            order=place,
            key=group[int(pick.integers(len(group)))],
            inclusion_probability=size / len(tasks) / len(group),
            weight=len(group) / largest,
        )
        for place, group in enumerate((groups[number] for number in order), start=1)
    ]
    return Recertification(
        decision=decision,
        accepted=str(accepted),
        agents=tuple(agents),
        seed=seed,
        accepted_runs=sum(map(len, groups)),
        size=size,
        planned=planned,
        runs=tuple(runs),
    )


def write_sample(folder: Path, made: Recertification) -> None:
    """Write the record and the runs to label. Raises UserError if the folder has a sample, which
    is not drawn again, or cannot be written."""
    if (folder / RECORD).exists():
        raise UserError(
            f"{folder}: holds a sample already, and one that is drawn again until it pleases shows "
            "nothing: label it, or choose another --out for another set of runs"
        )
    lines = [run.model_dump_json().encode() + b"\n" for run in made.runs[: made.size]]
    save_bytes(folder / SAMPLE, b"".join(lines))
    save_bytes(folder / RECORD, made.model_dump_json(indent=2).encode() + b"\n")


def read_sample(folder: Path) -> Recertification:
    """Read what ``write_sample`` wrote. Raises UserError."""
    hint = "name the folder that  trajudge run recertify --out  wrote"
    return read_record(folder / RECORD, Recertification, hint)


def check(made: Recertification, labels: Labels) -> RecertificationResult:
    """Bet on the labels in the order of the sample, up to the first run without one: labels that
    were chosen by their outcome show nothing. On an unsure label nothing is bet."""
    target, alpha = made.decision.plan.target.rate, 1 - made.decision.plan.confidence
    known: list[bool | None] = []
    for run in made.runs:
        label = labels.get(run.key)
        if label is None:
            break
        known.append(label.success)
    sure = [place for place, success in enumerate(known) if success is not None]
    hits = np.array([bool(known[place]) for place in sure], dtype=float)
    weights = np.array([made.runs[place].weight for place in sure], dtype=float)
    evidence = largest_wealth(hits, weights, target)
    against = largest_wealth(hits, weights, target, above=False)
    shown = evidence >= 1 / alpha
    missed = against >= 1 / alpha and not shown
    return RecertificationResult(
        verdict="certified" if shown else "below the target" if missed else "undecided",
        used=len(known),
        unsure=len(known) - len(sure),
        hits=int(hits.sum()),
        evidence=evidence,
        against=against,
        low=lower_limit(hits, weights, alpha),
    )


def new_decision(made: Recertification, outcome: RecertificationResult) -> Decision:
    """Make the decision for the sampled agents alone: the same choice, or none where it misses."""
    used = [run.key for run in made.runs[: outcome.used]]
    before = made.decision.binding
    binding = DecisionScope(
        judges=before.judges if before else {},
        agents=_counted(key.agent for key in used),
        benchmarks=_counted(map(benchmark_of, used)),
    )
    certified = outcome.verdict == "certified"
    return made.decision.model_copy(
        update={
            "chosen": made.decision.chosen if certified else None,
            "nearest": None if certified else made.decision.chosen,
            "binding": binding,
            "transport": None,
            "recertified": Recertified(
                labels=outcome.used,
                unsure=outcome.unsure,
                hits=outcome.hits,
                e_value=outcome.evidence,
                low=outcome.low,
                seed=made.seed,
            ),
        }
    )


def _counted(names: Iterable[str]) -> dict[str, int]:
    counts: dict[str, int] = defaultdict(int)
    for name in names:
        counts[name] += 1
    return dict(sorted(counts.items()))


def other_agents(decision: Decision, keys: Iterable[TrajectoryKey]) -> list[str]:
    """List agents among ``keys`` that the decision was not made on."""
    known: Mapping[str, int] = decision.binding.agents if decision.binding else {}
    return sorted({key.agent for key in keys} - known.keys())
