"""``trajudge audit``: errors of a rule-based evaluator against experts and judges.

Its errors by what tasks have in common, what they do to success rates and to the order of agents,
cases that deserve a look, and the tables.
"""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np

from trajudge.annotations import open_labels
from trajudge.annotations.agentrewardbench import benchmark_of, family_of
from trajudge.eval.reporting.sentences import benchmark_name, unfinished
from trajudge.eval.scoring.observations import one_per_trajectory
from trajudge.eval.scoring.records import OVERALL, UnfinishedRun
from trajudge.eval.settings import AuditConfig
from trajudge.eval.sources import Source, combine, read_runs
from trajudge.eval.store.inputs import open_recorded
from trajudge.eval.store.labels import refuse_conflicts, weights_of
from trajudge.eval.store.published import read_published_folder
from trajudge.eval.store.task_goals import goal_note, task_units
from trajudge.judges.model import Judgment
from trajudge.stats.comparison import holm
from trajudge.stats.intervals import (
    Bools,
    Clusters,
    Floats,
    Ints,
    clustered_differences,
    defined,
    rates_by_cluster,
    sum_clusters,
)
from trajudge.trajectories.loaders import open_source, parse_source
from trajudge.trajectories.model import Record, Trajectory, TrajectoryKey, canonical_task_id
from trajudge.trajectories.needs import NO_NEEDS
from trajudge.util.commands import OK, saved_behind_output
from trajudge.util.errors import UserError
from trajudge.util.files import make_folder, read_regular, text_of, utf8
from trajudge.util.tables import (
    Table,
    all_folded,
    first_screen,
    fitted,
    render,
    screen_width,
)
from trajudge.util.terminal import count_of, listed

OFFICIAL = "the official reward"
WEIGHTED = (
    "labels drawn with unequal probabilities: every rate weights them, the counts behind it do not"
)
LEVEL = 0.05
_LAST_STEPS, _EXCERPT = 3, 600
_SHOWN_ORDERS, _SHOWN_VALUES = 3, 15
_ROWS, _WIDE = 10, 0.6  # groups on the screen; width of an interval that says too little
_MAX_BYTES = 256 * 2**20
_TABLES = ("webarena", "visualwebarena", "workarena", "assistantbench")
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
"""Columns of a task table by the facet that they give."""
_SEVERAL = {"sites", "eval_types"}
"""Columns with several values, blanks between them: a task counts with each."""

Verdicts = Mapping[TrajectoryKey, bool]
Facets = dict[str, tuple[str, ...]]
"""Facet to its values, such as ``{"evaluation": ("url_match", "string_match")}``."""
TaskFacets = Mapping[tuple[str, str], Facets]
"""Facets by benchmark and task id."""


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
    def significant(self) -> bool:
        """Whether the order is reversed by more than chance."""
        return self.p_value is not None and self.p_value <= LEVEL


