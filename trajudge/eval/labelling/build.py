"""``trajudge label build``: from runs to a queue: the design, the draw, second readings, hidden
checks, and the order; and queues of trajectories that a person picked.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import quote
from typing import Any

import numpy as np

from trajudge.annotations import open_labels
from trajudge.annotations.model import Label, Labels, SampleFrame
from trajudge.annotations.queue import QUESTIONS, QueueItem, QueueSettings, create_queue
from trajudge.eval.labelling.designs import (
    double_readings,
    draw,
    expected_random_widths,
    expected_widths,
    inclusion_probabilities,
    round_robin,
    rule_error,
)
from trajudge.eval.labelling.frame import Frame, read_frame, write_frame
from trajudge.eval.labelling.settings import BuildConfig
from trajudge.eval.select.evidence import check_planned, read_inputs
from trajudge.eval.select.plan import SelectionPlan, read_plan
from trajudge.eval.select.scores import accepts, judge_scores, rule_scores
from trajudge.eval.sources import Source, combine, judgments_of, read_run, read_runs
from trajudge.eval.store.filters import (
    Filter,
    FilterError,
    JudgmentView,
    parse_filter,
    read_descriptions,
    read_view,
)
from trajudge.eval.store.inputs import open_on_this_machine, recorded_data
from trajudge.eval.store.published import read_published_folder
from trajudge.eval.store.table import marked
from trajudge.eval.store.task_goals import TaskGoals, save_goals
from trajudge.stats.intervals import Bools, Ints
from trajudge.trajectories.model import TrajectoryKey
from trajudge.util.commands import OK
from trajudge.util.errors import UserError
from trajudge.util.files import read_text
from trajudge.util.tables import Table, render
from trajudge.util.terminal import count_of

GUIDELINES = "guidelines.md"
GOLD_READINGS = 8
"""Most people who get a hidden check."""
MOST_PICKED = 2_000
"""Trajectories of one queue that is made from a table."""

_REASONS = {
    "random": "drawn at random",
    "stratified": "drawn within its stratum",
    "disagreement": "judges disagree",
    "low-confidence": "judges are unsure together",
    "ppi": "its label narrows the judges' intervals most",
    "audit": "the rule is probably wrong",
    "cascade": "it decides an acceptance",
    "picked": "picked by hand",
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


@dataclass(frozen=True)
class ExpectedWidth:
    """An evaluator: how many trajectories it accepts, and the expected width of the interval of its
    precision by this design and by labels of a simple random sample."""

    evaluator: str
    accepted: int
    width: float
    random: float


@dataclass(frozen=True)
class QueuePlan:
    """A queue before it is written: the frame with inclusion probabilities, the items, of which
    ``drawn`` come from the frame, and the goals of the frame's tasks."""

    frame: Frame
    items: Sequence[QueueItem]
    drawn: int
    settings: QueueSettings
    expected: Sequence[ExpectedWidth]
    goals: TaskGoals


def build_queue(config: BuildConfig) -> int:
    """Draw a queue, show what it promises, write it; return the exit code. Raises UserError."""
    plan = plan_queue(config)
    sys.stdout.write(render([expected_table(plan.expected, plan.drawn)], config.format))
    twice = sum(item.wanted == 2 for item in plan.items)
    sys.stdout.write(
        f"{plan.drawn:,} of {len(plan.frame.keys):,} trajectories, {twice:,} of them labelled "
        "twice\n"
    )
    if config.dry_run:
        sys.stdout.write("nothing written (--dry-run)\n")
        return OK
    write_queue(plan, config)
    made, wanted = len(plan.items) - plan.drawn, _hidden_checks(config, plan.drawn)
    fewer = f" (not {wanted:,}: --gold labels no more trajectories)" if made < wanted else ""
    checks = f", {count_of(made, 'hidden check')}{fewer}" if made else ""
    where = quote(str(config.out))
    sys.stdout.write(f"wrote {config.out}{checks}; next:  trajudge label {where}\n")
    return OK


def expected_table(expected: Sequence[ExpectedWidth], budget: int) -> Table:
    """Lay out the widths that a design is expected to give; an interval is never wider than the
    whole scale."""
    rows = [
        (
            each.evaluator,
            f"{each.accepted:,}",
            *("" if np.isnan(w) else f"{min(w, 1.0):.3f}" for w in (each.width, each.random)),
        )
        for each in expected
    ]
    title = f"expected width of the 95 % interval of precision, {budget:,} labels"
    return Table(title, ("evaluator", "accepts", "this queue", "random"), rows, 1)


