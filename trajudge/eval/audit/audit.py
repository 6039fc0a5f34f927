"""The audit of a rule-based evaluator: its errors against experts by what tasks have in common,
what it does to the ranking of agents, cases worth a look, and the tables.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import combinations
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np
import orjson

from trajudge.annotations import open_labels
from trajudge.annotations.agentrewardbench import BENCHMARKS, benchmark_of, family_of
from trajudge.eval.audit.settings import AuditConfig
from trajudge.eval.reporting.sentences import unfinished, unit_of
from trajudge.eval.scoring.observations import one_per_trajectory
from trajudge.eval.scoring.records import OVERALL, UnfinishedRun
from trajudge.eval.sources import Source, combine, read_runs
from trajudge.eval.store.inputs import open_recorded
from trajudge.eval.store.labels import refuse_conflicts, weights_of
from trajudge.eval.store.published import read_published_folder
from trajudge.eval.store.task_goals import goal_note, task_units
from trajudge.judges.model import Judgment
from trajudge.stats.comparison import holm
from trajudge.stats.intervals import (
    Clusters,
    Floats,
    Ints,
    clustered_differences,
    rates_by_cluster,
    sum_clusters,
)
from trajudge.trajectories.loaders import open_source, parse_source
from trajudge.trajectories.model import Record, Trajectory, TrajectoryKey, canonical_task_id
from trajudge.trajectories.needs import NO_NEEDS
from trajudge.util.errors import UserError
from trajudge.util.files import read_regular, text_of, utf8
from trajudge.util.tables import Table, cut_columns, fitted, folded, screen_width
from trajudge.util.terminal import LINES, count_of, listed

Facets = Mapping[str, tuple[str, ...]]

"""Facet to its values, such as ``{"evaluation": ("url_match", "string_match")}``."""

_COLUMNS = {
    "sites": "site",
    "eval_types": "evaluation",
    "overall_difficulty": "difficulty",
    "reasoning_difficulty": "reasoning difficulty",
    "visual_difficulty": "visual difficulty",
    "level": "level",
    "category": "category",
    "difficulty": "difficulty",
}

# Columns that hold several values with blanks between; a task counts with each of them.
_SEVERAL = {"sites", "eval_types"}

TABLES = ("webarena", "visualwebarena", "workarena", "assistantbench")


class _Task(msgspec.Struct):
    task_id: int
    intent_template_id: int


_MAX_BYTES = 256 * 2**20

_TASKS = msgspec.json.Decoder(list[_Task])


class TaskFacets:
    """Looks up the facets of a trajectory; every one has its benchmark and its agent."""

    def __init__(self, tasks: Mapping[tuple[str, str], Facets]) -> None:
        self._tasks = tasks

    def of(self, key: TrajectoryKey) -> dict[str, tuple[str, ...]]:
        known = self._tasks.get((key.benchmark, key.task_id), {})
        return {"benchmark": (benchmark_of(key),), "agent": (key.agent,), **known}


def read_facets(folder: Path | None, templates: Path | None) -> TaskFacets:
    """Read them from a folder with task tables, and a file of WebArena tasks; None leaves either
    out.

    Raises UserError for a table that cannot be read.
    """
    tasks: dict[tuple[str, str], dict[str, tuple[str, ...]]] = {}
    for benchmark in TABLES if folder else ():
        path = Path(str(folder)) / f"{benchmark}.csv"
        if path.is_file():
            for task_id, facets in _table(path, benchmark):
                tasks[benchmark, task_id] = facets
    if templates is not None:
        for task_id, template in _templates(templates):
            tasks.setdefault(("webarena", task_id), {})["template"] = (template,)
    return TaskFacets(tasks)


def _table(path: Path, benchmark: str) -> list[tuple[str, dict[str, tuple[str, ...]]]]:
    try:
        text = text_of(read_regular(path, _MAX_BYTES), path)
        rows = list(csv.DictReader(io.StringIO(text, newline="")))
    except (OSError, ValueError, csv.Error) as error:
        raise UserError(f"{path}: is not a task table in CSV ({error})") from error
    if rows and "task_name" not in rows[0]:
        raise UserError(f"{path}: the column 'task_name' is missing in its first line")
    return [
        (
            canonical_task_id(benchmark, row["task_name"]),
            {
                facet: tuple(row[column].split()) if column in _SEVERAL else (row[column],)
                for column, facet in _COLUMNS.items()
                if row.get(column)
            },
        )
        for row in rows
    ]


def _templates(path: Path) -> list[tuple[str, str]]:
    try:
        tasks = _TASKS.decode(utf8(read_regular(path, _MAX_BYTES), path))
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(
            f"--templates {path}: is not a list of WebArena tasks with task_id and "
            f"intent_template_id ({error})"
        ) from error
    return [(f"webarena.{task.task_id}", str(task.intent_template_id)) for task in tasks]


def group_by(
    keys: list[TrajectoryKey], facets: TaskFacets
) -> dict[tuple[str, str], list[TrajectoryKey]]:
    """Map (facet, value) to its trajectories, facets in a fixed order, values by name."""
    groups: dict[tuple[str, str], list[TrajectoryKey]] = {}
    for key in keys:
        for facet, values in facets.of(key).items():
            for value in values:
                groups.setdefault((facet, value), []).append(key)
    order = ["benchmark", "agent", *dict.fromkeys(_COLUMNS.values()), "template"]
    placed = sorted(groups, key=lambda group: (order.index(group[0]), group[1]))
    return {group: groups[group] for group in placed}


_NUMBERED = "webarena"


class _TaskText(msgspec.Struct):
    task_id: int | str
    eval: Any
    intent: str = ""


_TEXTS = msgspec.json.Decoder(list[_TaskText])


class RuleText(NamedTuple):
    """The ``intent`` of the task as the file words it, and its specification as indented JSON
    (``eval``), without the fields that are empty."""

    intent: str
    specification: str


def read_rule_texts(path: Path) -> Mapping[str, RuleText]:
    """Read a task file of WebArena, WebArena Verified or another benchmark in that layout: a list
    of objects with ``task_id`` and ``eval``. By task id; a number is a task of WebArena.

    Raises UserError for a file that is none.
    """
    try:
        tasks = _TEXTS.decode(utf8(read_regular(path, _MAX_BYTES), path))
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(
            f"--tasks {path}: is not a list of tasks with task_id and eval ({error})"
        ) from error
    return {
        _name(task.task_id): RuleText(
            task.intent, orjson.dumps(_filled(task.eval), option=orjson.OPT_INDENT_2).decode()
        )
        for task in tasks
    }


def rule_text(texts: Mapping[str, RuleText], key: TrajectoryKey) -> RuleText | None:
    """Find the rule of a trajectory's task."""
    return texts.get(key.task_id)