class AgentRanking(Record):
    """The agents on one benchmark by one evaluator, ``n`` trajectories in all.

    ``tau`` is Kendall's tau-a between the expert's order of the agents and the evaluator's, None
    where it is not defined; ``low`` and ``high`` are the limits of ``tau_limits``. ``shift`` is by
    how much the evaluator's mean success rate lies above the expert's. ``flips`` are all pairs
    whose rates are in opposite orders, significantly or not.
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


class Opinion(Record):
    """What one judge said; ``reasoning`` is an excerpt."""

    judge: str
    success: bool
    reasoning: str


class Disagreement(Record):
    """``suspect`` stands alone: the rule against expert and judges, or the annotation against
    rule and judges. Goal, answer and last steps are there if the trajectories could be read."""

    suspect: Literal["rule", "annotation"]
    key: TrajectoryKey
    expert: bool
    rule: bool
    official_reward: float | None = None
    opinions: tuple[Opinion, ...]
    goal: str | None = None
    answer: str | None = None
    last_steps: tuple[str, ...] = ()


class Audit(Record):
    """The audit of the evaluator ``rule``.

    ``unfinished`` are the runs that lack judgments; ``weighted``: labels were drawn with unequal
    probabilities; ``shared_goals`` warns of task ids with one goal, with the precision's interval
    by task id and by goal.
    """

    rule: str
    n: int
    without_verdict: int
    errors: tuple[RuleErrors, ...]
    rankings: tuple[AgentRanking, ...]
    cases: tuple[Disagreement, ...]
    unfinished: tuple[UnfinishedRun, ...] = ()
    weighted: bool = False
    shared_goals: str = ""


@dataclass(frozen=True, eq=False)
class Labelled:
    """N labelled trajectories: ``expert`` (N,), and where labels were drawn with unequal
    probabilities their ``weights`` (N,)."""

    keys: Sequence[TrajectoryKey]
    expert: Bools
    weights: Floats | None = None

    @staticmethod
    def of(
        expert: Verdicts,
        keys: Iterable[TrajectoryKey],
        weights: Mapping[TrajectoryKey, float] | None = None,
    ) -> Labelled:
        """Take the labels of ``keys``, which all have one."""
        chosen = [*keys]
        weighed = None if weights is None else np.array([weights[key] for key in chosen])
        return Labelled(chosen, np.array([expert[key] for key in chosen], dtype=bool), weighed)

    @cached_property
    def families(self) -> list[str]:
        """The task of each, as ``task_units`` has it where this is first read."""
        return [family_of(key) for key in self.keys]

    @cached_property
    def benchmarks(self) -> list[str]:
        return [benchmark_of(key) for key in self.keys]

    def part(self, kept: Bools | Ints) -> Labelled:
        """Select trajectories by a mask (N,) or by places."""
        places = np.arange(len(self.keys))[kept]
        weights = None if self.weights is None else self.weights[places]
        return Labelled([self.keys[place] for place in places], self.expert[places], weights)

    def rate(self, hits: Bools, trials: Bools) -> ClusteredRate:
        """Compute the share of ``hits`` (N,) among ``trials`` (N,), with its interval.

        The tasks of trajectories that are no trial were drawn as well, so that the interval is
        that of ``trajudge score``.
        """
        if not trials.any():
            return ClusteredRate(hits=0, trials=0)
        inside = hits & trials
        found = rates_by_cluster(
            inside.astype(float),
            trials.astype(float),
            self.families,
            self.benchmarks,
            weights=self.weights,
        )
        limits = found.interval
        estimate, low, high, effect = (
            float(part[0])
            for part in (limits.estimate, limits.low, limits.high, found.design_effect)
        )
        known = not np.isnan(low)
        return ClusteredRate(
            hits=int(inside.sum()),
            trials=int(trials.sum()),
            rate=estimate,
            low=low if known else None,
            high=high if known else None,
            design_effect=effect if known else None,
        )


def run_audit(config: AuditConfig) -> int:
    """Audit, print the screen and write ``audit.json`` and ``cases.jsonl``; the exit code."""
    report = audit(config)
    with saved_behind_output() as save:
        save(_write, report, config.out)
        if config.full:
            sys.stdout.write(render(tables(report), "table") + "\n")
            sys.stdout.writelines(line + "\n" for line in all_folded(sentences(report)))
        else:
            cases = config.out / "cases.jsonl"
            rest = f"All groups, success rates and agents: --full; cases: {cases}"
            sys.stdout.write(summary(report, rest=rest))
    sys.stderr.write(f"the audit is in {config.out}\n")
    return OK


def _write(report: Audit, folder: Path) -> None:
    try:
        make_folder(folder, "--out")
        text = report.model_dump_json(indent=2) + "\n"
        (folder / "audit.json").write_text(text, encoding="utf-8")
        lines = "".join(case.model_dump_json() + "\n" for case in report.cases)
        (folder / "cases.jsonl").write_text(lines, encoding="utf-8")
    except OSError as error:
        raise UserError(f"--out {folder}: cannot be written ({error.strerror})") from error


def audit(config: AuditConfig) -> Audit:
    """Read the runs and labels that ``config`` names and compare evaluators with experts.

    Raises UserError for runs, labels or tables that cannot be used.
    """
    if not config.runs and config.judgments is None:
        raise UserError("nothing to audit: give the folder of a run, or --judgments DIR")
    facets = read_facets(_task_folder(config), config.templates)
    source = _source(config)
    with task_units(source.goals, config.task_id):
        return _audit(config, source, facets)


def _audit(config: AuditConfig, source: Source, facets: TaskFacets) -> Audit:
    judges = _by_judge(source.judgments)
    name, rule = _rule(config.evaluator, source, judges)
    expert = {key: a.success for key, a in source.labels.items() if a.success is not None}
    keys = sorted((key for key in expert if key in rule), key=lambda key: key.order)
    if not keys:
        lack = f"both an expert label and a verdict of {name}" if expert else "an expert label"
        named = f" with --annotations {config.annotations}" if config.annotations else ""
        raise UserError(
            f"no trajectory has {lack}{named}: name the labels of these runs with --annotations "
            "KIND:PATH"
        )
    weights = weights_of({key: source.labels[key] for key in expert})
    labelled = Labelled.of(expert, keys, weights)
    verdicts = np.array([rule[key] for key in keys], dtype=bool)
    cases = find_cases(labelled, verdicts, _opinions(judges, config.evaluator), source.rewards)
    evaluators = {name: rule, **{judge: _verdicts(js) for judge, js in judges.items()}}

    def precision() -> tuple[str, str, int]:
        units = Labelled(keys, labelled.expert, labelled.weights)
        shown = _shown(units.rate(units.expert, verdicts)).rsplit(" ", 1)[0]
        tasks = {*zip(units.benchmarks, units.families, strict=True)}
        return f"{name}: precision", shown, len(tasks)

    return Audit(
        rule=name,
        n=len(keys),
        without_verdict=sum(key not in rule for key in expert),
        errors=tuple(errors_by_facet(labelled, verdicts, facets)),
        rankings=tuple(
            ranking
            for evaluator, said in evaluators.items()
            for ranking in _rankings(evaluator, said, expert, weights)
        ),
        cases=tuple(_evidence(cases, _data(config.data, source))),
        unfinished=tuple(source.unfinished),
        weighted=weights is not None,
        shared_goals="" if config.task_id == "goal" else goal_note(source.goals, precision),
    )


def _source(config: AuditConfig) -> Source:
    sources = read_runs(config.runs)
    if config.judgments is not None:
        with_labels = not config.annotations
        sources.append(read_published_folder(config.judgments, with_labels=with_labels))
    whole = combine(sources)
    if config.annotations:
        whole.labels = open_labels(config.annotations, keys=whole.judgments.keys)
    else:
        refuse_conflicts((source.name, source.labels) for source in sources)
    if config.split != "all":
        whole.restrict(config.split)
    return whole


def _by_judge(judgments: Iterable[Judgment]) -> dict[str, list[Judgment]]:
    """Take one judgment per trajectory for every judge, judges by name."""
    by_judge: dict[str, list[Judgment]] = {}
    for judgment in judgments:
        by_judge.setdefault(judgment.judge, []).append(judgment)
    return {judge: one_per_trajectory(by_judge[judge]) for judge in sorted(by_judge)}


def _verdicts(judgments: Iterable[Judgment]) -> Verdicts:
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


def _opinions(
    judges: Mapping[str, Sequence[Judgment]], without: str | None
) -> dict[TrajectoryKey, list[Judgment]]:
    by_key: dict[TrajectoryKey, list[Judgment]] = {}
    for judge, judgments in judges.items():
        for judgment in judgments if judge != without else ():
            by_key.setdefault(judgment.key, []).append(judgment)
    return by_key


def rule_errors(
    labelled: Labelled, rule: Bools, *, facet: str = "all", value: str = "all"
) -> RuleErrors:
    """Compare the verdicts of a rule (N,) with the expert's."""
    return RuleErrors(
        facet=facet,
        value=value,
        n=len(labelled.keys),
        precision=labelled.rate(labelled.expert, rule),
        missed=labelled.rate(~rule, labelled.expert),
        passed_failures=labelled.rate(rule, ~labelled.expert),
    )


