"""Certify a decision again for agents that it was not made on, from a sample of accepted runs.

The sample takes tasks in random order and one accepted run of each at random, so that no two
labels belong to one task: however strongly runs of a task depend on each other, the labels do not.
A run stands for the accepted runs of its task and is weighted by their number. What is assumed is
that the tasks are independent draws from the tasks that the judge will be used on, as
``trajudge select`` assumes within each benchmark; agents and benchmarks in the sample are one mix.

The test is a bet on every label, one after the other. Each label y in {0, 1} comes with a weight w
in (0, 1]. Under the null, that the weighted mean of y is at most the bound b, no bet on
``w (y - b)`` gains on average, so the wealth of a player who began with 1 exceeds 1 / alpha at any
time with probability at most alpha (Ville's inequality). One may therefore look after every label
and stop when it pleases (Waudby-Smith and Ramdas 2024, Estimating means of bounded random variables
by betting). The wealth is the mean over players who stake different shares, which needs no tuning
(Cover's universal portfolio, on a grid).
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import orjson
from numpy.typing import ArrayLike
from pydantic import Field

from trajudge.annotations import open_labels
from trajudge.annotations.agentrewardbench import benchmark_of, family_of
from trajudge.annotations.model import Labels
from trajudge.eval.accept.settings import AcceptConfig
from trajudge.eval.select.binding import DecisionScope
from trajudge.eval.select.decision import JSON_FILE, Decision, Recertified
from trajudge.stats.intervals import Floats
from trajudge.trajectories.model import Record, TrajectoryKey
from trajudge.util.errors import UserError
from trajudge.util.files import open_regular, save_bytes
from trajudge.util.tables import first_screen
from trajudge.util.terminal import count_of
from trajudge.util.validation import read_record

SAMPLE_FILE, RECORD_FILE = "sample.jsonl", "recertification.json"
_STAKES = np.linspace(0.05, 0.95, 19)
_WORLDS = 2000
_POWER = 0.8
_MOST_LABELS = 4000
_BISECTIONS = 20
_LARGEST = 700.0  # of a logarithm


def wealth(labels: ArrayLike, weights: ArrayLike, bound: float, *, above: bool) -> Floats:
    """Compute the wealth after each label, along the last axis of ``labels`` (..., N), as of the
    test that the rate is at most ``bound`` (``above``), or at least ``bound``."""
    gain = np.asarray(weights, float) * (np.asarray(labels, float) - bound)
    # The most that a label can cost is w b, or in the other direction w (1 - b).
    stakes = _STAKES / (bound if above else 1 - bound)
    bets = np.log1p((stakes if above else -stakes) * gain[..., None])
    logs = np.cumsum(bets, axis=-2)
    top = logs.max(axis=-1, keepdims=True)
    whole = top[..., 0] + np.log(np.exp(logs - top).mean(axis=-1))
    return np.asarray(np.exp(np.minimum(whole, _LARGEST)))


def largest_wealth(labels: ArrayLike, weights: ArrayLike, bound: float, *, above: bool) -> float:
    """Compute the largest wealth so far; 1 without a label. At least 1 / alpha rejects the null."""
    return float(wealth(labels, weights, bound, above=above).max(initial=1.0))


def lower_limit(labels: ArrayLike, weights: ArrayLike, alpha: float) -> float:
    """Find what the rate is at least, with confidence 1 - alpha at all times at once; 0 where
    nothing is shown."""
    low, high = 0.0, 1.0
    for _ in range(_BISECTIONS):  # every bet gains less as the bound rises
        middle = (low + high) / 2
        if largest_wealth(labels, weights, middle, above=True) >= 1 / alpha:
            low = middle
        else:
            high = middle
    return low


def labels_to_plan(
    target: float,
    truth: float,
    alpha: float,
    rng: np.random.Generator,
    weights: ArrayLike,
) -> int | None:
    """Count how many labels of these ``weights``, over and over, decide with probability 0.8, were
    the rate ``truth``; None where none of 4000 does. From 2000 simulated sequences, read as
    labels come."""
    stakes = np.resize(weights, _MOST_LABELS)
    above = truth > target
    size = 250
    while size <= _MOST_LABELS and truth != target:
        drawn = rng.random((_WORLDS, size)) < truth
        decided = np.zeros(size)
        for part in np.array_split(drawn, 20):
            path = np.maximum.accumulate(wealth(part, stakes[:size], target, above=above), axis=1)
            decided += (path >= 1 / alpha).sum(axis=0)
        enough = decided >= _POWER * _WORLDS
        if enough.any():
            return int(enough.argmax()) + 1
        size *= 2
    return None


def certified_target(size: int, truth: float, alpha: float, seed: int) -> float | None:
    """Find the highest precision in whole percents that ``size`` labels of equal weight certify
    with probability 0.8, were the rate ``truth``; None where they certify none."""
    drawn = np.random.default_rng(seed).random((_WORLDS, min(size, _MOST_LABELS))) < truth

    def shown(percent: int) -> bool:
        parts = np.array_split(drawn, 20)
        best = [
            wealth(part, 1.0, percent / 100, above=True).max(axis=1) >= 1 / alpha for part in parts
        ]
        return bool(np.concatenate(best).mean() >= _POWER)

    percents = range(1, math.ceil(100 * truth))
    place = bisect_left(percents, True, key=lambda percent: not shown(percent))
    return percents[place - 1] / 100 if place else None


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


@dataclass(frozen=True)
class RecertificationResult:
    """``used`` labels in order, ``unsure`` of them without a bet, ``hits`` of the others true
    successes; ``evidence`` for and ``against`` the target are e-values."""

    verdict: Literal["certified", "below the target", "undecided"]
    used: int
    unsure: int
    hits: int
    evidence: float
    against: float
    low: float


def accepted_keys(path: Path) -> list[TrajectoryKey]:
    """Read the keys of the runs in ``accepted.jsonl``."""
    names = ("benchmark", "agent", "task_id", "attempt")
    with open_regular(path, sparse=False) as file:
        origins = [orjson.loads(line)["provenance"] for line in file]
    return [TrajectoryKey(**{name: origin[name] for name in names}) for origin in origins]


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
    planned = labels_to_plan(target, believed, 1 - decision.plan.confidence, rng, 1.0)
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


def check_unused(folder: Path) -> None:
    """Raise UserError if the folder has a sample, which is not drawn again."""
    if (folder / RECORD_FILE).exists():
        raise UserError(
            f"{folder}: holds a sample already, and one that is drawn again until it pleases shows "
            "nothing: label it, or name another folder with --recertify for another set of runs"
        )


def draw_sample(decision: Decision, config: AcceptConfig, accepted: Path) -> None:
    """Draw runs to label of the ``accepted`` ones (``accepted.jsonl``), and write them into
    ``config.recertify``.

    Raises UserError if every accepted run is of an agent that the decision knows, and for a folder
    that cannot be written.
    """
    folder = config.recertify or Path()
    keys = accepted_keys(accepted)
    agents = config.agent or tuple(other_agents(decision, (key.agent for key in keys)))
    if not agents:
        raise UserError(
            f"{accepted}: every accepted run is of an agent that the decision was made on: name "
            "one with --agent NAME to certify it again"
        )
    made = plan_sample(
        decision, accepted, keys, agents, size=config.size, seed=config.training.seed
    )
    lines = [run.model_dump_json().encode() + b"\n" for run in made.runs[: made.size]]
    save_bytes(folder / SAMPLE_FILE, b"".join(lines))
    save_bytes(folder / RECORD_FILE, made.model_dump_json(indent=2).encode() + b"\n")


def read_sample(folder: Path) -> Recertification:
    """Read what ``draw_sample`` wrote. Raises UserError."""
    hint = "name the folder of  trajudge accept --decision DIR --recertify DIR"
    return read_record(folder / RECORD_FILE, Recertification, hint)


def check_sample(folder: Path, annotations: str) -> tuple[bool, str]:
    """Test the labels of a sample; once they decide, write the decision for its agents. Return
    whether the target is shown, and what the labels show in words.

    Raises UserError for a sample or labels that cannot be read.
    """
    made = read_sample(folder)
    outcome = check(made, open_labels(annotations, keys=[run.key for run in made.runs]))
    if outcome.verdict != "undecided":
        save_bytes(folder / JSON_FILE, new_decision(made, outcome).to_json().encode())
    return outcome.verdict == "certified", outcome_text(made, outcome, folder)


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
    evidence = largest_wealth(hits, weights, target, above=True)
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
    binding = DecisionScope(
        judges=made.decision.binding.judges,
        agents=dict(sorted(Counter(key.agent for key in used).items())),
        benchmarks=dict(sorted(Counter(map(benchmark_of, used)).items())),
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


def other_agents(decision: Decision, agents: Iterable[str]) -> list[str]:
    """List those of ``agents`` that the decision was not made on."""
    return sorted(set(agents) - decision.binding.agents.keys())


def sample_text(folder: Path) -> str:
    """Say which runs of the sample are to be labelled, whether these can decide, and what comes
    next."""
    made, file = read_sample(folder), folder / SAMPLE_FILE
    target, alpha = made.decision.plan.target.rate, 1 - made.decision.plan.confidence
    above = [
        f"Label the {count_of(made.size, 'run')} in {file}, in that order: one of each of "
        f"{count_of(made.size, 'task')} out of {len(made.runs)}, from "
        f"{count_of(made.accepted_runs, 'accepted run')} of {', '.join(made.agents)}."
    ]
    if made.planned is not None and made.planned <= len(made.runs):
        above.append(
            f"{made.planned} labels decide with probability 0.8 if the precision is that of the "
            "decision."
        )
    else:
        needed = "no reasonable number decides" if made.planned is None else f"{made.planned} would"
        above.append(
            f"These labels are too few to decide with probability 0.8 whether {100 * target:.4g} % "
            f"succeed: there are {count_of(len(made.runs), 'task')}, {needed}."
        )
        chosen = made.decision.chosen
        believed = None if chosen is None else made.decision.findings[chosen].precision.estimate
        if believed is not None:
            holds = certified_target(len(made.runs), believed, alpha, made.seed)
            above.append(_reachable(len(made.runs), holds))
    rest = f"then  trajudge accept --recertify {folder} --annotations KIND:PATH"
    return first_screen(above, [], rest=rest)


def _reachable(tasks: int, holds: float | None) -> str:
    if holds is None:
        return f"{count_of(tasks, 'label')} would certify no target: accept runs of more tasks."
    return (
        f"{count_of(tasks, 'label')} would certify a target of {100 * holds:.0f} %: accept runs of "
        "more tasks, or select with that target."
    )


def outcome_text(made: Recertification, outcome: RecertificationResult, folder: Path) -> str:
    """Say what the labels show, what to do where they do not decide, and where it stands."""
    plan = made.decision.plan
    sure = outcome.used - outcome.unsure
    lines = [
        f"{_headline(made, outcome)} ({outcome.hits} true successes in {count_of(sure, 'label')}; "
        f"precision at least {100 * outcome.low:.1f} %)."
    ]
    if outcome.verdict == "undecided":
        lines += _advice(made, outcome)
    lines.append(
        f"E-value {outcome.evidence:.3g} for the target, {outcome.against:.3g} against it; "
        f"{1 / (1 - plan.confidence):.3g} decides."
    )
    if outcome.unsure:
        lines.append(f"Nothing was bet on {count_of(outcome.unsure, 'unsure label')}.")
    written = f"the decision for these agents is in {folder}"
    where = f"the sample is in {folder}" if outcome.verdict == "undecided" else written
    return first_screen(lines, [], rest=where)


def _advice(made: Recertification, outcome: RecertificationResult) -> list[str]:
    """Say how many labels are likely to decide, how many there are, and what target is shown."""
    plan, sure = made.decision.plan, outcome.used - outcome.unsure
    left = len(made.runs) - outcome.used
    truth = outcome.hits / sure if sure else None
    rng = np.random.default_rng(made.seed)
    alpha = 1 - plan.confidence
    weights = [run.weight for run in made.runs]
    needed = None if truth is None else labels_to_plan(plan.target.rate, truth, alpha, rng, weights)
    more = None if needed is None else max(needed - sure, 1)
    if sure == 0:
        lines = []
    elif more is None:
        lines = [
            "No reasonable number of labels decides it, were the rate truly "
            f"{100 * (truth or 0):.1f} %."
        ]
    else:
        lines = [
            f"About {count_of(more, 'more label')} would decide it, with probability 0.8, were the "
            f"rate truly that of these labels."
        ]
    if not left:
        lines.append("Every task has its label: accept runs of more tasks.")
    elif more is None or more <= left:
        lines.append(
            f"Label the next runs in the order of the sample ({count_of(left, 'task')} left), and "
            "test again."
        )
    else:
        lines.append(
            f"The sample has only {count_of(left, 'task')} left: they are likely not to be enough, "
            "so accept runs of more tasks."
        )
    if outcome.low >= 0.01:
        lines.append(
            f"A target of {math.floor(100 * outcome.low)} % is shown by these labels already."
        )
    return lines


def _headline(made: Recertification, outcome: RecertificationResult) -> str:
    plan = made.decision.plan
    target, agents = f"{100 * plan.target.rate:.4g} %", ", ".join(made.agents)
    if outcome.verdict == "certified":
        return (
            f"Certified: of what the judge accepts of {agents} at least {target} are true "
            f"successes, with {100 * plan.confidence:.4g} % confidence"
        )
    if outcome.verdict == "below the target":
        return f"Below the target: less than {target} of what it accepts of {agents} succeeded"
    return f"Undecided: whether {target} of what it accepts of {agents} succeeded"