def plan_queue(config: BuildConfig) -> QueuePlan:
    """Design and draw a queue. Raises UserError for runs, labels or guidelines that cannot be
    used."""
    if config.guidelines is not None:
        read_guidelines(config.guidelines)
    source = _source(config)
    if (config.strategy == "cascade") != (config.candidates is not None):
        raise UserError(
            "--strategy cascade draws what decides the acceptance of a plan: name the plan with "
            "--candidates FILE (trajudge select --freeze writes it), and give both or neither"
        )
    if config.candidates is not None:
        if config.filter:
            raise UserError("--filter: the plan of --candidates says what is drawn from")
        plan = read_plan(config.candidates)
        frame, accepted = _deciding(source, config, plan)
        kept = f"accepted by a candidate of plan {plan.hash[:8]}"
        return _plan(config, source, frame, kept, accepted=accepted)
    frame = read_frame(source, _kept(config) if config.filter else None)
    return _plan(config, source, frame, config.filter)


def plan_picked(run: Path, keys: Sequence[TrajectoryKey], config: BuildConfig) -> QueuePlan:
    """Plan a queue of all ``keys`` of a run, each with inclusion probability 1, so that estimates
    speak of these trajectories alone. Raises UserError where its files cannot be read."""
    whole = config.model_copy(update={"strategy": "random", "budget": len(keys)})
    source = read_run(run)
    wanted = set(keys)
    source.judgments = judgments_of(source.judgments, wanted)
    source.rewards = {key: reward for key, reward in source.rewards.items() if key in wanted}
    source.labels = {key: source.labels[key] for key in keys if key in source.labels}
    kept = config.filter or _REASONS["picked"]
    return _plan(whole, source, read_frame(source), kept, reason="picked")


def _plan(
    config: BuildConfig,
    source: Source,
    frame: Frame,
    kept: str,
    *,
    accepted: Bools | None = None,
    reason: str = "",
) -> QueuePlan:
    """Design and draw a queue from the trajectories of a frame, which the filter ``kept`` made.

    ``accepted`` (N, C): what each candidate accepts, whose precisions the design is for instead of
    the judges'. Raises UserError for labels that cannot be used.
    """
    pilot: Labels = (
        open_labels(config.annotations, keys=frame.keys) if config.annotations is not None else {}
    )
    probability = frame.probability(pilot)
    known = frame.evidence(probability)
    aim = known if accepted is None else replace(known, accepted=accepted)
    chances = inclusion_probabilities(config.strategy, config.budget, aim)
    rng = np.random.default_rng(config.seed)
    drawn = draw(chances, known.strata, rng)
    twice = double_readings(len(drawn), config.double, rng)
    positions = round_robin(known.strata[drawn], rng)
    if config.strategy == "audit":
        wrong = rule_error(probability, frame.rule)[drawn]
        positions = np.argsort(np.argsort(-wrong, kind="stable")).astype(np.int64)
    widths = expected_widths(chances, probability, known.accepted)
    random = expected_random_widths(config.budget, probability, known.accepted)
    sizes = known.accepted.sum(axis=0)
    strata = frame.strata()
    items = [
        QueueItem(
            key=(key := frame.keys[place]),
            raw_task_id=label.raw_task_id if (label := source.labels.get(key)) else key.task_id,
            stratum=strata[place],
            inclusion_probability=min(float(chances[place]), 1.0),
            reason=_REASONS[reason or config.strategy],
            position=int(position),
            wanted=2 if second else 1,
        )
        for place, second, position in zip(drawn, twice, positions, strict=True)
    ]
    rng = np.random.default_rng([config.seed, 1])
    for key, label in _gold(config, frame, drawn).items():
        items.append(
            QueueItem(
                key=key,
                raw_task_id=label.raw_task_id,
                reason="hidden check",
                position=int(rng.integers(max(len(drawn), 1))),
                wanted=GOLD_READINGS,
                gold={q: getattr(label, q) for q in QUESTIONS if getattr(label, q) is not None},
            )
        )
    tasks = {(key.benchmark, key.task_id) for key in frame.keys}
    return QueuePlan(
        frame=replace(frame, chances=chances),
        items=items,
        drawn=len(drawn),
        settings=QueueSettings(
            strategy=config.strategy,
            seed=config.seed,
            questions=config.questions,
            informed=config.informed,
            data=config.data or tuple(dict.fromkeys(source.data)),
            runs=tuple(str(run.resolve()) for run in config.runs),
            annotations=config.annotations,
            frame=SampleFrame(size=len(frame.keys), strategy=config.strategy, filter=kept),
        ),
        expected=[
            ExpectedWidth(name, int(sizes[place]), float(widths[place]), float(random[place]))
            for place, name in enumerate(frame.evaluators)
        ],
        goals={task: goal for task, goal in source.goals.items() if task in tasks},
    )