def errors_by_facet(labelled: Labelled, rule: Bools, facets: TaskFacets) -> list[RuleErrors]:
    """Compare them on all trajectories, then on every value of every facet: facets in a fixed
    order, values by name."""
    groups: dict[tuple[str, str], list[int]] = {}
    for place, key in enumerate(labelled.keys):
        known = facets.get((key.benchmark, key.task_id), {})
        own = {"benchmark": (benchmark_of(key),), "agent": (key.agent,), **known}
        for facet, values in own.items():
            for value in values:
                groups.setdefault((facet, value), []).append(place)
    order = ["benchmark", "agent", *dict.fromkeys(_COLUMNS.values()), "template"]
    errors = [rule_errors(labelled, rule)]
    for facet, value in sorted(groups, key=lambda group: (order.index(group[0]), group[1])):
        places = np.array(groups[facet, value])
        errors.append(rule_errors(labelled.part(places), rule[places], facet=facet, value=value))
    return errors


def _task_folder(config: AuditConfig) -> Path | None:
    """Find the task tables, by default in the folder of the published judgments. Raises UserError
    for a folder that was named and holds none."""
    folder = config.task_tables or config.judgments
    if folder and any((folder / f"{name}.csv").is_file() for name in _TABLES):
        return folder
    if config.task_tables:
        names = ", ".join(f"{name}.csv" for name in _TABLES)
        raise UserError(
            f"--task-tables {config.task_tables}: holds none of the tables {names}: name the "
            "folder that holds them"
        )
    return None