def _name(task_id: int | str) -> str:
    return f"{_NUMBERED}.{task_id}" if isinstance(task_id, int) else task_id


def _filled(value: Any) -> Any:
    """Leave out what says nothing: empty texts, lists and objects."""
    if isinstance(value, dict):
        kept = {name: _filled(each) for name, each in value.items()}
        return {name: each for name, each in kept.items() if each not in ("", [], {}, None)}
    return [_filled(each) for each in value] if isinstance(value, list) else value


Verdicts = Mapping[TrajectoryKey, bool]

Weights = Mapping[TrajectoryKey, float] | None

"""One over the probability with which each label was drawn; None: all alike."""


class ClusteredRate(Record):
    """``hits`` of ``trials`` with 95 % limits that are cluster-robust over tasks: None where there
    are not two tasks, as ``rate`` is without a trial. ``design_effect``: how many times larger the
    variance is than that of independent trajectories."""

    hits: int
    trials: int
    rate: float | None = None
    low: float | None = None
    high: float | None = None
    design_effect: float | None = None


class RuleErrors(Record):
    """One group of trajectories. ``precision``: of those that the rule passes, the share that the
    expert calls successful; ``missed``: of the successes, the share that the rule denies;
    ``passed_failures``: of the failures, the share that it passes."""

    facet: str
    value: str
    n: int
    precision: ClusteredRate
    missed: ClusteredRate
    passed_failures: ClusteredRate


def rate(
    keys: Sequence[TrajectoryKey],
    hits: Verdicts,
    counted: Verdicts | None = None,
    weights: Weights = None,
) -> ClusteredRate:
    """Compute the share of ``keys`` whose value in ``hits`` is true, with its interval.

    With ``counted`` it is the share among those with a true value there; the tasks of the others
    are tasks that were drawn as well, therefore the interval is that of ``trajudge score``.
    """
    trials = np.array([counted is None or counted[key] for key in keys], dtype=float)
    if not trials.any():
        return ClusteredRate(hits=0, trials=0)
    values = np.array([hits[key] for key in keys], dtype=float) * trials
    rates = rates_by_cluster(
        values,
        trials,
        [family_of(key) for key in keys],
        [benchmark_of(key) for key in keys],
        weights=None if weights is None else np.array([weights[key] for key in keys]),
    )
    limits = rates.interval
    estimate, low, high, effect = (
        float(part[0]) for part in (limits.estimate, limits.low, limits.high, rates.design_effect)
    )
    known = not np.isnan(low)
    return ClusteredRate(
        hits=int(values.sum()),
        trials=int(trials.sum()),
        rate=estimate,
        low=low if known else None,
        high=high if known else None,
        design_effect=effect if known else None,
    )