def write_queue(plan: QueuePlan, config: BuildConfig) -> None:
    """Write a planned queue into ``config.out``. Raises UserError where there is one already, and
    for guidelines that cannot be read."""
    text = _GUIDELINES if config.guidelines is None else read_guidelines(config.guidelines)
    try:
        create_queue(config.out, plan.settings, plan.items)
        write_frame(config.out, plan.frame)
        save_goals(config.out, plan.goals)
        guidelines = config.out / GUIDELINES
        if config.guidelines is not None or not guidelines.exists():
            guidelines.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserError(f"{error.filename}: {error.strerror}") from error


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


def _hidden_checks(config: BuildConfig, drawn: int) -> int:
    """Return how many hidden checks a queue of so many drawn trajectories is to have."""
    return 0 if config.gold is None else round(config.gold_share * drawn)


def _gold(config: BuildConfig, frame: Frame, drawn: Ints) -> dict[Any, Label]:
    """Choose the hidden checks among trajectories with known labels that were not drawn. Raises
    UserError where there would be none."""
    if config.gold is None:
        return {}
    wanted = _hidden_checks(config, len(drawn))
    if not wanted:
        raise UserError(
            f"--gold-share {config.gold_share:g}: gives no hidden check for {len(drawn):,} drawn "
            "trajectories: raise it, or leave out --gold"
        )
    labels = open_labels(config.gold, "--gold", frame.keys)
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
            specs = config.data or [open_on_this_machine(recorded_data(folder))]
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


def _deciding(source: Source, config: BuildConfig, plan: SelectionPlan) -> tuple[Frame, Bools]:
    """Read the frame of the trajectories that a candidate of a plan accepts, whose labels alone
    decide an acceptance, and which candidate accepts each (N, C), as ``trajudge select`` does.

    Raises UserError for a plan that bounds no precision, or names judges whose judgments are not
    given, and where no candidate accepts anything.
    """
    candidates = config.candidates
    if plan.target.kind != "precision":
        raise UserError(
            f"--candidates {candidates}: bounds false positives, which what is not accepted "
            "decides, too: draw with another --strategy, or name a plan with --target-precision"
        )
    inputs = read_inputs(config.runs, config.judgments)
    check_planned(inputs, plan)
    judgments = inputs.judgments
    keys = sorted({judgment.key for judgment in judgments}, key=lambda key: key.order)
    scored = {use: judge_scores(judgments, use) for use in ("score", "verdict")}
    accepted = np.stack(
        [
            accepts(rule_scores(family.rule, scored[family.rule.use], keys), threshold)
            for family, threshold in plan.candidates
        ],
        axis=1,
    )
    decides = accepted.any(axis=1)
    if not decides.any():
        raise UserError(
            f"--candidates {candidates}: none of them accepts a trajectory of these runs"
        )
    frame = read_frame(source, {keys[place] for place in np.flatnonzero(decides)})
    return frame, accepted[decides]


def picked_keys(view: JudgmentView, rows: Sequence[int], chosen: Filter) -> list[TrajectoryKey]:
    """List the trajectories of the judgments at ``rows`` (lines of the run's file), or where there
    are none, all that the filter keeps; each once. Raises UserError for too many, or none."""
    kept = chosen.trajectories(view)
    if rows:
        known = [row for row in rows if row < len(view.judgments)]
        kept = marked(len(view.keys), view.trajectory[known])
    if not kept.any():
        raise UserError("There is no trajectory to label: tick rows, or change the filter.")
    if kept.sum() > MOST_PICKED:
        raise UserError(
            f"A queue from the table has at most {MOST_PICKED:,} trajectories: tick rows, narrow "
            "the filter, or draw from all of them with  trajudge label build --filter"
        )
    return [*view.keys.at(kept)]