def read_facets(folder: Path | None, templates: Path | None) -> TaskFacets:
    """Read facets from a folder with task tables, and the templates from a file of WebArena tasks;
    None leaves either out. Raises UserError for a table that cannot be read."""
    tasks: dict[tuple[str, str], Facets] = {}
    for benchmark in _TABLES if folder else ():
        path = Path(str(folder)) / f"{benchmark}.csv"
        if path.is_file():
            for row in _rows(path):
                tasks[benchmark, canonical_task_id(benchmark, row["task_name"])] = {
                    facet: tuple(row[column].split()) if column in _SEVERAL else (row[column],)
                    for column, facet in _COLUMNS.items()
                    if row.get(column)
                }
    if templates is not None:
        for task in _templates(templates):
            facets = tasks.setdefault(("webarena", f"webarena.{task.task_id}"), {})
            facets["template"] = (str(task.intent_template_id),)
    return tasks


def _rows(path: Path) -> list[dict[str, str]]:
    try:
        text = text_of(read_regular(path, _MAX_BYTES), path)
        rows = list(csv.DictReader(io.StringIO(text, newline="")))
    except (OSError, ValueError, csv.Error) as error:
        raise UserError(f"{path}: is not a task table in CSV ({error})") from error
    if rows and "task_name" not in rows[0]:
        raise UserError(f"{path}: the column 'task_name' is missing in its first line")
    return rows


class _Task(msgspec.Struct):
    task_id: int
    intent_template_id: int


def _templates(path: Path) -> list[_Task]:
    try:
        content = utf8(read_regular(path, _MAX_BYTES), path)
        return msgspec.json.decode(content, type=list[_Task])
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(
            f"--templates {path}: is not a list of WebArena tasks with task_id and "
            f"intent_template_id ({error})"
        ) from error


