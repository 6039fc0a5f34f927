"""From runs to a queue: the design, the draw, second readings, hidden checks, and the order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from trajudge.annotations import open_labels
from trajudge.annotations.labelling.database import create_queue
from trajudge.annotations.labelling.records import QUESTIONS, QueueItem, QueueSettings
from trajudge.annotations.model import Annotation, Labels, SampleFrame
from trajudge.eval.labelling.deciding import read_deciding
from trajudge.eval.labelling.designs import (
    expected_random_widths,
    expected_widths,
    inclusion_probabilities,
    rule_error,
)
from trajudge.eval.labelling.drawing import doubled, draw, round_robin
from trajudge.eval.labelling.frame import Frame, read_frame, write_frame
from trajudge.eval.labelling.settings import BuildConfig
from trajudge.eval.select.plan import read_plan
from trajudge.eval.sources import Source, combine, read_runs
from trajudge.eval.store.filters import FilterError, parse_filter, read_descriptions, read_view
from trajudge.eval.store.inputs import open_on_this_machine
from trajudge.eval.store.published import read_published_folder
from trajudge.eval.store.run_folder import read_manifest
from trajudge.stats.intervals import Bools, Floats, Ints
from trajudge.trajectories.model import TrajectoryKey
from trajudge.util.errors import UserError
from trajudge.util.files import read_text

GUIDELINES = "guidelines.md"
GOLD_READINGS = 8
"""Most people who get a hidden check."""

_REASONS = {
    "random": "drawn at random",
    "stratified": "drawn within its stratum",
    "disagreement": "judges disagree",
    "low-confidence": "judges are unsure together",
    "ppi": "its label narrows the judges' intervals most",
    "audit": "the rule is probably wrong",
    "cascade": "it decides an acceptance",
}
_GUIDELINES = """\
# Guidelines

Judge what the agent did, not what it said.

- **success**: the goal is reached, all of it, by the end of the run.
- **side effect**: the agent changed something that the goal did not ask for.
- **repetition**: the agent repeated actions without getting further.
- **optimality**: 1 complete failure, 2 suboptimal, 3 somewhat optimal, 4 completely optimal.