def rule_errors(
    rule: Verdicts,
    expert: Verdicts,
    keys: Sequence[TrajectoryKey],
    *,
    facet: str,
    value: str,
    weights: Weights = None,
) -> RuleErrors:
    """Compare the rule with the expert on ``keys``, all of which have both verdicts."""
    denied = {key: not rule[key] for key in keys}
    failed = {key: not expert[key] for key in keys}
    return RuleErrors(
        facet=facet,
        value=value,
        n=len(keys),
        precision=rate(keys, expert, rule, weights),
        missed=rate(keys, denied, expert, weights),
        passed_failures=rate(keys, rule, failed, weights),
    )


def errors_by_facet(
    rule: Verdicts,
    expert: Verdicts,
    keys: Sequence[TrajectoryKey],
    facets: TaskFacets,
    weights: Weights = None,
) -> list[RuleErrors]:
    """Compare them on all trajectories, then on every value of every facet."""
    groups = {("all", "all"): list(keys), **group_by(list(keys), facets)}
    return [
        rule_errors(rule, expert, members, facet=facet, value=value, weights=weights)
        for (facet, value), members in groups.items()
    ]


LAST_STEPS = 3

EXCERPT = 600

Kind = Literal["rule", "annotation"]


class Opinion(Record):
    """What one judge said; ``reasoning`` is an excerpt."""

    judge: str
    success: bool
    reasoning: str


class Disagreement(Record):
    """``suspect`` stands alone: the rule against expert and judges, or the annotation against
    rule and judges. Goal, answer and last steps are there if the trajectories could be read."""

    suspect: Kind
    key: TrajectoryKey
    expert: bool
    rule: bool
    official_reward: float | None = None
    opinions: tuple[Opinion, ...]
    goal: str | None = None
    answer: str | None = None
    last_steps: tuple[str, ...] = ()


def find_cases(
    keys: Iterable[TrajectoryKey],
    expert: Verdicts,
    rule: Verdicts,
    judges: Mapping[TrajectoryKey, Sequence[Judgment]],
    rewards: Mapping[TrajectoryKey, float | None],
) -> list[Disagreement]:
    """Find, in the order of ``keys``, where rule and expert differ, and every judge (at least one)
    takes the same side. Judgments that failed have no side."""
    cases = []
    for key in keys:
        verdicts = [j for j in judges.get(key, ()) if j.success is not None]
        if expert[key] == rule[key] or len({j.success for j in verdicts}) != 1:
            continue
        cases.append(
            Disagreement(
                suspect="rule" if verdicts[0].success == expert[key] else "annotation",
                key=key,
                expert=expert[key],
                rule=rule[key],
                official_reward=rewards.get(key),
                opinions=tuple(_opinion(judgment) for judgment in verdicts),
            )
        )
    return cases


def with_evidence(case: Disagreement, trajectory: Trajectory) -> Disagreement:
    """Complete the case by what the agent was asked, answered and did last."""
    acted = [step for step in trajectory.steps if step.action is not None]
    return case.model_copy(
        update={
            "goal": trajectory.goal.strip(),
            "answer": trajectory.answer,
            "last_steps": tuple(
                f"{step.index + 1}. {(step.action or '').strip()[:EXCERPT]}"
                for step in acted[-LAST_STEPS:]
            ),
        }
    )


def _opinion(judgment: Judgment) -> Opinion:
    text = judgment.reasoning or (judgment.calls[-1].text if judgment.calls else "")
    return Opinion(
        judge=judgment.judge, success=bool(judgment.success), reasoning=text.strip()[:EXCERPT]
    )


LEVEL = 0.05


class AgentRates(Record):
    """An agent's success rate by the expert and by the evaluator, on the same trajectories."""

    agent: str
    expert: ClusteredRate
    evaluator: ClusteredRate


class Flip(Record):
    """Two agents whom the expert ranks one way and the evaluator the other. ``p_value`` is the
    larger of those of both differences on the tasks that both agents ran, adjusted for all pairs of
    agents (Holm 1979); None where there are not two such tasks."""

    better: str
    worse: str
    expert: tuple[float, float]
    evaluator: tuple[float, float]
    p_value: float | None = None

    @property
    def shown(self) -> bool:
        """Whether the order is reversed by more than chance."""
        return self.p_value is not None and self.p_value <= LEVEL