def find_cases(
    labelled: Labelled,
    rule: Bools,
    opinions: Mapping[TrajectoryKey, Sequence[Judgment]],
    rewards: Mapping[TrajectoryKey, float | None],
) -> list[Disagreement]:
    """Find, in the order of the keys, where rule (N,) and expert differ, and every judge (at least
    one) takes the same side. Judgments that failed have no side."""
    cases = []
    for key, expert, passed in zip(
        labelled.keys, labelled.expert.tolist(), rule.tolist(), strict=True
    ):
        given = [j for j in opinions.get(key, ()) if j.success is not None]
        if expert == passed or len({j.success for j in given}) != 1:
            continue
        cases.append(
            Disagreement(
                suspect="rule" if given[0].success == expert else "annotation",
                key=key,
                expert=expert,
                rule=passed,
                official_reward=rewards.get(key),
                opinions=tuple(map(_opinion, given)),
            )
        )
    return cases


def _opinion(judgment: Judgment) -> Opinion:
    text = judgment.reasoning or (judgment.calls[-1].text if judgment.calls else "")
    return Opinion(
        judge=judgment.judge, success=bool(judgment.success), reasoning=text.strip()[:_EXCERPT]
    )


def _data(named: str | None, source: Source) -> list[str]:
    """Return the trajectories' specifications: as named, else those of the runs that are on this
    machine."""
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
    """Add goals, answers and last steps where ``specs`` has the trajectory."""
    wanted = {case.key for case in cases}
    known: dict[TrajectoryKey, Trajectory] = {}
    for spec in specs if wanted else ():
        for trajectory in open_source(spec, wanted.__contains__, NO_NEEDS):
            if isinstance(trajectory, Trajectory):
                known.setdefault(trajectory.key, trajectory)
    return [with_evidence(case, known[case.key]) if case.key in known else case for case in cases]


def with_evidence(case: Disagreement, trajectory: Trajectory) -> Disagreement:
    """Add what the agent was asked, answered and did last."""
    acted = [step for step in trajectory.steps if step.action is not None][-_LAST_STEPS:]
    steps = (f"{s.index + 1}. {(s.action or '').strip()[:_EXCERPT]}" for s in acted)
    update = {
        "goal": trajectory.goal.strip(),
        "answer": trajectory.answer,
        "last_steps": tuple(steps),
    }
    return case.model_copy(update=update)


def _rankings(
    name: str, verdicts: Verdicts, expert: Verdicts, weights: Mapping[TrajectoryKey, float] | None
) -> list[AgentRanking]:
    """Rank by one evaluator on every benchmark, and overall where there are several."""
    keys = sorted((key for key in expert if key in verdicts), key=lambda key: key.order)
    labelled = Labelled.of(expert, keys, weights)
    said = np.array([verdicts[key] for key in keys], dtype=bool)
    of = np.array(labelled.benchmarks)
    groups = {benchmark: of == benchmark for benchmark in sorted(set(labelled.benchmarks))}
    if len(groups) > 1:
        groups[OVERALL] = np.ones(len(keys), dtype=bool)
    return [
        rank_agents(benchmark, name, labelled.part(kept), said[kept])
        for benchmark, kept in groups.items()
    ]