Answer "unsure" where the evidence does not settle a question, and say why.
"""


class ExpectedWidth(NamedTuple):
    """An evaluator: how many trajectories it accepts, and the expected width of the interval of its
    precision by this design and by labels of a simple random sample."""

    evaluator: str
    accepted: int
    width: float
    random: float


class QueuePlan(NamedTuple):
    """A queue before it is written: its ``places`` in the frame, which of them two people label,
    and their positions; ``probability`` of success is what the design was made with, ``reason``
    why each of them is in the queue, ``filter`` what kept the frame's trajectories where that is
    not the one of the command line."""

    frame: Frame
    probability: Floats
    places: Ints
    twice: Sequence[bool]
    positions: Ints
    gold: Mapping[Any, Annotation]
    expected: Sequence[ExpectedWidth]
    source: Source
    reason: str
    filter: str = ""


def plan_queue(config: BuildConfig) -> QueuePlan:
    """Design and draw a queue. Raises UserError for runs, labels or guidelines that cannot be
    used."""
    if config.guidelines is not None:
        read_guidelines(config.guidelines)
    source, reason = _source(config), _REASONS[config.strategy]
    if (config.strategy == "cascade") != (config.candidates is not None):
        raise UserError(
            "--strategy cascade draws what decides the acceptance of a plan: name the plan with "
            "--candidates FILE (trajudge select --freeze writes it), and give both or neither"
        )
    if config.candidates is not None:
        if config.filter:
            raise UserError("--filter: the plan of --candidates says what is drawn from")
        plan = read_plan(config.candidates)
        frame, accepted = read_deciding(source, config, plan)
        kept = f"accepted by a candidate of plan {plan.hash[:8]}"
        return plan_of_frame(config, source, frame, reason, accepted)._replace(filter=kept)
    frame = read_frame(source, None if not config.filter else _kept(config))
    return plan_of_frame(config, source, frame, reason)


def plan_of_frame(
    config: BuildConfig, source: Source, frame: Frame, reason: str, accepted: Bools | None = None
) -> QueuePlan:
    """Design and draw a queue from the trajectories of a frame; ``accepted`` (N, C): what each
    candidate accepts, whose precisions the design is for instead of the judges'. Raises UserError
    for labels that cannot be used."""
    pilot: Labels = {}
    if config.annotations is not None:
        pilot = open_labels(config.annotations)
    probability = frame.probability(pilot)
    known = frame.evidence(probability)
    aim = known if accepted is None else replace(known, accepted=accepted)
    chances = inclusion_probabilities(config.strategy, config.budget, aim)
    rng = np.random.default_rng(config.seed)
    drawn = draw(chances, known.strata, rng)
    twice = doubled(len(drawn), config.double, rng)
    positions = round_robin(known.strata[drawn], rng)
    if config.strategy == "audit":
        wrong = rule_error(probability, frame.rule)[drawn]
        positions = np.argsort(np.argsort(-wrong, kind="stable")).astype(np.int64)
    widths = expected_widths(chances, probability, known.accepted)
    random = expected_random_widths(config.budget, probability, known.accepted)
    sizes = known.accepted.sum(axis=0)
    expected = [
        ExpectedWidth(name, int(sizes[place]), float(widths[place]), float(random[place]))
        for place, name in enumerate(frame.evaluators)
    ]
    frame = replace(frame, chances=chances)
    gold = _gold(config, frame, drawn)
    return QueuePlan(
        frame, probability, drawn, twice.tolist(), positions, gold, expected, source, reason
    )


def write_queue(plan: QueuePlan, config: BuildConfig) -> int:
    """Write a planned queue into ``config.out``; return how many items it has. Raises UserError
    where there is one already, and for guidelines that cannot be read."""
    text = None if config.guidelines is None else read_guidelines(config.guidelines)
    items = _items(plan, config)
    settings = QueueSettings(
        strategy=config.strategy,
        seed=config.seed,
        questions=config.questions,
        informed=config.informed,
        data=config.data or tuple(dict.fromkeys(plan.source.data)),
        runs=tuple(str(run.resolve()) for run in config.runs),
        annotations=config.annotations,
        frame=SampleFrame(
            size=len(plan.frame.keys), strategy=config.strategy, filter=plan.filter or config.filter
        ),
    )
    try:
        create_queue(config.out, settings, items)
        write_frame(config.out, plan.frame)
        guidelines = config.out / GUIDELINES
        if text is not None:
            guidelines.write_text(text, encoding="utf-8")
        elif not guidelines.exists():
            guidelines.write_text(_GUIDELINES, encoding="utf-8")
    except OSError as error:
        raise UserError(f"{error.filename}: {error.strerror}") from error
    return len(items)


def read_guidelines(file: Path) -> str:
    """Read the guidelines before anything is written: a queue that is there is never built again.
    Raises UserError, also for an empty file."""
    try:
        text = read_text(file)
        if text.strip():
            return text
        reason = "it is empty"
    except OSError as error:
        reason = error.strerror or str(error)
    raise UserError(
        f"--guidelines {file}: cannot be used ({reason}): name a Markdown file, or leave it out "
        "for the guidelines that come with trajudge"
    )


def _items(plan: QueuePlan, config: BuildConfig) -> list[QueueItem]:
    strata, labels = plan.frame.strata(), plan.source.labels
    items = []
    for place, twice, position in zip(plan.places, plan.twice, plan.positions, strict=True):
        key = plan.frame.keys[place]
        items.append(
            QueueItem(
                key=key,
                raw_task_id=label.raw_task_id if (label := labels.get(key)) else key.task_id,
                stratum=strata[place],
                inclusion_probability=min(float(plan.frame.chances[place]), 1.0),
                reason=plan.reason,
                position=int(position),
                wanted=2 if twice else 1,
            )
        )
    rng = np.random.default_rng([config.seed, 1])
    for key, label in plan.gold.items():
        truth = {q: getattr(label, q) for q in QUESTIONS if getattr(label, q) is not None}
        items.append(
            QueueItem(
                key=key,
                raw_task_id=label.raw_task_id,
                reason="hidden check",
                position=int(rng.integers(max(len(plan.places), 1))),
                wanted=GOLD_READINGS,
                gold=truth,
            )
        )
    return items


def hidden_checks(config: BuildConfig, drawn: int) -> int:
    """Return how many hidden checks a queue of so many drawn trajectories is to have."""
    return 0 if config.gold is None else round(config.gold_share * drawn)


def _gold(config: BuildConfig, frame: Frame, drawn: Ints) -> dict[Any, Annotation]:
    """Choose the hidden checks among trajectories with known labels that were not drawn. Raises
    UserError where there would be none."""
    if config.gold is None:
        return {}
    wanted = hidden_checks(config, len(drawn))
    if not wanted:
        raise UserError(
            f"--gold-share {config.gold_share:g}: gives no hidden check for {len(drawn):,} drawn "
            "trajectories: raise it, or leave out --gold"
        )
    labels = open_labels(config.gold, "--gold")
    known = {key for key, label in labels.items() if label.success is not None}
    if not config.data:  # the runs' data shows what was judged; other data may hold more
        known &= set(frame.keys)
    usable = list(known - {frame.keys[place] for place in drawn})
    if not usable:
        raise UserError(
            f"--gold {config.gold}: has no label of success for a trajectory of these runs that "
            "was not drawn: name other labels, or leave it out"
        )
    usable.sort(key=lambda key: key.order)
    order = np.random.default_rng([config.seed, 2]).permutation(len(usable))[:wanted]
    return {usable[place]: labels[usable[place]] for place in sorted(order.tolist())}


def _kept(config: BuildConfig) -> set[TrajectoryKey]:
    """Find the trajectories that the filter keeps. Raises UserError for one that cannot be read."""
    if config.judgments is not None:
        raise UserError("--filter reads the folders of runs: leave out --judgments")
    try:
        terms = parse_filter(config.filter)
    except FilterError as error:
        raise UserError(f"--filter: {error}") from error
    of_data = any(term.field in ("", "steps") for term in terms.terms)
    keys = set[TrajectoryKey]()
    for folder in config.runs:
        view = read_view(folder)
        if of_data:
            recorded = str(read_manifest(folder).get("data") or "")
            specs = config.data or [open_on_this_machine(recorded)]
            view = view.described(read_descriptions(specs, set(view.keys)))
        keys.update(view.keys.at(terms.trajectories(view)))
    return keys


def _source(config: BuildConfig) -> Source:
    if not config.runs and config.judgments is None:
        raise UserError("nothing to draw from: give the folder of a run, or --judgments DIR")
    sources = read_runs(config.runs)
    if config.judgments is not None:
        sources.append(read_published_folder(config.judgments, with_labels=False))
    return combine(sources)