class AgentRanking(Record):
    """The agents on one benchmark by one evaluator, ``n`` trajectories in all.

    ``tau`` is Kendall's tau-a between the expert's order of the agents and the evaluator's, None
    where it is not defined; ``low`` and ``high`` are the limits of ``tau_limits``. ``shift`` is by
    how much the evaluator's mean success rate lies above the expert's. ``flips`` are all pairs
    whose rates are in opposite orders, shown to be or not.
    """

    benchmark: str
    evaluator: str
    n: int
    agents: tuple[AgentRates, ...]
    tau: float | None = None
    low: float | None = None
    high: float | None = None
    shift: float
    flips: tuple[Flip, ...] = ()


def ranking(
    benchmark: str,
    evaluator: str,
    keys: Sequence[TrajectoryKey],
    expert: Verdicts,
    verdicts: Verdicts,
    *,
    weights: Weights = None,
) -> AgentRanking:
    """Rank the agents by both; ``expert`` and ``verdicts`` have a verdict on each of ``keys``, of
    which there is at least one."""
    agents = sorted({key.agent for key in keys})
    weight = np.array([1.0 if weights is None else weights[key] for key in keys])
    columns = _columns(keys, agents, expert, verdicts)
    parts = [columns * weight[:, None]]
    if weights is not None:
        parts.append(columns[:, : len(agents)] * weight[:, None] ** 2)
    whole = sum_clusters(
        np.concatenate(parts, axis=1),
        [family_of(key) for key in keys],
        [benchmark_of(key) for key in keys],
    )
    sums, squares = np.split(whole.sums, [columns.shape[1]], axis=1)
    clusters = Clusters(sums, whole.stratum_sizes)
    weighted = squares if weights else None
    low, high = tau_limits(clusters, len(agents), squares=weighted)
    rates = _rates(clusters.total, len(agents))
    return AgentRanking(
        benchmark=benchmark,
        evaluator=evaluator,
        n=len(keys),
        agents=tuple(
            AgentRates(
                agent=agent,
                expert=_rate(keys, expert, agent, weights),
                evaluator=_rate(keys, verdicts, agent, weights),
            )
            for agent in agents
        ),
        tau=_defined(tau_of(len(agents))(clusters.total)[0]),
        low=_defined(low),
        high=_defined(high),
        shift=float(
            np.average([float(verdicts[key]) - float(expert[key]) for key in keys], weights=weight)
        ),
        flips=tuple(_flips(agents, rates[0], rates[1], _reversal(clusters, len(agents), weighted))),
    )


def _columns(
    keys: Sequence[TrajectoryKey], agents: Sequence[str], expert: Verdicts, verdicts: Verdicts
) -> Any:
    """Make (keys, 3 * agents): whether the agent ran, succeeded by the expert, by the evaluator."""
    place = {agent: number for number, agent in enumerate(agents)}
    columns = np.zeros((len(keys), 3, len(agents)))
    for row, key in enumerate(keys):
        columns[row, :, place[key.agent]] = 1, expert[key], verdicts[key]
    return columns.reshape(len(keys), -1)


def _rate(
    keys: Sequence[TrajectoryKey], verdicts: Verdicts, agent: str, weights: Weights
) -> ClusteredRate:
    return rate([key for key in keys if key.agent == agent], verdicts, weights=weights)