def rank_agents(
    benchmark: str, evaluator: str, labelled: Labelled, verdicts: Bools
) -> AgentRanking:
    """Rank the agents by the expert and by the evaluator's ``verdicts`` (N,); N > 0."""
    agents, agent = np.unique([key.agent for key in labelled.keys], return_inverse=True)
    count, weights = len(agents), labelled.weights
    ran = np.eye(count, dtype=bool)[agent]
    columns = np.hstack([ran, ran & labelled.expert[:, None], ran & verdicts[:, None]])
    weight = np.ones(len(agent)) if weights is None else weights
    parts = [columns * weight[:, None]]
    if weights is not None:
        parts.append(ran * weights[:, None] ** 2)
    whole = sum_clusters(np.hstack(parts), labelled.families, labelled.benchmarks)
    sums, squares = np.split(whole.sums, [3 * count], axis=1)
    clusters = Clusters(sums, whole.stratum_sizes)
    weighted = squares if weights is not None else None
    low, high = tau_limits(clusters, count, squares=weighted)
    by_expert, by_evaluator = _rates(clusters.total, count)
    shift = np.average(verdicts.astype(float) - labelled.expert.astype(float), weights=weights)
    flips = []
    p_values = _reversal(clusters, count, weighted)
    for (one, other), p in zip(_pairs(count).tolist(), p_values.tolist(), strict=True):
        difference = by_expert[one] - by_expert[other]
        if difference * (by_evaluator[one] - by_evaluator[other]) < 0:
            pair = [one, other] if difference > 0 else [other, one]
            flips.append(
                Flip(
                    better=str(agents[pair[0]]),
                    worse=str(agents[pair[1]]),
                    expert=tuple(by_expert[pair].tolist()),
                    evaluator=tuple(by_evaluator[pair].tolist()),
                    p_value=defined(p),
                )
            )
    rates = []
    for code, name in enumerate(agents.tolist()):
        own, said = labelled.part(agent == code), verdicts[agent == code]
        every = np.ones(len(said), dtype=bool)
        expert = own.rate(own.expert, every)
        rates.append(AgentRates(agent=name, expert=expert, evaluator=own.rate(said, every)))
    return AgentRanking(
        benchmark=benchmark,
        evaluator=evaluator,
        n=len(labelled.keys),
        agents=tuple(rates),
        tau=defined(tau_of(count)(clusters.total)[0]),
        low=defined(low),
        high=defined(high),
        shift=float(shift),
        flips=tuple(flips),
    )


def _rates(totals: Any, agents: int) -> Any:
    """Compute (..., 2, agents): the expert's and the evaluator's success rates."""
    parts = totals.reshape(*totals.shape[:-1], 3, agents)
    with np.errstate(divide="ignore", invalid="ignore"):
        return parts[..., 1:, :] / parts[..., :1, :]


def tau_of(agents: int) -> Any:
    """Map totals (..., 3 * agents) of runs, successes by the expert and by the evaluator to
    Kendall's tau-a (..., 1): concordant less discordant pairs, over all pairs; ``nan`` for fewer
    than two agents or one without a trajectory."""
    pairs = _pairs(agents)

    def tau(totals: Any) -> Any:
        rates = _rates(totals, agents)
        if len(pairs) == 0:
            return np.full((*totals.shape[:-1], 1), np.nan)
        signs = np.sign(rates[..., pairs[:, 0]] - rates[..., pairs[:, 1]])
        return np.mean(signs[..., 0, :] * signs[..., 1, :], axis=-1, keepdims=True)

    return tau


def tau_limits(
    clusters: Clusters, agents: int, squares: Floats | None = None
) -> tuple[float, float]:
    """Compute 95 % limits of tau-a from ``clusters`` with the columns of ``tau_of``; ``nan`` below
    two agents.

    Every pair of agents is tested for its order, by the expert and by the evaluator
    (``clustered_differences``, two-sided, Bonferroni over all of these tests). With probability
    0.95 no order that is shown is wrong; pairs whose order is not shown by both may count
    anything from -1 to 1. Of weighted runs ``squares`` (tasks, agents) are the sums of squared
    weights.
    """
    pairs = _pairs(agents)
    if not len(pairs):
        return np.nan, np.nan
    ran, *hits = clusters.sums.reshape(len(clusters.sums), 3, agents).transpose(1, 2, 0)
    products = np.ones(len(pairs))
    for each in hits:
        found = clustered_differences(
            each[pairs.T],
            ran[pairs.T],
            clusters.stratum_sizes,
            squares=None if squares is None else squares.T[pairs.T],
        )
        is_shown = found.p_value <= LEVEL / (2 * len(pairs))
        products *= np.where(is_shown, np.sign(found.interval.estimate), 0.0)
    unknown = (products == 0).sum()
    total = products.sum()
    return float((total - unknown) / len(pairs)), float((total + unknown) / len(pairs))


