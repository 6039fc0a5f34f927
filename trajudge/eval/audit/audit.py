"""From runs, labels and task tables to an audit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from trajudge.annotations import open_labels
from trajudge.annotations.agentrewardbench import benchmark_of
from trajudge.eval.audit.cases import Disagreement, find_cases, with_evidence
from trajudge.eval.audit.errors import Verdicts, Weights, errors_by_facet
from trajudge.eval.audit.facets import TABLES, read_facets
from trajudge.eval.audit.ranking import AgentRanking, ranking
from trajudge.eval.audit.report import Audit
from trajudge.eval.audit.settings import AuditConfig
from trajudge.eval.data.index.labels import weights_of
from trajudge.eval.data.inputs import open_recorded
from trajudge.eval.data.label_conflicts import refuse_conflicts
from trajudge.eval.data.published.source import read_published_folder
from trajudge.eval.data.sources import Source, combine, read_runs
from trajudge.eval.data.task_goals import shared_goals, shared_sentence, task_units
from trajudge.eval.scoring.compute import OVERALL, one_per_trajectory
from trajudge.judges.model import Judgment
from trajudge.trajectories.loaders import open_source, parse_source
from trajudge.trajectories.model import Trajectory, TrajectoryKey
from trajudge.trajectories.needs import NO_NEEDS
from trajudge.trajectories.util.errors import UserError

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
        shared_goals=_shared(config, source),
    )


def _shared(config: AuditConfig, source: Source) -> str:
    """Say which task ids have one goal, where they count as several tasks."""
    return "" if config.task_id == "goal" else shared_sentence(shared_goals(source.goals))


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