def _defined(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _rates(totals: Any, agents: int) -> Any:
    """Compute (..., 2, agents): the expert's and the evaluator's success rates."""
    parts = totals.reshape(*totals.shape[:-1], 3, agents)
    with np.errstate(divide="ignore", invalid="ignore"):
        return parts[..., 1:, :] / parts[..., :1, :]


def tau_of(agents: int) -> Any:
    """Map totals (..., 3 * agents) to Kendall's tau-a (..., 1): concordant less discordant pairs,
    over all pairs; ``nan`` for fewer than two agents or one without a trajectory."""
    pairs = _pairs(agents)

    def tau(totals: Any) -> Any:
        rates = _rates(totals, agents)
        if len(pairs) == 0:
            return np.full((*totals.shape[:-1], 1), np.nan)
        signs = np.sign(rates[..., pairs[:, 0]] - rates[..., pairs[:, 1]])
        return np.mean(signs[..., 0, :] * signs[..., 1, :], axis=-1, keepdims=True)

    return tau


def tau_limits(
    clusters: Clusters, agents: int, confidence: float = 0.95, squares: Floats | None = None
) -> tuple[float, float]:
    """Compute limits of tau-a from ``clusters`` with the columns of ``tau_of``; ``nan`` below two
    agents.

    Every pair of agents is tested for its order, by the expert and by the evaluator
    (``clustered_differences``, two-sided, Bonferroni over all of these tests). With probability
    ``confidence`` no order that is shown is wrong; pairs whose order is not shown by both may count
    anything from -1 to 1.
    """
    pairs = _pairs(agents)
    if not len(pairs):
        return np.nan, np.nan
    ran, *hits = clusters.sums.reshape(len(clusters.sums), 3, agents).transpose(1, 2, 0)
    level = (1 - confidence) / (2 * len(pairs))
    shown = [
        _order_shown(each, ran, pairs, clusters.stratum_sizes, level=level, squares=squares)
        for each in hits
    ]
    products = shown[0] * shown[1]
    unknown = (products == 0).sum()
    return (
        float((products.sum() - unknown) / len(pairs)),
        float((products.sum() + unknown) / len(pairs)),
    )


def _order_shown(
    hits: Floats,
    trials: Floats,
    pairs: Ints,
    stratum_sizes: Ints,
    *,
    level: float,
    squares: Floats | None,
) -> Floats:
    """Find the sign of each pair's difference of rates (P,), 0 where the test at ``level`` shows
    none."""
    both = [(hits[place], trials[place]) for place in pairs.T]
    differences = clustered_differences(
        np.stack([h for h, _ in both]),
        np.stack([n for _, n in both]),
        stratum_sizes,
        squares=None if squares is None else squares.T[pairs.T],
    )
    return np.where(differences.p_value <= level, np.sign(differences.interval.estimate), 0.0)


def _pairs(agents: int) -> Ints:
    return np.array(list(combinations(range(agents), 2)), dtype=np.int64).reshape(-1, 2)


def _reversal(clusters: Clusters, agents: int, squares: Floats | None = None) -> Floats:
    """Compute p-values (P,) of "not both differences of a pair are there, in opposite directions",
    on the tasks that both agents ran; ``nan`` where there are not two. Of weighted runs,
    ``squares`` (tasks, agents) are the sums of squared weights.

    All pairs are adjusted for, those in one order too: which are reversed was seen in the data.
    """
    ran, *hits = clusters.sums.reshape(len(clusters.sums), 3, agents).transpose(1, 2, 0)
    stratum = np.repeat(np.arange(len(clusters.stratum_sizes)), clusters.stratum_sizes)
    values = []
    for one, other in _pairs(agents):
        shared = (ran[one] > 0) & (ran[other] > 0)
        if shared.sum() < 2:
            values.append(np.nan)
            continue
        pair = [one, other]
        # First and second agent, by expert and evaluator: (2, 2, tasks).
        both = np.stack([each[pair][:, shared] for each in hits], axis=1)
        trials = np.stack([ran[pair][:, shared]] * 2, axis=1)
        sizes = np.unique(stratum[shared], return_counts=True)[1]
        squared = None
        if squares is not None:
            squared = np.stack([squares.T[pair][:, shared]] * 2, axis=1)
        apart = clustered_differences(both, trials, sizes, squares=squared)
        by_expert, by_rule = apart.interval.estimate
        values.append(float(apart.p_value.max()) if by_expert * by_rule < 0 else 1.0)
    return holm(values)


def _flips(agents: Sequence[str], expert: Any, evaluator: Any, p_values: Floats) -> list[Flip]:
    flips = []
    for (one, other), p in zip(_pairs(len(agents)).tolist(), p_values.tolist(), strict=True):
        by_expert, by_rule = expert[one] - expert[other], evaluator[one] - evaluator[other]
        if by_expert * by_rule < 0:
            better, worse = (one, other) if by_expert > 0 else (other, one)
            flips.append(
                Flip(
                    better=agents[better],
                    worse=agents[worse],
                    expert=(float(expert[better]), float(expert[worse])),
                    evaluator=(float(evaluator[better]), float(evaluator[worse])),
                    p_value=_defined(p),
                )
            )
    return flips


WEIGHTED = (
    "labels drawn with unequal probabilities: every rate weights them, the counts behind it do not"
)

_SHOWN_VALUES = 15

_SHOWN_ORDERS = 3

_NOTES = 3  # lines left for what the command says of the labels, and of where the audit is

_ERRORS_HEAD = ("group", "value", "n", "precision [95 %]", "successes denied", "failures passed")

_SHORT_HEAD = ("group", "n", "precision [95 %]", "successes denied", "failures passed")

_RANKING_HEAD = ("benchmark", "evaluator", "agent", "n", "expert [95 %]", "evaluator [95 %]")


class Audit(Record):
    """Everything that the audit found; ``rule`` names the evaluator that is audited, ``unfinished``
    the runs that lack judgments, ``weighted`` whether labels were drawn with unequal
    probabilities; ``shared_goals`` warns of task ids with one goal, with the precision's interval
    by task id and by goal."""

    rule: str
    n: int
    without_verdict: int
    errors: tuple[RuleErrors, ...]
    rankings: tuple[AgentRanking, ...]
    cases: tuple[Disagreement, ...]
    unfinished: tuple[UnfinishedRun, ...] = ()
    weighted: bool = False
    shared_goals: str = ""


def tables(audit: Audit) -> list[Table]:
    """Lay out errors and success rates; of a facet with many values those with most denied
    successes."""
    errors = [_errors_row(entry) for entry in _worst(audit.errors)]
    ranking = [row for entry in audit.rankings for row in _ranking_rows(entry)]
    return [
        Table(f"Errors of {audit.rule}", _ERRORS_HEAD, errors),
        Table("Success rates", _RANKING_HEAD, ranking, names=3),
    ]


def summary(audit: Audit, *, rest: str, full: str = "--full", width: int | None = None) -> str:
    """Lay out the first screen, at most 40 lines of ``width`` columns, with a newline at the end:
    the evaluator's errors, overall and by as many facets as fit, and what they change overall.

    ``rest`` says where everything else stands, ``full`` where the groups that are cut do.
    """
    width = width or screen_width()
    above = [line for text in _finding(audit) for line in folded(text, width, most=3)]
    overall = [ranking for ranking in audit.rankings if ranking.benchmark == OVERALL]
    ranked = [ranking for ranking in overall if len(ranking.agents) > 1][:_SHOWN_ORDERS]
    orders = fitted(lambda most: [_order(ranking, most) for ranking in ranked], width)
    below = [line for text in orders for line in folded(text, width, most=3)]
    below += [line for text in _counts(audit) for line in folded(text, width)]
    below += folded(rest, width)
    rows = [_short_row(entry) for entry in _worst(audit.errors)]
    lines = cut_columns(
        *(_SHORT_HEAD, rows, width, LINES - len(above) - len(below) - 2 - _NOTES),
        names=1,
        more=lambda left: f"and {count_of(left, 'more group')}: {full}",
    )
    return "\n".join([*above, "", *lines, "", *below]) + "\n"


def _short_row(errors: RuleErrors) -> tuple[str, ...]:
    """Show one group without the counts behind its rates."""
    value = BENCHMARKS.get(errors.value, errors.value)
    own = errors.facet in ("all", "benchmark", "agent")
    rates = (errors.precision, errors.missed, errors.passed_failures)
    shown = (_shown(rate).rsplit(" ", 1)[0] for rate in rates)
    return (value if own else f"{errors.facet} {value}", str(errors.n), *shown)


def _finding(audit: Audit) -> list[str]:
    cut = unfinished(audit.unfinished, _SHOWN_ORDERS)
    title = f"{audit.rule} against the experts on {audit.n:,} trajectories"
    lines = [f"{title}; {cut}" if cut else title]
    whole = next((entry for entry in audit.errors if entry.facet == "all"), None)
    if whole is not None:
        precision, missed, passed = map(
            _shown, (whole.precision, whole.missed, whole.passed_failures)
        )
        lines.append(
            f"Precision {precision}; denies {missed} of the successes and passes {passed} of the "
            f"failures{unit_of(precision, missed, passed)}"
        )
    return lines


def sentences(audit: Audit) -> list[str]:
    """Say what follows from the tables, in words."""
    lines = [f"warning: {cut}"] if (cut := unfinished(audit.unfinished)) else []
    lines += [_order(ranking) for ranking in audit.rankings if len(ranking.agents) > 1]
    return lines + _counts(audit)


def _counts(audit: Audit) -> list[str]:
    """Say how many trajectories deserve a look, and how many had no verdict."""
    lines = []
    for kind, name in (("rule", audit.rule), ("annotation", "the annotation")):
        count = sum(case.suspect == kind for case in audit.cases)
        lines.append(f"{count} trajectories on which all others disagree with {name}")
    if audit.shared_goals:
        lines.append(audit.shared_goals)
    if audit.weighted:
        lines.append(WEIGHTED)
    if audit.without_verdict:
        lines.append(f"{audit.without_verdict} labelled trajectories without a verdict: left out")
    return lines


def _worst(errors: Sequence[RuleErrors]) -> list[RuleErrors]:
    kept: list[RuleErrors] = []
    for facet in dict.fromkeys(entry.facet for entry in errors):
        values = [entry for entry in errors if entry.facet == facet]
        if len(values) > _SHOWN_VALUES:
            values = sorted(values, key=lambda entry: -entry.missed.hits)[:_SHOWN_VALUES]
        kept += values
    return kept


def _errors_row(errors: RuleErrors) -> tuple[str, ...]:
    value = BENCHMARKS.get(errors.value, errors.value)
    rates = (errors.precision, errors.missed, errors.passed_failures)
    return (errors.facet, value, str(errors.n), *(_shown(rate) for rate in rates))


def _ranking_rows(ranking: AgentRanking) -> list[tuple[str, ...]]:
    benchmark = BENCHMARKS.get(ranking.benchmark, ranking.benchmark)
    return [
        (
            benchmark,
            ranking.evaluator,
            row.agent,
            str(row.expert.trials),
            _shown(row.expert),
            _shown(row.evaluator),
        )
        for row in ranking.agents
    ]


def _order(ranking: AgentRanking, most: int | None = None) -> str:
    """Say how the evaluator shifts and orders the agents' success rates; of more than ``most``
    reversed pairs the first."""
    where = BENCHMARKS.get(ranking.benchmark, ranking.benchmark)
    tau = "undefined" if ranking.tau is None else f"{ranking.tau:z.2f}"
    if ranking.low is not None and ranking.high is not None:
        tau += f" [{ranking.low:z.2f}, {ranking.high:z.2f}]"
    flips = [
        f"{flip.better} {100 * flip.expert[0]:.1f} over {flip.worse} {100 * flip.expert[1]:.1f} by "
        f"the expert, {100 * flip.evaluator[0]:.1f} under {100 * flip.evaluator[1]:.1f}"
        for flip in ranking.flips
        if flip.shown
    ]
    open_pairs = [f"{flip.better} and {flip.worse}" for flip in ranking.flips if not flip.shown]
    swapped = f"reversed pairs: {listed(flips, most, sign='; ')}" if flips else "no pair reversed"
    if open_pairs:
        swapped += f"; not told apart on the tasks of both: {listed(open_pairs, most, sign='; ')}"
    shift = f"success rate {100 * ranking.shift:+z.1f} points against the expert"
    return f"{where}, {ranking.evaluator}: {shift}, tau {tau}; {swapped}"


def _shown(rate: ClusteredRate) -> str:
    if rate.rate is None:
        return "–"
    limits = ""
    if rate.low is not None and rate.high is not None:
        limits = f" [{100 * rate.low:.1f}, {100 * rate.high:.1f}]"
    return f"{100 * rate.rate:.1f}{limits} {rate.hits}/{rate.trials}"


OFFICIAL = "the official reward"


def audit(config: AuditConfig) -> Audit:
    """Read the runs and labels that ``config`` names and compare evaluators with experts.

    Raises UserError for runs, labels or tables that cannot be used.
    """
    if not config.runs and config.judgments is None:
        raise UserError("nothing to audit: give the folder of a run, or --judgments DIR")
    task_folder = _task_folder(config)
    source = _source(config)
    with task_units(source.goals, config.task_id):
        return _audit(config, source, task_folder)


def _audit(config: AuditConfig, source: Source, task_folder: Path | None) -> Audit:
    judges = _by_judge(source.judgments)
    rule_name, rule = _rule(config.evaluator, source, judges)
    expert = {key: a.success for key, a in source.labels.items() if a.success is not None}
    keys = sorted((key for key in expert if key in rule), key=lambda key: key.order)
    if not expert:
        raise UserError(f"no trajectory has an expert label of success{_named_labels(config)}")
    if not keys:
        raise UserError(
            f"no trajectory has both an expert label and a verdict of {rule_name}"
            f"{_named_labels(config)}"
        )
    weights = weights_of({key: source.labels[key] for key in expert})
    facets = read_facets(task_folder, config.templates)
    opinions = _by_key(judges, without=config.evaluator)
    cases = find_cases(keys, expert, rule, opinions, source.rewards)

    def precision() -> tuple[str, str, int]:
        tasks = {(benchmark_of(key), family_of(key)) for key in keys}
        shown = _shown(rate(keys, expert, rule, weights)).rsplit(" ", 1)[0]
        return f"{rule_name}: precision", shown, len(tasks)

    evaluators = {rule_name: rule, **{name: _verdicts(js) for name, js in judges.items()}}
    return Audit(
        rule=rule_name,
        n=len(keys),
        without_verdict=sum(key not in rule for key in expert),
        errors=tuple(errors_by_facet(rule, expert, keys, facets, weights)),
        rankings=tuple(_rankings(evaluators, expert, weights)),
        cases=tuple(_evidence(cases, _data(config.data, source))),
        unfinished=tuple(source.unfinished),
        weighted=weights is not None,
        shared_goals="" if config.task_id == "goal" else goal_note(source.goals, precision),
    )


def _named_labels(config: AuditConfig) -> str:
    """Name the labels that do not fit, and the mend."""
    if config.annotations:
        return f" with --annotations {config.annotations}: name the labels of these runs"
    return ": name labels with --annotations KIND:PATH"


def _source(config: AuditConfig) -> Source:
    sources = read_runs(config.runs)
    if config.judgments is not None:
        with_labels = not config.annotations
        sources.append(read_published_folder(config.judgments, with_labels=with_labels))
    whole = combine(sources)
    if config.annotations:
        whole.labels = open_labels(config.annotations)
    else:
        refuse_conflicts((source.name, source.labels) for source in sources)
    if config.split != "all":
        whole.restrict(config.split)
    return whole


def _by_judge(judgments: Sequence[Judgment]) -> dict[str, list[Judgment]]:
    """Take one judgment per trajectory for every judge, judges by name."""
    by_judge: dict[str, list[Judgment]] = {}
    for judgment in judgments:
        by_judge.setdefault(judgment.judge, []).append(judgment)
    return {judge: one_per_trajectory(by_judge[judge]) for judge in sorted(by_judge)}


def _verdicts(judgments: Sequence[Judgment]) -> Verdicts:
    """Map keys to verdicts. A judgment that failed has none: it is left out, not taken for a no."""
    return {j.key: j.success for j in judgments if j.success is not None}


def _rule(
    judge: str | None, source: Source, judges: Mapping[str, Sequence[Judgment]]
) -> tuple[str, Verdicts]:
    if judge is None:
        known = {key: r > 0.5 for key, r in source.rewards.items() if r is not None}
        return OFFICIAL, known
    if judge not in judges:
        raise UserError(f"--evaluator {judge}: no such judge here; there are {', '.join(judges)}")
    return judge, _verdicts(judges[judge])


def _by_key(
    judges: Mapping[str, Sequence[Judgment]], *, without: str | None
) -> dict[TrajectoryKey, list[Judgment]]:
    by_key: dict[TrajectoryKey, list[Judgment]] = {}
    for judge, judgments in judges.items():
        for judgment in judgments if judge != without else ():
            by_key.setdefault(judgment.key, []).append(judgment)
    return by_key


def _task_folder(config: AuditConfig) -> Path | None:
    """Find the task tables, by default beside the published judgments. Raises UserError for a
    folder that was named and holds none."""
    folder = config.task_tables or config.judgments
    if folder and any((folder / f"{name}.csv").is_file() for name in TABLES):
        return folder
    if config.task_tables:
        tables = ", ".join(f"{name}.csv" for name in TABLES)
        raise UserError(
            f"--task-tables {config.task_tables}: holds none of the tables {tables}: name the "
            "folder that holds them"
        )
    return None


def _rankings(
    evaluators: Mapping[str, Verdicts], expert: Verdicts, weights: Weights
) -> list[AgentRanking]:
    """Rank by every evaluator on every benchmark, and overall where there are several."""
    rankings = []
    for name, verdicts in evaluators.items():
        keys = sorted((key for key in expert if key in verdicts), key=lambda key: key.order)
        benchmarks = list(dict.fromkeys(benchmark_of(key) for key in keys))
        groups = {b: [key for key in keys if benchmark_of(key) == b] for b in sorted(benchmarks)}
        if len(benchmarks) > 1:
            groups[OVERALL] = keys
        for benchmark, members in groups.items():
            rankings.append(ranking(benchmark, name, members, expert, verdicts, weights=weights))
    return rankings


def _data(named: str | None, source: Source) -> list[str]:
    """Find where the trajectories are: as named, else where the runs say, as far as that is on this
    machine still."""
    if named is not None:
        return [named]
    specs = []
    for spec in source.data:
        with suppress(UserError):
            opened = open_recorded(spec)
            if parse_source(opened)[1] is not None:
                specs.append(opened)
    return specs


def _evidence(cases: Sequence[Disagreement], specs: Sequence[str]) -> list[Disagreement]:
    """Add goals and last steps where ``specs`` has the trajectory."""
    wanted = {case.key for case in cases}
    known: dict[TrajectoryKey, Trajectory] = {}
    for spec in specs if wanted else ():
        for trajectory in open_source(spec, wanted.__contains__, NO_NEEDS):
            if isinstance(trajectory, Trajectory):
                known.setdefault(trajectory.key, trajectory)
    return [with_evidence(case, known[case.key]) if case.key in known else case for case in cases]