def _pairs(agents: int) -> Ints:
    return np.array(list(combinations(range(agents), 2)), dtype=np.int64).reshape(-1, 2)


def _reversal(clusters: Clusters, agents: int, squares: Floats | None) -> Floats:
    """Compute p-values (P,) of "not both differences of a pair are there, in opposite directions",
    on the tasks that both agents ran; ``nan`` where there are not two.

    All pairs are adjusted for, those in one order too: which are reversed was seen in the data.
    """
    ran, *hits = clusters.sums.reshape(len(clusters.sums), 3, agents).transpose(1, 2, 0)
    stratum = np.repeat(np.arange(len(clusters.stratum_sizes)), clusters.stratum_sizes)
    values = []
    for pair in _pairs(agents):
        shared = (ran[pair] > 0).all(axis=0)
        if shared.sum() < 2:
            values.append(np.nan)
            continue
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


_ERRORS_HEAD = ("group", "value", "n", "precision [95 %]", "successes denied", "failures passed")
_RANKING_HEAD = ("benchmark", "evaluator", "agent", "n", "expert [95 %]", "evaluator [95 %]")


def tables(audit: Audit) -> list[Table]:
    """Lay out errors and success rates; of a facet with many values those with most denied
    successes."""
    errors = [
        (entry.facet, benchmark_name(entry.value), str(entry.n), *map(_shown, _of(entry)))
        for entry in _worst(audit.errors)
    ]
    ranking = [
        (
            benchmark_name(ranking.benchmark),
            ranking.evaluator,
            row.agent,
            str(row.expert.trials),
            _shown(row.expert),
            _shown(row.evaluator),
        )
        for ranking in audit.rankings
        for row in ranking.agents
    ]
    return [
        Table(f"Errors of {audit.rule}", _ERRORS_HEAD, errors),
        Table("Success rates", _RANKING_HEAD, ranking, names=3),
    ]


def summary(audit: Audit, *, rest: str, full: str = "--full", width: int | None = None) -> str:
    """Lay out the first screen, at most 40 lines of ``width`` columns, with a newline at the end:
    what the evaluator gets wrong in a sentence, then its errors overall and in at most nine groups,
    without those whose interval is wider than 60 points, then what they change.

    ``rest`` tells where everything else is, ``full`` where the groups that are left out are.
    """
    rows, few = [], 0
    for entry in _worst(audit.errors):
        if entry.facet != "all" and _is_wide(entry):
            few += 1
            continue
        value = benchmark_name(entry.value)
        named = value if entry.facet in ("all", "benchmark", "agent") else f"{entry.facet} {value}"
        rows.append((named, str(entry.n), *(_shown(r).rsplit(" ", 1)[0] for r in _of(entry))))
    below = []
    if len(rows) > _ROWS:
        below.append(f"and {count_of(len(rows) - _ROWS, 'more group')}: {full}")
    if few:
        below.append(f"and {count_of(few, 'group')} with intervals wider than 60 points: {full}")
    ranked = [r for r in audit.rankings if r.benchmark == OVERALL and len(r.agents) > 1]
    width = width or screen_width()
    below += fitted(
        lambda most: [_order(ranking, most) for ranking in ranked[:_SHOWN_ORDERS]], width
    )
    return first_screen(
        _finding(audit),
        [Table("", (_ERRORS_HEAD[0], *_ERRORS_HEAD[2:]), rows[:_ROWS], names=1)],
        below,
        _counts(audit),
        rest=rest,
        more=full,
        width=width,
    )


def _is_wide(errors: RuleErrors) -> bool:
    """Return True where none of the group's rates has an interval of at most 60 points."""
    return all(
        rate.low is None or rate.high is None or rate.high - rate.low > _WIDE
        for rate in (errors.precision, errors.missed)
    )


def sentences(audit: Audit) -> list[str]:
    """Tell in words what follows from the tables."""
    lines = [f"warning: {cut}"] if (cut := unfinished(audit.unfinished)) else []
    lines += [_order(ranking) for ranking in audit.rankings if len(ranking.agents) > 1]
    return lines + _counts(audit)


def _finding(audit: Audit) -> list[str]:
    """Say how often the experts agree with what the evaluator passes, and what it denies."""
    if not audit.errors:
        return [f"{audit.rule}: no labelled trajectory has its verdict."]
    precision, missed, passed = _of(audit.errors[0])
    name = audit.rule[0].upper() + audit.rule[1:]
    right = (
        "1 is a true success" if precision.hits == 1 else f"{precision.hits:,} are true successes"
    )
    right += _in_words(precision)
    lines = [f"{name} passes {precision.trials:,} of {audit.n:,} runs, of which {right}"]
    cut = unfinished(audit.unfinished, _SHOWN_ORDERS)
    lines[0] += f"; {cut}" if cut else "."
    lines.append(
        f"It denies {missed.hits:,} of the {missed.trials:,} true successes{_in_words(missed)} and "
        f"passes {passed.hits:,} of the {passed.trials:,} failures{_in_words(passed)}."
    )
    return lines


def _in_words(rate: ClusteredRate) -> str:
    if rate.rate is None:
        return ""
    limits = ""
    if rate.low is not None and rate.high is not None:
        limits = f", {100 * rate.low:.1f} to {100 * rate.high:.1f} by its 95 % interval"
    return f" ({100 * rate.rate:.1f} %{limits})"


def _counts(audit: Audit) -> list[str]:
    """Count the trajectories that deserve a look, and those without a verdict."""
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


def _order(ranking: AgentRanking, most: int | None = None) -> str:
    """Tell how the evaluator shifts and orders the agents' success rates; of more than ``most``
    reversed pairs the first."""
    tau = "undefined" if ranking.tau is None else f"{ranking.tau:z.2f}"
    if ranking.low is not None and ranking.high is not None:
        tau += f" [{ranking.low:z.2f}, {ranking.high:z.2f}]"
    flips = [
        f"{flip.better} {100 * flip.expert[0]:.1f} over {flip.worse} {100 * flip.expert[1]:.1f} by "
        f"the expert, {100 * flip.evaluator[0]:.1f} under {100 * flip.evaluator[1]:.1f}"
        for flip in ranking.flips
        if flip.significant
    ]
    others = [f"{flip.better} and {flip.worse}" for flip in ranking.flips if not flip.significant]
    swapped = f"reversed pairs: {listed(flips, most, sign='; ')}" if flips else "no pair reversed"
    if others:
        swapped += f"; not distinguishable on shared tasks: {listed(others, most, sign='; ')}"
    shift = f"success rate {100 * ranking.shift:+z.1f} points against the expert"
    where = benchmark_name(ranking.benchmark)
    return f"{where}, {ranking.evaluator}: {shift}, tau {tau}; {swapped}"


def _of(errors: RuleErrors) -> tuple[ClusteredRate, ClusteredRate, ClusteredRate]:
    return errors.precision, errors.missed, errors.passed_failures


def _shown(rate: ClusteredRate) -> str:
    if rate.rate is None:
        return "–"
    limits = ""
    if rate.low is not None and rate.high is not None:
        limits = f" [{100 * rate.low:.1f}, {100 * rate.high:.1f}]"
    return f"{100 * rate.rate:.1f}{limits} {rate.hits}/{rate.trials}"
